"""What the languages of the C family differ in, as data: a `Dialect` is a frozen manifest that the emitter reads.

A target (opencl.py and its neighbours) is one value of this type. Nothing here or in the emitter asks for a dialect by name.
Vector types are spelled like OpenCL's everywhere (`float16` is sixteen floats); a dialect without them defines a class of its own in
its header (cpp.py), and says in `Vectors` how its values are made, taken apart and chosen between.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from tilelang.dtype import DType

# Types of values while they are computed with. Floats of 8 and 16 bits are computed in float and kept in memory as their bits.
_VALUES = {
    "float8_e4m3": "float", "float8_e5m2": "float", "float16": "float", "bfloat16": "float",
    "float32": "float", "float64": "double", "int8": "char", "int16": "short",
    "int32": "int", "int64": "long", "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong", "bool": "int",
}  # fmt: skip
_IN_MEMORY = {"float8_e4m3": "uchar", "float8_e5m2": "uchar", "float16": "ushort", "bfloat16": "ushort", "bool": "uchar"}

SIGNED_OF_BITS = {8: "char", 16: "short", 32: "int", 64: "long"}
UNSIGNED_OF_BITS = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}

VECTOR_LANES = (2, 4, 8, 16)
LANE_DIGITS = "0123456789abcdef"
STREAMED_BYTES = 16  # narrower stores gain nothing from going past the caches

C_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
    return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false main half""".split()
)


