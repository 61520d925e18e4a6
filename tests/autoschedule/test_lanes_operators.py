"""The operators of roller.csv on every shipped device whose warps run in lockstep: constructed, accepted, within the device."""

from __future__ import annotations

import pytest

import tilelang as tl
from benchmarks import gpu_cases
from tests.gate.machine_code import compile_for_architecture
from tilelang.autoschedule.construct import construct
from tilelang.computation import Computation, as_computation
from tilelang.testing import lowered

DEVICES = [n for n in tl.machine.shipped_profiles() if tl.load_profile(n).lockstep]


def case(kind: str, extents: tuple[int, ...]) -> gpu_cases.Case:
    match kind:
        case "matmul":
            m, n, k = extents
            return gpu_cases.product(m, n, k, tl.float32)
        case "relu":
            return gpu_cases.pointwise("relu", extents[0])
        case "row_sum":
            return gpu_cases.by_rows("row sum", "06_row_sum", "row_sum", extents[0], extents[1], "simt", (64,))
        case "convolution":
            return gpu_cases.convolution(extents)
        case "depthwise":
            return gpu_cases.depthwise(extents)
        case _:
            return gpu_cases.pooling(extents)


def operator(kind: str, extents: tuple[int, ...]) -> Computation:
    return as_computation(case(kind, extents).make(None))


@pytest.mark.parametrize("device", DEVICES)
def test_operators_are_accepted_and_fit(device: str) -> None:
    """Each operator on one device, in turns: all of them on all devices take minutes."""
    profile = tl.load_profile(device)
    for name, kind, extents in gpu_cases.roller()[DEVICES.index(device) :: len(DEVICES)]:
        best = construct(operator(kind, extents), profile)[0]
        program = lowered(best.schedule, profile)
        assert program.kernels[0].shared_bytes <= (profile.memory("shared").capacity_bytes or 0), name
        assert best.estimate.seconds >= best.estimate.bound, name


@pytest.mark.parametrize("name", ["M1", "M3", "C0", "D14", "P1", "R3", "E19"])
@pytest.mark.parametrize(("device", "dialect"), [("volta", "cuda"), ("h200", "cuda"), ("cdna3", "hip")])
def test_compilers_keep_what_threads_have_in_registers(device: str, dialect: str, name: str) -> None:
    profile = tl.load_profile(device)
    kind, extents = next((k, e) for n, k, e in gpu_cases.roller() if n == name)
    best = construct(operator(kind, extents), profile)[0]
    source = tl.compile(best.schedule, target=tl.target(dialect, profile=device)).source
    for kernel in compile_for_architecture(str(profile.architecture))(source).compiled.kernels:
        assert kernel.stack_bytes == 0 and not kernel.spills
