"""A schedule: a computation and the steps that refine it, and the builder that writes them.

Every step is a frozen value; a Schedule is immutable, each method gives a new one. Steps carry the caller's line. A step is checked
as soon as it is made, as far as that step can be (spec.advance); the rest is known when the schedule is compiled or `check`ed.
Nodes that a target does not lower yet are in the data model and refused by the lowering, never by the builder.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from tilelang.computation import Computation, Tensor, as_computation
from tilelang.errors import Refusal, Span, caller_span
from tilelang.expr import INDEX, Expr, Read, Var, to_text
from tilelang.machine import Level, Memory
from tilelang.node import Node, node
from tilelang.tensor import Layout

if TYPE_CHECKING:
    from tilelang.spec import Spec


@node
class Hole(Node):
    """A size or a run of steps for the autoscheduler to fill. Text: `?` for a size, `...` for steps."""

    def __str__(self) -> str:
        return "?"


hole = Hole()
Size = int | Hole
Sizes = tuple[tuple[str, Size], ...]


class Step(Node):
    """One line of a schedule."""

    __slots__ = ()


@node
class Team(Node):
    """`count` units of `level`, optionally named as a role with a register budget per thread."""

    count: int
    level: str
    role: str | None = None
    registers: int | None = None

    def as_role(self, name: str, registers: int | None = None) -> Team:
        """The same units under a name that steps can refer to."""
        return self.replace(role=name, registers=registers)

    def __add__(self, other: Team) -> tuple[Team, ...]:
        return (self, other)

    def __str__(self) -> str:
        tail = f" as {self.role}" if self.role else ""
        return f"{self.count} {self.level}{tail}" + (f" ({self.registers} registers)" if self.registers is not None else "")


@node
class Units(Step):
    """What a unit of `level` is made of."""

    level: str
    teams: tuple[Team, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"units {self.level} = {' + '.join(str(t) for t in self.teams)}"


@node
class Fuse(Step):
    """A new axis that runs over several, row-major."""

    name: str
    axes: tuple[str, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"fuse {self.name}=({', '.join(self.axes)})"


@node
class Unfuse(Step):
    """An axis as several of given extents, row-major."""

    axis: str
    parts: tuple[tuple[str, int], ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"unfuse {self.axis}=({', '.join(f'{n}:{e}' for n, e in self.parts)})"


@node
class Tile(Step):
    """Spread: cut, and give each tile to one unit of `level`. `count` wraps the tiles over that many units."""

    sizes: Sizes
    level: str
    count: Size | None = None
    order: Layout | None = None
    span: Span | None = None

    def __str__(self) -> str:
        count = f" {self.count}" if self.count is not None else ""
        order = " " + str(self.order).replace("layout", "order") if self.order is not None else ""
        return f"tile {_sizes(self.sizes)} -> {self.level}{count}{order}"


@node
class Split(Step):
    """Walk: a sequential loop over chunks. `of`: the reductions that share the walk. `implied`: not written by the user."""

    sizes: Sizes
    unroll: bool = False
    peel: bool = False
    of: tuple[str, ...] = ()
    implied: bool = False
    span: Span | None = None

    def __str__(self) -> str:
        of = f" of {' '.join(self.of)}" if self.of else ""
        return f"split {_sizes(self.sizes)}{of}" + " unroll" * self.unroll + " peel" * self.peel


@node
class Place(Step):
    """A tensor, or the state of reductions, resident in a memory from here to the end of this spec.

    verb: load, compute, accumulate, via. what: a tensor's name, or a read such as A[n, k] (None for accumulate and via). layout: over
    the tensor's dims, or over the spec's axes (by access). ahead: it runs that many iterations before its reader. steps: how it
    moves; None is the documented default, `...` a hole. on, behind, once: in the data model, lowered later.
    """

    verb: str
    what: str | Read | None
    memory: str
    layout: Layout | None = None
    ahead: int = 0
    behind: int = 0
    on: str | None = None
    once: bool = False
    stream: bool = False
    steps: tuple[Step, ...] | None = None
    open: bool = False
    implied: bool = False
    span: Span | None = None

    @property
    def tensor_name(self) -> str:
        return self.what.tensor.name if isinstance(self.what, Read) else str(self.what)

    def __str__(self) -> str:
        if self.verb == "via":
            head = f"via {self.memory}"
        elif self.verb == "accumulate":
            head = f"accumulate in {self.memory}"
        else:
            what = to_text(self.what) if isinstance(self.what, Read) else self.what
            head = f"{self.verb} {what} in {self.memory}"
        parts = [head, str(self.layout) if self.layout is not None else "", f"ahead {self.ahead}" if self.ahead else "",
                 f"behind {self.behind}" if self.behind else "", f"on {self.on}" if self.on else "", "once" * self.once,
                 "stream" * self.stream]  # fmt: skip
        inner = [str(s) for s in self.steps or ()] + ["..."] * self.open
        braces = "{ " + "; ".join(inner) + " }" if inner else ""
        return " ".join(p for p in (*parts, braces) if p)


@node
class Inline(Step):
    """Substitute a pointwise definition into its readers; at the head of a schedule."""

    tensor: str
    span: Span | None = None

    def __str__(self) -> str:
        return f"inline {self.tensor}"


@node
class Vectorize(Step):
    """The innermost piece is one vector access or operation along an axis."""

    axis: str
    lanes: Size
    span: Span | None = None

    def __str__(self) -> str:
        return f"vectorize {self.axis}={self.lanes}"


@node
class Do(Step):
    """The innermost piece is one instruction; `binding` pairs the instruction's axes with the spec's."""

    instruction: str
    binding: tuple[tuple[str, str], ...] = ()
    span: Span | None = None

    def __str__(self) -> str:
        tail = f" ({', '.join(f'{a}={b}' for a, b in self.binding)})" if self.binding else ""
        return f"do {self.instruction}{tail}"


@node
class Open(Step):
    """A hole that stands for any number of steps."""

    span: Span | None = None

    def __str__(self) -> str:
        return "..."


@node
class When(Step):
    """Steps under a condition on extents or on what the profile can do; `condition` is over Vars named as axes."""

    condition: Expr
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()
    span: Span | None = None

    def __str__(self) -> str:
        text = f"when {self.condition} {{ {'; '.join(map(str, self.then))} }}"
        return text + (f" else {{ {'; '.join(map(str, self.otherwise))} }}" if self.otherwise else "")


def _sizes(sizes: Sizes) -> str:
    return " ".join(f"{axis}={size}" for axis, size in sizes)


def _need(holds: bool, span: Span | None, code: str, message: str, mend: str) -> None:
    if not holds:
        raise Refusal(code, message, span=span, mend=mend)


def _checked_sizes(verb: str, sizes: dict[str, Any], span: Span | None) -> Sizes:
    _need(bool(sizes), span, "no-sizes", f"`{verb}` cuts no axis", f"name at least one, as in .{verb}(m=32)")
    for axis, size in sizes.items():
        whole = hasattr(size, "__index__") and not isinstance(size, bool)
        good = isinstance(size, Hole) or (whole and int(size) >= 1)
        message = f"`{verb} {axis}={size!r}`: {size!r} is no size"
        _need(good, span, "bad-size", message, "a whole number of at least 1, or tl.hole")
    return tuple((axis, size if isinstance(size, Hole) else int(size)) for axis, size in sizes.items())


def _check_layout(name: str, layout: Any, span: Span | None) -> None:
    good = layout is None or isinstance(layout, Layout)
    _need(good, span, "bad-layout", f"{name}={layout!r} is no layout", f'{name}=tl.layout("k", "m"), or of one function')


class Builder:
    """The verbs, shared by schedules and moves: each returns a new object with one step more."""

    steps: tuple[Step, ...]

    def _then(self, step: Step) -> Self:
        raise NotImplementedError

    def units(self, **teams: Team | tuple[Team, ...]) -> Self:
        """What a unit is made of: `.units(block=tl.warps(8))`."""
        span = caller_span()
        made = self
        for level, team in teams.items():
            members = team if isinstance(team, tuple) else (team,)
            text = f"`units {level} = {team!r}` does not say of what"
            _need(all(isinstance(t, Team) for t in members), span, "bad-units", text, f".units({level}=tl.warps(8))")
            made = made._then(Units(level, members, span))
        return made

    def fuse(self, **axes: Sequence[str]) -> Self:
        """`.fuse(mn=("m", "n"))`: one axis that runs over several, row-major."""
        made, span = self, caller_span()
        for name, parts in axes.items():
            made = made._then(Fuse(name, tuple(parts), span))
        return made

    def unfuse(self, **axes: dict[str, int]) -> Self:
        """`.unfuse(j={"a": 2, "c": 4})`: one axis as several."""
        made, span = self, caller_span()
        for name, parts in axes.items():
            made = made._then(Unfuse(name, tuple(parts.items()), span))
        return made

    def tile(self, **sizes: int | Hole) -> PendingTile[Self]:
        """Spread: `.tile(m=128, n=128).to(tl.block)`."""
        return PendingTile(self, _checked_sizes("tile", sizes, caller_span()))

    def split(self, *, unroll: bool = False, peel: bool = False, of: tuple[str, ...] = (), **sizes: int | Hole) -> Self:
        """Walk: a sequential loop over chunks of the given sizes."""
        span = caller_span()
        return self._then(Split(_checked_sizes("split", sizes, span), unroll, peel, of, False, span))

    def load(self, tensor: Any, memory: Any, **how: Any) -> Self:
        """The region of a tensor (name, Tensor, or one read such as A[n, k]) that this spec reads becomes resident in `memory`.

        layout=, ahead=, stream=, steps= (a tl.move(), or `...` for a hole), on=, once=.
        """
        return self._then(_place("load", tensor, memory, **how))

    def compute(self, tensor: Any, memory: Any, **how: Any) -> Self:
        """The same for a tensor that is itself a definition: it is made here, by `steps`."""
        return self._then(_place("compute", tensor, memory, **how))

    def accumulate(self, memory: Any, **how: Any) -> Self:
        """The state of this spec's reductions lives in `memory`; `steps` say how results go back."""
        return self._then(_place("accumulate", None, memory, **how))

    def via(self, memory: Any, **how: Any) -> Self:
        """A stop on a move's way."""
        return self._then(_place("via", None, memory, **how))

    def inline(self, tensor: Any) -> Self:
        """Substitute a pointwise definition into its readers."""
        return self._then(Inline(getattr(tensor, "name", tensor), caller_span()))

    def vectorize(self, **lanes: int | Hole) -> Self:
        """The innermost piece is one vector access or operation."""
        span = caller_span()
        found = _checked_sizes("vectorize", lanes, span)
        text = f"`vectorize {_sizes(found)}` names {len(found)} axes"
        _need(len(found) == 1, span, "vector-of-two-axes", text, "one axis; split the others to 1 before")
        return self._then(Vectorize(*found[0], span))

    def do(self, instruction: Any, **binding: str) -> Self:
        """The innermost piece is one hardware or user-defined instruction; `m="m"` pairs its axes with the spec's."""
        return self._then(Do(getattr(instruction, "name", instruction), tuple(binding.items()), caller_span()))

    def when(self, condition: Expr, then: Builder, otherwise: Builder | None = None) -> Self:
        """Steps under a condition on extents: `.when(tl.extent("m") < 64, tl.move()...)`."""
        return self._then(When(condition, then.steps, otherwise.steps if otherwise else (), caller_span()))

    def rest(self) -> Self:
        """The remaining steps are for the autoscheduler."""
        return self._then(Open(caller_span()))


