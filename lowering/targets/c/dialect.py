"""What the languages of the C family differ in, as data: a `Dialect` is a frozen manifest that the emitter reads.

A target (opencl.py and its neighbours) is one value of this type. Nothing here or in the emitter asks for a dialect by name.
Vector types are spelled like OpenCL's everywhere (`float16` is sixteen floats); a dialect without them defines a class of its own in
its header (cpp.py), and says in `Vectors` how its values are made, taken apart and chosen between.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tilelang.core.dtype import DType

if TYPE_CHECKING:
    from tilelang.lowering.targets.c.functions import Function

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
    unaligned: the definition of the type {name} of {lanes} {scalar}s that are aligned to {bytes} only. native: the compiler knows
    the types, so that operators and functions of scalars take them and accesses may be unaligned; else functions go lane by lane,
    and an access is as wide as the alignment that is certain. joins: `pack` takes vectors beside scalars; join: where it does
    not, two vectors, {first} and {second}, as one of {lanes} lanes (empty: it is made of single lanes). shuffle: one of {lanes}
    of {first} and {second}, by number, those of the second behind those of the first (empty: of single lanes). widest: the lanes
    of the widest vector type.
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
    joins: bool = True
    join: str = ""
    shuffle: str = ""
    widest: int = VECTOR_LANES[-1]

    def joined(self, vectors: Sequence[str], lanes: int) -> str:
        """Vectors of alike widths, a power of two of them, as one of so many lanes."""
        if len(vectors) == 1:
            return vectors[0]
        half = len(vectors) // 2
        first, second = (self.joined(part, lanes // 2) for part in (vectors[:half], vectors[half:]))
        return self.join.format(lanes=lanes, first=first, second=second)


@dataclasses.dataclass(frozen=True, slots=True)
class Dialect:
    """One language of the C family. Texts are format strings; the fields in braces are named beside each."""

    name: str
    # The qualifier of a pointer into each memory, and of the declaration of a shared array.
    spaces: Mapping[str, str]
    shared: str
    # The head of a kernel function: {threads}, {name}, and {cluster}, which is `cluster` with {blocks} for clusters of blocks.
    kernel: str
    # Expressions for the block's number along each grid dimension and for the thread's number.
    block_number: tuple[str, str, str]
    thread_number: str
    # The flag of a barrier for each memory; the barrier itself, with {flags}.
    fences: Mapping[str, str]
    barrier: str
    # A prefetch of {pointer}.
    prefetch: str
    # A line that forbids a*b+c in one rounding. `rounded_product` is a function to the same end.
    no_contraction: str
    # Names that a kernel must not use, besides C's keywords.
    reserved: frozenset[str]
    # The builtin, or function of a header, that stands for a function or helper of the language.
    functions: Mapping[str, str]
    # For each C scalar type, the functions whose text is part of the source because a builtin is slow, inexact or missing; `fast` has
    # their less exact forms, for which a computation needs a licence.
    own: Mapping[str, Mapping[str, Function]]
    # What the texts of `own` are filled with for a value type, besides the names of the type and of its integers.
    function_fields: Callable[[str], Mapping[str, str]]
    # The stated error of the builtins for 32-bit floats.
    ulps: Mapping[str, float]
    fast: Mapping[str, Mapping[str, Function]] = dataclasses.field(default_factory=dict)
    fast_functions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # For each C scalar type, the function `quotients` that divides a vector by one number, where that is quicker than a division.
    quotients: Mapping[str, Function] = dataclasses.field(default_factory=dict)
    # Texts that stand first in a source in which a pattern occurs, once for each way in which the pattern's groups $1, $2 match. A
    # pattern without a space is about one word and the character behind it, or about which words there are, in no order.
    headers: tuple[tuple[str, str], ...] = ()
    # The compiler's options that a text with sums in registers names.
    summing: tuple[str, ...] = ()
    # The last text of a source.
    closing: str = ""
    restrict: str = "restrict"
    # Whether pointers through which a kernel writes are restricted, too.
    restrict_written: bool = True
    # A function that gives back a {type}, one half of a wider vector added to the other, and hides from the compiler how it was made;
    # empty: not needed.
    halved: str = ""
    # What a helper function begins with.
    inline: str = "static inline"
    vectors: Vectors = Vectors()
    # How roles of units are written; None: they cannot be.
    roles: RoleTexts | None = None
    # The declaration of a kernel argument {name} that describes a tensor, and a prefetch of it by a pointer {map}.
    tensor_map: str = ""
    prefetch_map: str = ""
    cluster: str = ""
    rounded_product: str = ""
    # Whether builtins of x86 may be used, behind a test of the compiler's that the machine has the instruction.
    x86_builtins: bool = False
    # The preprocessor's condition under which an instruction converts between float and `_Float16`; empty: none does.
    converts_halves: str = ""
    # The bytes to which every kernel argument is aligned.
    argument_alignment: int = 1
    # With more shared memory than this, it is one array whose size the launch gives, declared by `dynamic_shared` with {name}.
    static_shared_bytes: int | None = None
    dynamic_shared: str = ""
    # The line before a loop with barriers, and before one with a long body (see c_loops.py). A barrier that orders shared memory
    # alone (empty: there is none cheaper).
    around_barriers: str = ""
    around_long_bodies: str = ""
    shared_barrier: str = ""
    # What stands before a loop that reads nothing: where the compiler would work all of its iterations out by itself.
    around_constants: str = ""
    # Asynchronous copies of {bytes} bytes from {source} to {target}; copy_first copies {existing} bytes and fills the rest with zero;
    # `wait` leaves {pending} groups unfinished. Without `copy`, copies are made at once.
    copy: str = ""
    copy_first: str = ""
    commit: str = ""
    wait: str = ""
    # Whether blocks of one thread add the terms of an offset to the pointer one by one. Compilers then hoist what a loop does not
    # change; a 32-bit sum, which might overflow for all they know, stays in the loop.
    offsets_apart: bool = False
    # An index {value} that is the same in all threads that run in lockstep.
    alike: str = "{value}"
    # What follows a literal of the type `long`.
    long_suffix: str = "L"
    # A dialect whose kernels are functions over one block: the parameters behind the buffers, and the function {name} that runs a
    # range of blocks by calling {name}_block with {arguments}. The grid is {x} wide and {y} high, with {xy} blocks in a layer. Shared
    # arrays are parameters, too, in the memory `scratch` of the caller.
    block_arguments: str = ""
    blocks: str = ""
    # Passes of the kernel IR that this dialect needs beside those of every dialect (pipeline.NEEDED).
    passes: tuple[str, ...] = ()

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
