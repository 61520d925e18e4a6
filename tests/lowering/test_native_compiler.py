"""The compiler for processors: which program it is, what it is asked, and what is said where it is missing, old, broken or slow."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilelang as tl
from tilelang.errors import DeviceError, Refusal
from tilelang.lowering.compilers import native, processes
from tilelang.lowering.compilers.compiled import Compiled, kept
from tilelang.lowering.drivers import host
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.targets.c import emitter
from tilelang.runtime import likely_kernel

TWICE = """\
__attribute__((visibility("default"))) void twice(void* const* arguments, char* scratch, long long first, long long last)
{
    for (long long i = first; i < last; ++i) ((float*)arguments[0])[i] *= 2;
}
"""

pytestmark = pytest.mark.skipif(native.program() is None, reason="the ziglang wheel is not installed")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no text is compiled before somebody asks for its code")
posix = pytest.mark.skipif(os.name != "posix", reason="the stand-ins for compilers are shell scripts")


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Makes a shell script the compiler; the one of the machine comes back after the test."""

    def chosen(script: str) -> None:
        path = tmp_path / "clang"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("TILELANG_CLANG", str(path))
        forget()

    def forget() -> None:
        native.toolchain.cache_clear()
        native.resolved.cache_clear()

    yield chosen
    monkeypatch.undo()
    forget()


def test_a_text_becomes_a_library_that_runs() -> None:
    compiled = native.compile_source(TWICE, "native")
    assert compiled.compiler == native.version() and compiled.code
    assert "addss" in native.assembly(TWICE, "x86-64-v2@x86_64-linux") and "fadd" in native.assembly(
        TWICE, "generic@aarch64-linux"
    )


def test_the_same_text_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = BinaryCache(str(tmp_path))
    first = native.compile_source(TWICE, "native", (), cache)
    monkeypatch.setattr(native, "object_code", lambda *_: pytest.fail("compiled again"))
    assert native.compile_source(TWICE, "native", (), cache) == first


def test_a_key_names_the_processor_with_its_features_and_the_compiler() -> None:
    """Never the word `native`: a cache folder may be carried to another machine, and a virtual machine moved."""
    version, *facts = native.resolved("native")
    assert version == native.version() and "native" not in facts and len(facts) > 3
    assert native.resolved("x86-64-v3@x86_64-linux") != native.resolved("x86-64-v4@x86_64-linux")


@pytest.mark.parametrize(
    ("architecture", "magic"),
    [("neoverse-v2@aarch64-linux", b"\x7fELF"), ("x86-64-v3@x86_64-windows", b"MZ"), ("haswell@x86_64-linux", b"\x7fELF")],
)
def test_other_machines(architecture: str, magic: bytes) -> None:
    assert native.compile_source(TWICE, architecture).code.startswith(magic)


@pytest.mark.parametrize("architecture", ["i386@pdp-11", "neoverse v2@aarch64-linux", "no-such-cpu", "no-such-cpu@aarch64-linux"])
def test_architectures_that_are_not_known(architecture: str) -> None:
    with pytest.raises(DeviceError) as raised:
        native.compile_source(TWICE, architecture)
    assert raised.value.code == "unknown-architecture" and raised.value.help


