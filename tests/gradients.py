"""Gradients by central differences of the reference, to compare those of `tl.grad` with."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tilelang as tl
from tilelang.computations.computation import Computation, as_computation

STEP = 2.0**-17


def differences(made: Computation, wanted: list[tl.Tensor], arrays: dict[str, Any], seeds: dict[str, Any]) -> list[Any]:
    """The gradient of the sum of seed * output by each wanted input, in float64: one evaluation on either side of each element."""

    def loss(changed: dict[str, Any]) -> Any:
        found = made.evaluate(**changed)
        found = found if isinstance(found, dict) else {made.outputs[0].name: found}
        return sum((found[name] * seed).sum(dtype=np.longdouble) for name, seed in seeds.items())

    gradients = []
    for t in wanted:
        gradient = np.zeros(t.shape)
        for at in np.ndindex(t.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = arrays[t.name].copy()
                moved[at] += step
                ends.append(loss({**arrays, t.name: moved}))
            gradient[at] = (ends[0] - ends[1]) / (2 * STEP)
        gradients.append(gradient)
    return gradients


def compare(output: Any, inputs: Any, arrays: dict[str, Any], seed: int = 0, constants: Any = ()) -> float:
    """The greatest difference of the gradients by `tl.grad` from central differences, over the greatest magnitude of a gradient or 1.

    All tensors are float64 or integers. Each output gets a seed of random numbers.
    """
    made = as_computation(output) if not isinstance(output, tuple) else tl.computation("outputs", output)
    wanted = [inputs] if isinstance(inputs, tl.Tensor) else list(inputs)
    generator = np.random.default_rng(seed)
    seeds = {t.name: generator.standard_normal(t.shape) for t in made.outputs}
    tensors = tuple(tl.input(f"seed_{t.name}", tl.float64, *t.dims) for t in made.outputs)
    gradients = tl.grad(made, wanted, tensors, constants=constants)
    whole = tl.computation("gradients", gradients)
    assert tl.parse(whole.text).computation().text == whole.text
    given = {**arrays, **{f"seed_{name}": s for name, s in seeds.items()}}
    found = whole.evaluate(**{t.name: given[t.name] for t in whole.inputs})
    found = found if isinstance(found, dict) else {gradients[0].name: found}
    worst = 0.0
    for t, g, expected in zip(wanted, gradients, differences(made, wanted, arrays, seeds), strict=True):
        assert g.shape == t.shape and g.dtype is t.dtype
        scale = max(1.0, np.abs(expected).max(initial=0))
        worst = max(worst, float(np.abs(found[g.name] - expected).max(initial=0) / scale))
    return worst


# ---------------------------------------------------------------- random computations

SMOOTH: tuple[Callable[[Any], Any], ...] = (
    tl.sin, tl.cos, tl.tanh, tl.erf, tl.sigmoid, tl.gelu, tl.gelu_tanh, tl.silu, tl.softplus, lambda x: -x, lambda x: x * x,
    lambda x: x**3 * 0.25, lambda x: tl.exp(tl.tanh(x)), lambda x: tl.exp2(tl.sin(x)), lambda x: tl.expm1(tl.sin(x)),
    lambda x: tl.log(x * x + 0.5), lambda x: tl.log2(x * x + 1), lambda x: tl.log1p(x * x), lambda x: tl.sqrt(x * x + 0.5),
    lambda x: tl.rsqrt(x * x + 1), lambda x: (x * x + 0.5) ** 1.5, lambda x: tl.cast(x, x.dtype),
)  # fmt: skip
KINKED: tuple[Callable[[Any], Any], ...] = (
    tl.abs, tl.relu, tl.floor, tl.ceil, tl.round, lambda x: tl.clamp(x, -0.5, 0.5), lambda x: x % 0.75, lambda x: x // 0.5 + x,
    lambda x: tl.where(x > 0.25, x * x, tl.sin(x)), lambda x: tl.where(x > 0, tl.sqrt(x), 0), lambda x: tl.cast(x > 0, x.dtype) + x,
)  # fmt: skip
OPERATIONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (b * b + 0.5), tl.maximum, tl.minimum,
    lambda a, b: (a * a + 0.5) ** tl.tanh(b), lambda a, b: tl.where(a < b, a * b, b),
    lambda a, b: tl.where(tl.abs(a) > 0.5, a, tl.log(b * b + 1)),
)  # fmt: skip


class Drawing:
    """Draws a computation of a few definitions: reads through every form of index, functions, reductions, several readers.

    dtype: that of all floats.
    """

    def __init__(self, draw: Callable[[int], int], dtype: tl.DType = tl.float64) -> None:
        self.draw, self.dtype = draw, dtype  # draw(n) is one of 0 .. n-1
        self.axes = tl.axes(i=2 + draw(4), j=2 + draw(4), k=1 + draw(4), l=1 + draw(3))
        self.tensors: list[tl.Tensor] = []
        for number in range(1 + draw(3)):
            dims = [tl.axes(**{f"x{number}_{d}": 1 + draw(6)}) for d in range(draw(3))]
            self.tensors.append(tl.input(f"X{number}", dtype, *dims))
        self.floats = list(self.tensors)
        self.places = tl.input("ids", tl.int32, self.axes[0], range=(0, 3))

    def run(self) -> tuple[tuple[tl.Tensor, ...], list[tl.Tensor]]:
        """The outputs, and the inputs that they depend on."""
        for number in range(1 + self.draw(4)):
            self.define(f"y{number}")
        made = self.tensors[len(self.floats) :]
        outputs = (made[-1], *(t for t in made[:-1] if self.draw(4) == 0))
        whole = tl.computation("whole", outputs)
        return outputs, [t for t in whole.inputs if t is not self.places]

    def define(self, name: str) -> None:
        own = [a for a in self.axes[:3] if self.draw(2)]
        over = [a for a in self.axes if a not in {*own} and self.draw(2)]
        value = self.value((*own, *over) if over else tuple(own), 1 + self.draw(3))
        if over:
            condition = self.condition(own, over)
            kind = (tl.sum, tl.sum, tl.sum, tl.prod, tl.max, tl.min, tl.mean)[self.draw(7)]
            if self.draw(4) == 0 and own:
                value = (tl.softmax, tl.log_softmax, tl.layer_norm)[self.draw(3)](value, over)
                own += over
            else:
                value = kind(value, over, where=condition)
                value = value * 0.5 + self.value(tuple(own), 1) if self.draw(3) == 0 else value
        # a mean of no points is NaN, and so are its neighbours
        value = tl.where(tl.isnan(value), 0, tl.clamp(value, -1e3, 1e3)) if over else value
        self.tensors.append(tl.define(name, value, *own))

    def condition(self, own: list[Any], over: list[Any]) -> Any:
        match self.draw(6):
            case 0 if own:
                return over[0] <= own[0]
            case 1:
                return (over[0] + len(own)) % 2 == 0
            case 2:
                return self.read((*own, *over)) > 0
        return None

    def value(self, axes: tuple[Any, ...], depth: int) -> Any:
        if depth == 0:
            return self.read(axes)
        match self.draw(5):
            case 0:
                return SMOOTH[self.draw(len(SMOOTH))](self.value(axes, depth - 1))
            case 1:
                return KINKED[self.draw(len(KINKED))](self.value(axes, depth - 1))
            case 2 | 3:
                a, b = self.value(axes, depth - 1), self.value(axes, depth - 1)
                return OPERATIONS[self.draw(len(OPERATIONS))](a, b)
        return self.read(axes)

    def read(self, axes: tuple[Any, ...]) -> Any:
        t = self.tensors[-1 - self.draw(len(self.tensors))]
        if not t.dims:
            return t[()]
        indices = tuple(self.index(axes, d.extent) for d in t.dims)
        if any(exact is None for _, exact in indices):
            return tl.pad(t[tuple(i for i, _ in indices)], (0, 0.5)[self.draw(2)])
        return t[tuple(i for i, _ in indices)]

    def index(self, axes: tuple[Any, ...], extent: int) -> tuple[Any, Any]:
        """An index for a dimension, and None if it may be outside."""
        if not axes:
            return self.draw(extent), True
        a, b = axes[self.draw(len(axes))], axes[self.draw(len(axes))]
        factor, shift = 1 + self.draw(3), self.draw(4) - 1
        match self.draw(12):
            case 0:
                return self.draw(extent), True
            case 1:
                return a // (factor + 1) + shift, None
            case 2:
                return (a * factor + b + shift) % extent, True
            case 3:
                return a * factor + b + shift, None
            case 4:
                return extent - 1 - a, None
            case 5:
                return a - b * factor, None
            case 6 if self.axes[0] in {*axes}:
                return self.places[self.axes[0]] + shift, None
            case 7:
                return (a + b * factor + 1) // 2, None
            case 8:
                return a * b, None
            case 9:
                return a + b, None
        return a, (True if a.extent <= extent else None)


def random_arrays(tensors: Iterable[tl.Tensor], seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {
        t.name: (generator.standard_normal(t.shape) if t.range is None else generator.integers(*t.range, t.shape)).astype(
            t.dtype.numpy
        )
        for t in tensors
    }
