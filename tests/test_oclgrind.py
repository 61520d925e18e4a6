"""Every example under Oclgrind, which checks each access of the compiled kernels: bounds, races, uninitialised values, barriers.

Oclgrind is loaded as an OpenCL platform by a process of its own, at tiny sizes and tiles, with the local memory of a CPU device. It
compiles without optimization: its check of uninitialised values ends at clang's `freeze`. That check also takes the elements of a
narrowing swizzle (v.s0123) for uninitialised, so kernels with one are run without it. Skipped where Oclgrind is not installed
(Debian: `apt-get install oclgrind`). The last tests plant faults and see them reported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_examples import NAMES, ROOT, SIZES

LIBRARIES = [Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so"), Path("/usr/local/lib/liboclgrind-rt-icd.so")]
LIBRARY = next((path for path in LIBRARIES if path.exists()), None)

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="Oclgrind is not installed (apt-get install oclgrind)")

RUN = """
import re, sys
import tilelang as tl
from tests.test_examples import SIZES, load
from tilelang.semantics.reference import compare, random_arrays

name, narrowing, old, new = sys.argv[1:]
target = tl.target(profile="sapphire_rapids", device=tl.target().device)  # the schedules for cores prefetch
ran = []
for schedule in load(name).schedules(*SIZES[name][1], small=True).values():
    kernel = tl.compile(schedule, target)
    assert kernel.target.device.platform == "Oclgrind", kernel.target.device
    if bool(re.search(r"[.]s[0-9a-f]{2}", kernel.source)) != bool(narrowing) or old not in kernel.source:
        continue
    kernel.__dict__["source"] = kernel.source.replace(old, new) if old else kernel.source
    arrays = random_arrays(kernel.computation)
    report = compare(kernel.computation, arrays, {kernel.computation.outputs[0].name: kernel(**arrays)})
    assert old or report, report
    ran.append(kernel)
assert ran or not old, "nothing to plant a fault in"
print("ran")
"""


def reports(name: str, folder: Path, narrowing: bool, fault: tuple[str, str] = ("", "")) -> str:
    """What Oclgrind reports of an example's kernels, of those with narrowing swizzles or of the others.

    fault: a text that is replaced by another in their sources.
    """
    (folder / "oclgrind.icd").write_text(f"{LIBRARY}\n")
    log = folder / "log"
    environment = {
        "OCL_ICD_VENDORS": str(folder),
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_LOCAL_MEM_SIZE": "2097152",
        "OCLGRIND_MAX_ERRORS": "200",
        "OCLGRIND_LOG": str(log),
        "PYOPENCL_NO_CACHE": "1",
        "PYTHONPATH": str(ROOT),
        "TILELANG_CACHE_DIR": "",
        "TILELANG_PLATFORM": "Oclgrind",
        **({} if narrowing else {"OCLGRIND_UNINITIALIZED": "1"}),
    }
    command = [sys.executable, "-c", RUN, name, "narrowing" if narrowing else "", *fault]
    done = subprocess.run(command, env={**os.environ, **environment}, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "ran\n", done.stdout + done.stderr
    return log.read_text() if log.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("narrowing", [False, True], ids=["all_checks", "without_uninitialised"])
def test_example_is_clean(name: str, narrowing: bool, tmp_path: Path) -> None:
    assert reports(name, tmp_path, narrowing) == ""


def test_a_missing_barrier_is_reported(tmp_path: Path) -> None:
    assert "data race" in reports("11_transpose", tmp_path, False, ("barrier(CLK_LOCAL_MEM_FENCE)", ""))


def test_a_missing_initialisation_is_reported(tmp_path: Path) -> None:
    assert "Uninitialized value" in reports("13_causal_product", tmp_path, False, (" = 0.0f;", ";"))


def test_a_store_out_of_bounds_is_reported(tmp_path: Path) -> None:
    assert "Invalid write" in reports("11_transpose", tmp_path, False, ("Y[", "Y[1000 + "))


def test_sizes_are_odd() -> None:
    assert all(any(size % 2 for size in SIZES[name][1]) for name in NAMES)
