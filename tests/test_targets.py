"""Which profile a device gets that was not measured, and where what is measured of it is kept."""

import dataclasses

import pytest

import tilelang as tl
from tilelang.autoschedule.cores import cores_of
from tilelang.autoschedule.roofline import SIDES, bandwidth, bound
from tilelang.computation import as_computation
from tilelang.targets import measured_path, shipped_target

HERE = next(device for device in tl.devices() if device.driver == "opencl" and device.kind == "cpu")


@pytest.mark.parametrize(("bytes_", "name"), [(16, "avx2"), (32, "avx2"), (64, "pocl"), (0, "pocl")])
def test_a_processor_gets_the_profile_of_its_vectors(bytes_: int, name: str) -> None:
    assert shipped_target(dataclasses.replace(HERE, vector_bytes=bytes_)).profile.name == name


@pytest.mark.parametrize(
    ("device", "name"),
    [("QUALCOMM Adreno(TM)", "adreno640"), ("Mali-G610 r0p0", "mali_g76"), ("Intel(R) UHD Graphics 770", "opencl_gpu"),
     ("NVIDIA T4", "opencl_gpu"), ("", "opencl_gpu")],
)  # fmt: skip
def test_a_graphics_processor_gets_the_profile_of_its_name(device: str, name: str) -> None:
    found = shipped_target(dataclasses.replace(HERE, kind="gpu", name=device))
    assert found.profile.name == name and found.origin == "shipped"


@pytest.mark.parametrize(("units", "bytes_"), [(1, 64), (8, 64), (64, 64), (64, 32)])
def test_a_processor_with_other_cores_gets_no_false_bound(units: int, bytes_: int) -> None:
    """A core of it does what a core of the shipped profile does; what the memory of another machine gives bounds no time."""
    i, j, k = tl.axes(i=512, j=512, k=512)
    A, B = tl.input("A", tl.float32, i, k), tl.input("B", tl.float32, k, j)
    product = as_computation(tl.define("C", tl.sum(A[i, k] * B[k, j], over=k), i, j))
    m, n = axes = tl.axes(m=1 << 14, n=1 << 14)
    moved = as_computation(tl.define("Y", tl.input("X", tl.float32, *axes)[m, n] * 2, m, n))
    given = shipped_target(dataclasses.replace(HERE, compute_units=units, vector_bytes=bytes_)).profile
    shipped = tl.load_profile(given.name)
    assert cores_of(given).multiply_adds == pytest.approx(cores_of(shipped).multiply_adds)
    if shipped.compute_units:
        assert bound(product, given) == pytest.approx(bound(product, shipped) * shipped.compute_units / units)
    assert bandwidth(given, 2**31, tuple(SIDES)) is None
    peak = given.rate("float32_gflops")
    assert bound(moved, dataclasses.replace(given, memories=())) == pytest.approx(2**28 / peak * 1e-9 if peak else 0)
    assert given.rate("global_gb_per_s")  # schedules are compared by it


def test_processors_of_one_name_are_told_apart() -> None:
    others = (
        dataclasses.replace(HERE, details="another architecture"),
        dataclasses.replace(HERE, compute_units=HERE.compute_units + 1),
        dataclasses.replace(HERE, name="another"),
    )
    paths = {measured_path(device) for device in (HERE, *others)}
    assert len(paths) == 4
