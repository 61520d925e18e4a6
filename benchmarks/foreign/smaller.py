"""Texts that are one change smaller, for `tilelang.testing.shrinking.smallest`."""

import re
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import tilelang as tl
from benchmarks.foreign.corpus import Entry, lowered, read
from benchmarks.foreign.corpus import faults as faults_of
from benchmarks.foreign.mutate import joined, parts
from benchmarks.foreign.shrink import one_change
from benchmarks.foreign.worker import sort_of
from tilelang.testing.shrinking import smallest


def simpler(text: str) -> Iterator[str]:
    """Every text with a step or a line less, plainer steps, smaller numbers; the greatest changes first."""
    for computation, steps in one_change(*parts(text), _computations):
        yield joined(computation, steps)


def _computations(text: str) -> Iterator[str]:
    lines = text.splitlines()
    for n, line in enumerate(lines[1:-1], 1):
        yield "\n".join([*lines[:n], *lines[n + 1 :]]) + "\n"
        if line.count("output ") and sum("output " in x for x in lines) > 1:
            yield "\n".join([*lines[:n], line.replace("output ", ""), *lines[n + 1 :]]) + "\n"
    for n, line in enumerate(lines[1:-1], 1):
        if " = " in line:
            left, right = line.split(" = ", 1)
            for other in _expressions(right):
                yield "\n".join([*lines[:n], f"{left} = {other}", *lines[n + 1 :]]) + "\n"
    for number in dict.fromkeys(re.findall(r"(?<=: )\d+", text)):
        for less in dict.fromkeys((2, int(number) // 2, int(number) - 1)):
            if 0 < less < int(number):
                yield re.sub(rf"(?<=: ){number}\b", str(less), text)
    for name in dict.fromkeys(re.findall(r"\b(?:int8|uint8|int16|float16|bfloat16|float64|float8_\w+)\b", text)):
        yield re.sub(rf"\b{name}\b", "float32" if "float" in name else "int32", text)


def _expressions(text: str) -> Iterator[str]:
    """The text of an expression with a group, a call or a reduction replaced by one of its operands, or by a number."""
    for begin, end in sorted(_groups(text), key=lambda span: span[0] - span[1]):
        called = re.search(r"\w+$", text[:begin])
        start = called.start() if called else begin
        for operand in (*_operands(text[begin + 1 : end - 1]), "1", "1.0"):
            yield f"{text[:start]}({operand}){text[end:]}" if " " in operand else f"{text[:start]}{operand}{text[end:]}"


def _groups(text: str) -> Iterator[tuple[int, int]]:
    opened: list[int] = []
    for n, c in enumerate(text):
        if c == "(":
            opened.append(n)
        elif c == ")" and opened:
            yield opened.pop(), n + 1


def _operands(text: str) -> list[str]:
    """The parts of an expression at its top, and the body of a reduction."""
    found, depth, begun = list[str](), 0, 0
    for n, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if not depth and c == " ":
            found.append(text[begun:n])
            begun = n + 1
    found.append(text[begun:])
    operands = [p.rstrip(",") for p in found if re.search(r"\w", p) and not p.startswith(("sum[", "max[", "min[", "prod["))]
    return [p for p in dict.fromkeys(operands) if p != text]


def faulty(entry: Entry, seconds: float) -> Entry:
    """The smallest entry found that has a fault of the same sort as this one: `python -m benchmarks.foreign.smaller FILE SECONDS`."""
    end = time.monotonic() + seconds
    sorts = {sort_of(f) for f in faults(entry)}
    text = smallest(
        entry.text,
        simpler,
        lambda t: bool(sorts & {sort_of(f) for f in faults(Entry(entry.device, t))}),
        lambda: time.monotonic() <= end,
    )
    return Entry(entry.device, text)


def faults(entry: Entry) -> list[str]:
    """What is wrong with a text that may be refused."""
    try:
        schedule, program = lowered(entry)
        return [f for seed in (0, 1) for f in faults_of(schedule, program, entry.device, seed) or ()]
    except tl.TileLangError:
        return []
    except Exception:
        return [traceback.format_exc()]


if __name__ == "__main__":
    found = faulty(read(Path(sys.argv[1]).read_text(encoding="utf-8")), float(sys.argv[2]))
    print(found.whole, *faults(found), sep="\n")
