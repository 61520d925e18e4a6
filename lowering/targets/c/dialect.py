"""The differences between the languages of the C family, as data: a `Dialect` is a frozen manifest that the emitter reads.

Each target (opencl.py and its neighbours) is one value of this type. Neither this module nor the emitter tests for a dialect by
name. Vector types are spelled like OpenCL's everywhere (`float16` is sixteen floats). A dialect without them defines a class in
its header (cpp.py), and `Vectors` states how its values are built, taken apart and selected.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tilelang.core.dtype import DType

if TYPE_CHECKING:
    from tilelang.lowering.targets.c.functions import Function

# Types in which values are computed. Floats of 8 and 16 bits are computed in float and stored as their bits.
_VALUES = {
    "float8_e4m3": "float", "float8_e5m2": "float", "float16": "float", "bfloat16": "float",
    "float32": "float", "float64": "double", "int8": "char", "int16": "short",
    "int32": "int", "int64": "long", "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong", "bool": "int",
}  # fmt: skip
_IN_MEMORY = {"float8_e4m3": "uchar", "float8_e5m2": "uchar", "float16": "ushort", "bfloat16": "ushort", "bool": "uchar"}

BITS = {
    "char": 8,
    "uchar": 8,
    "short": 16,
    "ushort": 16,
    "int": 32,
    "uint": 32,
    "float": 32,
    "long": 64,
    "ulong": 64,
    "double": 64,
}
SIGNED_OF_BITS = {8: "char", 16: "short", 32: "int", 64: "long"}
UNSIGNED_OF_BITS = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}

VECTOR_LANES = (2, 4, 8, 16)
LANE_DIGITS = "0123456789abcdef"
STREAMED_BYTES = 16  # narrower streaming stores gain nothing

C_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
    return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false main half""".split()
)


