"""Hardware instructions, which are defined outside the compiler.

The compiler knows no instruction by name; the shipped ones (tilelang/instructions/shipped/) are defined in the same way as yours:

    m, n, k = tl.axes(m=16, n=8, k=8)                                  # 1. its shape
    A = tl.operand("A", tl.float32, tl.register, m, k,                 # 2. its operands: type, memory, dimensions, and which lane
                   fragment=tl.fragment(32, 4, lambda lane, slot: (lane // 4 + 8 * (slot % 2), lane % 4 + 4 * (slot // 2))))
    ...                                                                #    holds what (left out: one thread holds all, row-major)
    my_mma = tl.instruction("my_mma", means=tl.updates(C[m, n], A[m, k] * B[k, n]),   # 3. its meaning, which is executable
                            operands=(A, B, C), level=tl.warp,         # 4. who issues it, when it completes, what it needs,
                            template={"cuda": "my_mma({C[0]}, {C[1]}, {A.address});"})   # 5. its text, per dialect

after which `do my_mma` finds it, `my_mma.simulate(...)` runs it, and the refusal of a step that nearly fits says field by field
what differs.

Invariant: every Instruction is consistent: its maps cover the operands, extents agree, and templates refer only to existing
operands.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tilelang.core.expr import Axis, Pad, Read, rewrite
from tilelang.core.node import Node, node
from tilelang.errors import ComputationError, Refusal, Span, TileLangError, brief, caller_span, counted
from tilelang.instructions.fragment import Fragment, fragment, row_major
from tilelang.instructions.operand import Operand, Queue, name_of
from tilelang.instructions.semantics import MOVE, UPDATE, Means, check_bounds, computes, evaluate, moves, undefined, updates
from tilelang.instructions.template import DESCRIPTOR_PARTS, OperandText, fault_of_template
from tilelang.profiles.profile import Level
from tilelang.renamed import moved

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "Fragment", "Instruction", "Means", "OperandText", "computes", "fragment", "instruction", "known", "moves", "updates",
    "use",
]  # fmt: skip

AT_ONCE, IN_ORDER_GROUP, BARRIER_BY_BYTES = "at once", "in-order group", "barrier by bytes"
COMPLETES = (AT_ONCE, IN_ORDER_GROUP, BARRIER_BY_BYTES)
ALL_LANES, ONE_LANE = "all lanes", "one elected lane"
ISSUE = (ALL_LANES, ONE_LANE)
LANES = {"thread": 1, "warp": 32, "warpgroup": 128}  # the default for each level


@node
class Instruction(Node):
    """An instruction; `tl.instruction` makes and checks it.

    docs/instructions.md explains the fields.
    """

    name: str
    means: Means
    operands: tuple[Operand, ...]
    level: str  # of the units that issue it
    lanes: int = 1  # threads of such a unit
    completes: str = AT_ONCE  # one of COMPLETES
    issue: str = ALL_LANES  # one of ISSUE
    outside: float | None = None  # the value stored for elements outside the tensor; None: it cannot be used there
    host: str | None = None  # an argument that the host prepares before the launch
    error_ulps: float = 0  # per element, in ulps of the accumulator's type, beyond exact arithmetic rounded at each step
    template: tuple[tuple[str, str], ...] = ()  # text per dialect
    definitions: tuple[tuple[str, tuple[str, ...]], ...] = ()  # per dialect, the C texts of the functions that it calls
    needs: tuple[str, ...] = ()  # names that a profile must list
    licences: tuple[str, ...] = ()  # that the computed definition must have
    limits: tuple[tuple[str, int], ...] = ()  # axes with a variable extent, and its maximum
    source: str = ""  # the document that the definition is based on
    span: Span | None = None
    queue: Queue | None = None  # for in-order groups; None: the queue of the thread's copies
    proxy: str = ""  # the separate path to addressed operands, which needs a fence after writes of threads; empty: none
    multicast: bool = False  # it writes to the same place in every block of a cluster; its text has {blocks}
    registers: int = 0  # that each thread must be able to have, for the device's compiler to accept it

    @property
    def family(self) -> str:
        """The name of the queue in which it completes; empty for that of a thread's copies."""
        return self.queue.name if self.queue is not None else ""

    @property
    def kind(self) -> str:
        """ "move", "update" or "pointwise"."""
        return self.means.kind

    @property
    def shape(self) -> dict[str, int]:
        """The extents by axis."""
        return {a.name: a.extent for a in self.means.axes}

    @property
    def width(self) -> int:
        """The number of consecutive threads that issue it together."""
        return 1 if self.issue == ONE_LANE else self.lanes

    @property
    def dialects(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.template)

    def definitions_in(self, dialect: str) -> tuple[str, ...]:
        """The C texts that the instruction needs in a dialect. Each is emitted once per source."""
        return dict(self.definitions).get(dialect, ())

    @property
    def reads(self) -> tuple[str, ...]:
        """The operands that it reads, in order; for an update, they include the accumulator."""
        names = {r.tensor.name for r in self.means.reads}
        names |= {self.writes} if self.kind == UPDATE else set()
        return tuple(o.name for o in self.operands if o.name in names)

    @property
    def writes(self) -> str:
        """The operand that is written."""
        name: str = self.means.target.tensor.name
        return name

    def operand(self, name: str) -> Operand:
        """The operand of that name. Raises KeyError."""
        for found in self.operands:
            if found.name == name:
                return found
        raise KeyError(name)

    def fragment(self, name: str) -> Fragment | None:
        """The fragment of an operand; None for an operand passed by a descriptor. By default, a single thread holds its registers in
        row-major order, and a single element in memory."""
        found = self.operand(name)
        if found.fragment is None and (found.memory == "register" or not found.dims):
            return row_major(found.shape)
        return found.fragment

    def simulate(self, operands: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """Runs the instruction once per group of `width` threads.

        operands: by name, everything in `reads`. With a fragment: (..., lanes, slots), what each lane has in each slot (a register
        element, or a consecutive element from the address it gave). Without one: (..., *dims), dense. Leading dimensions are
        instances and broadcast. Gives the written operand in the same form. Raises TileLangError where the lanes that should hold
        copies of one element do not agree.
        """
        dense = {name: self._gather(name, operands[name]) for name in self.reads}
        result = evaluate(self.means, dense)
        held = self.fragment(self.writes)
        if held is not None:
            result = held.scatter(result)
        return {self.writes: result}

    def undefined(self, operands: Mapping[str, Any], marks: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        """Which elements of the written operand are undefined after the instruction, in the form that `simulate` returns.

        operands: as for `simulate`. marks: in the same form; 0 where an element is defined, else a positive number. Each element of the
        result has the greatest mark of what it is computed from.
        """
        dense, values, written = {}, {}, self.fragment(self.writes)
        for name in self.reads:
            fragment, extents = self.fragment(name), self.operand(name).shape
            values[name] = operands[name] if fragment is None else fragment.gather(operands[name], extents)
            dense[name] = marks[name] if fragment is None else fragment.gather(marks[name], extents, greatest=True)
        result = undefined(self.means, values, dense)
        return result if written is None else written.scatter(result)

    def _gather(self, name: str, values: Any) -> np.ndarray[Any, Any]:
        import numpy as np  # late: NumPy takes long to import

        held, found = self.fragment(name), self.operand(name)
        array = np.asarray(values)
        if held is None:
            return array
        if array.shape[-2:] != (held.lanes, held.slots):
            raise ValueError(f"{self.name}: {name} has shape {array.shape}, not (..., {held.lanes}, {held.slots})")
        dense: np.ndarray[Any, Any] = held.gather(array, found.shape)
        bits, other = (np.ascontiguousarray(x).view(np.uint8).reshape(*array.shape, -1) for x in (array, held.scatter(dense)))
        wrong = np.argwhere((bits != other).any(axis=-1))
        if wrong.size:
            lane, slot = wrong[0][-2:].tolist()
            element = tuple(held.table[lane, slot].tolist())
            raise TileLangError(
                "replicas-disagree",
                f"`{self.name}` needs the same {name}{list(element)} in every lane that holds it",
                counterexample=f"lane {lane}, slot {slot} has {array[tuple(wrong[0])]}, "
                f"another has {held.scatter(dense)[tuple(wrong[0])]}",
            )
        return dense

    def resized(self, **extents: int) -> Instruction:
        """The instruction with other extents for axes in `limits`.

        Raises Refusal: an extent that the instruction does not have.
        """
        limits = dict(self.limits)
        for name, extent in extents.items():
            if extent != self.shape.get(name) and not 1 <= extent <= limits.get(name, 0):
                raise Refusal(
                    "instruction-extent",
                    f"`{self.name}` does not support {name} = {extent}",
                    help=f"use {name} = {self.shape.get(name)}" if name not in limits else f"use {name} from 1 to {limits[name]}",
                )
        axes = {a: Axis(a.name, extents.get(a.name, a.extent)) for a in self.means.axes}
        new = {o: dataclasses.replace(o, dims=tuple(axes.get(d, d) for d in o.dims)) for o in self.operands}

        def rule(e: Any) -> Any:
            return Read(new[e.tensor], e.indices) if isinstance(e, Read) else axes.get(e, e)

        means = self.means.replace(target=rewrite(self.means.target, rule), value=rewrite(self.means.value, rule))
        return self.replace(means=means, operands=tuple(new.values()))

    def unavailable(self, profile: Any, dialect: str | None = None) -> str | None:
        """The reason why the instruction cannot run on a device of this profile in this dialect (None: in the simulator, which needs no
        text); None if it can."""
        listed = {*profile.instructions, *profile.capabilities}
        missing = [need for need in self.needs if need not in listed]
        if missing:
            return f"profile {profile.name} does not have {', '.join(missing)}"
        threads = profile.level(self.level).threads if profile.has_level(self.level) else None
        if self.issue == ALL_LANES and threads not in (None, self.lanes):
            return f"it is for a {self.level} of {counted(self.lanes, 'thread')}, but one of profile {profile.name} has {threads}"
        if dialect is not None and dialect not in self.dialects:
            return f"it has no template for {dialect}" + (f", only in {', '.join(self.dialects)}" if self.template else "")
        return None

    def render(
        self, dialect: str, operands: Mapping[str, OperandText], barrier: str = "", existing: str = "", blocks: int = 1
    ) -> str:
        """The instruction's text in a dialect, for operands as the emitter writes them. barrier: a pointer to the barrier at which it
        completes, if any; existing: the number of bytes of a copy that exist in its source; blocks: the blocks of a cluster that
        receive it."""
        return dict(self.template)[dialect].format(**operands, barrier=barrier, existing=existing, blocks=blocks)

    def __str__(self) -> str:
        shape = " ".join(f"{name}={extent}" for name, extent in self.shape.items())
        return f"{self.name}: {self.means} ({shape}) by a {self.level}"


def instruction(
    name: str,
    *,
    means: Means,
    operands: Iterable[Operand],
    level: Level | str,
    shape: Mapping[str, int] | None = None,
    lanes: int | None = None,
    completes: str = AT_ONCE,
    issue: str = ALL_LANES,
    outside: float | None = None,
    host: str | None = None,
    error_ulps: float = 0,
    template: Mapping[str, str] | None = None,
    definitions: Mapping[str, str | tuple[str, ...]] | None = None,
    needs: Iterable[str] = (),
    licences: Iterable[str] = (),
    limits: Mapping[str, int] | None = None,
    source: str = "",
    queue: Queue | None = None,
    proxy: str = "",
    multicast: bool = False,
    registers: int = 0,
    replace: bool = False,
) -> Instruction:
    """Defines an instruction, checks it, and registers its name for `do`.

    means: made by `moves`, `updates` or `computes`. shape: extents by axis; derived from `means`, compared where given. lanes: threads
    of a unit of `level` (1, 32 and 128 for thread, warp and warpgroup). definitions: a C text per dialect or several, each of which
    is emitted once however many instructions share it. The other fields are those of Instruction. replace: a name that stands for
    something else is taken over. Raises ComputationError with the first fault found.
    """
    span = caller_span()
    level_name = name_of(level)
    texts = {dialect: (text,) if isinstance(text, str) else text for dialect, text in (definitions or {}).items()}
    made = Instruction(
        name, means, tuple(operands), level_name, LANES.get(level_name, 1) if lanes is None else lanes, completes, issue, outside,
        host, error_ulps, tuple(sorted((template or {}).items())), tuple(sorted(texts.items())), tuple(needs),
        tuple(licences), tuple(sorted((limits or {}).items())), source, span, queue, proxy, multicast,
        registers,
    )  # fmt: skip
    try:
        _check(made, shape)
    except ComputationError as error:
        error.span = error.span or span
        raise
    _register(made, replace)
    return made


# ---------------------------------------------------------------- checks at creation


def _check(made: Instruction, shape: Mapping[str, int] | None) -> None:
    for value, allowed, what in ((made.completes, COMPLETES, "completes"), (made.issue, ISSUE, "issue")):
        if value not in allowed:
            raise _fault(made, f"{what}={value!r}", "use one of " + ", ".join(repr(a) for a in allowed))
    if not made.name.isidentifier():
        raise _fault(made, "its name is not an identifier", "letters, digits and _")
    names = [o.name for o in made.operands]
    if len(set(names)) != len(names):
        raise _fault(made, "two operands have one name", "use distinct names")
    _check_shape(made, shape)
    used = {r.tensor for r in (made.means.target, *made.means.reads)}
    for found in made.operands:
        if found not in used:
            raise _fault(made, f"operand {found.name} does not occur in `{made.means}`", "remove it, or use it")
    for read in (made.means.target, *made.means.reads):
        if read.tensor not in made.operands:
            raise _fault(made, f"`{read}` is not an operand as declared", "read only the operands that are declared")
    check_bounds(made.means)
    for found in made.operands:
        _check_operand(made, found)
    if made.multicast and made.completes != BARRIER_BY_BYTES:
        raise _fault(
            made, "other blocks would not know when the data that it copies has arrived", f"completes={BARRIER_BY_BYTES!r}"
        )
    if made.kind == MOVE:
        moved = made.means.value
        source = (moved.read if isinstance(moved, Pad) else moved).tensor  # type: ignore[attr-defined]
        if source.dtypes != made.means.target.tensor.dtypes:
            raise _fault(made, "it copies between different types", "use computes(D[i], tl.cast(S[i], ...))")
    for dialect, text in made.template:
        others = {
            name: "" if made.completes == completes else f"completes={completes!r}"
            for name, completes in (("barrier", BARRIER_BY_BYTES), ("existing", IN_ORDER_GROUP))
        }
        others["blocks"] = "" if made.multicast else "multicast=True"
        wrong = fault_of_template(made, dialect, text, made.definitions_in(dialect), others)
        if wrong is not None:
            raise _fault(made, *wrong)
        fills = made.outside is not None and made.completes == IN_ORDER_GROUP  # a descriptor's copy fills by itself
        if fills and "{existing}" not in text and all(made.fragment(o.name) is not None for o in made.operands):
            raise _fault(
                made,
                f"outside={made.outside:g} needs the number of bytes that exist, but its {dialect} template does not have {{existing}}",
                "pass {existing} on to a copy that fills the other bytes, or remove outside",
            )
    shared = [o.name for o in made.operands if o.memory == "shared" and o.name in made.reads]
    if made.proxy and shared and (made.queue is None or not made.queue.publish):
        raise _fault(
            made, f"it reads {shared[0]} through a proxy, but nothing publishes what threads wrote", "use a queue with `publish`"
        )
    for dialect, _ in made.definitions:
        if dialect not in made.dialects:
            raise _fault(made, f"it has definitions for {dialect}, but no template", "add a template that calls them")


def _check_shape(made: Instruction, shape: Mapping[str, int] | None) -> None:
    derived = made.shape
    if len(derived) != len(made.means.axes):
        raise _fault(made, "two axes have one name", "distinct names")
    if shape is not None and dict(shape) != derived:
        raise _fault(
            made,
            f"its shape {dict(shape)} differs from the shape of its meaning, {derived}",
            "correct the shape or the extents of the axes",
        )
    for name, maximum in made.limits:
        if not derived.get(name, maximum + 1) <= maximum:
            raise _fault(
                made, f"limit {name}={maximum} does not hold for its own shape {derived}", "give an axis and its maximum"
            )


def _check_operand(made: Instruction, found: Operand) -> None:
    if found.dims != made.means.target.indices and found is made.means.target.tensor:
        raise _fault(
            made, f"{found.name} is not written whole by `{made.means.target}`", "use the axes of the target as its dimensions"
        )
    if found.neighbours and (found.name != made.writes or found.memory == "register" or made.completes != IN_ORDER_GROUP):
        raise _fault(
            made,
            f"{found.name} has neighbours",
            "remove `neighbours`: only an operand that a copy in an in-order group writes has them",
        )
    if len(found.dtypes) > 1 and made.kind != MOVE:
        raise _fault(made, f"{found.name} has several types", "use one type: only a copy works for several types")
    held = made.fragment(found.name)
    described = any(f"{{{found.name}.{part}}}" in text for _, text in made.template for part in DESCRIPTOR_PARTS)
    if made.template and held is None and not found.layouts and not described:
        raise _fault(
            made,
            f"{found.name} is in {found.memory} and has neither a fragment nor layouts",
            f"say which elements each lane accesses, as in fragment=tl.fragment(1, {found.shape[0]}, lambda lane, slot: slot)"
            if len(found.dims) == 1 and made.width == 1
            else "say which elements each lane accesses: fragment=tl.fragment(...); or layouts=[...] for a descriptor",
        )
    limited = [a.name for a in found.dims if a.name in dict(made.limits)]
    if found.fragment is not None and limited:
        raise _fault(made, f"{found.name} has a fragment over the free extent {limited[0]}", "use fixed extents")
    if held is None:
        return
    if held.lanes != made.width:
        raise _fault(
            made,
            f"the fragment of {found.name} is for {held.lanes} lanes, but {made.width} issue it",
            "give the operand a fragment over all lanes" if found.fragment is None else "correct the map or the level",
        )
    held.check(found.name, found.shape, written=found.name == made.writes)


def _fault(made: Instruction, message: str, help: str) -> ComputationError:
    return ComputationError("instruction-definition", f"`{made.name}`: {message}", help=help)


# ---------------------------------------------------------------- names

_KNOWN: dict[str, Instruction] = {}
_SHIPPED: dict[str, Instruction] = {}  # those that were loaded


def _register(made: Instruction, replace: bool) -> None:
    old = _KNOWN.get(made.name)
    if old is not None and old != made and not replace:
        raise ComputationError(
            "instruction-name-taken",
            f"there is already an instruction `{made.name}`: {old}",
            span=made.span,
            help="use another name, or pass replace=True",
            notes=(f"defined at {old.span}" if old.span else "it comes with the package",),
        )
    _KNOWN[made.name] = made


def use(name: str) -> Instruction:
    """The instruction of that name: a user's, or a shipped one, which is loaded on demand.

    Raises Refusal with the nearest names.
    """
    if isinstance(name, str) and name not in _KNOWN:
        _load_shipped()
    found = _KNOWN.get(name) if isinstance(name, str) else None
    if found is None:
        import difflib  # late: only for the text of an error

        begun = [n for n in _KNOWN if n.startswith(f"{name}_")][:3]
        near = difflib.get_close_matches(str(name), _KNOWN, 3, 0.5) or begun
        raise Refusal(
            "unknown-instruction",
            f"there is no instruction `{name if isinstance(name, str) else brief(name)}`",
            help=f"did you mean {' or '.join(near)}?" if near else "define it with tl.instruction",
        )
    return found


def known() -> tuple[Instruction, ...]:
    """All instructions that are defined or shipped, by name."""
    _load_shipped()
    return tuple(_KNOWN[name] for name in sorted(_KNOWN))


def own() -> tuple[Instruction, ...]:
    """The instructions that do not come with the package, by name: schedules may be lowered to them, also where none is named."""
    return tuple(_KNOWN[name] for name in sorted(_KNOWN) if _SHIPPED.get(name) is not _KNOWN[name])


@functools.cache
def _load_shipped() -> None:
    before = dict(_KNOWN)
    package = importlib.import_module("tilelang.instructions.shipped")
    for found in sorted(module.name for module in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"tilelang.instructions.shipped.{found}")
    _SHIPPED.update({name: found for name, found in _KNOWN.items() if before.get(name) is not found})


__getattr__ = moved(__name__, {"operand": "tilelang.instructions.operand", "queue": "tilelang.instructions.operand"})
