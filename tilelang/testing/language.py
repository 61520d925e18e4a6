"""Random programs that are parsed and printed but not lowered: every statement of the language, with all its parts.

`draw_program` makes nodes, as the Python interface does; `draw_text` makes text from the rules of the grammar.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tilelang.computations import functions as F
from tilelang.computations.computation import Computation, axes, computation, input
from tilelang.computations.define import define
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Expr, Read, Var, index
from tilelang.core.identifiers import spelled
from tilelang.core.layout import Layout
from tilelang.schedules.running_values import before, now
from tilelang.schedules.schedule import can
from tilelang.schedules.steps import (
    Do,
    Fuse,
    Hole,
    Inline,
    Open,
    Place,
    Split,
    Step,
    Team,
    Tile,
    Unfuse,
    Units,
    Vectorize,
    When,
    hole,
)
from tilelang.testing.choice import Source, subset

AXES = ("m", "k", "order", "\u00e9tage", "tile")  # names that are keywords are written in backquotes
MEMORIES = ("global", "shared", "register", "image", "constant", "local")
LEVELS = ("cluster", "block", "warpgroup", "warp", "thread")
DEEPEST = 3  # maximum nesting of braces


def draw_program(source: Source) -> tuple[Computation, tuple[Step, ...]]:
    """A computation, and steps that were not checked against it."""
    made = draw_computation(source)
    return made, _Steps(source, made).some(DEEPEST)


def program_text(made: Computation, steps: tuple[Step, ...]) -> str:
    """The printed text of a computation and a schedule for it."""
    return made.text + f"schedule for {spelled(made.name)} {{\n" + "".join(f"  {s}\n" for s in steps) + "}\n"


def draw_computation(source: Source) -> Computation:
    """Reductions of every kind, several values, licences, outputs in any order, and only some members of a group."""
    made = axes(**{n: source.integer(1, 9) for n in AXES[:3]})
    m, k, order = made
    dtype = source.pick((dt.float32, dt.float16, dt.float64))
    X, ids = input("X", dtype, m, k), input("load", dt.int32, m, range=(0, m.extent))
    licences = tuple(subset(source, ("tf32", "fast_exp", "float16_accumulate", "reorder")))
    kinds: tuple[Callable[..., Any], ...] = (F.any, F.all)
    a = define("a", source.pick(kinds)(X[m, k] > source.integer(0, 3), over=k, where=k < 4 if source.chance(50) else None), m)
    b = define("inline", source.pick((F.prod, F.max, F.min, F.argmax, F.argmin, F.sum))(X[m, k], over=k), m, allow=licences)
    state = F.reduce(
        lambda p, q: (p[0] + q[0], F.maximum(p[1], q[1])), (0.0, float("-inf")), (F.cast(X[m, k], dt.float32),) * 2, k
    )
    c, d = define(("c", "only"), state, m)
    e = define("e", X[ids[m], 0] * F.where(a[m], F.cast(2, dtype), F.cast(order, dtype)), m, order)
    outputs = [e, *subset(source, (a, b)), *source.pick(((c, d), (c,), (d,), ()))]
    return computation("swizzle", tuple(reversed(outputs)) if source.chance(50) else tuple(outputs))


class _Steps:
    """Draws steps of every kind for a computation."""

    def __init__(self, source: Source, made: Computation) -> None:
        self.source, self.tensors = source, {t.name: t for t in (*made.inputs, *(t for d in made.definitions for t in d.tensors))}
        self.reads = [r for r in (self.tensors["X"][made.axes[0], made.axes[1]],) if isinstance(r, Read)]

    def some(self, deep: int) -> tuple[Step, ...]:
        """One to six steps."""
        return tuple(self.one(deep) for _ in range(self.source.integer(1, 6)))

    def one(self, deep: int) -> Step:
        kinds = [self.units, self.fuse, self.unfuse, self.tile, self.split, self.inline, self.vectorize, self.do]
        nested: list[Callable[[int], Step]] = [self.place, self.place, self.when, lambda _: Open()] if deep else []
        kind = self.source.integer(0, len(kinds) + len(nested) - 1)
        return kinds[kind]() if kind < len(kinds) else nested[kind - len(kinds)](deep)

    def axis(self) -> str:
        return self.source.pick(AXES)

    def size(self) -> int | Hole:
        return hole if self.source.chance(20) else self.source.integer(1, 256)

    def sizes(self) -> tuple[tuple[str, int | Hole], ...]:
        chosen = subset(self.source, AXES) or [AXES[0]]
        return tuple((a, self.size()) for a in chosen)

    def maybe(self, percent: int, draw: Callable[[], Any]) -> Any:
        return draw() if self.source.chance(percent) else None

    def units(self) -> Step:
        def team() -> Team:
            role = self.maybe(50, lambda: self.source.pick(("producer", "at", "consumer")))
            return Team(
                self.source.integer(1, 8), self.source.pick(LEVELS), role, self.maybe(50, lambda: self.source.integer(24, 240))
            )

        return Units(self.source.pick(LEVELS), tuple(team() for _ in range(self.source.integer(1, 3))))

    def fuse(self) -> Step:
        return Fuse("fused", tuple(subset(self.source, AXES)) or AXES[:2])

    def unfuse(self) -> Step:
        return Unfuse(self.axis(), tuple((n, self.source.integer(1, 9)) for n in ("as", "b", "c")[: self.source.integer(1, 3)]))

    def tile(self) -> Step:
        order = self.maybe(40, lambda: Layout(self.terms()))
        return Tile(self.sizes(), self.source.pick(LEVELS), self.maybe(40, self.size), order)

    def split(self) -> Step:
        flags = self.source.chance(30), self.source.chance(30)
        computed = {n: t for n, t in self.tensors.items() if t.definition is not None and t.dtype.is_float}
        reductions = {n: t for n, t in computed.items() if t.definition is not None and t.definition.reduction is not None}
        of = tuple(subset(self.source, tuple(dict.fromkeys(("a", "inline", *computed))), 30))
        repairs = tuple(
            (n, before(t) * F.exp(before(t) - now(t))) for n, t in reductions.items() if n in of and self.source.chance(30)
        )
        return Split(self.sizes(), *flags, of=of, repairs=tuple(sorted(repairs, key=lambda r: of.index(r[0]))))

    def inline(self) -> Step:
        return Inline(self.source.pick(tuple(self.tensors)))

    def vectorize(self) -> Step:
        return Vectorize(self.axis(), self.size())

    def do(self) -> Step:
        return Do(self.source.pick(("mma_m16n8k16", "use")), tuple((a, self.axis()) for a in subset(self.source, AXES)))

    def terms(self) -> tuple[Expr, ...]:
        v: tuple[Expr, ...] = tuple(Var(a, INDEX) for a in AXES)
        forms = (v[0], v[2], v[1] // 8, v[3] % 4, (v[0] // 2) ^ (v[2] % 8), v[4] * 3 + v[0], index(1) + v[1])
        return tuple(subset(self.source, forms, 30)) or forms[:1]

    def layout(self) -> Layout:
        made = Layout(self.terms()) if self.source.chance(60) else Layout()
        made = made.pad(self.source.integer(1, 9)) if self.source.chance(40) or not made.terms else made
        return made.swizzle(self.source.pick((32, 64, 128))) if self.source.chance(40) else made

    def place(self, deep: int) -> Step:
        verb = self.source.pick(("load", "compute", "accumulate", "via"))
        what: Any = self.source.pick((*self.tensors, *self.reads)) if verb in ("load", "compute") else None
        behind = self.source.integer(0, 2) if what is None else 0
        flags = self.source.chance(30), self.source.chance(30)
        on = self.maybe(30, lambda: self.source.pick(("producer", "at")))
        steps = self.maybe(50, lambda: tuple(s for s in self.some(deep - 1) if not isinstance(s, Open)) or None)
        memory, layout = self.source.pick(MEMORIES), self.maybe(50, self.layout)
        return Place(verb, what, memory, layout, self.source.integer(0, 3), behind, on, *flags, steps, self.source.chance(30))

    def when(self, deep: int) -> Step:
        v = [Var(a, INDEX) for a in AXES]
        conditions = (v[0] <= 64, (v[2] < v[1]) & ~can("async_copy"), (v[3] % 2 == index(0)) | (v[4] != 7), can("mma_m16n8k16"))
        return When(self.source.pick(conditions), self.some(deep - 1), self.some(deep - 1) if self.source.chance(50) else ())


# ---------------------------------------------------------------- texts from the grammar's rules

_WORDS = {
    "NAME": ("m", "k", "X", "float32", "block", "shared", "image", "\u00e9tage"), "QUOTED": ("`order`", "`m`", "`in`"),
    "INT": ("0", "1", "8", "64"), "NUMBER": ("2.5", "1e-3", "0.25e+2"), "COMPARE": ("==", "!=", "<=", ">=", "<", ">"),
    "SHIFT": ("<<", ">>"), "DIVIDE": ("/", "//"),
}  # fmt: skip


@functools.cache
def _rules() -> tuple[dict[str, list[list[Any]]], dict[str, int]]:
    """The expansions of each rule, and the depth of its smallest derivation."""
    from tilelang.grammar.parser import lark  # late: slow to import, seldom needed

    rules: dict[str, list[list[Any]]] = {}
    for rule in lark().rules:
        rules.setdefault(rule.origin.name, []).append(list(rule.expansion))
    least = dict.fromkeys(rules, 1000)
    while True:
        found = {n: min(_depth(x, least) for x in each) for n, each in rules.items()}
        if found == least:
            return rules, least
        least = found


def _depth(expansion: list[Any], least: dict[str, int]) -> int:
    return 1 + max((0 if s.is_term else least[s.name] for s in expansion), default=0)


def draw_text(source: Source, deepest: int = 24) -> str:
    """A text that the grammar derives. It can be parsed, but has no meaning."""
    from tilelang.grammar.parser import lark  # late: slow to import, seldom needed

    rules, least = _rules()
    fixed = {t.name: str(t.pattern.value) for t in lark().terminals if t.pattern.type == "str"}
    out: list[str] = []

    def derive(symbol: Any, deep: int) -> None:
        if symbol.is_term:
            out.append(fixed[symbol.name] if symbol.name in fixed else source.pick(_WORDS[symbol.name]))
            return
        fits = [x for x in rules[symbol.name] if _depth(x, least) <= deep]
        for part in source.pick(fits or [min(rules[symbol.name], key=lambda x: _depth(x, least))]):
            derive(part, deep - 1)

    for part in source.pick([x for x in rules["start"] if x and x[0].name != "version"]):
        derive(part, deepest)
    return " ".join(["tilelang 1", *out] if source.chance(30) else out)
