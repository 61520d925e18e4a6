"""The steps of a schedule, the verbs of the language: one frozen value per line.

A step prints as it is written in text. spec.py and check.py define its meaning, and which steps may follow it. Steps that no target
supports yet are defined here, too, and refused later.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.core.expr import Expr, Read, to_text
from tilelang.core.identifiers import spelled
from tilelang.core.layout import Layout
from tilelang.core.node import Node, node
from tilelang.errors import Refusal, Span, brief


@node
class Hole(Node):
    """A size or some steps that the autoscheduler fills. Text: `?` for a size, `...` for steps."""

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
        """The same units as a named role, which steps can refer to. Raises Refusal for an invalid name."""
        if not isinstance(name, str) or not name.isidentifier():
            help = 'a name, as in tl.warps(1).as_role("producer")'
            raise Refusal("role-name", f"{brief(name)} cannot name a role", help=help)
        return self.replace(role=name, registers=registers)

    def __add__(self, other: Team) -> tuple[Team, ...]:
        return (self, other)

    def __radd__(self, other: tuple[Team, ...]) -> tuple[Team, ...]:
        return (*other, self)

    def __str__(self) -> str:
        tail = f" as {spelled(self.role)}" if self.role else ""
        return f"{self.count} {spelled(self.level)}{tail}" + (
            f" ({self.registers} registers)" if self.registers is not None else ""
        )


@node
class Units(Step):
    """The size of a unit of `level`."""

    level: str
    teams: tuple[Team, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"units {spelled(self.level)} = {' + '.join(str(t) for t in self.teams)}"


@node
class Fuse(Step):
    """Several axes as one new axis, row-major."""

    name: str
    axes: tuple[str, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"fuse {spelled(self.name)}=({', '.join(map(spelled, self.axes))})"


@node
class Unfuse(Step):
    """An axis as several of given extents, row-major."""

    axis: str
    parts: tuple[tuple[str, int], ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"unfuse {spelled(self.axis)}=({', '.join(f'{spelled(n)}: {e}' for n, e in self.parts)})"


@node
class Tile(Step):
    """Cuts axes into tiles, and maps each to one unit of `level`. `count`: the number of units; each then takes several tiles."""

    sizes: Sizes
    level: str
    count: Size | None = None
    order: Layout | None = None
    span: Span | None = None

    def __str__(self) -> str:
        count = f" {self.count}" if self.count is not None else ""
        order = " " + str(self.order).replace("layout", "order") if self.order is not None else ""
        return f"tile {sizes_text(self.sizes)} -> {spelled(self.level)}{count}{order}"


@node
class Split(Step):
    """A sequential loop over chunks. `of`: the reductions that share the loop; `repairs`: what some of them become when others change,
    over `before` and `now`. `implied`: not written by the user."""

    sizes: Sizes
    unroll: bool = False
    peel: bool = False
    of: tuple[str, ...] = ()
    repairs: tuple[tuple[str, Expr], ...] = ()
    implied: bool = False
    span: Span | None = None

    def __str__(self) -> str:
        given = dict(self.repairs)
        members = [f"{spelled(n)}={to_text(given[n])}" if n in given else spelled(n) for n in self.of]
        of = f" of {' '.join(members)}" if self.of else ""
        return f"split {sizes_text(self.sizes)}{of}" + " unroll" * self.unroll + " peel" * self.peel


@node
class Place(Step):
    """A tensor, or the accumulators of reductions, that is in a memory for the steps below.

    `steps` say how it is copied, computed or stored.
    """

    verb: str  # load, compute, accumulate, via
    what: str | Read | None  # a tensor's name, or a read such as A[n, k]; None for accumulate and via
    memory: str
    layout: Layout | None = None  # over the tensor's dimensions, or over axes (by access)
    ahead: int = 0  # it runs this many iterations before its reader
    behind: int = 0  # its stores may overlap with this many following iterations
    on: str | None = None  # the role that executes it
    once: bool = False  # not supported yet
    stream: bool = False
    steps: tuple[Step, ...] | None = None  # None: the documented default
    open: bool = False  # whether the steps end in a hole
    implied: bool = False
    span: Span | None = None

    @property
    def tensor_name(self) -> str:
        return self.what.tensor.name if isinstance(self.what, Read) else str(self.what)

    def __str__(self) -> str:
        if self.verb == "via":
            head = f"via {spelled(self.memory)}"
        elif self.verb == "accumulate":
            head = f"accumulate in {spelled(self.memory)}"
        else:
            what = to_text(self.what) if isinstance(self.what, Read) else spelled(str(self.what))
            head = f"{self.verb} {what} in {spelled(self.memory)}"
        parts = [head, str(self.layout) if self.layout is not None else "", f"ahead {self.ahead}" if self.ahead else "",
                 f"behind {self.behind}" if self.behind else "", f"on {spelled(self.on)}" if self.on else "", "once" * self.once,
                 "stream" * self.stream]  # fmt: skip
        inner = [str(s) for s in self.steps or ()] + ["..."] * self.open
        braces = "{ " + "; ".join(inner) + " }" if inner else ""
        return " ".join(p for p in (*parts, braces) if p)


@node
class Inline(Step):
    """Inlines a pointwise definition into its readers; at the beginning of a schedule."""

    tensor: str
    span: Span | None = None

    def __str__(self) -> str:
        return f"inline {spelled(self.tensor)}"


@node
class Vectorize(Step):
    """The innermost body is a vector operation along an axis."""

    axis: str
    lanes: Size
    span: Span | None = None

    def __str__(self) -> str:
        return f"vectorize {spelled(self.axis)}={self.lanes}"


@node
class Do(Step):
    """The innermost body is one instruction; `binding` pairs its axes with those of the computation."""

    instruction: str
    binding: tuple[tuple[str, str], ...] = ()
    span: Span | None = None

    def __str__(self) -> str:
        tail = f" ({', '.join(f'{spelled(a)}={spelled(b)}' for a, b in self.binding)})" if self.binding else ""
        return f"do {spelled(self.instruction)}{tail}"


@node
class Open(Step):
    """A hole for any number of steps."""

    span: Span | None = None

    def __str__(self) -> str:
        return "..."


@node
class When(Step):
    """Steps under a condition on extents or on the profile's capabilities. `condition` has variables named like axes."""

    condition: Expr
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()
    span: Span | None = None

    def __str__(self) -> str:
        text = f"when {self.condition} {{ {'; '.join(map(str, self.then))} }}"
        return text + (f" else {{ {'; '.join(map(str, self.otherwise))} }}" if self.otherwise else "")


def sizes_text(sizes: Sizes) -> str:
    """The sizes of a cut as text: `m=64 n=32`."""
    return " ".join(f"{spelled(axis)}={size}" for axis, size in sizes)


def every_step(steps: tuple[Step, ...]) -> Iterator[Step]:
    """All steps, including those in braces."""
    for s in steps:
        yield s
        if isinstance(s, Place) and s.steps is not None:
            yield from every_step(s.steps)


def has_holes(steps: tuple[Step, ...]) -> bool:
    """Whether any number or steps are missing.

    >>> has_holes((Tile((("m", hole),), "block"),)), has_holes((Vectorize("n", 4),))
    (True, False)
    """
    for step in steps:
        match step:
            case Open() | Place(open=True) | Vectorize(lanes=Hole()) | Tile(count=Hole()):
                return True
            case Tile(sizes=sizes) | Split(sizes=sizes) if any(isinstance(n, Hole) for _, n in sizes):
                return True
            case Place(steps=tuple() as inner) if has_holes(inner):
                return True
            case When(then=then, otherwise=otherwise) if has_holes(then) or has_holes(otherwise):
                return True
            case _:
                pass
    return False
