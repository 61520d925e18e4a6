"""No public object changes once it is made: to set or delete an attribute is refused where it stands, with its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl


def scaled() -> tuple[Any, Any, Any]:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    return i, X, tl.define("Y", X[i] * 2, i)


def kernel() -> Any:
    return tl.compile(tl.schedule(scaled()[2]).tile(i=4).to(tl.block), tl.target("opencl", profile="simulated"))


OBJECTS: dict[str, tuple[Callable[[], Any], str]] = {
    "an axis": (lambda: scaled()[0], "extent"),
    "an input": (lambda: scaled()[1], "dtype"),
    "a tensor": (lambda: scaled()[2], "dtype"),
    "an expression": (lambda: scaled()[1][0] * 2, "dtype"),
    "a definition": (lambda: scaled()[2].definition, "values"),
    "a computation": (lambda: tl.computation("f", scaled()[2]), "outputs"),
    "a schedule": (lambda: tl.schedule(scaled()[2]), "steps"),
    "a move": (tl.move, "steps"),
    "a step": (lambda: tl.schedule(scaled()[2]).split(i=4).steps[0], "sizes"),
    "a spec": (lambda: tl.schedule(scaled()[2]).specs[0], "axes"),
    "a team": (lambda: tl.warps(2), "count"),
    "a layout": (lambda: tl.layout("i"), "padding"),
    "a hole": (lambda: tl.hole, "size"),
    "a type": (lambda: tl.float32, "name"),
    "a level": (lambda: tl.block, "name"),
    "a memory": (lambda: tl.shared, "name"),
    "a profile": (lambda: tl.load_profile("zen5"), "name"),
    "a target": (lambda: tl.target("opencl", profile="simulated"), "profile"),
    "options": (tl.Options, "verify"),
    "an instruction": (lambda: tl.use("simulated_mma_m16n8k8"), "name"),
    "an operand": (lambda: tl.operand("a", tl.float32, tl.register, tl.axes(i=4)), "dims"),
    "a memory's facts": (lambda: tl.load_profile("zen5").memory("shared"), "banks"),
    "a report": (lambda: tl.simulate(kernel()), "counts"),
    "a kernel": (kernel, "schedule"),
    "what a kernel uses": (lambda: kernel().resources[0], "threads"),
    "an estimate": (lambda: kernel().estimate, "seconds"),
    "a refinement": (lambda: kernel().refinements[0], "spec"),
}


@pytest.mark.parametrize("which", OBJECTS)
def test_no_public_object_changes(which: str) -> None:
    make, name = OBJECTS[which]
    made = make()
    before = getattr(made, name, None)
    for attribute in (name, "nobody_has_this"):
        with pytest.raises(AttributeError, match=attribute):
            setattr(made, attribute, before)
        with pytest.raises(AttributeError, match=attribute):
            delattr(made, attribute)
    assert getattr(made, name, None) is before or getattr(made, name, None) == before


def test_what_is_set_is_named_with_the_kind_of_object() -> None:
    with pytest.raises(AttributeError) as caught:
        scaled()[2].dtype = tl.float16
    assert str(caught.value) == "`dtype` cannot be set: a Tensor does not change once it is made"