@dataclasses.dataclass(frozen=True, slots=True)
class RoleTexts:
    """How a dialect writes roles of units; the texts are statements but for barrier, a {pointer} to one with phases as they want it,
    and definitions, C functions that they call.

    meet: a barrier of {threads} threads, numbered {number} from 1. registers: gives each thread of a role {registers} of them, in a
    block of {threads}. init: gives a {barrier} (a pointer) phases of {arrivals} arrivals; init_done: after the last of them. arrive:
    one arrival, announcing {bytes} where it is arrive_bytes; wait: until the phase of {parity} has ended. together: lets neighbouring
    threads of a warp meet. elected: a condition that holds in one thread of the first of a role's warps, all of whose threads ask with
    their {thread}.
    arrive_in: one arrival at the barrier in the same place of a {block} of the cluster; meet_cluster: all its
    threads meet; cluster_definitions: what these two call.
    """

    barrier: str
    meet: str
    registers: str
    init: str
    init_done: str
    arrive: str
    arrive_bytes: str
    wait: str
    together: str
    elected: str
    definitions: tuple[str, ...] = ()
    arrive_in: str = ""
    meet_cluster: str = ""
    cluster_definitions: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Vectors:
    """How a dialect writes vectors.

    splat: one {item} in every lane of a {type}; pack: a {type} of {items}. lane, part: one lane, or {count} lanes from the {first}
    on, of a {vector}, their numbers as hexadecimal {digits}; set_part: the statement that writes {value} there. choice: by a {mask}.
    word: the 32-bit register of that {number} that narrower lanes fill.
    unaligned: the definition of the type {name} of {lanes} {scalar}s that are aligned to {bytes} only. native: the compiler knows the
    types, so that operators and functions of scalars take them and accesses may be unaligned; else functions go lane by lane, and an
    access is as wide as the alignment that is certain.
    """

    splat: str = "({type})({item})"
    pack: str = "({type})({items})"
    lane: str = "{vector}.s{digits}"
    part: str = "{vector}.s{digits}"
    set_part: str = "{vector}.s{digits} = {value};"
    choice: str = "{mask} ? {then} : {otherwise}"
    word: str = ""
    unaligned: str = "typedef {scalar} {name} __attribute__((ext_vector_type({lanes}), aligned({bytes})));\n"
    native: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Dialect:
    """One language of the C family.

    spaces: qualifier of pointers into each memory; shared: of shared arrays. kernel: head of a kernel function, with {threads},
    {name} and {cluster}: the text cluster, with {blocks}, where that many make one. block_number, thread_number: expressions.
    fences: flag of a barrier per memory; barrier: the statement, with {flags}; shared_barrier: one that orders shared memory alone,
    where that is less (empty: it is not). prefetch: the statement, with {pointer}.
    no_contraction: a line that forbids a*b+c in one rounding, or rounded_product: a function whose products are never contracted.
    reserved: names that a kernel must not use, besides C's. functions: builtin, or function of a header, in place of a function or
    helper of that name; fast_functions: those under licence. own: functions of 32-bit floats that c_functions.py defines because
    the builtin is slow, loose or missing. ulps: stated error of the builtins
    of 32-bit floats. headers: texts that stand first in a source in which a pattern occurs, once for each text that its groups $1,
    $2 give. closing: what stands last. inline: what a helper function begins with. masked_access: whether the builtins of x86 may
    be there. argument_alignment: bytes to which every kernel argument is aligned. static_shared_bytes: beyond it shared memory is
    one array whose size the launch gives, declared by dynamic_shared with {name} (None: no limit). around_barriers: what stands
    before a loop with barriers. copy, copy_first, commit, wait: the statements of asynchronous copies of {bytes} bytes, with
    {target}, {source}, the {existing} bytes of a copy whose rest is zero, and the {pending} groups (no copy: they are made at
    once). offsets_apart: whether in blocks of one thread, the tasks of a processor, the terms of an offset are added to the pointer
    one by one: compilers then keep what does not change out of loops, where a sum in 32 bits that may overflow for all they know
    stays. alike: an index of one {value} in all threads that run in lockstep. roles: how it writes roles of units (None: it has
    none). tensor_map: the declaration of a kernel argument {name} that is one; prefetch_map: the statement that brings one near, with
    a pointer to it, {map}.
    """

    name: str
    spaces: Mapping[str, str]
    shared: str
    kernel: str
    block_number: tuple[str, str, str]
    thread_number: str
    fences: Mapping[str, str]
    barrier: str
    prefetch: str
    no_contraction: str
    reserved: frozenset[str]
    functions: Mapping[str, str]
    own: frozenset[str]
    ulps: Mapping[str, float]
    headers: tuple[tuple[str, str], ...] = ()
    restrict: str = "restrict"
    roles: RoleTexts | None = None
    tensor_map: str = ""
    cluster: str = ""
    vectors: Vectors = Vectors()
    inline: str = "static inline"
    closing: str = ""
    rounded_product: str = ""
    fast_functions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    masked_access: bool = False
    argument_alignment: int = 1
    static_shared_bytes: int | None = None
    dynamic_shared: str = ""
    around_barriers: str = ""
    shared_barrier: str = ""
    copy: str = ""
    copy_first: str = ""
    commit: str = ""
    wait: str = ""
    offsets_apart: bool = False
    alike: str = "{value}"
    prefetch_map: str = ""

    def vector_of(self, type: str, items: Sequence[str]) -> str:
        """A vector of one item for every lane, or of an item in each; a primary expression but for the cast that it may begin with."""
        return (
            self.vectors.splat.format(type=type, item=items[0])
            if len(items) == 1
            else (self.vectors.pack.format(type=type, items=", ".join(items)))
        )

    def part(self, vector: str, width: int, first: int, count: int) -> str:
        """Lanes of a vector, or of the scalar that a vector of one lane is."""
        if count == width:
            return vector
        digits = LANE_DIGITS[first : first + count]
        form = self.vectors.lane if count == 1 else self.vectors.part
        return form.format(vector=vector, digits=digits, first=first, count=count)

    def set_part(self, vector: str, width: int, first: int, count: int, value: str) -> str:
        """The statement that writes lanes of a vector."""
        if count in (1, width):
            return f"{self.part(vector, width, first, count)} = {value};"
        digits = LANE_DIGITS[first : first + count]
        return self.vectors.set_part.format(vector=vector, digits=digits, first=first, count=count, value=value)


def value_type(dtype: DType, lanes: int = 1) -> str:
    """The C type that values of an element type are computed in; conditions are int."""
    return vector(_VALUES[dtype.name], lanes)


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """The C type that elements have in memory: bits for floats of 8 and 16 bits, a byte for conditions."""
    return vector(_IN_MEMORY.get(dtype.name, _VALUES[dtype.name]), lanes)


def memory_bytes(dtype: DType) -> int:
    """Bytes of an element in memory."""
    return dtype.bytes


def vector(scalar: str, lanes: int) -> str:
    """The name of the vector type of `lanes` scalars; one lane is the scalar itself."""
    return scalar if lanes == 1 else f"{scalar}{lanes}"


def is_bits(dtype: DType) -> bool:
    """Whether elements are kept as bits that must be unpacked before they can be computed with."""
    return dtype.is_float and dtype.bits < 32