def test_a_text_that_does_not_compile_gives_the_compilers_words() -> None:
    with pytest.raises(DeviceError, match="undeclared") as raised:
        native.compile_source("void f(void) { g = 1; }", "native")
    assert raised.value.code == "compile-failed"


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The compilers that are started; at the end of a test all of them have ended."""
    started, start = list[Any](), processes.started
    native.resolved("native")

    def noted(command: list[str], *given: Any, **named: Any) -> Any:
        process = start(command, *given, **named)
        started.extend([process] if "-c" in command else [])
        return process

    monkeypatch.setattr(processes, "started", noted)
    yield started
    processes.EARLY.clear()
    assert all(p.returncode is not None and (p.stdin is None or p.stdin.closed) and p.stdout.closed for p in started)


def test_a_compiler_starts_before_its_text_is_there(compilers: list[Any]) -> None:
    with native.begun("native", ()):
        assert len(compilers) == 1
        assert native.compile_source(TWICE, "native").code and len(compilers) == 1
        assert native.compile_source(TWICE + "// 2", "native").code and len(compilers) == 2  # one text is all that it reads


def test_a_compiler_starts_again_for_other_options(compilers: list[Any]) -> None:
    with native.begun("native", ("-O1",)):
        assert native.compile_source(TWICE, "native").code
    assert [p.returncode == 0 for p in compilers] == [False, True]


def test_a_compiler_ends_where_no_text_comes(compilers: list[Any]) -> None:
    with pytest.raises(RuntimeError), native.begun("native", ()):
        raise RuntimeError
    assert len(compilers) == 1


FACTORS = itertools.count(2)


class Rows(NamedTuple):
    """Sums of rows, or rows, times a factor. written: for each text that was written, how many compilers had started."""

    computation: tl.Tensor
    options: tl.Options
    expected: float
    written: list[int]

    def compile(self) -> tl.Kernel:
        return tl.compile(self.computation, "cpu", options=self.options)

    def right(self, kernel: tl.Kernel) -> bool:
        return bool(np.all(kernel(np.ones((64, 48), np.float32)) == self.expected))


@pytest.fixture(params=["sums", "products"])
def rows(compilers: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> Rows:
    i, k = tl.axes(i=64, k=48)
    X = tl.input("X", tl.float32, i, k)
    sums, factor = request.param == "sums", next(FACTORS)  # a process keeps the libraries that it loaded last
    Y = tl.define("Y", tl.sum(X[i, k] * factor, over=k), i) if sums else tl.define("Y", X[i, k] * factor, i, k)
    written, emit = list[int](), emitter.emit

    def noted(*given: Any) -> str:
        written.append(len(compilers))
        return emit(*given)

    for module in (emitter, likely_kernel):
        monkeypatch.setattr(module, "emit", noted)
    host.connect(host.devices()[0])._pool_code()
    compilers.clear()
    return Rows(Y, tl.Options(database="", cache_dir=str(tmp_path)), (48.0 if sums else 1.0) * factor, written)


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiler works beside a search."""
    monkeypatch.setattr(likely_kernel.LikelyKernel, "helps", False)


def test_a_kernel_is_written_while_its_compiler_starts(
    compilers: list[Any], monkeypatch: pytest.MonkeyPatch, rows: Rows, tmp_path: Path
) -> None:
    """Where the schedule is constructed; for one that is given, the binary may be in a cache."""
    alone(monkeypatch)
    constructed = rows.compile()
    assert not compilers and rows.right(constructed)
    assert rows.written == [1] and len(compilers) == 1  # the text names the options that it was started with
    assert rows.right(tl.compile(constructed.schedule, "cpu", options=rows.options))
    assert rows.written == [1]  # nor is the text of one whose launch plan is kept written again
    elsewhere = rows.options.replace(cache_dir=str(tmp_path / "elsewhere"))
    assert rows.right(tl.compile(constructed.schedule, "cpu", options=elsewhere))
    assert rows.written == [1, 1]


@on_linux
def test_a_likely_kernel_is_compiled_while_its_schedule_is_searched_for(compilers: list[Any], rows: Rows) -> None:
    kernel = rows.compile()
    assert rows.written == [1] and len(compilers) == 1
    assert rows.right(kernel)
    assert rows.written == [1] and [p.returncode for p in compilers] == [0]


@on_linux
def test_a_compiler_ends_where_a_search_ends_elsewhere(compilers: list[Any], monkeypatch: pytest.MonkeyPatch, rows: Rows) -> None:
    guess = likely_kernel.LikelyKernel.guess
    with monkeypatch.context() as other:
        alone(other)
        expected = rows.compile()
    monkeypatch.setattr(likely_kernel.LikelyKernel, "guess", lambda self, steps: guess(self, steps[:-1]))
    kernel = rows.compile()
    assert compilers and all(p.returncode is not None for p in compilers)
    assert kernel.schedule.steps == expected.schedule.steps and kernel.source == expected.source
    compilers.clear()
    assert rows.right(kernel) and [p.returncode for p in compilers] == [0]


