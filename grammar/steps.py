"""Builds a schedule's steps from their text with the methods of the Python builder, so that both have the same meaning and errors."""

from __future__ import annotations

from typing import Any

from tilelang.computations.computation import Computation
from tilelang.core.expr import INDEX, Expr, Read, Var, index, to_text
from tilelang.core.layout import Layout, _term
from tilelang.errors import MOST_FINDINGS, TileLangError, collected, meant
from tilelang.grammar.parser import Syntax
from tilelang.grammar.values import Scope, Values, in_text, name_of
from tilelang.schedules.check import main_task
from tilelang.schedules.running_values import before, now
from tilelang.schedules.schedule import Move, can
from tilelang.schedules.steps import Hole, Open, Place, Step, Team, Tile, Units, hole

_ANY = -(2**62)  # the minimum, where the builder reports numbers that are too small
# parameters of the builder's methods, which also accept axes by name
_ARGUMENTS = ("self", "unroll", "peel", "of", "instruction")


class _Running(Values):
    """The values of expressions with `before(X)` and `now(X)` of reductions."""

    def _call(self, tree: Any) -> Any:
        function, *given = tree.children
        name, arguments = name_of(function.children[0]), given[0].children if given else []
        if name not in ("before", "now"):
            return super()._call(tree)
        tensor = name_of(arguments[0].children[0]) if [a.data for a in arguments] == ["variable"] else None
        if tensor not in self.scope.tensors:
            reductions = [
                n for n, t in self.scope.tensors.items() if t.definition is not None and t.definition.reduction is not None
            ]
            help = meant(tensor or "", reductions)
            raise self.scope.fail(tree, "running-value", f"`{self.scope.said(tree)}` does not name a reduction", help)
        return (before if name == "before" else now)(self.scope.tensors[tensor])


