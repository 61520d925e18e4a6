"""Parses assembly: the instructions of each kernel in order, its loops, and instruction counts.

Reads SASS as nvdisasm prints it, and the assembly of AMD's compiler. Loops are found in the control flow, not in the text, because both
compilers move parts of a loop behind the rest of the kernel.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

_SECTION = re.compile(r"^(?:\.text\.(\w+):$|\t\.protected\t(\w+))")
_LABEL = re.compile(r"^(\.?\w+):")
_SASS = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:\{ )?(@!?\w+ )?([A-Z][\w.]*)(.*)")
_ISA = re.compile(r"^\t()([a-z]\w+)(?:[ \t]+(.*))?$")
_JUMP = re.compile(r"^(?:BRA|s_c?branch)")
_ENDS = re.compile(r"^(?:EXIT|RET|s_endpgm)")
_TARGET = re.compile(r"(\.\w+)")


@dataclasses.dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction: its name with all modifiers, its operands as text, and its predicate, if any."""

    name: str
    operands: str = ""
    predicate: str = ""

    @property
    def target(self) -> str | None:
        """The target label of a jump; None for other instructions."""
        found = _TARGET.search(self.operands) if _JUMP.match(self.name) else None
        return found[1] if found else None

    @property
    def leaves(self) -> bool:
        """Whether control never falls through to the following instruction."""
        always = self.name == "s_branch" or (self.name.startswith("BRA") and self.operands.startswith("`"))
        return not self.predicate and (always or _ENDS.match(self.name) is not None)


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """The instructions of one kernel, or of part of it. labels: the index of the instruction after each label."""

    kernel: str
    instructions: tuple[Instruction, ...]
    labels: tuple[tuple[str, int], ...] = ()

    def count(self, *prefixes: str) -> int:
        """The number of instructions whose name begins with one of the prefixes."""
        return sum(i.name.startswith(prefixes) for i in self.instructions)

    def loops(self) -> tuple[Listing, ...]:
        """All loops, outer and inner, ordered by their heads."""
        bodies = _loops(_blocks(self))
        return tuple(Listing(self.kernel, tuple(self.instructions[i] for i in sorted(bodies[head]))) for head in sorted(bodies))

    def loops_alone(self) -> tuple[Listing, ...]:
        """Like `loops`, each without the instructions of its inner loops."""
        bodies = _loops(_blocks(self))
        inside = {head: set().union(*(other for other in bodies.values() if other < bodies[head])) for head in bodies}
        own = [sorted(bodies[head] - inside[head]) for head in sorted(bodies)]
        return tuple(Listing(self.kernel, tuple(self.instructions[i] for i in numbers)) for numbers in own)

    def main_loop(self, *prefixes: str) -> Listing:
        """The shortest loop among those with the most instructions of these names. Raises ValueError if none has any."""
        having = [loop for loop in self.loops() if loop.count(*prefixes)]
        if not having:
            raise ValueError(f"no loop of {self.kernel} has {' or '.join(prefixes)}")
        return max(having, key=lambda loop: (loop.count(*prefixes), -len(loop.instructions)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Block:
    """A basic block: the indices of its instructions, and the first indices of its successors."""

    numbers: range
    after: tuple[int, ...]


def _blocks(listing: Listing) -> dict[int, _Block]:
    """The basic blocks by the index of their first instruction."""
    instructions, where = listing.instructions, dict(listing.labels)
    jumps = [n for n, i in enumerate(instructions) if i.target is not None or i.leaves]
    starts = sorted({0, *where.values(), *(n + 1 for n in jumps)} & set(range(len(instructions))))
    blocks = {}
    for start, end in zip(starts, [*starts[1:], len(instructions)], strict=True):
        last = instructions[end - 1]
        after = [where[last.target]] if last.target in where else []
        after += [end] if not last.leaves and end < len(instructions) else []
        blocks[start] = _Block(range(start, end), tuple(a for a in after if a < len(instructions)))
    return blocks


def _dominators(blocks: dict[int, _Block]) -> dict[int, set[int]]:
    """For each reachable block, its dominators, including itself."""
    found = {0: {0}}
    changed = True
    while changed:
        changed = False
        for start, block in blocks.items():
            for after in block.after if start in found else ():
                through = (found[after] & found[start] if after in found else set(found[start])) | {after}
                if after != 0 and through != found.get(after):
                    found[after], changed = through, True
    return found


def _loops(blocks: dict[int, _Block]) -> dict[int, set[int]]:
    """The instructions of each natural loop, by the first instruction of its head.

    A loop consists of all blocks from which a back edge to its head is reachable without passing through the head. (Aho, Lam, Sethi,
    Ullman: Compilers, section 9.6.)
    """
    over = _dominators(blocks)
    before: dict[int, list[int]] = {}
    for start in over:
        for after in blocks[start].after:
            before.setdefault(after, []).append(start)
    found: dict[int, set[int]] = {}
    for start in over:
        for head in blocks[start].after:
            if head in over[start]:
                members, left = {head}, [start]
                while left:
                    block = left.pop()
                    if block not in members:
                        members.add(block)
                        left += before.get(block, [])
                found.setdefault(head, set()).update(n for m in members for n in blocks[m].numbers)
    return found


def listings(assembly: str) -> tuple[Listing, ...]:
    """The kernels of an assembly text, in order.

    >>> sass = '''.text.twice:
    ... .L_x_0:
    ...         /*0000*/                   FADD R1, R1, R1 ;
    ...         /*0010*/               @P0 BRA `(.L_x_0) ;'''
    >>> [(k.kernel, k.count("FADD"), len(k.loops())) for k in listings(sass)]
    [('twice', 1, 1)]
    """
    return tuple(_listing(name, lines) for name, lines in _sections(assembly) if name)


def _sections(assembly: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in assembly.splitlines():
        if begins := _SECTION.match(line):
            yield name, lines
            name, lines = begins[1] or begins[2], []
        lines.append(line)
    yield name, lines


def _listing(kernel: str, lines: list[str]) -> Listing:
    instructions, labels = list[Instruction](), list[tuple[str, int]]()
    for line in lines:
        text = line.split(";")[0].rstrip()
        if found := _SASS.match(text) or _ISA.match(text):
            first, *others = (found[3] or "").split(" :: ")  # dual-issued instructions of AMD GPUs count as two
            instructions.append(Instruction(found[2], first.strip(), (found[1] or "").strip()))
            instructions += [Instruction(*other.strip().split(" ", 1)) for other in others]
        elif label := _LABEL.match(text):
            labels.append((label[1], len(instructions)))
        elif text.startswith("\t.section") and instructions:  # metadata after a kernel's code
            break
    return Listing(kernel, tuple(instructions), tuple(labels))