@on_linux
def test_a_compiler_that_was_interrupted_is_asked_again(compilers: list[Any], rows: Rows) -> None:
    """As Ctrl-C reaches every process of a terminal."""
    kernel = rows.compile()
    interrupted = processes.started([sys.executable, "-c", "import os; os.kill(os.getpid(), 2)"])
    interrupted.args = compilers[0].args
    processes.EARLY.append(processes.Early(kernel.source, interrupted))
    assert rows.right(kernel) and interrupted.returncode not in (None, 0)
    assert [p.returncode == 0 for p in compilers] == [False, False, True]


@on_linux
def test_one_kernel_at_a_time_is_compiled_before_anybody_asks(compilers: list[Any], rows: Rows) -> None:
    first, second = rows.compile(), rows.compile()
    assert compilers[0].returncode is not None and processes.EARLY[-1].process is compilers[1]
    assert rows.right(second) and rows.right(first)  # the same text: the second one's library
    assert len(compilers) == 2


@on_linux
def test_a_refusal_of_what_is_likely_is_nobodys(monkeypatch: pytest.MonkeyPatch, rows: Rows) -> None:
    def refuses(*_: Any) -> Any:
        raise Refusal("bad-steps", "no")

    monkeypatch.setattr(likely_kernel, "lower", refuses)
    kernel = rows.compile()
    assert not rows.written and rows.right(kernel)


@on_linux
def test_a_long_text_is_compiled_when_somebody_asks(compilers: list[Any]) -> None:
    """It has no room in a pipe, and nobody would write the rest of it."""
    assert native.compile_early(TWICE + "// " + "x" * (2 << 20), "native") is None
    early = native.compile_early(TWICE + "// " + "x" * (1 << 18), "native")
    assert early is not None and len(compilers) == 2
    early.end()


@on_linux
def test_a_compiler_is_no_child_of_ours_any_more_once_it_is_done(rows: Rows) -> None:
    """A program that waits for any of its children must not find one of ours, also if the kernel is never called."""
    kernel = rows.compile()
    process = processes.EARLY[-1].process
    until = time.monotonic() + 60
    while process.returncode is None and time.monotonic() < until:
        time.sleep(0.01)
    assert process.returncode == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)
    assert rows.right(kernel)


@on_linux
def test_a_compiler_ends_if_the_kernel_is_in_the_cache(tmp_path: Path) -> None:
    cache = BinaryCache(str(tmp_path))
    assert native.compile_source(TWICE, "native", cache=cache).code
    early = native.compile_early(TWICE, "native")
    assert early is not None and native.compile_source(TWICE, "native", cache=cache).code
    assert early.process.returncode is not None and not processes.EARLY


@on_linux
def test_only_lld_writes_to_a_pipe(monkeypatch: pytest.MonkeyPatch, use: Callable[[str], None]) -> None:
    """GNU ld deletes an output in which it cannot seek: as root /dev/stdout itself."""
    use(KNOWN)
    system = native.system_of("native")
    monkeypatch.setattr(native, "_beside", lambda name: None)
    assert not native._in_memory(system) and not any(part.startswith("-fuse-ld") for part in native.linker_command(system))
    monkeypatch.setattr(native, "_beside", lambda name: f"/usr/bin/{name}")
    assert native._in_memory(system) and "-fuse-ld=/usr/bin/ld.lld" in native.linker_command(system)