B = TypeVar("B", bound=Builder)


class PendingTile(Generic[B]):
    """A `tile` that still needs its level: call `.to(level)`."""

    def __init__(self, builder: B, sizes: Sizes) -> None:
        self._builder, self._sizes, self._span = builder, sizes, caller_span()

    def to(self, level: Level | str, count: int | Hole | None = None, order: Layout | None = None) -> B:
        """Give each tile to one unit of `level`; `count` wraps them over that many units; `order` numbers the units."""
        span = caller_span()
        _check_layout("order", order, span)
        return self._builder._then(Tile(self._sizes, str(getattr(level, "name", level)), count, order, span))

    def __repr__(self) -> str:
        return f"`tile {_sizes(self._sizes)}` without .to(level)"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Refusal(
            "tile-without-level",
            f"`tile {_sizes(self._sizes)}` does not say which units take the tiles",
            span=self._span,
            mend="add .to(tl.block), .to(tl.thread), ...; for a sequential loop use .split(...)",
        )


class Move(Builder):
    """The steps of a move, or of a stage: what stands in the braces of load, compute and accumulate."""

    def __init__(self, steps: tuple[Step, ...] = ()) -> None:
        self.steps = steps

    def _then(self, step: Step) -> Self:
        return type(self)((*self.steps, step))


