"""Products of a warpgroup need registers beside those of their accumulator: in blocks with fewer, they are refused."""

import pytest

import tilelang as tl
from tilelang.errors import DeviceError
from tilelang.lowering.compilers import nvrtc, wheels

PRODUCT = """computation product {{
  input A: float16[m: 64, k: 16]
  input B: float16[n: {all}, k: 16]
  output C[m, n] = sum[k] cast(A[m, k], float32) * cast(B[n, k], float32)
}}
schedule for product {{
  tile m=64 n={all} -> block
  accumulate in register
  load A in shared swizzle 32
  load B in shared swizzle 32
  tile m=64 n={columns} -> warpgroup
  split k=16
  do wgmma_m64n{columns}k16_float16
}}"""


def compiled(columns: int, warpgroups: int) -> tl.Kernel:
    text = PRODUCT.format(columns=columns, all=columns * warpgroups)
    return tl.compile(tl.parse(text, "product.tile").schedule(), tl.target("cuda", profile="hopper"))


@pytest.mark.parametrize(("columns", "warpgroups", "needed", "most"), [(208, 4, 130, 128), (144, 5, 98, 96), (112, 6, 82, 80)])
def test_more_than_a_thread_has(columns: int, warpgroups: int, needed: int, most: int) -> None:
    with pytest.raises(tl.Refusal, match=rf"registers-too-many.* needs {needed} registers per thread, .* at most {most}\n"):
        compiled(columns, warpgroups)


@pytest.mark.skipif(not nvrtc.libraries(), reason=f"NVRTC is not installed: {wheels.INSTALL}")
@pytest.mark.parametrize(("columns", "warpgroups", "needed"), [(200, 4, 126), (136, 5, 94), (104, 6, 78)])
def test_as_many_as_the_compiler_asks_for(columns: int, warpgroups: int, needed: int) -> None:
    source, bounds = compiled(columns, warpgroups).source, "__launch_bounds__({})"
    nvrtc.compile_source(source, "sm_90a")
    assert bounds.format(warpgroups * 128) in source
    more = source.replace(bounds.format(warpgroups * 128), bounds.format(warpgroups * 128 + 128))
    with pytest.raises(DeviceError, match=rf"Insufficient registers .* register target of {needed} or higher"):
        nvrtc.compile_source(more, "sm_90a")
