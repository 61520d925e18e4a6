"""Families of reductions whose terms read another reduction's value, and terms that cannot be repaired."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tilelang as tl

ROWS, COLUMNS, WIDTH = 6, 19, 3
Expr = Any


class Axes:
    """The axes and inputs that families use: X and W along rows and columns, V along columns and `e`."""

    def __init__(self) -> None:
        self.i, self.j, self.e = tl.axes(i=ROWS, j=COLUMNS, e=WIDTH)
        self.inputs = {
            "X": tl.input("X", tl.float32, self.i, self.j),
            "W": tl.input("W", tl.float32, self.i, self.j),
            "V": tl.input("V", tl.float32, self.j, self.e),
        }
        self.x, self.w = self.inputs["X"][self.i, self.j], self.inputs["W"][self.i, self.j]
        self.v = self.inputs["V"][self.j, self.e]

    def reduced(self, name: str, kind: str, term: Expr, wide: bool = False, where: Expr = None) -> Any:
        axes = (self.i, self.e) if wide else (self.i,)
        made = getattr(tl, kind)(term, over=self.j) if where is None else getattr(tl, kind)(term, over=self.j, where=where)
        return tl.define(name, made, *axes)


def one(
    term: Callable[[Axes, Expr], Expr],
    kind: str = "sum",
    of: Callable[[Axes], Expr] = lambda a: a.x,
    by: str = "max",
    wide: bool = False,
    where: Callable[[Axes], Expr] | None = None,
) -> Callable[[], Any]:
    """A reduction `t` by `kind` whose term reads `peak`, a reduction by `by`."""

    def make() -> Any:
        a = Axes()
        condition = None if where is None else where(a)
        peak = a.reduced("peak", by, of(a), where=condition)
        return tl.computation("family", a.reduced("t", kind, term(a, peak[a.i]), wide, condition))

    return make


def _attention(divided: bool) -> Callable[[], Any]:
    """Two running values: the peak, and the total that divides inside or outside the last sum."""

    def make() -> Any:
        a = Axes()
        peak = a.reduced("peak", "max", a.x)
        total = a.reduced("total", "sum", tl.exp(a.x - peak[a.i]))
        p = tl.exp(a.x - peak[a.i]) / total[a.i] if divided else tl.exp(a.x - peak[a.i])
        mix = a.reduced("mix", "sum", p * a.v, wide=True)
        if divided:
            return tl.computation("family", mix)
        return tl.computation("family", tl.define("out", mix[a.i, a.e] / total[a.i], a.i, a.e))

    return make


def _two_peaks() -> Any:
    a = Axes()
    first, second = a.reduced("first", "max", a.x), a.reduced("second", "max", a.w)
    return tl.computation("family", a.reduced("t", "sum", tl.exp(a.x - first[a.i] + (a.w - second[a.i]))))


def _argmax() -> Any:
    a = Axes()
    peak = a.reduced("peak", "max", a.x)
    return tl.computation("family", tl.define("best", tl.argmax(a.x - peak[a.i], over=a.j), a.i))


def _absolute(a: Axes) -> Expr:
    return abs(a.x)


def _masked(a: Axes) -> Expr:
    return tl.where(a.w > 0, a.x * 0.125 + a.w, -math.inf)


FAMILIES: dict[str, Callable[[], Any]] = {
    "softmax's sum": one(lambda a, m: tl.exp(a.x - m)),
    "weighted": one(lambda a, m: tl.exp(a.x - m) * a.v, wide=True),
    "weighted on the left": one(lambda a, m: a.v * tl.exp(a.x - m), wide=True),
    "masked in the exponent": one(lambda a, m: tl.exp(_masked(a) - m) * a.v, of=_masked, wide=True),
    "masked outside": one(lambda a, m: tl.where(a.w > 0, tl.exp(a.x * 0.125 + a.w - m), 0), of=_masked),
    "masked outside, the peak of all": one(lambda a, m: tl.where(a.w > 0, tl.exp(a.x - m), 0)),
    "masked by the condition": one(lambda a, m: tl.exp(a.x - m), where=lambda a: a.j <= a.i * 3),
    "masked by a factor": one(lambda a, m: tl.exp(a.x - m) * tl.where(a.w > 0, 1.0, 0.0)),
    "scaled and biased": one(lambda a, m: tl.exp(a.x * 0.5 + a.w - m), of=lambda a: a.x * 0.5 + a.w),
    "in another order": one(lambda a, m: tl.exp(a.w + (a.x - m)), of=lambda a: a.x + a.w),
    "base 2": one(lambda a, m: tl.exp2(a.x - m)),
    "temperature": one(lambda a, m: tl.exp((a.x - m) / 4)),
    "squared": one(lambda a, m: tl.exp(2 * (a.x - m))),
    "negative": one(lambda a, m: -tl.exp(a.x - m)),
    "magnitude": one(lambda a, m: abs(tl.exp(a.x - m) * a.w)),
    "distributed": one(lambda a, m: tl.exp(a.x - m) * a.w + tl.exp(a.x - m) * a.w * a.w),
    "chosen": one(lambda a, m: tl.where(a.w > 0, tl.exp(a.x - m), tl.exp(a.x - m) * a.w)),
    "larger of two": one(lambda a, m: tl.maximum(tl.exp(a.x - m), tl.exp(a.x - m) * a.w)),
    "rounded to 16 bits": one(lambda a, m: tl.cast(tl.cast(tl.exp(a.x - m), tl.bfloat16), tl.float32)),
    "with a sigmoid": one(lambda a, m: tl.exp(a.x - m) * tl.sigmoid(a.w)),
    "soft minimum": one(lambda a, m: tl.exp(m - a.x), by="min"),
    "quantised product": one(lambda a, m: a.x / m * a.v, of=_absolute, wide=True),
    "scaled norm": one(lambda a, m: (a.x / m) * (a.x / m), of=_absolute),
    "scaled norm as a power": one(lambda a, m: (abs(a.x) / m) ** 2, of=_absolute),
    "damped": one(lambda a, m: a.x * tl.exp(-m), of=_absolute),
    "divided by one more": one(lambda a, m: a.x / (m + 1), of=_absolute),
    "divided by a clamped one": one(lambda a, m: a.x / tl.maximum(m, 1e-3), of=_absolute),
    "square roots": one(lambda a, m: tl.sqrt(abs(a.x) / (m + 1)), of=_absolute),
    "share of a sum": one(lambda a, m: tl.exp(a.w) * a.x / m, of=lambda a: tl.exp(a.w), by="sum"),
    "share of squares": one(lambda a, m: a.x * a.x / m, of=lambda a: a.x * a.x, by="sum"),
    "largest shifted": one(lambda a, m: a.x - m, "max"),
    "least shifted": one(lambda a, m: a.x - m, "min", by="min"),
    "largest scaled": one(lambda a, m: abs(a.x) / m, "max", of=_absolute),
    "largest logarithm": one(lambda a, m: tl.log(tl.exp(a.w) / (m + 1)), "max", of=_absolute),
    "largest, by a factor that becomes 0": one(lambda a, m: tl.exp(a.x - m), "max", of=lambda a: a.x * a.x, by="sum"),
    "two peaks": _two_peaks,
    "attention": _attention(False),
}

# Derived, and not lowered yet: the repair of one of several members, and of a product.
DERIVED: dict[str, Callable[[], Any]] = {
    "argmax": _argmax,
    "product": one(lambda a, m: tl.exp(a.w) * tl.exp(-m), "prod", of=_absolute),
}

# Each a family of the above with one edit, and how it is refused.
REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "attention, divided inside": ("not-proven", _attention(True)),
    "a factor that grows with the peak": ("not-proven", one(lambda a, m: tl.exp(a.x * 0.01 + m))),
    "a factor that grows with a sum": ("not-proven", one(lambda a, m: a.x * m, of=_absolute, by="sum")),
    "a summand": ("refuted", one(lambda a, m: tl.exp(a.x - m) + a.w)),
    "a cosine": ("refuted", one(lambda a, m: tl.cos(a.x - m))),
    "a hyperbolic tangent": ("refuted", one(lambda a, m: tl.tanh(a.x - m))),
    "a sigmoid": ("refuted", one(lambda a, m: tl.sigmoid(a.x - m))),
    "a logarithm": ("refuted", one(lambda a, m: tl.log(abs(a.x) + m), of=_absolute)),
    "an error function": ("refuted", one(lambda a, m: tl.erf(a.x - m))),
    "a variance": ("refuted", one(lambda a, m: (a.x - m) * (a.x - m))),
    "a mean square": ("refuted", one(lambda a, m: (a.x - m) ** 2, by="sum")),
    "a sum of shifted": ("refuted", one(lambda a, m: a.x - m)),
    "another exponent": ("refuted", one(lambda a, m: tl.exp(a.w - m))),
    "another weight only": ("refuted", one(lambda a, m: a.w * tl.exp(-m))),
    "half the peak": ("refused", one(lambda a, m: tl.exp(a.x - m) + tl.exp(a.x - m / 2))),
    "a product in the exponent": ("refuted", one(lambda a, m: tl.exp(a.x * m))),
    "a quotient in the exponent": ("refuted", one(lambda a, m: tl.exp(a.x / m), of=_absolute)),
    "a floor": ("refuted", one(lambda a, m: tl.floor(a.x * 4 / m), of=_absolute)),
    "a rounding": ("refuted", one(lambda a, m: tl.round(a.x * 4 / m), of=_absolute)),
    "a clamp": ("refuted", one(lambda a, m: tl.minimum(tl.exp(a.x - m), 0.5))),
    "a peak in the mask": ("refuted", one(lambda a, m: tl.where(a.x > m - 1, a.w, 0))),
    "unequal branches": ("refuted", one(lambda a, m: tl.where(a.w > 0, tl.exp(a.x - m), tl.exp(2 * (a.x - m))))),
    "a branch without a peak": ("refuted", one(lambda a, m: tl.where(a.w > 0, tl.exp(a.x - m), a.x))),
    "a divisor of any sign": ("not-proven", one(lambda a, m: a.x / m)),
    "a factor of any sign": ("refuted", one(lambda a, m: a.w * m)),
    "a share of a sum of any sign": ("refuted", one(lambda a, m: a.x / m, of=lambda a: a.w, by="sum")),
    "a share by another's squares": ("not-proven", one(lambda a, m: a.x / m, of=lambda a: a.w * a.w, by="sum")),
    "another's magnitude": ("not-proven", one(lambda a, m: a.w / m, of=_absolute)),
    "a root of a sum with a peak": ("refuted", one(lambda a, m: tl.sqrt(abs(a.x) + m), of=_absolute)),
    "a sum inside": ("refuted", one(lambda a, m: (a.x + m) * a.w)),
    "the largest of any sign": ("not-proven", one(lambda a, m: a.x / m, "max")),
    "the largest square": ("refuted", one(lambda a, m: (a.x - m) * (a.x - m), "max")),
    "the largest of others shifted": ("refuted", one(lambda a, m: a.w - m, "max")),
    "the least of the shifted by a maximum": ("not-proven", one(lambda a, m: a.x - m, "min")),
    "a logarithm of any sign": ("refused", one(lambda a, m: tl.log(a.w * m), "max", of=_absolute)),
    "a product that may be 0": ("not-proven", one(lambda a, m: abs(a.x) / m, "prod", of=_absolute)),
    "a product of exponentials": ("not-proven", one(lambda a, m: tl.exp(a.x - m), "prod")),
    "a tangent as a factor": ("not-proven", one(lambda a, m: a.x * tl.tanh(m), of=_absolute)),
    "an integer peak": ("refused", one(lambda a, m: tl.cast(m, tl.float32) * a.w, of=lambda a: tl.cast(a.x, tl.int32))),
    "a product's value": ("refused", one(lambda a, m: a.x * m, by="prod")),
}


DATA = ("plain", "wide", "masked", "special", "zeros")


def arrays(computation: Any, kind: str, seed: int = 0) -> dict[str, Any]:
    """Inputs by name. wide: values of scale 30. masked: -infinities, for whole rows and for the first or last chunks of others, too.
    special: infinities and NaN anywhere. zeros: many, as of the first chunks."""
    generator = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for t in computation.inputs:
        x = generator.standard_normal(t.shape).astype(np.float32)
        if kind == "wide":
            x *= 30
        rows = t.name in ("X", "W")
        if kind == "masked" and rows:
            x[generator.random(t.shape) < 0.3] = -np.inf
            x[0], x[1, :9], x[2, 8:], x[3, :-1] = -np.inf, -np.inf, -np.inf, -np.inf
        if kind == "special":
            at = generator.random(t.shape)
            x[at < 0.02], x[(at > 0.02) & (at < 0.04)], x[(at > 0.04) & (at < 0.06)] = np.inf, -np.inf, np.nan
        if kind == "zeros" and rows:
            x[generator.random(t.shape) < 0.5] = 0
            x[0], x[1, :9], x[2, 8:], x[3, :-1] = 0, 0, 0, 0
        found[t.name] = x
    return found


def shared(computation: Any) -> tuple[str, ...]:
    """The reductions that share the loop."""
    return tuple(d.tensors[0].name for d in computation.definitions if d.reduction is not None)


def schedule(computation: Any, piece: int = 4, rows: int = 4) -> Any:
    """One loop for all reductions."""
    return tl.schedule(computation).tile(i=rows).to(tl.block).split(j=piece, of=shared(computation))
