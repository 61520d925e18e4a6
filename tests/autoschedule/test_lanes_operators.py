"""The operators of roller.csv on every shipped device whose warps run in lockstep: constructed, accepted, within the device."""

from __future__ import annotations

import pytest

import tilelang as tl
from benchmarks import gpu_cases
from benchmarks.constructed import faults, operator
from tests.gate.machine_code import compile_for_architecture
from tilelang.autoschedule.common.construct import construct

DEVICES = [n for n in tl.profiles.files.shipped_profiles() if tl.load_profile(n).lockstep]


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_operators_are_accepted_and_fit(device: str) -> None:
    """Each operator on one device, in turns: all of them on all devices take minutes."""
    profile = tl.load_profile(device)
    for name, kind, extents in gpu_cases.roller()[DEVICES.index(device) :: len(DEVICES)]:
        computation = operator(kind, extents)
        for what, text in faults(computation, profile, construct(computation, profile)[:1]):
            assert not what, f"{name}: {text}"


@pytest.mark.parametrize("name", ["M1", "M3", "C0", "D14", "P1", "R3", "E19"])
@pytest.mark.parametrize(("device", "dialect"), [("volta", "cuda"), ("h200", "cuda"), ("cdna3", "hip")])
def test_compilers_keep_what_threads_have_in_registers(device: str, dialect: str, name: str) -> None:
    profile = tl.load_profile(device)
    kind, extents = next((k, e) for n, k, e in gpu_cases.roller() if n == name)
    best = construct(operator(kind, extents), profile)[0]
    source = tl.compile(best.schedule, target=tl.target(dialect, profile=device)).source
    for kernel in compile_for_architecture(str(profile.architecture))(source).compiled.kernels:
        assert kernel.stack_bytes == 0 and not kernel.spills
