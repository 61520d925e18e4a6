"""Loops that several reductions share (`split j=128 of peak total`): their reductions, the order of these, and their repairs.

A member is a *stage* of the loop if another member reads it, or if the results do not read it element by element. It then has a place
of its own (`compute peak in register`), which keeps its running value beyond the loop. The other members are accumulators of the
kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping

from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.core.expr import Axis, Binary, Expr, Read, Reduce, substitute
from tilelang.core.identifiers import spelled
from tilelang.errors import meant
from tilelang.schedules.running_values import given_repair, made_of, reductions_in
from tilelang.schedules.spec import refuse_step
from tilelang.schedules.steps import Place, Split, Step, Tile
from tilelang.schedules.task import placed_names, task_of
from tilelang.semantics.loop_members import Member, SharedLoop
from tilelang.semantics.repair import NotDerived, Repair, Running, derive


def loops_of(computation: Computation, steps: Iterable[Step]) -> tuple[SharedLoop, ...]:
    """The shared loops among a schedule's steps, not counting those in braces. Raises Refusal for a loop that its computation does not
    allow.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=4, j=8)
    >>> X = tl.input("X", tl.float32, i, j)
    >>> peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    >>> total = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i)
    >>> made = tl.schedule(tl.define("Y", peak[i] + tl.log(total[i]), i)).tile(i=2).to(tl.block).split(j=2, of=("peak", "total"))
    >>> for m in loops_of(made.computation, made.steps)[0].members:
    ...     print(m.definition.tensors[0].name, m.repair)
    peak None
    total * exp(before(peak) - now(peak))
    """
    found, part = list[SharedLoop](), dict[str, int]()
    for s in steps:
        if isinstance(s, Tile) and s.level == "block":
            part |= {a: n for a, n in s.sizes if isinstance(n, int)}
        if isinstance(s, Split) and s.of:
            loop = loop_of(computation, s)
            found.append(dataclasses.replace(loop, part=part.get(loop.axis)))
    return tuple(found)


def loop_of(computation: Computation, step: Split) -> SharedLoop:
    """The loop of one step. Raises Refusal."""
    known: dict[tuple[object, ...], SharedLoop] = computation.__dict__.setdefault("shared_loops", {})
    key = step.sizes, step.of, step.repairs
    if key not in known:
        known[key] = _loop_of(computation, step)
    return known[key]


def _loop_of(computation: Computation, step: Split) -> SharedLoop:
    tensors = {t.name: t for d in computation.definitions for t in d.tensors}
    if len(step.sizes) != 1:
        raise refuse_step(step, "shared-axes", f"`{step}` cuts several axes, but reductions share a loop over one",
                       "use one `split ... of` for the shared axis, and another split for the others")  # fmt: skip
    ((axis, piece),) = step.sizes
    for name in step.of:
        if name not in tensors:
            raise refuse_step(step, "unknown-tensor", f"`{step}`: there is no definition `{name}`", meant(name, tensors))
        reduction = tensors[name].definition.reduction  # type: ignore[union-attr]
        if reduction is None:
            inner = reductions_in(tensors[name])
            help = f"name {' and '.join(f'`{n}`' for n in inner)} instead" if inner else (
                f"remove `{name}`: a pointwise definition is computed where it is read"
            )  # fmt: skip
            raise refuse_step(step, "shared-pointwise", f"`{step}`: `{name}` is {made_of(inner)}", help)
        if [a.name for a in reduction.axes] != [axis]:
            own = ", ".join(a.name for a in reduction.axes)
            raise refuse_step(step, "shared-axes", f"`{step}`: `{name}` is a reduction over {own}, not over {axis}",
                           f"name only reductions over {axis}")  # fmt: skip
    group = [d for d in computation.definitions if any(t.name in step.of for t in d.tensors)]
    if len({a for d in group if d.reduction is not None for a in d.reduction.axes}) > 1:
        raise refuse_step(step, "shared-axes", f"`{step}`: the axes {axis} of {', '.join(step.of)} have different extents",
                       "name only reductions over one axis")  # fmt: skip
    terms = {d: _written_out(d) for d in group}
    makers = {t: d for d in group for t in d.tensors}
    members = [Member(d, terms[d], _repair(step, d, terms, makers, axis)) for d in group]
    return SharedLoop(axis, piece if isinstance(piece, int) else 1, tuple(members))


def running_of(loop: SharedLoop, member: Member) -> tuple[Running, ...]:
    """The running values of a loop that one of its members reads."""
    terms = {m.definition: m.reduce for m in loop.members}
    own = {t: m.definition for m in loop.members for t in m.definition.tensors}
    expressions = [*member.reduce.values, *([member.reduce.condition] if member.reduce.condition is not None else [])]
    found = dict.fromkeys(e for x in expressions for e in x.walk() if isinstance(e, Read) and e.tensor in own)
    return tuple(_running(read, own[read.tensor], terms[own[read.tensor]]) for read in found)


def _running(read: Read, producer: Definition, made: Reduce) -> Running:
    renamed: dict[Expr, Expr] = dict(zip(producer.axes, read.indices, strict=True))
    condition = None if made.condition is None else substitute(made.condition, renamed)
    return Running(read, made.combiner.name, substitute(made.values[read.tensor.member], renamed), condition)


def _written_out(definition: Definition) -> Reduce:
    """A reduction over its definition's axes, with every pointwise definition inlined into its term."""
    task = task_of(definition.tensors[0], lambda t: t.definition is None or t.definition.reduction is not None)
    return task.states[0].reduce


