"""What `make gpu-check` says where there is no GPU, and of checkers that are absent, do not start, or find something."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import matmul, softmax
from tests.gpu import __main__ as check
from tests.gpu.emulated import Driver
from tilelang.lowering.drivers import interface
from tilelang.testing import emulation


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "gpu", lambda done: None)
    assert check.main() == 3


def test_the_numeric_suite_is_there() -> None:
    for path in check.NUMERIC:
        file, _, name = path.partition("::")
        assert (check.ROOT / file).exists() and f"def {name}" in ((check.ROOT / file).read_text() if name else "def ")


@pytest.mark.parametrize(
    ("dialect", "why"), [("cuda", "compute-sanitizer is not here"), ("hip", "there is no such checker for hip")]
)
def test_checkers_that_are_not_there(
    dialect: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert check.check_with("memcheck", dialect)
    assert capsys.readouterr().out == f"memcheck: not run: {why}\n"


@pytest.mark.parametrize(
    ("script", "right", "said"),
    [
        ("echo Device not supported; exit 1", True, "memcheck: not run: it does not start here: Device not supported"),
        ("echo ERROR SUMMARY: 0 errors; exit 0", True, "memcheck: ERROR SUMMARY: 0 errors"),
        ("echo ERROR SUMMARY: 2 errors; exit 9", False, "memcheck: ERROR SUMMARY: 2 errors"),
        ('case "$*" in *tiny*) exit 0;; esac; echo it broke; exit 1', False, "memcheck: it broke"),
        ('case "$*" in *tiny*) exit 0;; esac; exec sleep 60', True, "memcheck: not run to the end: it did not end in 1 s"),
    ],
)
def test_what_a_checker_says(
    script: str, right: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    if "sleep" in script:
        monkeypatch.setattr(check, "LIMIT_S", 1)
    assert check.check_with("memcheck", "cuda") is right
    assert capsys.readouterr().out == f"{said}\n"


@pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))
@pytest.mark.parametrize("dialect", ["cuda", "hip"])
def test_the_runtime_drives_an_emulated_device(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of its own, workspaces, outputs that are given: everything but the device."""
    driver, real = Driver(dialect), interface.load
    monkeypatch.setattr(interface, "load", lambda name: driver if name == dialect else real(name))
    target = tl.target(device=driver.device)
    assert target.dialect == dialect and target.profile.architecture == driver.device.architecture
    generator = np.random.default_rng(0)
    a, b = generator.integers(-4, 5, (5, 7)).astype(np.float32), generator.integers(-4, 5, (7, 6)).astype(np.float32)
    out = np.zeros((6, 5), np.float32).T
    assert tl.compile(matmul(5, 6, 7), target)(a, b, out=out) is out
    np.testing.assert_array_equal(out, a @ b)
    assert tl.compile(softmax(4, 9), target).check()
