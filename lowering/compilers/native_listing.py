"""Parses CPU assembly: what clang writes for x86-64 and 64-bit Arm, as the listings of listing.py.

Instructions keep their operands as text; directives and comments are dropped. Local labels differ by system: `.LBB0_1` in ELF and COFF,
`LBB0_1` in Mach-O, where function names begin with an underscore.
"""

from __future__ import annotations

import dataclasses
import re

from tilelang.lowering.compilers.listing import Instruction, Listing

_LABEL = re.compile(r'^"?([\w.$]+)"?:')
_LOCAL = re.compile(r"^\.?L")
_INSTRUCTION = re.compile(r"^\s+([a-z][\w.]*)(?:\s+(.*))?$")
_COMMENT = re.compile(r"\s*(?:##|#(?=\s|$)|//|;|@).*$")  # `#1` is an Arm immediate
_CONDITIONAL = re.compile(r"^(?:j(?!mp)[a-z]+|b\.[a-z]+|cbn?z|tbn?z)$")
_ALWAYS = ("jmp", "b")
_ENDS = ("ret", "retq", "br")

MULTIPLY_ADDS = ("vfmadd", "vfnmadd", "vfmsub", "vfnmsub", "fmla", "fmls", "fmadd", "fmsub", "fmad")


@dataclasses.dataclass(frozen=True, slots=True)
class NativeInstruction(Instruction):
    """One CPU instruction."""

    @property
    def target(self) -> str | None:
        """The target label of a jump within the function; None for other instructions."""
        if not (_CONDITIONAL.match(self.name) or self.name in _ALWAYS):
            return None
        return self.operands.rpartition(",")[2].strip().strip('"') or None

    @property
    def leaves(self) -> bool:
        """Whether control never falls through to the following instruction."""
        return self.name in _ALWAYS or self.name in _ENDS


def functions(assembly: str) -> tuple[Listing, ...]:
    """The functions of an assembly text, in order.

    >>> text = '''twice:
    ... .LBB0_1:
    ...     vaddps %zmm0, %zmm0, %zmm0   # a comment
    ...     decq %rax
    ...     jne .LBB0_1
    ...     retq'''
    >>> [(f.kernel, f.count("vaddps"), len(f.loops())) for f in functions(text)]
    [('twice', 1, 1)]
    """
    found: list[tuple[str, list[Instruction], list[tuple[str, int]]]] = []
    for line in assembly.splitlines():
        if label := _LABEL.match(line):
            if not _LOCAL.match(label[1]):
                found.append((label[1].lstrip("_"), [], []))
            elif found:
                found[-1][2].append((label[1], len(found[-1][1])))
        elif found and (text := _INSTRUCTION.match(_COMMENT.sub("", line))):
            found[-1][1].append(NativeInstruction(text[1], (text[2] or "").strip()))
    return tuple(Listing(name, tuple(all), tuple(labels)) for name, all, labels in found if all)


def main_loops(function: Listing) -> tuple[Listing, ...]:
    """The loops with the most multiply-adds, each without its inner loops; empty if no loop has any."""
    alone = function.loops_alone()
    most = max((loop.count(*MULTIPLY_ADDS) for loop in alone), default=0)
    return tuple(loop for loop in alone if most and loop.count(*MULTIPLY_ADDS) == most)


def stack_accesses(part: Listing, function: Listing) -> tuple[Instruction, ...]:
    """The instructions of part of a function that access its stack."""
    registers = [r"\(%rsp", r"\[sp\b"]
    names = [(i.name, i.operands.replace(" ", "")) for i in function.instructions]
    registers += [r"\(%rbp"] if ("movq", "%rsp,%rbp") in names else []
    registers += [r"\[x29\b"] if any(n in ("mov", "add") and o.startswith("x29,sp") for n, o in names) else []
    on_stack = re.compile("|".join(registers))
    return tuple(i for i in part.instructions if on_stack.search(i.operands) and not i.name.startswith("lea"))
