"""A schedule: a computation and the steps that refine it, and the builder that writes them.

A Schedule is immutable; each method returns a new one. Every step records the line of its caller. A step is checked as soon as it is
written, as far as the steps above it allow (`CheckedSteps.then`). The remaining checks take place when the schedule is compiled, or by
`check`. Steps that a target does not support yet can be written; the lowering refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

from tilelang.computations.computation import Computation, Tensor, as_computation
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Const, Expr, Read, Var, by_names
from tilelang.core.identifiers import spelled
from tilelang.core.layout import Layout
from tilelang.core.node import Unchanging, fill
from tilelang.errors import Refusal, Span, brief, caller_span, counted, whole_number
from tilelang.profiles.profile import Level, Memory
from tilelang.schedules.check import axis_extents, resolve_when
from tilelang.schedules.checked_steps import CheckedSteps
from tilelang.schedules.running_values import checked_repairs
from tilelang.schedules.spec import Spec
from tilelang.schedules.steps import (
    Do,
    Fuse,
    Hole,
    Inline,
    Open,
    Place,
    Sizes,
    Split,
    Step,
    Team,
    Tile,
    Unfuse,
    Units,
    Vectorize,
    When,
    sizes_text,
)

if TYPE_CHECKING:
    from tilelang.semantics.loop_members import SharedLoop


def _need(holds: bool, span: Span | None, code: str, message: str, help: str) -> None:
    if not holds:
        raise Refusal(code, message, span=span, help=help)


def _need_named(verb: str, named: dict[str, Any], what: str, help: str, span: Span | None) -> None:
    _need(bool(named), span, "nothing-named", f"`{verb}` does not name any {what}", help)


def _checked_sizes(verb: str, sizes: dict[str, Any], span: Span | None) -> Sizes:
    _need(bool(sizes), span, "no-sizes", f"`{verb}` does not name any axis", f"name at least one, as in .{verb}(m=32)")
    for axis, size in sizes.items():
        whole = whole_number(size)
        good = isinstance(size, Hole) or (whole is not None and whole >= 1)
        message = f"`{verb} {axis}={brief(size)}`: {brief(size)} is not a valid size"
        _need(good, span, "bad-size", message, "use a whole number, 1 or more, or tl.hole")
    return tuple((axis, size if isinstance(size, Hole) else int(size)) for axis, size in sizes.items())


def _check_flags(verb: str, span: Span | None, **flags: Any) -> None:
    for name, value in flags.items():
        _need(isinstance(value, bool), span, "bad-flag", f"`{verb}`: {name}={value!r} is neither True nor False", f"{name}=True")


def _check_names(verb: str, names: Any, span: Span | None) -> None:
    good = isinstance(names, (tuple, list)) and all(isinstance(n, str) for n in names)
    _need(good, span, "bad-axes", f"`{verb}`: {brief(names)} is not a tuple of names", 'pass names, as in ("m", "n")')


def _check_layout(name: str, layout: Any, span: Span | None) -> None:
    good = layout is None or isinstance(layout, Layout)
    _need(
        good,
        span,
        "bad-layout",
        f"{name}={brief(layout)} is not a layout",
        f'pass {name}=tl.layout("k", "m"), or tl.layout of one function',
    )


Steps: TypeAlias = "Move | EllipsisType | None"  # of a place: its move, a hole, or the default


class Builder(Unchanging):
    """The verbs that schedules and moves share. Each returns a new object with one more step."""

    steps: tuple[Step, ...]

    def _then(self, step: Step) -> Self:
        raise NotImplementedError

    def units(self, **teams: Team | tuple[Team, ...]) -> Self:
        """Sets the size of a unit: `.units(block=tl.warps(8))`."""
        made, span = self, caller_span()
        _need_named("units", teams, "unit", ".units(block=tl.warps(8))", span)
        for level, team in teams.items():
            members = team if isinstance(team, tuple) else (team,)
            good = bool(members) and all(isinstance(t, Team) for t in members)
            text = f"`units {level} = {brief(team)}` does not say which units"
            _need(good, span, "bad-units", text, f".units({level}=tl.warps(8))")
            made = made._then(Units(level, members, span))
        return made

    def fuse(self, /, **axes: Sequence[str]) -> Self:
        """Fuses axes into one, row-major: `.fuse(mn=("m", "n"))`."""
        made, span = self, caller_span()
        _need_named("fuse", axes, "axis", '.fuse(mn=("m", "n"))', span)
        for name, parts in axes.items():
            several = isinstance(parts, (tuple, list)) and len(parts) > 0 and all(isinstance(x, str) for x in parts)
            _need(several, span, "bad-axes", f"`fuse {name}={brief(parts)}` does not name any axes", f'.fuse({name}=("m", "n"))')
            made = made._then(Fuse(name, tuple(parts), span))
        return made

    def unfuse(self, /, **axes: dict[str, int]) -> Self:
        """Divides an axis into several: `.unfuse(j={"a": 2, "c": 4})`."""
        made, span = self, caller_span()
        _need_named("unfuse", axes, "axis", '.unfuse(j={"a": 2, "c": 4})', span)
        for name, parts in axes.items():
            whole = isinstance(parts, dict) and bool(parts) and not any(isinstance(e, Hole) for e in parts.values())
            named = whole and all(isinstance(n, str) and n.isidentifier() for n in parts)
            help = f'.unfuse({name}={{"a": 2, "b": 4}})'
            _need(named, span, "bad-axes", f"`unfuse {name}={brief(parts)}` does not name the parts and their sizes", help)
            sizes = tuple((n, int(e)) for n, e in _checked_sizes("unfuse", parts, span) if not isinstance(e, Hole))
            made = made._then(Unfuse(name, sizes, span))
        return made

    def tile(self, /, **sizes: int | Hole) -> PendingTile[Self]:
        """Parallel tiles, mapped to the units of a level: `.tile(m=128, n=128).to(tl.block)`."""
        return PendingTile(self, _checked_sizes("tile", sizes, caller_span()))

    def split(
        self, /, *, unroll: bool = False, peel: bool = False, of: tuple[str, ...] = (), repairs: Mapping[str, Expr] | None = None,
        **sizes: int | Hole,
    ) -> Self:  # fmt: skip
        """A sequential loop over chunks of the given sizes. unroll: unroll it. peel: peel a partial last iteration. of: the reductions
        that share the loop, by name. repairs: what some of them become when others change, over `tl.before` and `tl.now`."""
        span = caller_span()
        _check_flags("split", span, unroll=unroll, peel=peel)
        _check_names("split of", of, span)
        twice = next((name for n, name in enumerate(of) if name in of[:n]), "")
        _need(not twice, span, "bad-axes", f"`split`: `of` names `{twice}` twice", "name each reduction once")
        given = checked_repairs(repairs or {}, of, span)
        return self._then(Split(_checked_sizes("split", sizes, span), unroll, peel, tuple(of), given, False, span))

    def load(
        self, tensor: Any, memory: Memory | str, *, layout: Layout | None = None, ahead: int = 0, on: str | None = None,
        once: bool = False, stream: bool = False, steps: Steps = None,
    ) -> Self:  # fmt: skip
        """Stages the region of a tensor that the steps below read in `memory`.

        tensor: its name, the Tensor, or one read of it, such as A[n, k]. layout: of the region in the memory. ahead: the prefetch
        distance in iterations of the enclosing loop. on: the role that loads. once: pack once, use often (not supported yet).
        stream: the elements are used once, and need not stay in a cache. steps: how the region is copied, as a tl.move(), or `...`
        for a hole.
        """
        return self._then(_place("load", tensor, memory, steps, layout=layout, ahead=ahead, on=on, once=once, stream=stream))

    def compute(
        self, tensor: Any, memory: Memory | str, *, layout: Layout | None = None, ahead: int = 0, on: str | None = None,
        once: bool = False, stream: bool = False, steps: Steps = None,
    ) -> Self:  # fmt: skip
        """As `load`, for a tensor that is a definition: its region is computed here, by `steps`."""
        return self._then(_place("compute", tensor, memory, steps, layout=layout, ahead=ahead, on=on, once=once, stream=stream))

    def accumulate(
        self, memory: Memory | str, *, layout: Layout | None = None, ahead: int = 0, behind: int = 0, on: str | None = None,
        once: bool = False, stream: bool = False, steps: Steps = None,
    ) -> Self:  # fmt: skip
        """Keeps the accumulators of the reductions in `memory`. `steps` say how the results are stored.

        behind: by how many iterations the stores may be delayed. The other arguments are as for `load`.
        """
        return self._then(
            _place("accumulate", None, memory, steps, layout=layout, ahead=ahead, behind=behind, on=on, once=once, stream=stream)
        )

    def via(
        self, memory: Memory | str, *, layout: Layout | None = None, ahead: int = 0, behind: int = 0, on: str | None = None,
        once: bool = False, stream: bool = False, steps: Steps = None,
    ) -> Self:  # fmt: skip
        """Adds a stop to a move: a staging buffer in `memory`, which the values pass through. The arguments are as for `accumulate`."""
        return self._then(
            _place("via", None, memory, steps, layout=layout, ahead=ahead, behind=behind, on=on, once=once, stream=stream)
        )

    def inline(self, tensor: Any) -> Self:
        """Inlines a pointwise definition into its readers."""
        span, name = caller_span(), getattr(tensor, "name", tensor)
        _need(
            isinstance(name, str),
            span,
            "inline-unknown",
            f"`inline {brief(name)}` does not name a tensor",
            'pass a name, as in .inline("T")',
        )
        return self._then(Inline(name, span))

    def vectorize(self, /, **lanes: int | Hole) -> Self:
        """Makes the innermost body a vector operation along one axis."""
        span = caller_span()
        found = _checked_sizes("vectorize", lanes, span)
        text = f"`vectorize {sizes_text(found)}` names {counted(len(found), 'axis', 'axes')}, but vectorizes exactly one"
        _need(len(found) == 1, span, "vector-of-two-axes", text, "vectorize one axis, and split the others to 1 before")
        return self._then(Vectorize(*found[0], span))

    def do(self, instruction: Any, **binding: str) -> Self:
        """Makes the innermost body one instruction (tensorize). `m="m"` binds an axis of the instruction to one of the computation."""
        span, name = caller_span(), getattr(instruction, "name", instruction)
        text = f"`do {brief(instruction)}` is not an instruction"
        _need(isinstance(name, str), span, "bad-instruction", text, "pass an instruction's name, or the result of tl.use")
        _check_names("do", [*binding.values()], span)
        return self._then(Do(name, tuple(binding.items()), span))

    def when(self, condition: Expr, then: Builder, otherwise: Builder | None = None) -> Self:
        """Steps under a condition on extents or on the device's capabilities: `.when(tl.extent("m") < 64, tl.move()...)`.

        While the device is unknown (in `specs`, in `explain`), capabilities are absent.
        """
        span = caller_span()
        good = isinstance(condition, Expr) and condition.dtype.kind == "bool"
        leaves = [e for e in condition.walk() if not [*e.children()]] if good else []
        good &= all(isinstance(e, (Var, Const)) for e in leaves)
        _need(
            good,
            span,
            "bad-condition",
            f"`when {brief(condition)}` is not a condition on extents",
            'pass a comparison of extents, or tl.can: tl.extent("m") <= 64, tl.can("async_copy")',
        )
        otherwise = Move() if otherwise is None else otherwise
        for part in (then, otherwise):
            _need(
                isinstance(part, Builder),
                span,
                "bad-steps",
                f"`when`: {brief(part)} is not a tl.move()",
                "pass a tl.move() with steps",
            )
        return self._then(When(condition, then.steps, otherwise.steps, span))

    def rest(self) -> Self:
        """Leaves the remaining steps to the autoscheduler."""
        return self._then(Open(caller_span()))


B = TypeVar("B", bound=Builder)


class PendingTile(Generic[B]):
    """A `tile` whose level is missing: call `.to(level)`."""

    def __init__(self, builder: B, sizes: Sizes) -> None:
        self._builder, self._sizes, self._span = builder, sizes, caller_span()

    def to(self, level: Level | str, count: int | Hole | None = None, order: Layout | None = None) -> B:
        """Maps each tile to one unit of `level`. count: the number of units; each then takes several tiles; order: a layout
        that numbers the units."""
        span = caller_span()
        _need(
            isinstance(level, (str, Level)),
            span,
            "bad-level",
            f".to({level!r}) is not a level",
            "use tl.block, tl.warp or tl.thread",
        )
        _check_layout("order", order, span)
        if count is not None and not isinstance(count, Hole):
            ((_, count),) = _checked_sizes("tile", {f"... -> {level} count": count}, span)
        return self._builder._then(Tile(self._sizes, str(getattr(level, "name", level)), count, order, span))

    def __repr__(self) -> str:
        return f"`tile {sizes_text(self._sizes)}` without .to(level)"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.refusal()

    def refusal(self) -> Refusal:
        """The error for anything but `.to`."""
        return Refusal(
            "tile-without-level",
            f"`tile {sizes_text(self._sizes)}` does not say which units its tiles are mapped to",
            span=self._span,
            help="add .to(tl.block), .to(tl.thread), ...; for a sequential loop use .split(...)",
        )


class Move(Builder):
    """The steps of a move or a stage, which the text form has in the braces of load, compute, accumulate and via."""

    def __init__(self, steps: tuple[Step, ...] = ()) -> None:
        fill(self, steps=steps)

    def _then(self, step: Step) -> Self:
        return type(self)((*self.steps, step))


def move() -> Move:
    """An empty move, to which steps are added: `tl.move().tile(m=1, k=4).to(tl.thread).vectorize(k=4)`.

    >>> print(*move().tile(m=1, k=4).to("thread").vectorize(k=4).steps, sep="; ")
    tile m=1 k=4 -> thread; vectorize k=4
    """
    return Move()


def _place(verb: str, what: Any, memory: Memory | str, steps: Steps, **fields: Any) -> Place:
    """The step of a verb that places a tensor, after checks of its arguments. fields: as for `Place`."""
    span = caller_span()
    for name in ("ahead", "behind"):
        n = fields.get(name, 0)
        whole = isinstance(n, int) and not isinstance(n, bool) and n >= 0
        _need(whole, span, "bad-size", f"`{name} {n}` is not a valid number of iterations", "use a whole number, 0 or more")
    _check_layout("layout", fields["layout"], span)
    _check_flags(verb, span, once=fields["once"], stream=fields["stream"])
    on = fields["on"]
    _need(
        on is None or isinstance(on, str), span, "bad-role", f"`{verb}`: {on!r} is not a role", 'pass a name, as in on="producer"'
    )
    what = what.name if isinstance(what, Tensor) else by_names(what) if isinstance(what, Read) else what
    given = steps.steps or None if isinstance(steps, Move) else None
    good = isinstance(steps, Move) or steps is None or steps is ...
    _need(
        good,
        span,
        "bad-steps",
        f"`{verb}`: steps={brief(steps)} is not a tl.move()",
        "pass a tl.move() with steps, or ... for a hole",
    )
    _need(
        isinstance(memory, (str, Memory)),
        span,
        "bad-memory",
        f"`{verb}`: {memory!r} is not a memory",
        "use tl.register or tl.shared",
    )
    memory_name = str(getattr(memory, "name", memory))
    return Place(verb, what, memory_name, steps=given, open=steps is ..., span=span, **fields)


class Schedule(Builder):
    """A computation and the steps that refine it. Immutable; made by `tl.schedule`."""

    computation: Computation
    _checked: CheckedSteps

    def __init__(self, computation: Computation, steps: tuple[Step, ...] = ()) -> None:
        self._fill(computation, steps, CheckedSteps(computation, steps))

    def _fill(self, computation: Computation, steps: tuple[Step, ...], checked: CheckedSteps) -> None:
        checked.raise_refused()
        fill(self, computation=computation, steps=steps, _checked=checked)

    def _then(self, step: Step) -> Self:
        made = object.__new__(type(self))
        made._fill(self.computation, (*self.steps, step), self._checked.then(step))
        return made

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The spec before the first step and after each one."""
        return self._checked.specs

    def prefix(self, n: int) -> Schedule:
        """The schedule of the first n steps. It can be run: plain loops compute what the missing steps leave."""
        whole = isinstance(n, int) and not isinstance(n, bool) and n >= 0
        _need(whole, caller_span(), "bad-size", f"prefix({n!r}) is not a valid number of steps", "use 0 or more steps")
        return Schedule(self.computation, self.steps[:n])

    @property
    def error_ulps(self) -> float:
        """The error of its least accurate instruction, in ulps beyond a single rounding, for each operation."""
        from tilelang.instructions.instruction import use  # late: few schedules name an instruction

        return max((use(name).error_ulps for name in instructions_of(self.steps)), default=0)

    @property
    def shared_loops(self) -> tuple[SharedLoop, ...]:
        """The loops that several reductions share. The errors of their repairs are part of the bound of `Kernel.check`."""
        from tilelang.schedules.shared_loops import loops_of  # late: slow to import, seldom needed

        return loops_of(self.computation, resolve_when(self.steps, axis_extents(self.computation)))

    @property
    def text(self) -> str:
        """The schedule's canonical text."""
        lines = "".join(f"  {step}\n" for step in self.steps)
        return f"schedule for {spelled(self.computation.name)} {{" + (f"\n{lines}}}" if lines else " }")

    @property
    def hash(self) -> str:
        """A key for caches: the hash of the canonical text of the computation and the schedule."""
        import hashlib  # late: slow to import, seldom needed

        return hashlib.sha256((self.computation.text + "\n" + self.text).encode()).hexdigest()

    def explain(self) -> str:
        """The spec after each step, as text."""
        from tilelang.schedules.explain import explain  # late: slow to import, seldom needed

        return explain(self)

    def check(self, profile: Any = None) -> None:
        """Raises the Refusal that compiling this schedule for a profile would raise. profile: a name, a path or a Profile; by default
        `sapphire_rapids`."""
        from tilelang.runtime.kernel import check_schedule  # late: that module imports this one

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
        whole = isinstance(count, int) and not isinstance(count, bool) and count >= 1
        _need(
            whole,
            caller_span(),
            "bad-size",
            f"`{count} {level}`: {count} is not a valid number of units",
            "use a whole number, 1 or more",
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
    _need(isinstance(axis, str), caller_span(), "bad-axes", f"tl.extent({axis!r}) does not name an axis", 'tl.extent("m")')
    return Var(axis, INDEX)


def can(name: str) -> Expr:
    """A capability of the device, for a `when` condition: `.when(tl.can("async_copy"), tl.move()...)`. name: as in the device's
    profile.

    >>> print(can("async_copy"))
    can(async_copy)
    """
    good = isinstance(name, str) and name.isidentifier()
    _need(good, caller_span(), "bad-capability", f"tl.can({name!r}) does not name a feature of devices", 'tl.can("async_copy")')
    return Var(f"can({name})", dt.bool_)


def instructions_of(steps: Iterable[Step]) -> Iterator[str]:
    """The names of the instructions in `do` steps.

    >>> list(instructions_of([Do("simulated_mma_m16n8k8")]))
    ['simulated_mma_m16n8k8']
    """
    for step in steps:
        if isinstance(step, Do):
            yield step.instruction
        elif isinstance(step, Place):
            yield from instructions_of(step.steps or ())
        elif isinstance(step, When):
            yield from instructions_of((*step.then, *step.otherwise))
