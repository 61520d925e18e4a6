"""The processes of compilers and linkers: waited for without polling, started before their input exists, or compiling in advance.

A process that was started ahead (`begun`) waits for its text. An `Early` one already compiles a text that will probably be
needed.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, cast

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import wheels

TIMEOUT_S = 120.0  # the slowest kernels of the tests take 3 s
INSTALL = f"{wheels.CLANG}, or install clang 17 or newer and name it with TILELANG_CLANG"
_PIPE_BYTES = 1 << 16  # the default capacity of a pipe


def run(command: Sequence[str], given: bytes | None = None, files: Sequence[int] = ()) -> subprocess.CompletedProcess[bytes]:
    """Runs a program to its end. Raises DeviceError if it cannot be started or does not end in time."""
    return ended(started(command, given is not None, files), given)


class Process(subprocess.Popen[bytes]):
    """A process whose end is noticed immediately; the standard library polls with growing pauses.

    `os.pidfd_open` is missing from Pythons built for an old Linux, such as conda's.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        PROCESSES.add(self)

    def wait(self, timeout: float | None = None) -> int:
        if timeout is not None and self.returncode is None and sys.platform == "linux" and hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError), open(os.pidfd_open(self.pid), "rb", buffering=0) as end:
                watch = select.poll()
                watch.register(end, select.POLLIN)
                watch.poll(timeout * 1e3)
                timeout = 0.0
        return super().wait(timeout)


PROCESSES: weakref.WeakSet[Process] = weakref.WeakSet()


def started(command: Sequence[str], reads: bool = False, files: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Starts a program. reads: it will get input later. Raises DeviceError if it cannot be started."""
    inherited: dict[str, Any] = {"pass_fds": tuple(files)} if files else {}  # not on Windows
    source = subprocess.PIPE if reads else subprocess.DEVNULL
    try:
        return Process(list(command), stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **inherited)
    except OSError as error:
        raise DeviceError("no-compiler", f"{command[0]} cannot be started: {error.strerror}", help=INSTALL) from None


def ended(process: subprocess.Popen[bytes], given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Waits for a program and collects its output. Raises DeviceError if that takes too long."""
    command = cast("list[str]", process.args)
    with process:
        try:
            out, err = process.communicate(given, TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            said = "\n".join(text.decode(errors="replace").strip() for text in reversed(process.communicate()) if text).strip()
            message = f"{' '.join(command[:2])} did not end in {TIMEOUT_S:g} s" + (f"\n{said}" if said else "")
            raise DeviceError(
                "compile-timeout", message, help="use smaller tiles, or another compiler (TILELANG_CLANG)"
            ) from None
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class _Ahead(threading.local):
    """The compiler process that a thread started before its text was generated."""

    process: subprocess.Popen[bytes] | None = None


_AHEAD = _Ahead()


def _after_fork() -> None:
    """Closes a forked child's copies of the pipes to compilers, whose input ends only when all copies are closed."""
    for process in list(PROCESSES):
        if process.stdin is not None:
            cast(io.BufferedWriter, process.stdin).raw.close()  # another thread may hold the lock of the (empty) buffer
    _AHEAD.process = None
    for early in EARLY:
        early.disown()
    EARLY.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def begun(command: list[str]) -> Iterator[None]:
    """In the `with` block a text is generated and compiled by a command, which is started now."""
    outer, _AHEAD.process = _AHEAD.process, None
    try:
        with contextlib.suppress(DeviceError):  # the compilation itself will report it
            _AHEAD.process = started(command, reads=True)
        yield
    finally:
        unused, _AHEAD.process = _AHEAD.process, outer
        if unused is not None:
            end(unused)


class Early:
    """A compiler that works on a text whose code is not needed yet. end: kills it; called when this object is deleted.

    A thread reads its output and reaps the process, so that a program that waits for any of its child processes does not find a
    compiler among them.
    """

    def __init__(self, source: str, process: subprocess.Popen[bytes]) -> None:
        self.source, self.process = source, process
        self._outcome: list[subprocess.CompletedProcess[bytes]] = []
        self._reader = threading.Thread(target=_collect, args=(process, self._outcome), name="tilelang-compiler", daemon=True)
        self._reader.start()
        self.end = weakref.finalize(self, _stop, process, self._reader)

    def result(self) -> subprocess.CompletedProcess[bytes] | None:
        """Waits for the compiler; None if it was ended or did not end in time."""
        self._reader.join()
        return self._outcome[0] if self._outcome else None

    def disown(self) -> None:
        """In a forked child: the process belongs to the parent."""
        self.end.detach()
        self.process.returncode = 0
        for pipe in (self.process.stdout, self.process.stderr):
            cast(io.BufferedReader, pipe).raw.close()


def _collect(process: subprocess.Popen[bytes], outcome: list[subprocess.CompletedProcess[bytes]]) -> None:
    with contextlib.suppress(DeviceError):
        outcome.append(ended(process))


def _stop(process: subprocess.Popen[bytes], reader: threading.Thread) -> None:
    """Ends a compiler whose output a thread reads."""
    process.kill()
    if reader is not threading.current_thread():  # a finalizer runs in any thread
        reader.join()


EARLY: deque[Early] = deque(maxlen=1)  # shared by all threads; a new one replaces, and thereby ends, the previous one


def compile_early(source: str, command: list[str]) -> Early | None:
    """Starts to compile a text whose code is likely to be needed soon; `object_code` then waits for this compiler. None if no
    compiler starts, or if the text does not fit a pipe."""
    if sys.platform != "linux":
        return None
    import fcntl  # late: exists on some systems only

    data = source.encode()
    with contextlib.suppress(DeviceError):
        process = waiting(command)
        try:
            pipe = cast(io.BufferedWriter, process.stdin)
            with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: no thread can be started
                room = fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, max(len(data), _PIPE_BYTES))
                if len(data) <= room:
                    pipe.write(data)
                    pipe.close()
                    process.stdin = None
                    early = Early(source, process)
                    EARLY.append(early)
                    return early
        except BaseException:
            end(process)
            raise
        end(process)
    return None


def taken_up(source: str, command: list[str]) -> Early | None:
    """The compiler that already works on a text with the same options, if there is one."""
    try:
        early = EARLY.pop()
    except IndexError:
        return None
    if early.source == source and early.process.args == command and early.end.alive:
        return early
    if early.end.alive:
        EARLY.append(early)
    return None


def abandon(source: str) -> None:
    """Ends the compiler that works on a text, if there is one: its code is already known."""
    if EARLY and EARLY[-1].source == source:
        with contextlib.suppress(IndexError):  # another thread may have taken it
            EARLY.pop().end()


def waiting(command: list[str]) -> subprocess.Popen[bytes]:
    """A compiler that waits for its text: the one that this thread has started in advance, or a new one."""
    process = _AHEAD.process
    if process is None or process.args != command:
        return started(command, reads=True)
    _AHEAD.process = None
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program whose output is not needed."""
    process.kill()
    with process:
        pass
