"""The compilers that need no device: records, caches, threads, and what is said where something is absent."""

import concurrent.futures
import ctypes
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import clang, disassembly, interface, native, nvrtc, wheels
from tilelang.lowering.compilers.compiled import Compiled, CompiledKernel, compile_failed
from tilelang.lowering.compilers.listing import listings
from tilelang.lowering.drivers.cache import BinaryCache

TWICE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
BOTH = [(nvrtc, "sm_80"), (clang, "gfx90a")]

needs_nvrtc = pytest.mark.skipif(not nvrtc.libraries(), reason=f"NVRTC is not installed: {wheels.INSTALL}")
needs_clang = pytest.mark.skipif(clang.program() is None, reason=f"ziglang is not installed: {wheels.INSTALL}")
needs_both = pytest.mark.skipif(
    not nvrtc.libraries() or clang.program() is None, reason=f"a compiler is not installed: {wheels.INSTALL}"
)


def test_records_survive_a_cache() -> None:
    kernels = (CompiledKernel("f", 10, 512, 8, 16, 24), CompiledKernel("g", 20, 0, 0, 0, 0, 30, 40))
    one = Compiled("gfx90a", "clang 22", b"\x7fELF\n\x00\n", kernels, "text\n", "log")
    assert Compiled.from_bytes(one.to_bytes()) == one
    assert one.kernel("g").scalar_registers == 30 and one.kernel("f").spills and not one.kernel("g").spills


@pytest.mark.parametrize("data", [b"", b"no record", b'{"kernels": 3}\n', b'{"kernels": []}\ncode', b"[]\n"])
def test_bytes_that_are_no_record_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        Compiled.from_bytes(data)


@needs_both
@pytest.mark.parametrize(("compiler", "architecture"), BOTH)
def test_a_cached_result_is_the_same(
    compiler: object, architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiler in (nvrtc, clang)
    module = nvrtc if compiler is nvrtc else clang
    cache = BinaryCache(str(tmp_path))
    first = module.compile_source(TWICE, architecture, cache=cache)
    entries = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(entries) == 1
    monkeypatch.setattr(module, "_compile", None)  # not called again
    assert module.compile_source(TWICE, architecture, cache=cache) == first


@needs_both
@pytest.mark.parametrize(("compiler", "architecture"), BOTH)
def test_an_entry_that_is_no_record_is_made_anew(compiler: object, architecture: str, tmp_path: Path) -> None:
    module = nvrtc if compiler is nvrtc else clang
    cache = BinaryCache(str(tmp_path))
    first = module.compile_source(TWICE, architecture, cache=cache)
    (entry,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    cache.put(entry.name, b"whole, but of another version")
    assert module.compile_source(TWICE, architecture, cache=cache) == first
    assert Compiled.from_bytes(cache.get(entry.name) or b"") == first


@needs_both
@pytest.mark.parametrize(("compiler", "architecture"), BOTH)
def test_threads_compile_at_once(compiler: object, architecture: str) -> None:
    module = nvrtc if compiler is nvrtc else clang
    sources = [TWICE.replace("2", str(n)) for n in range(2, 8)]
    alone = [module.compile_source(source, architecture) for source in sources]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda source: module.compile_source(source, architecture), sources))
    assert [(c.code, c.kernels) for c in together] == [(c.code, c.kernels) for c in alone]


@needs_both
@pytest.mark.parametrize(("compiler", "architecture"), BOTH)
def test_a_text_that_does_not_compile(compiler: object, architecture: str) -> None:
    module = nvrtc if compiler is nvrtc else clang
    with pytest.raises(DeviceError, match=f"does not compile the kernel for {architecture}") as caught:
        module.compile_source("__global__ void f(float* x) { x[0] = missing; }", architecture)
    assert caught.value.code == "compile-failed" and "missing" in caught.value.message


def test_a_long_log_is_cut() -> None:
    error = compile_failed("NVRTC 12.9", "sm_80", "\n".join(["a warning"] + [f"error {n}" for n in range(30)]))
    assert "error 11" in error.message and "error 12" not in error.message and "... and 18 more lines" in error.message
    assert "warning" not in error.message


@needs_nvrtc
def test_an_architecture_that_is_not_known() -> None:
    with pytest.raises(DeviceError, match="NVRTC .* has no `sm_999`") as caught:
        nvrtc.compile_source(TWICE, "sm_999")
    assert caught.value.code == "unknown-architecture" and "sm_80" in str(caught.value.help)