@dataclasses.dataclass(frozen=True, slots=True)
class RoleTexts:
    """How a dialect writes warp-specialized roles. The texts are statements unless noted otherwise."""

    barrier: str  # an expression: the form in which the other texts want a {pointer} to a phase barrier
    meet: str  # a barrier of {threads} threads; barriers are numbered {number} from 1
    registers: str  # gives each thread of a role {registers} registers, in a block of {threads} threads
    init: str  # initialises a {barrier} (a pointer) with phases of {arrivals} arrivals; init_done follows the last one
    init_done: str
    arrive: str  # one arrival; arrive_bytes also announces {bytes}
    arrive_bytes: str
    wait: str  # waits until the phase of {parity} has ended
    together: str  # synchronizes neighbouring threads of a warp
    # a condition that is true in one thread of a role's first warp; all threads evaluate it with their {thread}
    elected: str
    # C functions that the texts call
    definitions: tuple[str, ...] = ()
    arrive_in: str = ""  # one arrival at the same barrier in another {block} of the cluster
    meet_cluster: str = ""  # synchronizes all threads of the cluster
    # C functions that these two call
    cluster_definitions: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Vectors:
    """How a dialect writes vectors."""

    splat: str = "({type})({item})"  # one {item} in every lane of a {type}
    pack: str = "({type})({items})"  # a {type} of {items}
    # one lane, or {count} lanes from {first} on, of a {vector}; {digits} are their numbers in hexadecimal
    lane: str = "{vector}.s{digits}"
    part: str = "{vector}.s{digits}"
    set_part: str = "{vector}.s{digits} = {value};"  # the statement that writes {value} to such lanes
    choice: str = "{mask} ? {then} : {otherwise}"  # a selection by a {mask}
    word: str = ""  # the 32-bit register of a given number that narrower lanes fill
    # the definition of a type {name}: {lanes} {scalar}s that are aligned to {bytes} only
    unaligned: str = "typedef {scalar} {name} __attribute__((ext_vector_type({lanes}), aligned({bytes})));\n"
    # The compiler knows the types: operators and scalar functions accept them, and accesses may be unaligned. Otherwise functions
    # go lane by lane, and an access is as wide as the known alignment.
    native: bool = True
    # `pack` accepts vectors among its items; otherwise `join` combines {first} and {second} to {lanes} lanes (empty: lane by
    # lane)
    joins: bool = True
    join: str = ""
    # a shuffle to {lanes} lanes of {first} and {second}; lanes of the second are numbered after those of the first (empty: lane
    # by lane)
    shuffle: str = ""
    widest: int = VECTOR_LANES[-1]  # lanes of the widest vector type

    def joined(self, vectors: Sequence[str], lanes: int) -> str:
        """Joins vectors of equal width, a power of two of them, to one of `lanes` lanes."""
        if len(vectors) == 1:
            return vectors[0]
        half = len(vectors) // 2
        first, second = (self.joined(part, lanes // 2) for part in (vectors[:half], vectors[half:]))
        return self.join.format(lanes=lanes, first=first, second=second)


@dataclasses.dataclass(frozen=True, slots=True)
class Dialect:
    """One language of the C family. Texts are format strings; comments name their placeholders in braces."""

    name: str
    # The qualifier of a pointer into each memory, and of the declaration of a shared array.
    spaces: Mapping[str, str]
    shared: str
    # The head of a kernel function: {threads}, {name}, and {cluster}, which is `cluster` with {blocks} if blocks form clusters.
    kernel: str
    # Expressions for the block's index along each grid dimension and for the thread's index.
    block_number: tuple[str, str, str]
    thread_number: str
    # The flag of a barrier for each memory; the barrier itself, with {flags}.
    fences: Mapping[str, str]
    barrier: str
    # A prefetch of {pointer}.
    prefetch: str
    # A line that forbids contraction of a*b+c. `rounded_product` is a function with the same purpose.
    no_contraction: str
    # Names that a kernel must not use, besides C's keywords.
    reserved: frozenset[str]
    # The builtin, or function of a header, that implements a function or helper of the language.
    functions: Mapping[str, str]
    # For each C scalar type, functions whose text becomes part of the source because a builtin is slow, inexact or missing; `fast` has
    # the less exact forms, which a computation must permit.
    own: Mapping[str, Mapping[str, Function]]
    # The placeholders of `own` for a value type, besides the names of the type and of its integers.
    function_fields: Callable[[str], Mapping[str, str]]
    # The documented errors of the builtins for 32-bit floats.
    ulps: Mapping[str, float]
    fast: Mapping[str, Mapping[str, Function]] = dataclasses.field(default_factory=dict)
    fast_functions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # For each C scalar type, the function `quotients` that divides a vector by one number, if it is faster than division.
    quotients: Mapping[str, Function] = dataclasses.field(default_factory=dict)
    # (pattern, text): the text is prepended to a source in which the pattern occurs, once per distinct match of its groups $1, $2. A
    # pattern without a space concerns one word and the character after it, or the set of words in any order.
    headers: tuple[tuple[str, str], ...] = ()
    # Compiler options for texts with sums in registers.
    summing: tuple[str, ...] = ()
    # The last text of a source.
    closing: str = ""
    restrict: str = "restrict"
    # Whether pointers that a kernel writes through are restricted, too.
    restrict_written: bool = True
    # A function that returns a {type}, the sum of both halves of a wider vector, and hides its origin from the compiler; empty: not
    # needed.
    halved: str = ""
    # The prefix of a helper function.
    inline: str = "static inline"
    vectors: Vectors = Vectors()
    # Warp specialization; None: not supported.
    roles: RoleTexts | None = None
    # The declaration of a tensor map argument {name}, and a prefetch of it by a pointer {map}.
    tensor_map: str = ""
    prefetch_map: str = ""
    cluster: str = ""
    rounded_product: str = ""
    # Whether x86 builtins may be used, inside a preprocessor test that the machine has the instruction.
    x86_builtins: bool = False
    # The preprocessor condition under which an instruction converts between float and `_Float16`; empty: never.
    converts_halves: str = ""
    # The alignment in bytes of every kernel argument.
    argument_alignment: int = 1
    # Beyond this size, shared memory is one array sized by the launch and declared by `dynamic_shared` with {name}.
    static_shared_bytes: int | None = None
    dynamic_shared: str = ""
    # The line before a loop with barriers, and before one with a long body (see loops.py); a barrier for shared memory alone (empty: no
    # cheaper one exists).
    around_barriers: str = ""
    around_long_bodies: str = ""
    shared_barrier: str = ""
    # The line before a loop without loads, whose iterations the compiler would otherwise evaluate at compile time.
    around_constants: str = ""
    # Asynchronous copies of {bytes} bytes from {source} to {target}; copy_first copies {existing} bytes and fills the rest with zero;
    # `wait` leaves {pending} groups unfinished. Without `copy`, copies are synchronous.
    copy: str = ""
    copy_first: str = ""
    commit: str = ""
    wait: str = ""
    # Whether blocks of one thread add the terms of an offset to the pointer one by one. Compilers then hoist loop-invariant terms; a
    # 32-bit sum, which might overflow as far as they know, stays in the loop.
    offsets_apart: bool = False
    # Marks an index {value} as uniform across threads that run in lockstep.
    alike: str = "{value}"
    # The suffix of a literal of type `long`.
    long_suffix: str = "L"
    # For dialects whose kernels are functions over one block: the parameters after the buffers, and the function {name} that runs a
    # range of blocks by calling {name}_block with {arguments}. The grid is {x} wide and {y} high, with {xy} blocks per layer. Shared
    # arrays are parameters, too, in the caller's memory `scratch`.
    block_arguments: str = ""
    blocks: str = ""
    # Further passes of the kernel IR that this dialect needs (pipeline.NEEDED).
    passes: tuple[str, ...] = ()

    def vector_of(self, type: str, items: Sequence[str]) -> str:
        """A vector of one item in every lane, or of one item per lane; a primary expression except for a cast at its beginning."""
        return (
            self.vectors.splat.format(type=type, item=items[0])
            if len(items) == 1
            else (self.vectors.pack.format(type=type, items=", ".join(items)))
        )

    def part(self, vector: str, width: int, first: int, count: int) -> str:
        """Lanes of a vector, or the scalar if the vector has one lane."""
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
    """The C type in which values of an element type are computed; conditions are int."""
    return vector(_VALUES[dtype.name], lanes)


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """The C type of elements in memory: bits for floats of 8 and 16 bits, a byte for conditions."""
    return vector(_IN_MEMORY.get(dtype.name, _VALUES[dtype.name]), lanes)


def memory_bytes(dtype: DType) -> int:
    """Bytes of an element in memory."""
    return dtype.bytes


def vector(scalar: str, lanes: int) -> str:
    """The name of the vector type of `lanes` scalars; one lane is the scalar itself."""
    return scalar if lanes == 1 else f"{scalar}{lanes}"


def is_bits(dtype: DType) -> bool:
    """Whether elements are stored as bits that must be unpacked before computing with them."""
    return dtype.is_float and dtype.bits < 32