@on_linux
def test_a_linker_that_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty library is refused, and nothing is kept of it."""
    monkeypatch.setattr(native, "_output", lambda done, system: b"")
    with pytest.raises(DeviceError) as raised:
        native.Linker(native.system_of("native")).link(b"object")
    assert raised.value.code == "no-compiler" and "has linked nothing" in raised.value.message
    cache = BinaryCache(str(tmp_path))
    cache.put("empty", Compiled("native", "clang", b"", ()).to_bytes())
    assert kept(cache, "empty") is None


@on_linux
def test_a_compiler_whose_code_nobody_asks_for_ends_with_the_process(tmp_path: Path) -> None:
    script = (
        "import sys, tilelang as tl\n"
        "from tilelang.lowering.compilers import processes\n"
        "i = tl.axes(i=64)\n"
        'X = tl.input("X", tl.float32, i)\n'
        f'tl.compile(tl.define("Y", X[i] * 2, i), "cpu", options=tl.Options(database="", cache_dir={str(tmp_path)!r}))\n'
        "print(processes.EARLY[0].process.pid)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
    assert not Path(f"/proc/{int(done.stdout)}").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the linker starts behind the compiler")
def test_the_linker_starts_before_the_compiler_and_ends_where_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    started, start = list[Any](), processes.started

    def noted(*given: Any, **named: Any) -> Any:
        started.append(start(*given, **named))
        return started[-1]

    native.resolved("native")
    monkeypatch.setattr(processes, "started", noted)
    for text in (TWICE, "void f(void) { g = 1; }"):
        with contextlib.suppress(DeviceError):
            native.compile_source(text, "native")
        linker, compiler = started[-2:]
        assert "ld.lld" in linker.args and "-c" in compiler.args
        assert all(p.returncode is not None and p.stdin.closed and p.stdout.closed for p in (linker, compiler))


def test_a_call_of_a_library_is_refused_where_it_is_linked() -> None:
    with pytest.raises(DeviceError, match="nowhere") as raised:
        native.compile_source('void nowhere(void); __attribute__((visibility("default"))) void f(void) { nowhere(); }', "native")
    assert raised.value.code == "compile-failed"


# ---------------------------------------------------------------- other compilers


@posix
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'Debian clang version 14.0.6'", "clang 14.0.6; kernels need version 17 or newer"),
        ("echo hello", "does not tell its version: hello"),
        ("exit 3", "it printed nothing"),
    ],
)
def test_a_compiler_that_cannot_be_used(use: Callable[[str], None], script: str, words: str) -> None:
    use(script)
    with pytest.raises(DeviceError) as raised:
        native.version()
    assert raised.value.code == "no-compiler" and words in raised.value.message and "ziglang" in (raised.value.help or "")


def test_a_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch, use: Callable[[str], None]) -> None:
    use("")
    monkeypatch.setenv("TILELANG_CLANG", "/nowhere/clang")
    with pytest.raises(DeviceError, match="/nowhere/clang is not a program"):
        native.version()
    monkeypatch.delenv("TILELANG_CLANG")
    monkeypatch.setattr(native, "program", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    with pytest.raises(DeviceError, match="not installed") as raised:
        native.version()
    assert raised.value.code == "no-compiler" and "ziglang" in (raised.value.help or "")


KNOWN = 'case "$*" in *--version*) echo "clang version 19.1.0"; exit;; *-###*) echo \'"-target-cpu" "some"\' >&2; exit;; esac; '


@posix
def test_a_compiler_describes_itself_once(use: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process with the same cache does not start the wheel's program for what it said before; a changed one is asked again, and
    any other compiler always, since it may be a script that starts another program."""
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "cache"))
    asked = tmp_path / "asked"
    for version, times, of_the_wheel in (("19.1.0", 2, True), ("20.1.0-rc1", 4, True), ("20.1.1", 10, False)):
        use(f'echo x >> "{asked}"; ' + KNOWN.replace("19.1.0", version))
        if of_the_wheel:
            monkeypatch.delenv("TILELANG_CLANG")
            monkeypatch.setattr(native, "program", lambda: tmp_path / "clang")
        else:
            monkeypatch.setattr(native, "program", lambda: None)
        for _ in range(3):
            native.toolchain.cache_clear()
            native.resolved.cache_clear()
            assert native.resolved("native") == (f"clang {version}", "some")
        assert len(asked.read_text().split()) == times


