"""The text of an instruction in a dialect: a template with placeholders for operands, and the C functions that it calls.

A template calls named functions, its wrappers, which are defined beside it, with inline assembly if needed. So the text of a kernel
stays the same if a wrapper is defined in another way, for example by an emulation.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilelang.instructions.fragment import Fragment
    from tilelang.instructions.instruction import Instruction
    from tilelang.instructions.operand import Operand

_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\((?:[^\n]*\\\n)*[^\n]*\n?", re.MULTILINE)
_BEFORE_BRACKET = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_NO_FUNCTION = frozenset(
    "__attribute__ __declspec __launch_bounds__ alignas asm decltype for if return sizeof switch while".split()
)
WITH_ARRAYS = ("cpu",)  # dialects in which a thread's registers may as well be an array in memory, which has an address
DESCRIPTOR_PARTS = ("swizzle", "base", "chunks", "map", "coordinates")
_PLACEHOLDER = re.compile(r"(?P<name>\w+?)(\[(?P<slot>\d+)\]|\.(?P<part>address|swizzle|base|chunks|map|coordinates|words))?")


class OperandText:
    """An operand in code: whole, slot by slot, and (in an addressed memory) its address. In registers also `words`, the 32-bit
    registers that its slots fill, separated by commas, if the slots are narrower.

    Of an operand that is named by a descriptor, also: swizzle, the bytes of its rows whose chunks are exchanged (0: none); in shared
    memory base, where its buffer begins, and chunks, how many of 16 bytes lie before it there; in global memory map, a pointer to its
    tensor map, and coordinates, of its first element, those of the last dimension first.
    """

    def __init__(
        self, whole: str, slots: tuple[str, ...] = (), address: str = "", swizzle: str = "", map: str = "", coordinates: str = "",
        words: tuple[str, ...] = (), base: str = "", chunks: str = "",
    ) -> None:  # fmt: skip
        self.whole, self.slots, self.address = whole, slots, address
        self.swizzle, self.map, self.coordinates, self.words = swizzle, map, coordinates, ", ".join(words)
        self.base, self.chunks = base, chunks

    def __str__(self) -> str:
        return self.whole

    def __getitem__(self, slot: int) -> str:
        return self.slots[slot]


@functools.lru_cache(maxsize=1024)
def functions_defined(text: str) -> tuple[str, ...]:
    """The functions and function-like macros that a C text defines, in order.

    >>> functions_defined("static void both(float a) { one(a); }")
    ('both',)
    """
    bare = _STRING_OR_COMMENT.sub('""', text)
    found = _MACRO.findall(bare)
    depth, start = 0, 0
    bare = _MACRO.sub("", bare)
    for place, character in enumerate(bare):
        if character == "{":
            if depth == 0:
                found += _called(bare[start:place])[:1]
            depth += 1
        elif character in "};":
            depth -= character == "}"
            start = place + 1
    return tuple(found)


def _called(text: str) -> list[str]:
    return [name for name in _BEFORE_BRACKET.findall(_STRING_OR_COMMENT.sub('""', text)) if name not in _NO_FUNCTION]


def in_arrays(made: Instruction) -> frozenset[str]:
    """The operands in registers whose address some text of the instruction takes, so that a thread keeps them in arrays."""
    held = (o.name for o in made.operands if o.memory == "register")
    return frozenset(name for name in held if any(f"{{{name}.address}}" in text for _, text in made.template))


def _fills_words(operand: Operand, held: Fragment | None) -> bool:
    bits = operand.dtype.bits
    return operand.memory == "register" and held is not None and bits < 32 and held.slots * bits % 32 == 0


def fault_of_template(
    made: Instruction, dialect: str, text: str, definitions: Iterable[str], others: Mapping[str, str]
) -> tuple[str, str] | None:
    """The error in an instruction's template, and its help; None if there is none. others: the placeholders besides operands, each with
    the field that the instruction lacks for it, or ""."""
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(text) if field is not None]
    except ValueError as error:
        return f"its {dialect} template: {error}", "write {{ and }} for braces of the dialect"
    operands = {o.name: o for o in made.operands}
    seen = set()
    for field in fields:
        if others.get(field) == "":
            continue
        match = _PLACEHOLDER.fullmatch(field)
        if match is None or match["name"] not in operands:
            needed = others.get(field)
            if needed:
                return f"its {dialect} template has {{{field}}}, which needs {needed}", f"add {needed}, or remove {{{field}}}"
            return f"its {dialect} template has {{{field}}}", "{A}, {A[0]} or {A.address} with A one of " + ", ".join(operands)
        found = operands[match["name"]]
        held = made.fragment(found.name)
        if match["slot"] and (held is None or int(match["slot"]) >= held.slots):
            return f"its {dialect} template has {{{field}}}", f"{found.name} has {held.slots if held else 0} slots a lane"
        if match["part"] == "address" and found.memory == "register" and dialect not in WITH_ARRAYS:
            return f"its {dialect} template has {{{field}}}", "a register has no address"
        if match["part"] == "words" and not _fills_words(found, held):
            return (
                f"its {dialect} template has {{{field}}}",
                f"the slots of {found.name} do not fill registers of 32 bits that a lane has",
            )
        if match["part"] in DESCRIPTOR_PARTS and held is not None:
            return (
                f"its {dialect} template has {{{field}}}",
                f"lanes hold {found.name}; only an operand without a fragment has that",
            )
        seen.add(found.name)
    for name in operands:
        if name not in seen:
            return f"its {dialect} template does not mention {name}", f"add {{{name}}} to it"
    wrappers = [name for definition in definitions for name in functions_defined(definition)]
    unknown = [name for name in _called(text) if name not in wrappers]
    if wrappers and unknown:
        return f"its {dialect} template calls {unknown[0]}, which its definitions do not define", "call one of " + ", ".join(
            wrappers
        )
    return None