def move() -> Move:
    """An empty move, to which steps are added: `tl.move().tile(m=1, k=4).to(tl.thread).vectorize(k=4)`.

    >>> print(*move().tile(m=1, k=4).to("thread").vectorize(k=4).steps, sep="; ")
    tile m=1 k=4 -> thread; vectorize k=4
    """
    return Move()


def _place(verb: str, what: Any, memory: Memory | str, *, steps: Move | EllipsisType | None = None, **fields: Any) -> Place:
    span = caller_span()
    known = {"layout", "ahead", "behind", "on", "once", "stream"}
    for name in fields:
        mend = f"one of {', '.join(sorted(known))}, steps"
        _need(name in known, span, "unknown-argument", f"`{verb}` has no `{name}`", mend)
    for name in ("ahead", "behind"):
        n = fields.get(name, 0)
        _need(n >= 0, span, "bad-size", f"`{name} {n}`: less than no iterations", "zero or more iterations")
    _check_layout("layout", fields.get("layout"), span)
    if isinstance(what, Tensor):
        what = what.name
    given = steps.steps if isinstance(steps, Move) else None
    good = given is not None or steps is None or steps is ...
    _need(good, span, "bad-steps", f"`{verb}`: steps={steps!r} is no move", "a tl.move() with steps, or ... for a hole")
    memory_name = str(getattr(memory, "name", memory))
    return Place(verb, what, memory_name, steps=given, open=steps is ..., span=span, **fields)


