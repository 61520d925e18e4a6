"""Copies of boxes between global and shared memory by one elected lane, with descriptors (TMA).

In global memory, a box is given by a tensor map, which is encoded before the launch, and the coordinates of its first element; in
shared memory, by an address and a swizzle. A load completes when its bytes have arrived at a barrier in shared memory (mbarrier);
stores complete in groups. Elements outside the tensor are read as zero and not written.

Source: Parallel Thread Execution ISA 8.5, "cp.async.bulk.tensor", "mbarrier"; CUDA Driver API, cuTensorMapEncodeTiled.
"""

from tilelang.core.dtype import DType, bfloat16, float16, int16, uint16
from tilelang.core.expr import Axis
from tilelang.core.layout import Layout
from tilelang.instructions.instruction import BARRIER_BY_BYTES, IN_ORDER_GROUP, ONE_LANE, Instruction, instruction, moves
from tilelang.instructions.operand import Operand, operand, queue
from tilelang.instructions.shipped.ptx import BARRIERS, FUNCTION, ISA, SHARED_ADDRESS

TENSOR_MAP = """
struct alignas(64) TensorMap {  // a kernel argument, by value: const __grid_constant__ TensorMap
    unsigned long long opaque[16];
};
"""

LOAD = f"""
{FUNCTION} void tensor_load_2d(void* target, const TensorMap* map, int x, int y, unsigned long long* barrier) {{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {{%2, %3}}], [%4];"
        :: "r"(shared_address(target)), "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier)) : "memory");
}}
"""

# The mask selects the receiving blocks: bit n for block n of the cluster. The data and the barrier have the same address in each
# of them.
MULTICAST = f"""
{FUNCTION} void tensor_load_2d_multicast(void* target, const TensorMap* map, int x, int y, unsigned long long* barrier, int blocks) {{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {{%2, %3}}], [%4], %5;"
        :: "r"(shared_address(target)), "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier)), "h"((unsigned short)((1 << blocks) - 1))
        : "memory");
}}
"""

STORE = f"""
{FUNCTION} void tensor_store_2d(const TensorMap* map, int x, int y, const void* source) {{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {{%1, %2}}], [%3];"
        :: "l"(map), "r"(x), "r"(y), "r"(shared_address(source)) : "memory");
}}
"""

STORE_GROUPS = f"""
{FUNCTION} void tensor_store_fence() {{  // makes what threads wrote to shared memory known to the copies
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}}
{FUNCTION} void tensor_store_commit() {{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}}
template <int PENDING>
{FUNCTION} void tensor_store_wait_read() {{  // until what all but the latest groups store has been read from shared memory
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(PENDING) : "memory");
}}
template <int PENDING>
{FUNCTION} void tensor_store_wait() {{
    asm volatile("cp.async.bulk.wait_group %0;" :: "n"(PENDING) : "memory");
}}
"""


STORES_IN_ORDER = queue(
    "tensor_store",
    publish={"cuda": "tensor_store_fence();"},
    commit={"cuda": "tensor_store_commit();"},
    wait={"cuda": "tensor_store_wait_read<{pending}>();"},
)


def _box(name: str, load: bool, multicast: bool = False) -> Instruction:
    """A box of 16-bit elements, with at most 256 rows of at most 128 bytes, the width of the widest swizzle."""
    types = (float16, bfloat16, int16, uint16)
    r, c = Axis("r", 64), Axis("c", 64)
    D, S = (_side(n, types, r, c, (n == "D") == load) for n in "DS")
    if multicast:
        text = "tensor_load_2d_multicast({D.address}, {S.map}, {S.coordinates}, {barrier}, {blocks});"
        definitions: tuple[str, ...] = (BARRIERS, MULTICAST)
    elif load:
        text, definitions = "tensor_load_2d({D.address}, {S.map}, {S.coordinates}, {barrier});", (BARRIERS, LOAD)
    else:
        text, definitions = "tensor_store_2d({D.map}, {D.coordinates}, {S.address});", (STORE_GROUPS, STORE)
    return instruction(
        name,
        means=moves(D[r, c], S[r, c]),
        operands=(D, S),
        level="block",
        issue=ONE_LANE,
        completes=BARRIER_BY_BYTES if load else IN_ORDER_GROUP,
        outside=0.0,
        host="tensor map",
        needs=("bulk_tensor_copy", *(("bulk_tensor_multicast",) * multicast)),
        limits={"r": 256, "c": 64},
        template={"cuda": text},
        definitions={"cuda": (SHARED_ADDRESS, TENSOR_MAP, *definitions)},
        source=f"{ISA}, cp.async.bulk.tensor",
        queue=None if load else STORES_IN_ORDER,
        proxy="asynchronous",
        multicast=multicast,
    )


def _side(name: str, types: tuple[DType, ...], r: Axis, c: Axis, shared: bool) -> Operand:
    """A box in shared memory, or in a tensor, whose rows begin at multiples of 16 bytes."""
    if not shared:
        return operand(name, types, "global", r, c, alignment_bytes=16)
    return operand(name, types, "shared", r, c, layouts=tuple(Layout(swizzle_bytes=width) for width in (0, 32, 64, 128)))


tma_load_2d, tma_store_2d = _box("tma_load_2d", load=True), _box("tma_store_2d", load=False)
tma_load_2d_multicast = _box("tma_load_2d_multicast", load=True, multicast=True)