def _repair(step: Split, definition: Definition, terms: Mapping[Definition, Reduce], own: Mapping[Tensor, Definition],
            axis: str) -> Repair | None:  # fmt: skip
    reduce, name = terms[definition], definition.tensors[0].name
    running: dict[Read, Running] = {}
    expressions = [*reduce.values, *([reduce.condition] if reduce.condition is not None else [])]
    for read in dict.fromkeys(e for x in expressions for e in x.walk() if isinstance(e, Read)):
        producer = own.get(read.tensor)
        if producer is None:
            through = _depends_on(read.tensor, own)
            if through is not None:
                raise refuse_step(step, "shared-through", f"`{step}`: `{name}` reads `{read.tensor.name}`, which needs the final value"
                               f" of `{through.name}`", f"remove `{through.name}` or `{name}` from the loop")  # fmt: skip
            continue
        plain = all(isinstance(i, Axis) and i.name != axis for i in read.indices) and len(set(read.indices)) == len(read.indices)
        if not plain:
            raise refuse_step(step, "shared-elements", f"`{step}`: `{name}` reads `{read}`, which is not the element that the loop"
                           f" computes together with its own", f"remove `{read.tensor.name}` or `{name}` from the loop")  # fmt: skip
        running[read] = _running(read, producer, terms[producer])
    given = dict(step.repairs).get(name)
    try:
        if given is not None:
            return given_repair(reduce, tuple(running.values()), name, given)
        return derive(reduce, tuple(running.values()))
    except NotDerived as found:
        said = {
            "refuted": "cannot be repaired",
            "refused": "has no known repair",
            "not-proven": "could not be proven to have a repair",
        }
        if given is not None:
            said = {
                "refuted": "is not repaired by the given expression",
                "refused": "cannot have the given repair",
                "not-proven": "could not be proven to be repaired by the given expression",
            }
        reads = " or ".join(f"`{name}`" for name in sorted({r.tensor.name for r in running})) or "another value"
        help = f"remove `{name}` from the loop, and compute it when {reads} is final"
        if given is not None and not running:
            help = f"omit the repair of `{name}`: it needs none"
        elif given is not None and (derived := _derived(reduce, tuple(running.values()))) is not None:
            form = f"{spelled(name)}={_becomes(f'before({spelled(name)})', derived)}"
            help = f"omit the repair, or write it as in `{form}`"
        raise refuse_step(step, f"repair-{found.outcome}", f"`{step}`: `{name}` {said[found.outcome]} when {reads} changes:"
                       f" {found.reason}", help,
                       found.counterexample) from None  # fmt: skip


def _derived(reduce: Reduce, running: tuple[Running, ...]) -> Repair | None:
    try:
        return derive(reduce, running)
    except NotDerived:
        return None


def _becomes(held: str, repair: Repair) -> str:
    """What an accumulator becomes, in the words of the text form."""
    change = f"({repair.change})" if isinstance(repair.change, Binary) else str(repair.change)
    return f"{held} {'+' if repair.how == 'plus' else '*'} {change}"