class Steps:
    """Builds the steps of one schedule. scope: its parameters. computation: the scheduled one."""

    def __init__(self, scope: Scope, computation: Computation) -> None:
        self.scope, self.computation = scope, computation
        self.errors: list[TileLangError] = []  # of steps that are left out
        self.unsure: set[str] = {""}  # the axes that those would have divided or defined

    def steps(self, tree: Syntax) -> tuple[Step, ...]:
        """The steps in braces, each with its place in the text."""
        made: list[Step] = []
        for t in tree.children:
            before = len(self.errors)
            with collected(self.errors):
                made += self._chosen(t) if t.data == "when" else (self.step(t),)
            if len(self.errors) > before:
                if t.data in ("tile", "split", "fuse", "unfuse", "when"):
                    self.unsure |= {name_of(n) for n in t.named("name")}
                if t.data == "tile":  # without axes: the steps after it are on its level
                    made.append(Tile((("", 1),), name_of(self._of(t, "name"))))
            if len(self.errors) > MOST_FINDINGS:
                break
        return tuple(made)

    def _chosen(self, tree: Any) -> tuple[Step, ...]:
        """The steps of a `when`: one step, or those of a branch if parameters alone decide."""
        condition, then, *otherwise = tree.children
        found = self._condition(condition)
        if isinstance(found, bool):
            return self.steps(then) if found else self.steps(otherwise[0]) if otherwise else ()
        return (self.step(tree),)

    def step(self, tree: Any) -> Step:
        try:
            made: Step = getattr(self, f"_{tree.data}")(tree)
        except TileLangError as error:
            raise in_text(error, self.scope.span(tree)) from None
        return made.replace(span=self._head(tree))

    def _head(self, tree: Any) -> Any:
        """The place of a step without the contents of its braces."""
        span = self.scope.span(tree)
        inner = next((t for t in tree.children if getattr(t, "data", None) == "steps"), None)
        if inner is None or tree.first.line != inner.first.line:
            return span
        return type(span)(span.file, span.line, span.column, max(span.column + 1, inner.first.column - 1))

    # ------------------------------------------------------------ numbers and names

    def _number(self, tree: Any, what: str, least: int = 0) -> int:
        return Values(self.scope).number(tree, what, least)

    def _size(self, tree: Any) -> tuple[str, int | Hole]:
        axis, value = tree.children
        return self._argument(axis), hole if value.data == "hole" else self._number(
            value, f"the size along {name_of(axis)}", _ANY
        )

    def _argument(self, tree: Any) -> str:
        """A name that the builder takes as a keyword, which must not collide with its own parameters."""
        name = name_of(tree)
        if name in _ARGUMENTS:
            raise self.scope.fail(
                tree, "axis-name", f"steps cannot divide, name or bind `{name}`", "use another name for the axis"
            )
        return name

    def _sizes(self, tree: Any) -> dict[str, int | Hole]:
        found: dict[str, int | Hole] = {}
        for t in tree.children:
            if t.data == "size":
                axis, size = self._size(t)
                if axis in found:
                    raise self.scope.fail(t, "axis-twice", f"`{axis}` appears twice", "give each axis one size")
                found[axis] = size
        return found

    @staticmethod
    def _of(tree: Any, kind: str) -> Any:
        return next((t for t in tree.children if getattr(t, "data", None) == kind), None)

    # ------------------------------------------------------------ cuts

    def _units(self, tree: Any) -> Step:
        level, *teams = tree.children
        made = []
        for t in teams:
            count, unit, *more = t.children
            roles = [name_of(m) for m in more if m.data == "name"]
            registers = next((self._number(m, "registers", 1) for m in more if m.data != "name"), None)
            made.append(Team(self._number(count, "how many there are", 1), name_of(unit), roles[0] if roles else None, registers))
        (step,) = Move().units(**{self._argument(level): tuple(made)}).steps
        assert isinstance(step, Units)
        return step

    def _fuse(self, tree: Any) -> Step:
        name, axes = tree.children
        return Move().fuse(**{self._argument(name): tuple(name_of(a) for a in axes.children)}).steps[-1]

    def _unfuse(self, tree: Any) -> Step:
        axis, *parts = tree.children
        extents = {name_of(p.children[0]): self._number(p.children[1], "an extent", _ANY) for p in parts}
        if len(extents) < len(parts):
            raise self.scope.fail(tree, "axis-twice", "two parts have the same name", "give them different names")
        return Move().unfuse(**{self._argument(axis): extents}).steps[-1]

    def _tile(self, tree: Any) -> Step:
        count, order, level = self._of(tree, "count"), self._of(tree, "order"), self._of(tree, "name")
        number: int | Hole | None = None
        if count is not None:
            number = hole if count.children[0].data == "hole" else self._number(count.children[0], "the number of units", _ANY)
        terms = None if order is None else self._layout_of(order.children[0])
        made = Move().tile(**self._sizes(tree)).to(name_of(level), count=number, order=terms)
        (step,) = made.steps
        assert isinstance(step, Tile)
        return step

    def _split(self, tree: Any) -> Step:
        how: dict[str, Any] = {}
        for t in (t for t in tree.children if t.data == "how"):
            if str(t.children[0]) in how:
                raise self.scope.fail(t, "modifier-twice", f"`{t.children[0]}` appears twice", "remove one of them")
            how[str(t.children[0])] = t
        of = self._of(tree, "of")
        members = of.children if of is not None else ()
        named = tuple(name_of(m.children[0]) for m in members)
        repairs = {n: self._repair(m.children[1]) for n, m in zip(named, members, strict=True) if len(m.children) > 1}
        extra = {"of": named, "repairs": repairs} if named else {}
        return Move().split(**self._sizes(tree), unroll="unroll" in how, peel="peel" in how, **extra).steps[-1]  # type: ignore[arg-type]

    def _repair(self, tree: Any) -> Any:
        """What a reduction becomes, over the values of reductions before and after a change."""
        tensors = {t.name: t for d in self.computation.definitions for t in d.tensors}
        numbers = {n: v for n, v in self.scope.values.items() if isinstance(v, (int, float))}
        return _Running(Scope(self.scope.file, numbers, tensors)).value(tree)

    # ------------------------------------------------------------ places

    def _load(self, tree: Any) -> Step:
        return self._place("load", tree, self._what(tree.children[0]), tree.children[1:])

    def _compute(self, tree: Any) -> Step:
        return self._place("compute", tree, self._what(tree.children[0]), tree.children[1:])

    def _accumulate(self, tree: Any) -> Step:
        return self._place("accumulate", tree, None, tree.children)

    def _via(self, tree: Any) -> Step:
        return self._place("via", tree, None, tree.children)

    def _what(self, tree: Any) -> str | Read:
        """A tensor's name, or the read of it in the text."""
        name = name_of(tree.children[0])
        if len(tree.children) == 1:
            return name
        scope = Scope(self.scope.file, {a.name: a for a in self.computation.axes}, self._tensors())
        if name not in scope.tensors:
            raise self.scope.fail(
                tree, "unknown-tensor", f"there is no tensor `{name}`", "use one of " + ", ".join(scope.tensors)
            )
        inner = Values(scope, whole=True)
        wanted = to_text(scope.tensors[name][tuple(inner.value(t) for t in tree.children[1].children)])
        reads = {to_text(r): r for r in self._reads() if r.tensor.name == name}
        if wanted not in reads:
            raise self.scope.fail(
                tree, "unknown-read", f"{self.computation.name} does not read {wanted}", "use one of " + ", ".join(reads)
            )
        return reads[wanted]

    def _tensors(self) -> dict[str, Any]:
        tensors = (*self.computation.inputs, *(t for d in self.computation.definitions for t in d.tensors))
        return {t.name: t for t in tensors}

    def _reads(self) -> list[Read]:
        found = [e for d in self.computation.definitions for v in d.values for e in v.walk()]
        found += [e for v in main_task(self.computation, ()).expressions() for e in v.walk()]
        return [e for e in dict.fromkeys(found) if isinstance(e, Read)]

    def _place(self, verb: str, tree: Any, what: str | Read | None, rest: Any) -> Place:
        memory, *more = rest
        fields: dict[str, Any] = {}
        braces = None
        for t in more:
            if t.data == "steps":
                braces = t
                continue
            key, value = self._modifier(t)
            if key in fields:
                raise self.scope.fail(t, "modifier-twice", f"`{key}` appears twice", "remove one of them")
            fields[key] = value
        if fields.get("behind") and verb in ("load", "compute"):
            help = f"use `ahead` to {verb} earlier, or `behind` on via or accumulate"
            raise self.scope.fail(tree, "behind-a-load", f"`{verb} ... behind`: only a store can be delayed", help)
        steps = self.steps(braces) if braces is not None else ()
        open = bool(steps) and isinstance(steps[-1], Open)
        if any(isinstance(s, Open) for s in steps[:-1]):
            raise self.scope.fail(
                braces, "hole", "`...` stands for the rest of the steps, so it must come last", "remove it, or move it to the end"
            )
        given = Move(steps[:-1] if open else steps) if steps else None
        arguments = (name_of(memory),) if what is None else (what, name_of(memory))
        made = getattr(Move(), verb)(*arguments, steps=given if not open or len(steps) > 1 else None, **fields).steps[-1]
        assert isinstance(made, Place)
        return made.replace(open=open)

    def _modifier(self, t: Any) -> tuple[str, Any]:
        match t.data:
            case "layout" | "plain_layout":
                return "layout", self._layout(t)
            case "ahead" | "behind":
                return t.data, self._number(t.children[0], f"`{t.data}`", _ANY)
            case "role":
                return "on", name_of(t.children[0])
            case _:
                return str(t.data), True

    def _layout(self, tree: Any) -> Layout:
        terms = self._of(tree, "expressions")
        made = Layout() if terms is None else self._layout_of(terms)
        for t in tree.children:
            if t.data == "pad":
                made = made.pad(self._number(t.children[0], "`pad`", _ANY))
            elif t.data == "swizzle":
                made = made.swizzle(self._number(t.children[0], "`swizzle`", _ANY))
        return made

    def _named(self, names: set[str]) -> dict[str, Any]:
        """The meaning of names in a layout or a condition: the computation's axes first, then parameters, which are numbers."""
        axes = {a.name for a in self.computation.axes}
        values: dict[str, Any] = {n: Var(n, INDEX) for n in names}
        values.update((n, v) for n, v in self.scope.values.items() if isinstance(v, int) and n not in axes)
        return values

    def _layout_of(self, terms: Any) -> Layout:
        """A layout's terms, over variables with the names that occur in it; parameters are numbers."""
        values = self._named({name_of(n) for t in terms.children for n in t.named("variable")})
        inner = Values(Scope(self.scope.file, values), whole=True)
        found = [inner.value(t) for t in terms.children]
        return Layout(tuple(_term(index(v) if isinstance(v, int) else v) for v in found))

    # ------------------------------------------------------------ leaves and the rest

    def _inline(self, tree: Any) -> Step:
        return Move().inline(name_of(tree.children[0])).steps[-1]

    def _vectorize(self, tree: Any) -> Step:
        axis, lanes = self._size(tree.children[0])
        return Move().vectorize(**{axis: lanes}).steps[-1]

    def _do(self, tree: Any) -> Step:
        name, *bindings = tree.children
        return Move().do(name_of(name), **{self._argument(b.children[0]): name_of(b.children[1]) for b in bindings}).steps[-1]

    def _open(self, tree: Any) -> Step:
        return Open()

    def _condition(self, tree: Any) -> Expr | bool:
        values = self._named({name_of(n) for n in tree.named("variable")})
        found = Values(Scope(self.scope.file, values, can=can), whole=True).value(tree)
        if not isinstance(found, (Expr, bool)):
            raise self.scope.fail(
                tree, "not-a-condition", f"`{self.scope.said(tree)}` is not a condition", "compare, as in m <= 64"
            )
        return found

    def _when(self, tree: Any) -> Step:
        condition, then, *otherwise = tree.children
        found = self._condition(condition)
        assert isinstance(found, Expr), "what parameters decide is chosen before"
        rest = Move(self.steps(otherwise[0])) if otherwise else None
        return Move().when(found, Move(self.steps(then)), rest).steps[-1]