@needs_clang
@pytest.mark.parametrize("architecture", ["gfx90a", "gfx942"])
def test_accumulation_registers_are_counted_apart(architecture: str) -> None:
    source = """extern "C" __global__ void __launch_bounds__(256) kept(float* x) {
        float apart[4];
        for (int i = 0; i < 4; ++i) asm volatile("v_accvgpr_write_b32 %0, %1" : "=a"(apart[i]) : "v"(x[i * 256 + threadIdx.x]));
        for (int i = 0; i < 4; ++i) asm volatile("v_accvgpr_read_b32 %0, %1" : "=v"(x[i * 256 + threadIdx.x]) : "a"(apart[i]));
    }"""
    (uses,) = clang.compile_source(source, architecture).kernels
    assert uses.accumulation_registers == 4 and 1 <= uses.registers <= 8  # the metadata's count is of both kinds


PRELUDE = """\
extern "C" __global__ void every(float* x, double* d, int* n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    v = expf(v) + exp2f(v) + logf(v) + log2f(v) + log10f(v) + sqrtf(v) + rsqrtf(v) + fabsf(v) + floorf(v) + ceilf(v) + truncf(v);
    v += rintf(v) + fminf(v, 2) + fmaxf(v, 3) + fmaf(v, v, v) + copysignf(v, -1) + ldexpf(v, 3);
    d[i] = sqrt(d[i]) + fma(d[i], d[i], 1.0) + fmin(d[i], 1.0) + fmax(d[i], 0.0) + floor(d[i]) + copysign(d[i], -1.0);
    n[i] = __shfl_xor(n[i], 1) + __shfl(n[i], 3) + __shfl_down(n[i], 2, 16) + __shfl_up(n[i], 2) + min(n[i], 3) + max(n[i], 4);
    v += __shfl_xor(v, 8) + __int_as_float(__float_as_int(v) ^ 1) + __uint_as_float(__float_as_uint(v) ^ 1);
    d[i] += __longlong_as_double(__double_as_longlong(d[i]) ^ 1);
    __syncthreads();
    __threadfence();
    __threadfence_block();
    x[i] = v;
}
"""


@needs_clang
@pytest.mark.parametrize("include", ["", "#include <hip/hip_runtime.h>\n"])
@pytest.mark.parametrize("architecture", ["gfx90a", "gfx942", "gfx1100"])
def test_what_stands_in_for_the_header_of_hip(include: str, architecture: str) -> None:
    compiled = clang.compile_source(include + PRELUDE, architecture)
    (listing,) = listings(compiled.assembly or "")
    assert compiled.kernels[0].stack_bytes == 0 and listing.count("ds_bpermute_b32") == 5 and listing.count("s_barrier") == 1


@needs_clang
def test_functions_that_need_a_device_library_are_refused() -> None:
    with pytest.raises(DeviceError, match="missing_from_library"):
        clang.compile_source(
            'extern "C" __device__ float missing_from_library(float); '
            'extern "C" __global__ void f(float* x) { x[0] = missing_from_library(x[1]); }',
            "gfx90a",
        )


def test_absent_compilers_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "libraries", lambda: ())
    monkeypatch.setattr(clang, "program", lambda: None)
    clang.version.cache_clear()
    for module, architecture in BOTH:
        with pytest.raises(DeviceError) as caught:
            module.compile_source(TWICE, architecture)
        assert caught.value.code == "no-compiler" and "pip install" in str(caught.value.help)


def test_an_absent_disassembler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "disassemblers", list)
    with pytest.raises(DeviceError, match="sm_80") as caught:
        disassembly.disassemble(Compiled("sm_80", "NVRTC 12.9", b"", ()))
    assert caught.value.code == "no-disassembler" and "[compilers]" in str(caught.value.help)
    assert disassembly.disassemble(Compiled("gfx90a", "clang 22", b"", (), "s_endpgm")) == "s_endpgm"


@pytest.mark.skipif(not disassembly.disassemblers(), reason=f"nvdisasm is not installed: {wheels.INSTALL}")
def test_what_is_no_cubin_is_told() -> None:
    with pytest.raises(DeviceError, match="no installed disassembler accepts the machine code for sm_80") as caught:
        disassembly.disassemble(Compiled("sm_80", "NVRTC 12.9", b"no code", ()))
    assert caught.value.code == "no-assembly"


def test_tools_say_what_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    here = [native.program(), nvrtc.libraries(), clang.program(), disassembly.disassemblers()]
    assert [tool.found is not None for tool in interface.tools()] == [bool(one) for one in here]
    monkeypatch.setattr(native, "program", lambda: None)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(nvrtc, "libraries", lambda: ())
    monkeypatch.setattr(clang, "program", lambda: None)
    monkeypatch.setattr(disassembly, "disassemblers", list)
    clang.version.cache_clear()
    native.toolchain.cache_clear()
    processor, *gpus = interface.tools()
    assert processor.found is None and "ziglang" in processor.get
    assert [(tool.found, "[compilers]" in tool.get) for tool in gpus] == [(None, True), (None, False), (None, True)]
    monkeypatch.undo()
    native.toolchain.cache_clear()


