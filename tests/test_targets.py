"""Which profile a device gets that was not measured, and where what is measured of it is kept."""

import dataclasses

import pytest

import tilelang as tl
from tests.errors._computations import copy
from tests.test_nearest import made
from tilelang.autoschedule.common.lower_bound import SIDES, bandwidth, bound
from tilelang.autoschedule.cpu.device import cpu_device
from tilelang.computations.computation import as_computation
from tilelang.lowering.drivers import host, opencl
from tilelang.lowering.drivers.interface import Device
from tilelang.runtime import targets
from tilelang.runtime.targets import measured_path, shipped_target

HERE = Device("opencl", "Processor", "Platform", "cpu", "1", "OpenCL 3.0", 4, 4096, 1 << 20, 1 << 34, True, vector_bytes=64)


@pytest.mark.parametrize(("bytes_", "name"), [(16, "zen3"), (32, "zen3"), (64, "zen5"), (0, "zen3")])
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
    assert cpu_device(given).multiply_adds == pytest.approx(cpu_device(shipped).multiply_adds)
    if shipped.compute_units:
        assert bound(product, given) == pytest.approx(bound(product, shipped) * shipped.compute_units / units)
    assert bandwidth(given, 2**31, tuple(SIDES)) is None
    peak = given.rate("float32_gflops")
    assert bound(moved, dataclasses.replace(given, memories=())) == pytest.approx(2**28 / peak * 1e-9 if peak else 0)
    assert given.rate("global_gb_per_s")  # schedules are compared by it


@pytest.mark.parametrize(("model", "measured"), [(17, True), (18, False)])
def test_a_processor_of_the_measured_model_has_its_bounds(model: int, measured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver calls its architecture `native`; the profile of its very model was measured on it, that of a sibling was not."""
    found = made("AuthenticAMD", 25, model, 64)
    monkeypatch.setattr(targets, "processor", lambda: found)
    given, shipped = shipped_target(host.describe_processor(found, 2)).profile, tl.load_profile("zen4")
    assert given.name == "zen4" and given.architecture == "native"
    least = bandwidth(given, 2**31, tuple(SIDES))
    assert least == bandwidth(shipped, 2**31, tuple(SIDES)) if measured else least is None


def test_processors_of_one_name_are_told_apart() -> None:
    others = (
        dataclasses.replace(HERE, details="another architecture"),
        dataclasses.replace(HERE, compute_units=HERE.compute_units + 1),
        dataclasses.replace(HERE, name="another"),
    )
    paths = {measured_path(device) for device in (HERE, *others)}
    assert len(paths) == 4


# ---------------------------------------------------------------- options


def a_driver(monkeypatch: pytest.MonkeyPatch) -> tuple[Device, Device]:
    """OpenCL devices of two platforms, where no other is."""
    one = Device("opencl", "Processor", "First", "cpu", "1", "1", 4, 4096, 1 << 20, 1 << 34, True, vector_bytes=64)
    other = dataclasses.replace(one, name="Card", platform="Second", kind="gpu", vector_bytes=0)
    monkeypatch.setattr(opencl, "devices", lambda: (other, one))
    monkeypatch.setattr(opencl, "unusable_devices", tuple)
    monkeypatch.setattr(targets, "devices_of", lambda name: ((other, one) if name == "opencl" else (), None))
    for name in ("TARGET", "PROFILE", "PLATFORM", "DEVICE"):
        monkeypatch.delenv(f"TILELANG_{name}", raising=False)
    return one, other


def compiled(**options: str) -> tl.Target:
    """What a computation is compiled for with these options."""
    return tl.compile(copy(4, 4), options=tl.Options(**options)).target  # type: ignore[arg-type]


def test_compile_heeds_what_the_options_say_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = a_driver(monkeypatch)
    assert compiled(target="opencl", device="proc").device == one and compiled(target="opencl", platform="SECOND").device == other
    for name, value, code in (
        ("device", "RTX4090", "no-such-device"), ("platform", "NVIDIA", "no-such-device"), ("target", "nonsense", "unknown-dialect"),
        ("profile", "nonesuch", "profile-not-found"),
    ):  # fmt: skip
        with pytest.raises(tl.DeviceError) as caught:
            compiled(**{name: value})
        assert caught.value.code == code
    assert compiled(profile="ampere").profile.name == "ampere"
    assert str(compiled(profile="cdna2", target="hip")) == "hip for cdna2"
    both = compiled(profile="avx2", device="proc")
    assert both.device == one and both.profile.name == "avx2"


def test_options_win_over_the_environment_and_arguments_over_both(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = a_driver(monkeypatch)
    monkeypatch.setenv("TILELANG_PROFILE", "volta")
    monkeypatch.setenv("TILELANG_DEVICE", "card")
    assert compiled().profile.name == "volta" and compiled(profile="ampere").profile.name == "ampere"
    monkeypatch.delenv("TILELANG_PROFILE")
    assert compiled(target="opencl", device="processor").device == one
    assert compiled(target="opencl").device == other, "the environment's, where the options say nothing"
    options = tl.Options(target="cuda", profile="ampere")
    assert tl.compile(copy(4, 4), tl.target(profile="simulated"), options=options).target.profile.name == "simulated"
    assert str(tl.compile(copy(4, 4), "hip", options=tl.Options(target="cuda", profile="cdna2")).target) == "hip for cdna2"
    with pytest.raises(tl.DeviceError, match="is not a tl.Options"):
        tl.compile(copy(4, 4), options={"target": "cuda"})  # type: ignore[arg-type]
