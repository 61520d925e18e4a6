"""What a kernel says of its machine code: `compiled`, `resources`, `assembly`, and what is said where a compiler is absent."""

import dataclasses

import pytest

import tilelang as tl
from tests.errors._computations import copy
from tilelang.errors import DeviceError
from tilelang.lowering.compilers import clang, disassembly, nvrtc, wheels
from tilelang.lowering.compilers.listing import listings
from tilelang.lowering.drivers.interface import Device
from tilelang.profiles.profile import Profile

INSTALLED = bool(nvrtc.libraries()) and clang.program() is not None
needs_compilers = pytest.mark.skipif(not INSTALLED, reason=f"a compiler is not installed: {wheels.INSTALL}")


def transpose(dialect: str, profile: str | Profile, rows: int = 32) -> tl.Kernel:
    """Tiles of `rows` x 32 elements through shared memory, by 256 threads."""
    i, j = tl.axes(i=2 * rows, j=64)
    X = tl.input("X", tl.float32, i, j)
    tile = tl.schedule(tl.define("Y", X[i, j], j, i)).tile(j=32, i=rows).to(tl.block)
    schedule = tile.load("X", tl.shared).tile(j=4, i=rows // 32).to(tl.thread)
    return tl.compile(schedule, target=tl.target(dialect, profile=profile), options=tl.Options(cache_dir=""))


@needs_compilers
@pytest.mark.parametrize(
    ("dialect", "profile"),
    [("cuda", "ampere"), ("cuda", "volta"), ("cuda", "blackwell_rtx"), ("hip", "cdna3"), ("hip", "rdna3")],
)
def test_resources_are_what_the_compiler_reports(dialect: str, profile: str) -> None:
    made = transpose(dialect, profile)
    (used,), (reported,) = made.resources, made.compiled.kernels
    assert used.registers == reported.registers and used.registers is not None and 4 < used.registers < 100
    assert (used.spill_store_bytes, used.spill_load_bytes, used.stack_bytes, used.spills) == (0, 0, 0, False)
    assert (used.scalar_registers is None) == (dialect == "cuda") == (used.accumulation_registers is None)
    assert reported.shared_bytes == used.shared_bytes == 32 * 32 * 4
    assert made.compiled.architecture == made.target.profile.architecture
    assert str(used).startswith(f"{used.registers} registers") and str(used).endswith("no spills")
    assert f"  {used}" in made.explain().splitlines()


@needs_compilers
def test_shared_memory_beyond_what_is_static_is_counted() -> None:
    (used,) = transpose("cuda", "ampere", rows=512).resources  # 64 KiB
    assert used.shared_bytes == 512 * 32 * 4 and used.registers is not None


@needs_compilers
@pytest.mark.parametrize(
    ("dialect", "profile", "names"), [("cuda", "hopper", ("LDS", "STG", "EXIT")), ("hip", "cdna2", ("ds_read", "s_endpgm"))]
)
def test_assembly(dialect: str, profile: str, names: tuple[str, ...]) -> None:
    if not disassembly.disassemblers():
        pytest.skip(f"nvdisasm is not installed: {wheels.INSTALL}")
    (listing,) = listings(transpose(dialect, profile).assembly)
    assert all(listing.count(name) for name in names)


@pytest.mark.parametrize(("dialect", "profile", "needed"), [("cuda", "ampere", "NVRTC"), ("hip", "cdna3", "clang")])
def test_without_a_compiler_nothing_is_known(dialect: str, profile: str, needed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "libraries", lambda: ())
    monkeypatch.setattr(clang, "program", lambda: None)
    clang.version.cache_clear()
    made = transpose(dialect, profile)
    (used,) = made.resources
    assert used.registers is None and used.spills is False and str(used).startswith("registers unknown: ")
    assert "registers unknown: " in made.explain() and needed in made.explain() and "pip install" in made.explain()
    for ask in (lambda: made.compiled, lambda: made.assembly):
        with pytest.raises(DeviceError, match=needed) as caught:
            ask()
        assert caught.value.code == "no-compiler" and "pip install" in str(caught.value.help)


def test_opencl_has_no_compiler_of_its_own() -> None:
    made = tl.compile(copy(4, 4), target=tl.target(profile="simulated"))
    (used,) = made.resources
    assert used.registers is None and "opencl is compiled only by the device's driver" in str(used)
    assert "registers" not in made.explain()
    with pytest.raises(DeviceError, match="opencl is compiled only by the device's driver"):
        made.compiled  # noqa: B018


def test_a_profile_without_an_architecture() -> None:
    with pytest.raises(DeviceError, match="does not name an architecture") as caught:
        transpose("cuda", dataclasses.replace(tl.load_profile("ampere"), architecture=None)).compiled  # noqa: B018
    assert "sm_80" in str(caught.value.help)


def test_a_device_s_own_architecture_is_compiled_for() -> None:
    device = Device("cuda", "A10", "CUDA", "gpu", "1", "1", 72, 1024, 99 << 10, 1 << 34, False, "sm_86")
    profile = tl.target(device=device).profile
    assert (profile.name, profile.architecture, profile.compute_units) == ("ampere", "sm_86", 72)


@needs_compilers
def test_a_text_that_does_not_compile_is_no_resource() -> None:
    made = transpose("cuda", "ampere")
    made.__dict__["source"] = made.source.replace("threadIdx.x", "missing")
    with pytest.raises(DeviceError, match="missing") as caught:
        made.resources  # noqa: B018
    assert caught.value.code == "compile-failed"


PARTIAL_VECTORS = """
computation E {
  input B: uint64[i: 7, j: 6]
  axis l: 7
  axis q: 6
  output E[q, l] = B[l, q]
}
schedule for E {
  tile q=1 l=16 -> block
  load B in register { via shared; tile j=2 -> thread; split i=8; vectorize j=8 }
  split l=5 peel
  load B in register { tile i=16 -> thread }
  split l=3 unroll
}
"""


@needs_compilers
@pytest.mark.parametrize("profile", ["ampere", "hopper", "blackwell_rtx"])
def test_elements_of_partial_vectors_reach_memory(profile: str) -> None:
    """NVRTC dropped them where the result's pointer was restricted, and stored zeros."""
    if not disassembly.disassemblers():
        pytest.skip(f"nvdisasm is not installed: {wheels.INSTALL}")
    kernel = tl.compile(
        tl.parse(PARTIAL_VECTORS).schedule(), target=tl.target("cuda", profile=profile), options=tl.Options(cache_dir="")
    )
    assert "load_first" in kernel.source
    stores = [line for line in kernel.assembly.splitlines() if "STG" in line]
    assert stores and not any("RZ" in line.partition("]")[2] for line in stores)
