"""What a kernel says of its machine code: `compiled`, `resources`, `assembly`, and what is said where a compiler is absent."""

import pytest

import tilelang as tl
from tests.errors._computations import copy
from tilelang.errors import DeviceError
from tilelang.lowering.compilers import clang, disassembly, nvrtc, wheels
from tilelang.lowering.drivers.interface import Device
from tilelang.lowering.targets import opencl
from tilelang.machine import load_profile
from tilelang.targets import DIALECTS, Target

INSTALLED = bool(nvrtc.libraries()) and clang.program() is not None
needs_compilers = pytest.mark.skipif(not INSTALLED, reason=f"a compiler is not installed: {wheels.INSTALL}")

TEXT = 'extern "C" __global__ void C(const float* A, float* C) { __shared__ float s[8]; s[threadIdx.x] = A[0]; C[0] = s[1]; }'


def kernel(dialect: str, profile: str, monkeypatch: pytest.MonkeyPatch, text: str = TEXT) -> tl.Kernel:
    """A kernel whose source is given, for a dialect and a profile."""
    monkeypatch.setitem(DIALECTS, dialect, DIALECTS.get(dialect, opencl.DIALECT))
    made = tl.compile(copy(4, 4), target=Target(dialect, load_profile(profile)), options=tl.Options(cache_dir=""))
    made.__dict__["source"] = text.replace(" C(", f" {made.program.kernels[0].name}(")
    return made


@needs_compilers
@pytest.mark.parametrize(("dialect", "profile"), [("cuda", "ampere"), ("cuda", "volta"), ("hip", "cdna3"), ("hip", "rdna3")])
def test_resources_are_what_the_compiler_reports(dialect: str, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = kernel(dialect, profile, monkeypatch)
    (used,), (reported,) = made.resources, made.compiled.kernels
    assert used.registers == reported.registers and used.registers is not None and used.registers > 0
    assert (used.spill_store_bytes, used.spill_load_bytes, used.stack_bytes, used.spills) == (0, 0, 0, False)
    assert (used.scalar_registers is None) == (dialect == "cuda") == (used.accumulation_registers is None)
    assert reported.shared_bytes == 32 and made.compiled.architecture == load_profile(profile).architecture
    assert used.shared_bytes == made.program.kernels[0].shared_bytes  # the program's: dynamic shared memory is in it
    assert f"  {used.registers} registers" in made.explain() and "no spills" in made.explain()


@needs_compilers
@pytest.mark.parametrize(("dialect", "profile", "word"), [("cuda", "hopper", "EXIT"), ("hip", "cdna2", "s_endpgm")])
def test_assembly(dialect: str, profile: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not disassembly.disassemblers():
        pytest.skip(f"nvdisasm is not installed: {wheels.INSTALL}")
    assert word in kernel(dialect, profile, monkeypatch).assembly


@pytest.mark.parametrize(("dialect", "profile", "needed"), [("cuda", "ampere", "NVRTC"), ("hip", "cdna3", "clang")])
def test_without_a_compiler_nothing_is_known(dialect: str, profile: str, needed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "libraries", lambda: ())
    monkeypatch.setattr(clang, "program", lambda: None)
    clang.version.cache_clear()
    made = kernel(dialect, profile, monkeypatch)
    (used,) = made.resources
    assert used.registers is None and used.spills is False and str(used).startswith("registers unknown: ")
    assert "registers unknown: " in made.explain() and needed in made.explain() and "[compilers]" in made.explain()
    for ask in (lambda: made.compiled, lambda: made.assembly):
        with pytest.raises(DeviceError, match=needed) as caught:
            ask()
        assert caught.value.code == "no-compiler" and "[compilers]" in str(caught.value.mend)


def test_opencl_has_no_compiler_of_its_own() -> None:
    made = tl.compile(copy(4, 4), target=tl.target(profile="simulated"))
    assert made.resources[0].registers is None and str(made.resources[0]) == "" and "registers" not in made.explain()
    with pytest.raises(DeviceError, match="opencl is compiled by the device's driver alone"):
        made.compiled  # noqa: B018


def test_a_profile_without_an_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="does not say for which architecture") as caught:
        kernel("cuda", "simulated", monkeypatch).compiled  # noqa: B018
    assert "sm_80" in str(caught.value.mend)


def test_a_device_s_own_architecture_is_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DIALECTS, "cuda", DIALECTS["opencl"])
    device = Device("cuda", "A10", "CUDA", "gpu", "1", "1", 72, 1024, 99 << 10, 1 << 34, False, "sm_86")
    profile = tl.target(device=device).profile
    assert (profile.name, profile.architecture, profile.compute_units) == ("ampere", "sm_86", 72)


@needs_compilers
def test_a_text_that_does_not_compile_is_no_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="missing"):
        kernel("cuda", "ampere", monkeypatch, TEXT.replace("s[1]", "missing")).resources  # noqa: B018
