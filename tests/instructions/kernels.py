"""Sources of one instruction each, and where each family of instructions exists."""

from __future__ import annotations

from tilelang.core.dtype import DType
from tilelang.instructions.instruction import BARRIER_BY_BYTES, Instruction, known
from tilelang.instructions.operand import Operand
from tilelang.instructions.template import OperandText

SHIPPED = [i for i in known() if i.span is None]

# For each need of NVIDIA's: the lowest architecture that has it, the next one below (None: none that the compiler knows), and how its
# machine instruction begins.
NVIDIA: dict[str, tuple[str, str | None, str]] = {
    "mma_m16n8k8": ("sm_75", "sm_72", "HMMA.1688"),
    "mma_m16n8k16": ("sm_80", "sm_75", "HMMA"),
    "mma_tf32": ("sm_80", "sm_75", "HMMA"),
    "mma_int8": ("sm_80", "sm_75", "IMMA"),
    "mma_float8": ("sm_89", "sm_87", "QMMA"),
    "ldmatrix": ("sm_75", "sm_72", "LDSM"),
    "stmatrix": ("sm_90", "sm_89", "STSM"),
    "cp_async": ("sm_80", "sm_75", "LDGSTS"),
    "shuffle": ("sm_70", None, "SHFL"),
    "redux": ("sm_80", "sm_75", "REDUX"),
    "dp4a": ("sm_61", "sm_60", "IDP.4A"),
    "wgmma": ("sm_90a", "sm_90", "HGMMA"),
    "bulk_tensor_copy": ("sm_90", "sm_89", "UTMA"),
    "bulk_tensor_multicast": ("sm_90", "sm_89", "UTMALDG.2D.MULTICAST"),
}
AMD: dict[str, tuple[str, str | None, str]] = {
    "mfma": ("gfx90a", "gfx1100", "v_mfma"),
    "wmma": ("gfx1100", "gfx90a", "v_wmma"),
    "shuffle": ("gfx90a", None, "ds_bpermute"),
    "dp4a": ("gfx90a", None, "v_dot4"),
    "direct_to_lds": ("gfx942", "gfx1100", "global_load_lds_dword"),  # gfx90a has it too, spelled as a load with a suffix
}
# For each need of a processor's: one that has it, one of its kind that does not, and how its machine instruction is named.
PROCESSORS: dict[str, tuple[str, str | None, str]] = {
    "avx512_bf16": ("znver4", "x86-64-v4", "vdpbf16ps"),
    "avx512_vnni": ("znver4", "x86-64-v4", "vpdpbusd"),
    "amx_bf16": ("sapphirerapids", "znver4", "tdpbf16ps"),
    "amx_int8": ("sapphirerapids", "znver4", "tdpb"),
    "arm_bf16": ("neoverse-v2@aarch64-linux", "cortex-a72@aarch64-linux", "bfmmla"),
    "arm_dotprod": ("neoverse-v2@aarch64-linux", "cortex-a72@aarch64-linux", "dot"),
}

_BITS = {8: "unsigned char", 16: "unsigned short", 32: "unsigned"}
_TYPES = {
    "float32": "float",
    "float64": "double",
    "int64": "long",
    "uint64": "unsigned long",
    "int32": "int",
    "int16": "short",
    "int8": "char",
}
SHARED_BYTES = 32768


def c_type(dtype: DType) -> str:
    """The type that the emitter keeps elements in."""
    return _TYPES.get(dtype.name) or _BITS[dtype.bits]


def kernel(made: Instruction, dialect: str, dtype: DType | None = None) -> str:
    """A kernel named `one` whose threads bring the operands, issue the instruction once and store what it wrote."""
    parts = [_operand(made, o, dtype if dtype is not None and len(o.dtypes) > 1 else o.dtype) for o in made.operands]
    barrier = "&barrier" if made.completes == BARRIER_BY_BYTES else ""
    texts = {o.name: text for o, (text, *_) in zip(made.operands, parts, strict=True)}
    call = made.render(dialect, texts, barrier, str(made.operands[0].shape[0] * made.operands[0].dtype.bytes))
    head = "__shared__ unsigned long long barrier;\n" if barrier else ""
    arguments = ", ".join(argument for _, argument, _, _ in parts)
    before, after = "".join(p[2] for p in parts), "".join(p[3] for p in parts)
    definitions = "".join(made.definitions_in(dialect))
    body = f"{head}{before}__syncthreads();\n{call}\n__syncthreads();\n{after}"
    word = "typedef unsigned word __attribute__((may_alias));\n"
    return f'{word}{definitions}\nextern "C" __global__ void one({arguments}) {{\n{body}}}\n'


def _operand(made: Instruction, operand: Operand, dtype: DType) -> tuple[OperandText, str, str, str]:
    """How an operand is named, its argument, and the statements before and after the instruction."""
    name, type, held = operand.name, c_type(dtype), made.fragment(operand.name)
    argument, number = f"{type}* {name}_in", f"threadIdx.x * {held.slots if held else 0}"
    if operand.memory == "global":
        if held is None:
            text = OperandText(name, map=f"&{name}_in", coordinates="blockIdx.x, blockIdx.y", address=f"{name}_in")
            return text, f"const __grid_constant__ TensorMap {name}_in", "", ""
        return OperandText(name, address=f"({name}_in + {number})"), argument, "", ""
    if operand.memory == "register":
        assert held is not None
        slots = tuple(f"{name}[{s}]" for s in range(held.slots))
        walk = f"for (int s = 0; s < {held.slots}; ++s)"
        there = f"{name}_in[threadIdx.x * {held.slots} + s]"
        before = f"__align__(16) {type} {name}[{held.slots}];\n" + (
            f"{walk} {name}[s] = {there};\n" if name in made.reads else ""
        )
        count = held.slots * dtype.bits // 32 if dtype.bits < 32 else 0
        words = tuple(f"((word*){name})[{i}]" for i in range(count))
        return (
            OperandText(slots[0], slots, words=words),
            argument,
            before,
            f"{walk} {there} = {name}[s];\n" if name == made.writes else "",
        )
    count = SHARED_BYTES // dtype.bytes
    walk = f"for (int s = threadIdx.x; s < {count}; s += blockDim.x)"
    before = f"__shared__ __align__(1024) {type} {name}[{count if len(made.operands) < 3 else count // 4}];\n"
    before += f"for (int s = threadIdx.x; s < 1024; s += blockDim.x) {name}[s] = {name}_in[s];\n"
    address = f"({name} + {number})" if held is not None else name
    text = OperandText(f"*{address}", address=address, swizzle="128", base=name, chunks="0")
    return text, argument, before, f"{walk} {name}_in[s] = {name}[s];\n" if name == made.writes else ""
