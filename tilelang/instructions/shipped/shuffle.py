"""Warp shuffles: each lane gets the value of the lane whose number differs in one bit, or of a lane that it names.

A reduction over n lanes takes log2(n) shuffles of the first kind. For 32-bit integers, `redux` computes the sum, minimum or
maximum over all lanes of a warp in one instruction.

Source: Parallel Thread Execution ISA 8.5, "shfl.sync", "redux.sync"; AMD Instinct MI200 Instruction Set Architecture, "Data
Parallel Primitives", DS_SWIZZLE_B32, DS_BPERMUTE_B32; RDNA3 Instruction Set Architecture, "DPP16", V_PERMLANEX16_B32.
"""

from tilelang.core.dtype import (
    DType,
    bfloat16,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tilelang.core.expr import INDEX, Axis, Cast, Expr
from tilelang.instructions.instruction import Instruction, fragment, instruction, moves, updates
from tilelang.instructions.operand import operand
from tilelang.instructions.shipped.ptx import FUNCTION, ISA

_WORD_CUDA = f"""
template <int DISTANCE>
{FUNCTION} int shuffle_xor_word(int x) {{
    int y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "n"(DISTANCE));
    return y;
}}
"""

# Within 16 lanes, by data-parallel primitives (DPP), which the compiler may fuse into the instruction that uses the result. For a
# distance of 4, older devices mirror each group of 4 lanes and then each group of 8. Across rows of 16 lanes, by one instruction,
# or through the crossbar of shared memory.
_WORD_HIP = f"""
template <int DISTANCE>
{FUNCTION} int shuffle_xor_word(int x) {{
    if constexpr (DISTANCE == 1) return __builtin_amdgcn_update_dpp(0, x, 0xb1, 0xf, 0xf, true);  // quad_perm:[1,0,3,2]
    if constexpr (DISTANCE == 2) return __builtin_amdgcn_update_dpp(0, x, 0x4e, 0xf, 0xf, true);  // quad_perm:[2,3,0,1]
    if constexpr (DISTANCE == 8) return __builtin_amdgcn_update_dpp(0, x, 0x128, 0xf, 0xf, true);  // row_ror:8
#if defined(__GFX10__) || defined(__GFX11__) || defined(__GFX12__)
    if constexpr (DISTANCE == 4) return __builtin_amdgcn_update_dpp(0, x, 0x164, 0xf, 0xf, true);  // row_xmask:4
    if constexpr (DISTANCE == 16) return __builtin_amdgcn_permlanex16(0, x, 0x76543210, 0xfedcba98, false, true);
#else
    if constexpr (DISTANCE == 4) {{  // quad_perm:[3,2,1,0], row_half_mirror
        const int mirrored = __builtin_amdgcn_update_dpp(0, x, 0x1b, 0xf, 0xf, true);
        return __builtin_amdgcn_update_dpp(0, mirrored, 0x141, 0xf, 0xf, true);
    }}
    if constexpr (DISTANCE == 16) return __builtin_amdgcn_ds_swizzle(x, DISTANCE << 10 | 0x1f);
#endif
    return __builtin_amdgcn_ds_bpermute((int)(__lane_id() ^ DISTANCE) << 2, x);
}}
"""

_SHUFFLE = f"""
template <int DISTANCE, class T>
{FUNCTION} T shuffle_xor(T x) {{  // what lane `lane ^ DISTANCE` has
    struct Words {{
        int of[sizeof(T) / 4];
    }};
    Words words = __builtin_bit_cast(Words, x);
    for (int i = 0; i < (int)sizeof(T) / 4; ++i) words.of[i] = shuffle_xor_word<DISTANCE>(words.of[i]);
    return __builtin_bit_cast(T, words);
}}
"""


def _other(lane: Expr, distance: int) -> Expr:
    """The lane whose number differs in the bit of `distance`."""
    return lane + distance - 2 * distance * (lane // distance % 2)


def _shuffle(lanes: int, distance: int, types: tuple[DType, ...]) -> Instruction:
    lane = Axis("lane", lanes)
    D, S = (operand(name, types, "register", lane, fragment=fragment(lanes, 1, lambda lane, slot: lane)) for name in "DS")
    size = types[0].bytes
    name = f"shuffle_xor_{distance}" + ("" if size == 4 else f"_of_{size}_bytes") + ("" if lanes == 32 else f"_of_{lanes}_lanes")
    text = f"{{D[0]}} = shuffle_xor<{distance}>({{S[0]}});"
    words = {"cuda": _WORD_CUDA, "hip": _WORD_HIP} if lanes == 32 else {"hip": _WORD_HIP}
    return instruction(
        name,
        means=moves(D[lane], S[_other(lane, distance)]),
        operands=(D, S),
        level="warp",
        lanes=lanes,
        needs=("shuffle",),
        template=dict.fromkeys(words, text),
        definitions={dialect: (word, _SHUFFLE) for dialect, word in words.items()},
        source=f"{ISA}, shfl.sync",
    )


_SIZES = ((float32, int32, uint32), (float64, int64, uint64))
SHUFFLES = tuple(
    _shuffle(lanes, 1 << bit, types) for lanes in (32, 64) for types in _SIZES for bit in range(lanes.bit_length() - 1)
)


_WORD_FROM_CUDA = f"""
{FUNCTION} int shuffle_from_word(int x, int lane) {{
    int y;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "r"(lane));
    return y;
}}
"""

# The lane that is named counts modulo the lanes of a wave.
_WORD_FROM_HIP = f"""
{FUNCTION} int shuffle_from_word(int x, int lane) {{
    return __builtin_amdgcn_ds_bpermute(lane << 2, x);
}}
"""

_SHUFFLE_FROM = f"""
template <class T>
{FUNCTION} T shuffle_from(T x, int lane) {{  // what a lane has
    if constexpr (sizeof(T) == 1) {{
        return __builtin_bit_cast(T, (unsigned char)shuffle_from_word(__builtin_bit_cast(unsigned char, x), lane));
    }} else if constexpr (sizeof(T) == 2) {{
        return __builtin_bit_cast(T, (unsigned short)shuffle_from_word(__builtin_bit_cast(unsigned short, x), lane));
    }} else {{
        struct Words {{
            int of[sizeof(T) / 4];
        }};
        Words words = __builtin_bit_cast(Words, x);
        for (int i = 0; i < (int)sizeof(T) / 4; ++i) words.of[i] = shuffle_from_word(words.of[i], lane);
        return __builtin_bit_cast(T, words);
    }}
}}
"""


def _shuffle_from(lanes: int, types: tuple[DType, ...]) -> Instruction:
    lane = Axis("lane", lanes)
    D, S = (operand(name, types, "register", lane, fragment=fragment(lanes, 1, lambda lane, slot: lane)) for name in "DS")
    L = operand("L", int32, "register", lane, fragment=fragment(lanes, 1, lambda lane, slot: lane))
    size = types[0].bytes
    words = {"cuda": _WORD_FROM_CUDA, "hip": _WORD_FROM_HIP} if lanes == 32 else {"hip": _WORD_FROM_HIP}
    return instruction(
        f"shuffle_from_of_{size}_byte{'s' if size > 1 else ''}" + ("" if lanes == 32 else f"_of_{lanes}_lanes"),
        means=moves(D[lane], S[Cast(L[lane], INDEX) % lanes]),
        operands=(D, S, L),
        level="warp",
        lanes=lanes,
        needs=("shuffle",),
        template=dict.fromkeys(words, "{D[0]} = shuffle_from({S[0]}, {L[0]});"),
        definitions={dialect: (word, _SHUFFLE_FROM) for dialect, word in words.items()},
        source=f"{ISA}, shfl.sync",
    )


_WIDTHS = ((int8, uint8, float8_e4m3, float8_e5m2), (float16, bfloat16, int16, uint16), *_SIZES)
GATHERS = tuple(_shuffle_from(lanes, types) for lanes in (32, 64) for types in _WIDTHS)


def _redux(combiner: str, type: DType) -> Instruction:
    """Every lane gets the combination of the values of all lanes."""
    lane, other = Axis("lane", 32), Axis("other", 32)
    D = operand("D", type, "register", lane, fragment=fragment(32, 1, lambda lane, slot: lane))
    S = operand("S", type, "register", other, fragment=fragment(32, 1, lambda lane, slot: lane))
    word = {"sum": "add"}.get(combiner, combiner)
    short, c = ("s32", "int") if type == int32 else ("u32", "unsigned")
    name = f"redux_{word}" + ("" if type == int32 else f"_{type.name}")
    combine = {"sum": "d + r", "min": "d < r ? d : r", "max": "d < r ? r : d"}[combiner]
    wrapper = f"""
{FUNCTION} void {name}({c}& d, {c} s) {{
    {c} r;
    asm volatile("redux.sync.{word}.{short} %0, %1, 0xffffffff;" : "=r"(r) : "r"(s));
    d = {combine};
}}
"""
    return instruction(
        name,
        means=updates(D[lane], S[other], combiner=combiner),
        operands=(D, S),
        level="warp",
        needs=("redux",),
        template={"cuda": f"{name}({{D[0]}}, {{S[0]}});"},
        definitions={"cuda": wrapper},
        source=f"{ISA}, redux.sync",
    )


REDUCTIONS = tuple(_redux(combiner, type) for combiner in ("sum", "min", "max") for type in (int32, uint32))