def test_dialects_that_only_a_driver_compiles() -> None:
    assert interface.load("cuda") is nvrtc and interface.load("hip") is clang
    with pytest.raises(DeviceError, match="opencl is compiled only by the device's driver") as caught:
        interface.load("opencl")
    assert caught.value.code in interface.ABSENT


@needs_clang
def test_the_code_object_is_an_amd_one() -> None:
    code = clang.compile_source(TWICE, "gfx942").code
    assert code.startswith(b"\x7fELF") and int.from_bytes(code[18:20], "little") == 224  # EM_AMDGPU
    assert code[8] == 3  # code object version 5
    assert len({clang.compile_source(TWICE, "gfx942").code for _ in range(2)}) == 1


LOOPS = """\
.text.two:
.L_x_0:
        /*0000*/                   FADD R1, R1, R1 ;
.L_x_1:
        /*0010*/                   FMUL R1, R1, R1 ;
        /*0020*/               @P0 BRA `(.L_x_1) ;
        /*0030*/              @!P1 BRA `(.L_x_3) ;
.L_x_2:
        /*0040*/                   BRA.U UP0, `(.L_x_0) ;
        /*0050*/                   EXIT ;
.L_x_3:
        /*0060*/                   FFMA R1, R1, R1, R1 ;
        /*0070*/                   BRA `(.L_x_2) ;
.L_x_4:
        /*0080*/                   BRA `(.L_x_4) ;
.text.one:
        /*0000*/                   EXIT ;
"""


def test_loops_are_those_of_control_flow() -> None:
    two, one = listings(LOOPS)
    assert (two.kernel, one.kernel, one.loops()) == ("two", "one", ())
    assert [[i.name for i in loop.instructions] for loop in two.loops()] == [
        ["FADD", "FMUL", "BRA", "BRA", "BRA.U", "FFMA", "BRA"],  # with the part that stands behind the kernel's end
        ["FMUL", "BRA"],
    ]
    assert two.main_loop("FMUL").count("FADD") == 0 and two.main_loop("FFMA").count("FADD") == 1
    with pytest.raises(ValueError, match="no loop of one has FADD"):
        one.main_loop("FADD")


def test_two_instructions_that_begin_at_once_are_two() -> None:
    text = "\t.protected\tf\nf:\n\tv_dual_fmac_f32 v4, v1, v2 :: v_dual_mul_f32 v5, v1, v3\n\ts_endpgm\n"
    (listing,) = listings(text)
    assert [(i.name, i.operands) for i in listing.instructions] == [
        ("v_dual_fmac_f32", "v4, v1, v2"), ("v_dual_mul_f32", "v5, v1, v3"), ("s_endpgm", "")
    ]  # fmt: skip


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_search_path_has_what_the_wheel_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = script(tmp_path / "wheel" / "nvdisasm", "echo no SM70 >&2; exit 1")
    toolkit = script(tmp_path / "toolkit" / "nvdisasm", "echo text")
    monkeypatch.setattr(wheels, "nvidia", lambda pattern: [wheel] if pattern.endswith("/nvdisasm") else [])
    monkeypatch.setenv("PATH", str(toolkit.parent))
    assert disassembly.disassemblers() == [wheel, toolkit]
    assert disassembly.disassemble(Compiled("sm_70", "NVRTC 12.9", b"", ())) == "text\n"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceError, match="no SM70") as caught:
        disassembly.disassemble(Compiled("sm_70", "NVRTC 12.9", b"", ()))
    assert caught.value.code == "no-assembly" and "toolkit" in str(caught.value.help)


def test_the_library_of_nvrtc_s_builtins_is_opened_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 13 opens it by its name alone, and does not look beside itself."""
    folder = tmp_path / "lib"
    (tmp_path / "include").mkdir()
    folder.mkdir()
    (tmp_path / "include" / "cuda_fp16.h").touch()
    opened: list[str] = []

    def opening(path: str) -> MagicMock:
        opened.append(Path(path).name)
        return MagicMock()

    monkeypatch.setattr(ctypes, "CDLL", opening)
    for name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.alt.so.13", "libnvrtc-builtins.alt.so.13.0"):
        (folder / name).touch()
    monkeypatch.setattr(ctypes, "byref", lambda value: value)
    assert nvrtc._open(folder / "libnvrtc.so.13") is not None
    assert opened == ["libnvrtc-builtins.so.13.0", "libnvrtc.so.13"]
