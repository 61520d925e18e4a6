"""Matrix products of a warpgroup of 128: A and B in shared memory, passed by descriptors; the accumulator in registers.

A descriptor contains the start of a matrix, the swizzle of its 16-byte chunks, and the stride between groups of eight rows, which
is eight times the width of the swizzle because rows are as wide as the swizzle. Both factors have k along their rows. The
products run asynchronously, in groups.

Source: Parallel Thread Execution ISA 8.5, "Asynchronous Warpgroup Level Matrix Instructions", "Register Fragments and Shared
Memory Matrix Layouts", "Matrix-Descriptor"; NVIDIA CUTLASS, mma_sm90_desc.hpp.
"""

from tilelang.core.dtype import DType, bfloat16, float16, float32
from tilelang.core.expr import Axis, cast
from tilelang.core.layout import Layout
from tilelang.instructions.instruction import IN_ORDER_GROUP, Instruction, fragment, instruction, updates
from tilelang.instructions.operand import operand, queue
from tilelang.instructions.shipped.ptx import FUNCTION, ISA, SHARED_ADDRESS, listed, numbered, places, slots

SWIZZLES = tuple(Layout(swizzle_bytes=width) for width in (32, 64, 128))  # rows along k, 16-byte chunks exchanged

DESCRIPTOR = f"""
template <int SWIZZLE>
{FUNCTION} unsigned long long matrix_descriptor(const void* buffer, int chunks) {{  // rows of SWIZZLE bytes along k
    constexpr unsigned kind = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : 3, eight_rows = 8 * SWIZZLE / 16;
    const unsigned start = 1u << 16 | shared_address(buffer) >> 4;  // the same for the whole buffer
    return (unsigned long long)(kind << 30 | eight_rows) << 32 | (start + chunks);
}}
"""

GROUPS = f"""
{FUNCTION} void wgmma_fence() {{  // before the first product after registers or shared memory were written
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}}
{FUNCTION} void wgmma_shared_fence() {{  // makes what threads wrote to shared memory known to the products
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}}
{FUNCTION} void wgmma_commit() {{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}}
template <int PENDING>
{FUNCTION} void wgmma_wait() {{  // until at most that many of the latest groups are unfinished
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}}
"""


def _wrapper(name: str, columns: int, short: str) -> str:
    """The C function for one product: C slot by slot by reference, A and B as their buffers and the offset in chunks."""
    c = slots("c", columns // 2, float32)
    mnemonic = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{short}.{short}"
    return f"""
template <int SWIZZLE_A, int SWIZZLE_B>
{FUNCTION} void {name}({c.by_reference},
    const void* a, int before_a, const void* b, int before_b) {{
    asm volatile(
        "{{\\n"
        ".reg .pred accumulate;\\n"
        "setp.ne.b32 accumulate, 1, 0;\\n"
        "{mnemonic} "
        "{numbered(0, c.count)}, %{c.count}, %{c.count + 1}, accumulate, 1, 1, 0, 0;\\n"
        "}}"
        : {listed("+f", c.names)}
        : "l"(matrix_descriptor<SWIZZLE_A>(a, before_a)), "l"(matrix_descriptor<SWIZZLE_B>(b, before_b)));
}}
"""


PRODUCTS_IN_ORDER = queue(
    "wgmma",
    begin={"cuda": "wgmma_fence();"},
    publish={"cuda": "wgmma_shared_fence();"},
    commit={"cuda": "wgmma_commit();"},
    wait={"cuda": "wgmma_wait<{pending}>();"},
)


def _m64k16(columns: int, type: DType) -> Instruction:
    m, n, k = Axis("m", 64), Axis("n", columns), Axis("k", 16)
    A = operand("A", type, "shared", m, k, layouts=SWIZZLES)
    B = operand("B", type, "shared", n, k, layouts=SWIZZLES)
    held = fragment(
        128,
        columns // 2,
        lambda lane, slot: (
            lane // 32 * 16 + lane % 32 // 4 + 8 * (slot // 2 % 2),
            8 * (slot // 4) + 2 * (lane % 4) + slot % 2,
        ),
    )
    C = operand("C", float32, "register", m, n, fragment=held)
    name = f"wgmma_m64n{columns}k16" + ("" if type == bfloat16 else f"_{type.name}")
    return instruction(
        name,
        means=updates(C[m, n], cast(A[m, k], float32) * cast(B[n, k], float32)),
        operands=(A, B, C),
        level="warpgroup",
        completes=IN_ORDER_GROUP,
        error_ulps=1,  # sums are truncated, not rounded
        needs=("wgmma",),
        template={
            "cuda": f"{name}<{{A.swizzle}}, {{B.swizzle}}>({places('C', columns // 2)},"
            " {A.base}, {A.chunks}, {B.base}, {B.chunks});"
        },
        definitions={
            "cuda": (SHARED_ADDRESS, DESCRIPTOR, GROUPS, _wrapper(name, columns, "bf16" if type == bfloat16 else "f16"))
        },
        source=f"{ISA}, wgmma.mma_async",
        queue=PRODUCTS_IN_ORDER,
        proxy="asynchronous",
        registers=columns // 2 + 26,  # measured: ptxas 12.9 and 13.0 refuse fewer
    )


COLUMNS = range(64, 257, 8)
PRODUCTS = {(type, columns): _m64k16(columns, type) for type in (bfloat16, float16) for columns in COLUMNS}
