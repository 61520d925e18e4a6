"""Forked children run kernels, whatever their parent was doing when it forked."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilelang.lowering.compilers import native, processes

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

FORKED = """
import multiprocessing, sys
import numpy as np, tilelang as tl
i = tl.axes(i=4)
doubled = tl.define("Y", 2 * tl.input("X", tl.float32, i)[i], i)
kernel = tl.compile(doubled) if sys.argv[1] == "after" else None
if kernel: kernel(np.ones(4, np.float32))
def child():
    for make in (lambda: kernel or tl.compile(doubled), lambda: tl.compile(doubled)):
        try:
            print(make()(np.ones(4, np.float32)))
        except tl.DeviceError as error:
            print(error.code if "spawn" in error.help else error)
forked = multiprocessing.get_context("fork").Process(target=child)
forked.start()
forked.join()
"""


@pytest.mark.parametrize("when", ["after", "before"])
def test_a_forked_child_runs_kernels(when: str) -> None:
    command = [sys.executable, "-c", FORKED, when]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.stdout.splitlines() == ["[2. 2. 2. 2.]"] * 2, done.stderr


FORKED_AMID = """
import os, signal, sys, threading, time
import numpy as np
import tilelang as tl
options = tl.Options(cache_dir="", database="")
i = tl.axes(i=64)
X = tl.input("X", tl.float32, i)
x, doubled = np.ones(64, np.float32), tl.schedule(tl.define("Y", X[i] * 2, i))
kernel = tl.compile(doubled, target="cpu", options=options)
kernel(x)
done = False
def work():
    while not done:
        (kernel if sys.argv[1] == "calls" else tl.compile(doubled, target="cpu", options=options))(X=x)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
codes = []
for _ in range(8):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        right = (kernel(X=x) == 2).all() and (tl.compile(doubled, target="cpu", options=options)(x) == 2).all()
        os._exit(0 if right else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if codes[-1]: break
done = True
for thread in threads: thread.join()
print(codes)
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["calls", "builds"])
def test_a_fork_while_other_threads_call_and_build_kernels(what: str) -> None:
    command = [sys.executable, "-c", FORKED_AMID, what]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.stdout == f"{[0] * 8}\n", done.stderr


def test_a_compiler_does_not_wait_for_a_child_that_was_forked_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler reads a pipe to its end, and the child has a copy of it."""
    monkeypatch.setattr(processes, "TIMEOUT_S", 20.0)
    with native.begun(native.NATIVE, ()):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        try:
            assert native.compile_source('__attribute__((visibility("default"))) int one(void) { return 1; }', native.NATIVE).code
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no text is compiled before somebody asks for its code")
def test_a_child_leaves_alone_what_its_parent_has_begun_to_compile() -> None:
    source = '__attribute__((visibility("default"))) int two(void) { return 2; }'
    early = native.compile_early(source, native.NATIVE)
    assert early is not None
    child = os.fork()
    if child == 0:
        gc.collect()
        os._exit(len(processes.EARLY))
    assert os.waitpid(child, 0)[1] == 0
    assert native.compile_source(source, native.NATIVE).code and early.process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no text is compiled before somebody asks for its code")
def test_a_child_that_its_parent_forks_while_a_compiler_works_warns_of_nothing() -> None:
    script = (
        "import gc, os\n"
        "from tilelang.lowering.compilers import native\n"
        "early = native.compile_early('int two(void) { return 2; }', native.NATIVE)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    del early; gc.collect(); os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
