"""A part of a computation: what one kernel computes from the inputs and from tensors that earlier kernels wrote to memory.

The definitions in between are inlined, become accumulators of the kernel, or are stages, which are kept on chip.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from tilelang.autoschedule.common.loop_summary import Loops, kernel_loops
from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.computations.inlining import kept_in_memory
from tilelang.core.expr import Call, Read
from tilelang.core.lazy import cached_property
from tilelang.profiles.profile import Profile
from tilelang.schedules.steps import Step
from tilelang.schedules.task import Task, Unplaced, made_with, make_task, plan, task_of


def reads_of(computation: Computation) -> Mapping[Definition, tuple[int, tuple[Tensor, ...]]]:
    """The number of each definition of a computation, and the tensors that it reads."""
    found: dict[Definition, tuple[int, tuple[Tensor, ...]]] | None = computation.__dict__.get("reads_of")
    if found is None:
        found = computation.__dict__["reads_of"] = {d: (n, d.reads) for n, d in enumerate(computation.definitions)}
    return found


def in_rows(stored: Collection[Tensor]) -> bool:
    """Whether stages of one kernel can store these outputs row by row, for which they need a common axis."""
    return not stored or bool(set.intersection(*({d.name for d in t.dims} for t in stored)))


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """The definitions of one kernel. outputs: the tensors that it computes, over the same axes; kept: tensors in memory when it
    starts; stored: outputs of the computation, over other axes, that its stages store."""

    computation: Computation
    outputs: tuple[Tensor, ...]
    kept: frozenset[Tensor] = frozenset()
    stored: tuple[Tensor, ...] = ()

    @classmethod
    def whole(cls, computation: Computation) -> Part:
        """The largest part of a computation that one kernel, the last one, can compute without stages that store outputs."""
        return cls(computation, plan(computation, set(), kept_in_memory(computation))[-1].outputs)

    @classmethod
    def with_all_outputs(cls, computation: Computation) -> Iterator[Part]:
        """Parts with all outputs of a computation, one for each group of outputs over the same axes that the kernel's steps can
        refine. Stages store the other outputs, which need a common axis."""
        known, refined = kept_in_memory(computation), set[Tensor]()
        for number, first in enumerate(computation.outputs):
            others = [t for t in computation.outputs if set(t.dims) != set(first.dims)]  # at least these are stored by stages
            if first not in refined and in_rows(others):
                before = {t.name for t in computation.outputs[:number]}
                outputs = plan(computation, before, known, before)[-1].outputs
                refined.update(outputs)
                stored = tuple(t for t in computation.outputs if t not in outputs)
                if in_rows(stored):
                    yield cls(computation, outputs, stored=stored)

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions that the kernel computes, in the computation's order."""
        known, found = reads_of(self.computation), dict[Definition, int]()
        waiting = [*self.outputs, *self.stored]
        while waiting:
            definition = waiting.pop().definition
            if definition is not None and definition not in found:
                found[definition], read = known[definition]
                waiting += [t for t in read if t not in self.kept]
        return tuple(sorted(found, key=lambda d: found[d]))

    @cached_property
    def read(self) -> frozenset[Tensor]:
        """The tensors that it reads from memory."""
        known = reads_of(self.computation)
        return frozenset(t for d in self.definitions for t in known[d][1] if t.definition is None or t in self.kept)

    @cached_property
    def inside(self) -> frozenset[Tensor]:
        """The tensors that it computes, other than its outputs."""
        return frozenset(t for d in self.definitions for t in d.tensors if t not in self.outputs)

    @cached_property
    def made_whole(self) -> frozenset[Tensor]:
        """The tensors that must be complete before they are read: reductions that are not accumulators, values whose expressions are
        too long to be inlined, and those that stages store."""
        names = {*kept_in_memory(self.computation), *(t.name for first in self.stored for t in made_with(first))}
        return self._closed({t for d in self.definitions for t in d.tensors if t.name in names and t not in self.outputs})

    @cached_property
    def staged(self) -> frozenset[Tensor]:
        """The tensors of `made_whole` and `overlapping`, and the reductions that must be complete before them."""
        return self._closed({*self.made_whole, *self.overlapping}) if self.overlapping else self.made_whole

    @cached_property
    def is_possible(self) -> bool:
        """Whether one kernel can compute the outputs together. Two reductions over different axes, for example, it cannot."""
        try:
            self.task(self.made_whole)
        except Unplaced:
            return False
        return True

    def _closed(self, found: set[Tensor]) -> frozenset[Tensor]:
        """These tensors, and the reductions that must be complete before they can be computed. Raises Unplaced for an output that the
        same kernel cannot compute."""
        waiting: list[Tensor | None] = [*found, None]  # None: the outputs
        while waiting:  # a task that can be made stays possible when more tensors are whole
            tensor = waiting[-1]
            try:
                self.task(found) if tensor is None else self.stage(tensor, found)
                waiting.pop()
            except Unplaced as missing:
                assert missing.tensor.definition is not None
                new = set(missing.tensor.definition.tensors) - found
                if not new:
                    raise
                found |= new
                waiting = [*new, *waiting]
        return frozenset(found)

    @cached_property
    def overlapping(self) -> frozenset[Tensor]:
        """The pointwise tensors that are read at several elements for each point, as by a stencil. If they were inlined, each of
        their elements would be computed several times."""
        reads = {(e.tensor, e.indices) for d in self.definitions for v in d.values for e in v.walk() if isinstance(e, Read)}
        several = Counter(tensor for tensor, _ in reads)
        outputs = {*self.outputs, *self.computation.outputs}
        return frozenset(
            t for d in self.definitions if d.reduction is None for t in d.tensors if several[t] > 1 and t not in outputs
        )

    def on_chip(self, keeps_few: bool) -> list[Tensor]:
        """The tensors that the kernel keeps on chip, one row at a time: those of `made_whole`, and pointwise values that call a
        function and have several readers. keeps_few: also those with a reader that has more axes."""

        def dear(definition: Definition, tensor: Tensor) -> bool:
            if definition.reduction is not None or tensor in self.computation.outputs or tensor in self.outputs:
                return False
            readers = [d for d in self.definitions if tensor in reads_of(self.computation)[d][1]]
            several = len(readers) > 1 or (keeps_few and any(len(d.axes) > len(definition.axes) for d in readers))
            return several and any(isinstance(e, Call) for v in definition.values for e in v.walk())

        return [t for d in self.definitions for t in d.tensors if t in self.made_whole or dear(d, t)]

    def task(self, stages: Collection[Tensor] = ()) -> Task:
        """The task that computes the outputs from the stages. Raises Unplaced for a tensor that must be computed before."""
        return make_task(self.outputs, lambda t: t not in self.outputs and (t in stages or t in self.kept))

    def stage(self, tensor: Tensor, stages: Collection[Tensor]) -> Task:
        """The task that computes a stage. Raises Unplaced as `task` does."""
        return task_of(tensor, lambda t: t in stages or t in self.kept)

    def loops(self, steps: tuple[Step, ...], stages: Collection[Tensor], profile: Profile) -> Loops:
        """The loops of the kernel with these steps."""
        stage = functools.cache(lambda name: self.stage(self.computation.tensor(name), stages))
        return kernel_loops(self.computation, self.task(stages), lambda step: stage(step.tensor_name), steps, profile)
