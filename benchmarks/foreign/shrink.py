"""Makes a failing case small: fewer steps, definitions and operators, smaller extents, as long as it still fails in the same way.

`python -m benchmarks.foreign --kind cpu --first 7 --count 1 --shrink` prints the smallest program that was found.
"""

import copy
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from benchmarks.foreign.program import Expression, children, walk
from tilelang.testing.shrinking import smallest

T = TypeVar("T")
Case = tuple[dict[str, Any], list[Any] | None]
MODIFIERS: tuple[str, ...] = (
    r" ahead \d+",
    r" behind \d+",
    r" stream",
    r" unroll",
    r" peel",
    r" pad \d+",
    r" layout \([^()]*\)",
    r" order \([^()]*\)",
    r" on \w+",
    r" swizzle \d+",
    r"(?<=-> block) \d+",
    r"(?<=-> thread) \d+",
    r"(?<=-> warp) \d+",
)


def shrunk(case: Case, fails: Callable[[Case], bool], seconds: float = 100) -> Case:
    """The smallest case found for which `fails` holds, as it does for the one given."""
    end = time.monotonic() + seconds
    return smallest(case, simpler, fails, lambda: time.monotonic() <= end)


def simpler(case: Case) -> Iterator[Case]:
    """Every case that is one change simpler, the greatest changes first."""
    program, steps = case
    if steps is None:
        yield from ((changed, None) for changed in _programs(program))
    else:
        yield from one_change(program, steps, _programs)


def one_change(what: T, steps: list[Any], simpler_of: Callable[[T], Iterator[T]]) -> Iterator[tuple[T, list[Any]]]:
    """A computation, as text or as a tree, and its steps, with one change of either, the greatest changes first."""
    half = len(steps) // 2
    if half > 1:
        yield what, steps[:half]
        yield what, steps[half:]
    yield from ((what, less) for less in fewer(steps))
    yield from ((changed, steps) for changed in simpler_of(what))
    yield from ((what, less) for less in plainer(steps))


def fewer(steps: list[Any]) -> Iterator[list[Any]]:
    """The steps with one of them, or the contents of its braces, left out."""
    for n in reversed(range(len(steps))):
        yield [*steps[:n], *steps[n + 1 :]]
    for n, step in enumerate(steps):
        if not isinstance(step, str):
            yield [*steps[:n], step[0], *steps[n + 1 :]]
            for inner in fewer(step[1]):
                if inner:
                    yield [*steps[:n], [step[0], inner], *steps[n + 1 :]]


def plainer(steps: list[Any]) -> Iterator[list[Any]]:
    """The steps with one that has a modifier or a size less, or a smaller number."""
    for n, step in enumerate(steps):
        text, inner = (step, None) if isinstance(step, str) else step
        for other in _plainer_texts(text):
            yield [*steps[:n], other if inner is None else [other, inner], *steps[n + 1 :]]
        if inner is not None:
            for less in plainer(inner):
                yield [*steps[:n], [text, less], *steps[n + 1 :]]


def _plainer_texts(text: str) -> Iterator[str]:
    for pattern in MODIFIERS:
        if re.search(pattern, text):
            yield re.sub(pattern, "", text, count=1)
    sizes = re.findall(r" \w+=\w+", text)
    if len(sizes) > 1:
        for size in sizes:
            yield text.replace(size, "", 1)
    for found in re.finditer(r"=(\d+)", text):
        value = int(found[1])
        for less in dict.fromkeys((1, value // 2, value - 1)):
            if 0 < less < value:
                yield f"{text[: found.start(1)]}{less}{text[found.end(1) :]}"


def _programs(program: dict[str, Any]) -> Iterator[dict[str, Any]]:
    names = [n for d in program["definitions"] for n in d["names"]]
    if len(program["outputs"]) > 1:
        for name in program["outputs"]:
            yield _pruned(program | {"outputs": [n for n in program["outputs"] if n != name]})
    for name in names:
        if name not in program["outputs"]:
            yield _pruned(program | {"outputs": [name]})
    for n, d in enumerate(program["definitions"]):
        for m, value in enumerate(d["values"]):
            for other in _expressions(value, top=True):
                if len(d["values"]) < len(d["names"]) and other[0] != "reduce":
                    continue
                changed = copy.deepcopy(program["definitions"])
                changed[n]["values"][m] = other
                yield _pruned(program | {"definitions": changed})
        for axis in d["axes"]:
            if d["names"][0] not in _read(program):
                changed = copy.deepcopy(program["definitions"])
                changed[n]["axes"] = [a for a in d["axes"] if a != axis]
                yield _pruned(program | {"definitions": changed})
    for axis, extent in program["axes"].items():
        for less in dict.fromkeys((1, 2, extent // 2, extent - 1)):
            if 0 < less < extent:
                yield program | {"axes": program["axes"] | {axis: less}}
    for n, i in enumerate(program["inputs"]):
        for m, (_, extent) in enumerate(i["dims"]):
            for less in dict.fromkeys((1, 2, extent // 2, extent - 1)):
                if 0 < less < extent:
                    changed = copy.deepcopy(program["inputs"])
                    changed[n]["dims"][m][1] = less
                    yield program | {"inputs": changed}
        if i["dtype"] not in ("float32", "int32", "bool") and not i.get("range"):
            changed = copy.deepcopy(program["inputs"])
            changed[n]["dtype"] = "float32" if "float" in i["dtype"] else "int32"
            yield program | {"inputs": changed}


def _read(program: dict[str, Any]) -> set[str]:
    return {x[1] for d in program["definitions"] for e in d["values"] for x in walk(e) if x[0] == "read"}


def _pruned(program: dict[str, Any]) -> dict[str, Any]:
    """Without what no output reads."""
    wanted, kept = set(program["outputs"]), list[dict[str, Any]]()
    for d in reversed(program["definitions"]):
        if wanted & set(d["names"]):
            kept.insert(0, d)
            wanted |= {x[1] for e in d["values"] for x in walk(e) if x[0] == "read"}
    used = {d["values"][0][1] for d in kept if d["values"][0][0] == "reduce"}
    return program | {
        "definitions": kept,
        "inputs": [i for i in program["inputs"] if i["name"] in wanted],
        "combiners": {n: t for n, t in program["combiners"].items() if n in used},
    }


def _expressions(e: Expression, top: bool = False) -> Iterator[Expression]:
    """Every expression that has one operator less, at any depth."""
    kept = children(e)
    if e[0] not in ("read",):
        yield from (copy.deepcopy(c) for c in kept)
    if e[0] == "reduce":
        _, kind, axes, condition, bodies = e
        if condition:
            yield ["reduce", kind, axes, None, bodies]
        if len(axes) > 1:
            yield from (["reduce", kind, [a for a in axes if a != axis], condition, bodies] for axis in axes)
        if kind in ("prod", "max", "min"):
            yield ["reduce", "sum", axes, condition, bodies]
    if e[0] in ("binary", "unary", "where", "cast", "axis") and not top:
        yield ["number", 1]
    for n, part in enumerate(e):
        if isinstance(part, list) and part and isinstance(part[0], str) and e[0] != "reduce":
            yield from ([*e[:n], other, *e[n + 1 :]] for other in _expressions(part))
        elif isinstance(part, list) and part and isinstance(part[0], list):
            for m, inner in enumerate(part):
                yield from ([*e[:n], [*part[:m], other, *part[m + 1 :]], *e[n + 1 :]] for other in _expressions(inner))
    if e[0] == "reduce" and e[3]:
        yield from ([*e[:3], other, e[4]] for other in _expressions(e[3]))
