"""Refusals at a step of a schedule, and checks of a single step."""

from __future__ import annotations

from collections.abc import Mapping

from tilelang.core.layout import Layout, Placement
from tilelang.errors import Refusal
from tilelang.lowering.build.frame import Build
from tilelang.schedules.checked_steps import check_steps
from tilelang.schedules.spec import Spec
from tilelang.schedules.steps import Place, Step
from tilelang.schedules.task import Task


def check_chain(build: Build, spec: Spec, steps: tuple[Step, ...], task: Task, place: Place | None) -> None:
    """Refuses steps of a stage or a move that contradict the spec they refine. place: the owner of the steps, for errors
    without a position."""
    kinds = {n: "input" if t.definition is None else "definition" for n, t in build.tensors.items()}
    try:
        check_steps(spec, steps, task, kinds)
    except Refusal as error:
        error.span = error.span or getattr(place, "span", None)
        raise


def refuse(
    step: Step | None, code: str, message: str, help: str, counterexample: str | None = None, proven: bool = True
) -> Refusal:
    """A Refusal at a step."""
    return Refusal(code, message, span=getattr(step, "span", None), help=help, counterexample=counterexample, proven=proven)


def laid_out(step: Place, dims: Mapping[str, int], element_bytes: int) -> Placement:
    """Where a place's layout puts each element of a region. Raises Refusal at the step."""
    try:
        return (step.layout or Layout()).place(dims, element_bytes)
    except Refusal as error:
        raise refuse(step, error.code, f"`{step}`: {error.message}", error.help or "", error.counterexample) from None