@posix
def test_a_compiler_that_crashes(use: Callable[[str], None]) -> None:
    use(KNOWN + "echo 'Stack dump:' >&2; kill -SEGV $$")
    with pytest.raises(DeviceError, match="Stack dump") as raised:
        native.compile_source(TWICE, "native")
    assert raised.value.code == "compile-failed"
    use(KNOWN + "kill -SEGV $$")
    with pytest.raises(DeviceError, match="signal 11"):
        native.compile_source(TWICE, "native")


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="elsewhere the standard library waits")
def test_the_end_of_a_compiler_is_awaited_without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    def paused(seconds: float) -> None:
        raise AssertionError(f"slept {seconds} s")

    monkeypatch.setattr(time, "sleep", paused)
    assert all(native.compile_source(TWICE + f"// {n}", "native").code for n in range(5))


def test_without_the_call_that_awaits_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pythons that were built for an old Linux have none."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert native.compile_source(TWICE + "// without", "native").code


@posix
def test_a_compiler_that_never_ends(use: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    use(KNOWN + "echo 'still at it' >&2; exec sleep 1000")
    assert native.resolved("native")
    monkeypatch.setattr(processes, "TIMEOUT_S", 0.5)
    with pytest.raises(DeviceError, match="still at it") as raised:
        native.compile_source(TWICE, "native")
    assert raised.value.code == "compile-timeout" and "0.5 s" in raised.value.message


@posix
@posix
def test_a_linker_that_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[str], None]) -> None:
    """The compiler works, the linker beside it does not: the installation is told, not the kernel's text."""
    use("")
    monkeypatch.delenv("TILELANG_CLANG")
    stub = tmp_path / "zig"
    stub.write_text(
        f'#!/bin/sh\ncase "$1" in ld.lld) echo "cannot load a library" >&2; exit 127;; esac\nexec {native.program()} "$@"\n'
    )
    stub.chmod(0o755)
    monkeypatch.setattr(native, "program", lambda: stub)
    native.toolchain.cache_clear()
    with pytest.raises(DeviceError) as raised:
        native.compile_source(TWICE, "x86-64-v2@x86_64-linux")
    assert raised.value.code == "no-compiler" and "ld.lld --version ends with exit status 127" in raised.value.message
    assert "cannot load a library" in raised.value.message and "ziglang" in (raised.value.help or "")


def test_where_nothing_can_be_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with pytest.raises(DeviceError) as raised:
        native.compile_source(TWICE, "x86-64-v3@x86_64-windows")
    assert raised.value.code == "no-room" and "TMPDIR" in (raised.value.help or "")


@posix
def test_a_kernel_tells_why_it_cannot_be_compiled(use: Callable[[str], None], tmp_path: Path) -> None:
    use("exit 1")
    i = tl.axes(i=7)
    kernel = tl.compile(tl.define("Y", tl.input("X", tl.float32, i)[i] * 3, i), tl.target("cpu", profile="avx2"))
    with pytest.raises(DeviceError) as raised:
        _ = kernel.compiled
    assert raised.value.code == "no-compiler"
    assert "X" in kernel.source, "the text needs no compiler"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a text is linked in a temporary folder")
def test_no_folder_is_needed_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full, read-only and missing temporary folders do not matter on Linux: programs read and write pipes and memory."""
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    assert native.compile_source(TWICE + "\n", "native").code


@pytest.mark.skipif(sys.platform != "linux", reason="loads what was compiled by its file in memory")
def test_what_is_loaded_is_what_was_compiled() -> None:
    file = os.memfd_create("twice")
    os.write(file, native.compile_source(TWICE, "native").code)
    library = ctypes.CDLL(f"/proc/self/fd/{file}")
    os.close(file)
    numbers = (ctypes.c_float * 4)(1, 2, 3, 4)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(numbers))
    library.twice(arguments, None, ctypes.c_longlong(1), ctypes.c_longlong(3))
    assert list(numbers) == [1, 4, 6, 4]