class Schedule(Builder):
    """A computation and the steps that refine it. Immutable; made by `tl.schedule`."""

    def __init__(self, computation: Computation, steps: tuple[Step, ...] = ()) -> None:
        from tilelang.check import advance_all  # the builder checks each step as it is made

        self.computation, self.steps = computation, steps
        self.specs: tuple[Spec, ...] = advance_all(computation, steps)

    def _then(self, step: Step) -> Self:
        return type(self)(self.computation, (*self.steps, step))

    def prefix(self, n: int) -> Schedule:
        """The schedule of the first n steps; it runs: what is left is done by plain loops."""
        return Schedule(self.computation, self.steps[:n])

    @property
    def text(self) -> str:
        """The schedule's canonical text."""
        lines = "".join(f"  {step}\n" for step in self.steps)
        return f"schedule for {self.computation.name} {{" + (f"\n{lines}}}" if lines else " }")

    @property
    def hash(self) -> str:
        """Identity for caching: of the computation's and the schedule's canonical text."""
        import hashlib

        return hashlib.sha256((self.computation.text + "\n" + self.text).encode()).hexdigest()

    def explain(self) -> str:
        """The spec after each step, as text."""
        from tilelang.explain import explain

        return explain(self)

    def check(self, profile: Any = None) -> None:
        """Raises the Refusal that compiling this schedule for the profile (name, path, Profile; default: PoCL's) would raise."""
        from tilelang.runtime import check_schedule

        check_schedule(self, profile)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def schedule(computation: Computation | Tensor) -> Schedule:
    """A schedule without steps for a computation (or for a Tensor: everything it needs, with it as the only output).

    >>> import tilelang as tl
    >>> i = tl.axes(i=100)
    >>> print(schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=8).to(tl.block))
    schedule for Y {
      tile i=8 -> block
    }
    """
    return Schedule(as_computation(computation))


def _team(level: str) -> Any:
    def team(count: int) -> Team:
        if count < 1:
            raise Refusal(
                "bad-size", f"`{count} {level}`: nothing is made of {count} units", span=caller_span(), mend="at least 1"
            )
        return Team(count, level)

    team.__doc__ = f"""`count` units of level {level}, for Schedule.units.

    >>> print({level}s(2))
    2 {level}
    """
    return team


threads, warps, warpgroups, blocks = (_team(level) for level in ("thread", "warp", "warpgroup", "block"))


def extent(axis: str) -> Expr:
    """The extent of an axis in a `when` condition: `.when(tl.extent("m") <= 64, tl.move()...)`.

    >>> print(extent("m") <= 64)
    m <= 64
    """
    return Var(axis, INDEX)
