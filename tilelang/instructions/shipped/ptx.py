"""CUDA C++ text for NVIDIA's instructions: packing and unpacking the registers of operands.

A wrapper takes an operand slot by slot or, if slots are narrower than 32 bits, register by register: by value if it is read, by
reference if it is written. Wrappers for other widths pack the slots themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tilelang.core.dtype import DType

ISA = "Parallel Thread Execution ISA 8.5"
FUNCTION = "static __device__ __forceinline__"

SHARED_ADDRESS = f"""
{FUNCTION} unsigned shared_address(const void* pointer) {{
    return (unsigned)__cvta_generic_to_shared(pointer);
}}
"""

# A barrier is 8 bytes of shared memory. It counts arrivals and bytes; a phase ends when all of both have arrived, and readers
# wait for the parity of the completed phases.
BARRIERS = f"""
{FUNCTION} void barrier_init(unsigned long long* barrier, int arrivals) {{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(barrier)), "r"(arrivals) : "memory");
}}
{FUNCTION} void barrier_init_fence() {{  // makes barriers that were set up known to the copies
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}}
{FUNCTION} void barrier_arrive(unsigned long long* barrier) {{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(barrier)) : "memory");
}}
{FUNCTION} void barrier_arrive_expecting(unsigned long long* barrier, int bytes) {{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared_address(barrier)), "r"(bytes) : "memory");
}}
{FUNCTION} void barrier_wait(unsigned long long* barrier, int parity) {{  // until the phase of that parity has ended
    asm volatile(
        "{{\\n"
        ".reg .pred done;\\n"
        "again:\\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\\n"
        "@!done bra again;\\n"
        "}}"
        :: "r"(shared_address(barrier)), "r"(parity) : "memory");
}}
"""

PACKED = f"""
template <class T>
{FUNCTION} unsigned bits_of(T x) {{  // of up to 32 bits, zeros above them
    if constexpr (sizeof(T) == 1) return __builtin_bit_cast(unsigned char, x);
    else if constexpr (sizeof(T) == 2) return __builtin_bit_cast(unsigned short, x);
    else return __builtin_bit_cast(unsigned, x);
}}
template <class T>
{FUNCTION} T of_bits(unsigned bits) {{
    if constexpr (sizeof(T) == 1) return __builtin_bit_cast(T, (unsigned char)bits);
    else if constexpr (sizeof(T) == 2) return __builtin_bit_cast(T, (unsigned short)bits);
    else return __builtin_bit_cast(T, bits);
}}
template <class T>
{FUNCTION} unsigned packed(T x, T y) {{
    return bits_of(x) | bits_of(y) << 16;
}}
template <class T>
{FUNCTION} unsigned packed(T x, T y, T z, T w) {{
    return bits_of(x) | bits_of(y) << 8 | bits_of(z) << 16 | bits_of(w) << 24;
}}
"""

ROUNDED_TO_TF32 = f"""
{FUNCTION} unsigned rounded_to_tf32(float x) {{  // to nearest, ties away from zero
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}}
"""

_C_TYPES = {"float32": "float", "int32": "int", "uint32": "unsigned", "int8": "signed char", "uint8": "unsigned char"}


@dataclasses.dataclass(frozen=True)
class Slots:
    """The slots of an operand as parameters of a wrapper, and the registers that they are packed into."""

    name: str
    count: int
    type: str
    bits: int

    @property
    def names(self) -> list[str]:
        return [f"{self.name}{i}" for i in range(self.count)]

    @property
    def by_value(self) -> str:
        return ", ".join(f"{self.type} {n}" for n in self.names)

    @property
    def by_reference(self) -> str:
        return ", ".join(f"{self.type}& {n}" for n in self.names)

    @property
    def packed(self) -> list[str]:
        """The expressions of the 32-bit registers."""
        per = 32 // self.bits
        groups = [self.names[i : i + per] for i in range(0, self.count, per)]
        return groups_of_one(groups) if per == 1 else [f"packed({', '.join(g)})" for g in groups]

    def unpacked(self, registers: str) -> list[str]:
        """The statements that unpack an array of registers into the slots."""
        per = 32 // self.bits
        return [
            f"{n} = of_bits<{self.type}>({registers}[{i // per}]" + (f" >> {i % per * self.bits});" if i % per else ");")
            for i, n in enumerate(self.names)
        ]


def groups_of_one(groups: Iterable[list[str]]) -> list[str]:
    """The members of groups that have one member each."""
    return [name for (name,) in groups]


def slots(name: str, count: int, dtype: DType) -> Slots:
    """The slots of an operand with a known element type; 16-bit floats are passed as their bits."""
    return Slots(name, count, _C_TYPES.get(dtype.name, "unsigned short" if dtype.bits == 16 else "unsigned char"), dtype.bits)


def slots_of_any(name: str, count: int, bits: int) -> Slots:
    """The slots of an operand of any type of a size, in a wrapper that is a template over the type."""
    return Slots(name, count, "T", bits)


def registers(name: str, count: int, dtype: DType) -> Slots:
    """The 32-bit registers that `count` slots of a type fill; the slots themselves if they have 32 bits."""
    return slots(name, count, dtype) if dtype.bits == 32 else Slots(name, count * dtype.bits // 32, "unsigned", 32)


def registers_of_any(name: str, count: int, bits: int) -> Slots:
    """The same for any type of a size."""
    return slots_of_any(name, count, bits) if bits == 32 else Slots(name, count * bits // 32, "unsigned", 32)


def handed(name: str, count: int, bits: int) -> str:
    """The registers of an operand in a template."""
    return places(name, count) if bits == 32 else f"{{{name}.words}}"


def numbered(first: int, count: int) -> str:
    """A list of operands in inline assembly: {%2, %3}."""
    return "{" + ", ".join(f"%{i}" for i in range(first, first + count)) + "}"


def listed(constraint: str, expressions: Iterable[str]) -> str:
    """Operands of inline assembly with the same constraint."""
    return ", ".join(f'"{constraint}"({e})' for e in expressions)


def places(name: str, count: int) -> str:
    """The slots of an operand in a template."""
    return ", ".join(f"{{{name}[{i}]}}" for i in range(count))
