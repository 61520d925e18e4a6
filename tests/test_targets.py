"""Which profile a device gets that was not measured, and where what is measured of it is kept."""

import dataclasses

import pytest

import tilelang as tl
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


def test_processors_of_one_name_are_told_apart() -> None:
    others = (
        dataclasses.replace(HERE, details="another architecture"),
        dataclasses.replace(HERE, compute_units=HERE.compute_units + 1),
        dataclasses.replace(HERE, name="another"),
    )
    paths = {measured_path(device) for device in (HERE, *others)}
    assert len(paths) == 4