def reads_any(tensors: Iterable[Tensor], own: set[Tensor]) -> bool:
    """Whether any of some tensors is made by a loop, or computed from such a tensor."""
    return any(_depends_on(t, own) is not None for t in tensors)


def _depends_on(tensor: Tensor, own: Mapping[Tensor, Definition] | set[Tensor]) -> Tensor | None:
    """A member that a tensor is computed from, if any."""
    return next((t for t in _sources([tensor], lambda t: True) if t in own), None)


def _sources(tensors: Iterable[Tensor], through: Callable[[Tensor], bool]) -> Iterator[Tensor]:
    """Tensors and their transitive sources, each once. The sources of a tensor that `through` rejects are not visited."""
    waiting, seen = list(tensors), set[Tensor]()
    while waiting:
        t = waiting.pop()
        if t not in seen:
            seen.add(t)
            yield t
            if t.definition is not None and through(t):
                waiting += reversed(t.definition.reads)


def repair_notes(computation: Computation, steps: Iterable[Step]) -> list[str]:
    """The repairs of a schedule's shared loops, in sentences."""
    found, steps = list[str](), tuple(steps)
    for step in (s for s in steps if isinstance(s, Split) and s.of):
        for member in loop_of(computation, step).members:
            repair, name = member.repair, member.definition.tensors[0].name
            if repair is None:
                continue
            reads = " or ".join(r.tensor.name for r in repair.reads)
            becomes = _becomes(name, repair) + (" for each term" if repair.how == "power" else "")
            ends = [f"{r.to} where {r.read.tensor.name} was {r.at}" for r in repair.resets]
            found.append(f"`{step}`: when {reads} changes, {name} becomes {', '.join((becomes, *ends))}")
        apart = next((t for t in steps if isinstance(t, Tile) and t.level == "block" and step.sizes[0][0] in dict(t.sizes)), None)
        if apart is not None:
            found.append(f"`{apart}`: each block has its own {', '.join(step.of)}, which a second kernel repairs and combines")
    return found


# ---------------------------------------------------------------- the stages of a loop


def with_stages(computation: Computation, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with an implied `compute` in registers for each stage of a shared loop that has none: before the first step that reads
    it, or after the places directly below the loop.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=4, j=8)
    >>> X = tl.input("X", tl.float32, i, j)
    >>> peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    >>> total = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i)
    >>> made = tl.schedule(tl.define("Y", peak[i] + tl.log(total[i]), i)).tile(i=2).to(tl.block).split(j=2, of=("peak", "total"))
    >>> print(*with_stages(made.computation, made.steps), sep="; ")
    tile i=2 -> block; split j=2 of peak total; compute peak in register
    """
    at = next((k for k, s in enumerate(steps) if isinstance(s, Split) and s.of), None)
    if at is None:
        return steps
    step = steps[at]
    assert isinstance(step, Split)
    placed, written = placed_names(computation, steps), _written(steps)
    tensors = {t.name: t for d in computation.definitions for t in d.tensors}
    out, below = list(steps[: at + 1]), list(steps[at + 1 :])
    for member in loop_of(computation, step).members:
        names = {t.name for t in member.definition.tensors}
        if not names <= placed or names & written:
            continue
        end = next((k for k, s in enumerate(below) if not isinstance(s, Place) or s.verb not in ("load", "compute")), len(below))
        readers = (k for k, s in enumerate(below[:end]) if s.verb == "compute" and _reads(tensors[s.tensor_name], names, placed))  # type: ignore[attr-defined]
        made = Place("compute", member.definition.tensors[0].name, "register", implied=True, span=step.span)
        below.insert(min(readers, default=end), made)
    return (*out, *below)


def _written(steps: Iterable[Step]) -> set[str]:
    """The tensors that explicit `compute` steps make."""
    return {s.tensor_name for s in steps if isinstance(s, Place) and s.verb == "compute"}


def _reads(tensor: Tensor, names: set[str], placed: set[str]) -> bool:
    """Whether a stage reads any of some tensors, directly or through definitions without a place."""
    assert tensor.definition is not None

    def written_in(t: Tensor) -> bool:
        return t.definition is not None and t.definition.reduction is None and t.name not in placed

    return any(t.name in names for t in _sources(tensor.definition.reads, written_in))
