"""Combiners: the shipped ones by name, their accumulator types, and the tests of user-defined ones.

Every parallel reduction relies on a combiner being associative and commutative with an identity. The shipped ones are so by
construction. A user's is tested in float64 on finite accumulators of 1 to 32 of its own values (a Welford accumulator with a negative
count would prove nothing) and refused if a test fails; passing is evidence, not proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import Axis, Binary, Call, Combiner, Expr, Pad, Read, Reduce, Select, Var, cast, const, rewrite
from tilelang.errors import ComputationError

SHIPPED = ("sum", "prod", "max", "min", "argmax", "argmin")


def state_type(t: DType) -> DType:
    """The accumulator type of a reduction over values of nominal type t."""
    return dt.accumulator(t)


def shipped(name: str, of: DType) -> Combiner:
    """The combiner `sum`, `prod`, `max` or `min` for values of type `of`. The identity of the last two is the extreme of that type, or
    of the accumulator's type if the values are conditions."""
    t = state_type(of)
    left, right = Var("left", t), Var("right", t)
    operator = {"sum": "+", "prod": "*", "max": "max", "min": "min"}[name]
    ends = of if of.is_integer else t
    neutral = {"sum": 0, "prod": 1, "max": ends.lowest, "min": ends.highest}[name]
    return Combiner(name, (left,), (right,), (Binary(operator, left, right),), (const(neutral, t),))


def argument(name: str, t: DType, index_type: DType) -> Combiner:
    """`argmax` or `argmin` on (value, index): the first NaN wins, else the better value, else the smaller index."""
    left, right = (Var("left0", t), Var("left1", index_type)), (Var("right0", t), Var("right1", index_type))
    (a, i), (b, j) = left, right
    better = a < b if name == "argmax" else b < a
    tie: Expr = Binary("==", a, b)
    if t.is_float:
        a_nan, b_nan = Call("isnan", (a,)), Call("isnan", (b,))
        better = better | (b_nan & ~a_nan)
        tie = tie | (a_nan & b_nan)
    take = better | (tie & (j < i))
    worst = t.lowest if name == "argmax" else t.highest
    result = (Select(take, b, a), Select(take, j, i))
    return Combiner(name, left, right, result, (const(worst, t), const(index_type.highest, index_type)))


def restrict(values: tuple[Expr, ...], condition: Expr | None, combiner: Combiner) -> tuple[tuple[Expr, ...], Expr | None]:
    """Values and condition of a reduction over the points where `condition` holds.

    A condition on axes stays a condition, which the lowering turns into loop bounds. A condition on data becomes a selection between
    the value and the identity.
    """
    if condition is None or not any(isinstance(e, (Read, Reduce, Var)) for e in condition.walk()):
        return values, condition
    chosen = []
    for value, neutral in zip(values, combiner.identity, strict=True):
        kept = value.dtype.is_float and value.dtype.holds(neutral.value)  # float8_e4m3 has no infinities
        common = value.dtype if kept else dt.promote(value.dtype, neutral.type)
        chosen.append(Select(condition, cast(value, common), const(neutral.value, common)))
    return tuple(chosen), None


_TRIALS = 64
_DOUBLINGS = 5  # of the accumulated elements: a law may fail only from some count on


def check_combiner(combiner: Combiner, values: tuple[Expr, ...]) -> None:
    """Tests associativity, commutativity and the identity on accumulators that `values` can produce.

    Raises ComputationError with the smallest counterexample, and for a result that does not depend on the accumulators alone.
    """
    import numpy as np  # late: NumPy takes long to import

    from tilelang.core.numeric import evaluate  # late: imports NumPy

    members = {*combiner.left, *combiner.right}
    foreign = [e for r in combiner.result for e in r.walk() if isinstance(e, Read | Axis | Var) and e not in members]
    if foreign:
        message = f"the combiner `{combiner.name}` uses `{foreign[0]}`, but its result may only depend on its two arguments"
        raise ComputationError(
            "combiner-reads",
            message,
            help="move everything that depends on an axis or on a tensor into the values that are reduced",
        )

    generator = np.random.default_rng(0)

    def combine(left: Any, right: Any) -> tuple[Any, ...]:
        state: dict[Expr, Any] = dict(zip((*combiner.left, *combiner.right), (*left, *right), strict=True))
        return tuple(evaluate(r, state) for r in combiner.result)

    neutral = tuple(evaluate(c, {}) for c in combiner.identity)
    states = [_random_elements(values, generator) for _ in range(3)]
    for grown in range(_DOUBLINGS + 1):  # accumulators of equal numbers of elements, then of more and of different numbers
        _check_laws(combiner, combine, neutral, states, overflows=grown > 0)
        for n in range(3):
            if grown % (n + 1) == 0:
                others = tuple(np.roll(np.broadcast_to(x, (_TRIALS,)), 1 << grown // (n + 1)) for x in states[n])
                states[n] = combine(states[n], others)


def _check_laws(
    combiner: Combiner, combine: Callable[[Any, Any], tuple[Any, ...]], neutral: Any, three: Sequence[Any], overflows: bool
) -> None:
    """Tests the laws on three accumulators. overflows: results that are not finite refute nothing."""
    import numpy as np  # late: NumPy takes long to import

    a, b, c = three
    ab, bc = combine(a, b), combine(b, c)
    laws = [
        ("combining a value with the identity changes it", "combine(identity, a)", combine(neutral, a), "a", a, (a,)),
        ("combining a value with the identity changes it", "combine(a, identity)", combine(a, neutral), "a", a, (a,)),
        ("the combiner is not commutative", "combine(a, b)", ab, "combine(b, a)", combine(b, a), (a, b)),
        (
            "the combiner is not associative",
            "combine(combine(a, b), c)", combine(ab, c), "combine(a, combine(b, c))", combine(a, bc), (a, b, c),
        ),
        ("combining the identity with itself changes it", "combine(identity, identity)", combine(neutral, neutral), "identity",
         neutral, ()),
    ]  # fmt: skip
    for fault, left_text, left, right_text, right, states in laws:
        finite = np.logical_and.reduce(
            [np.ones(_TRIALS, bool), *(np.isfinite(np.asarray(x, np.float64)) for s in states for x in s)]
        )
        scale = np.maximum.reduce([np.ones(_TRIALS), *(_magnitude(x) for s in states for x in s)])
        for p, q in zip(left, right, strict=True):
            wrong = finite & ~_close(p, q, scale)
            if overflows:
                wrong &= np.isfinite(np.asarray(p, np.float64)) & np.isfinite(np.asarray(q, np.float64))
            if wrong.any():
                at = int(np.argmax(wrong))
                given = "; ".join(f"{n} = {_show(s, at)}" for n, s in zip("abc", states, strict=False))
                raise ComputationError(
                    "combiner-refuted",
                    f"{fault} in `{combiner.name}`",
                    counterexample=f"{given}{': ' if given else ''}{left_text} = {_show(left, at)}, {right_text} = {_show(right, at)}",
                    help="use an associative, commutative combiner and its identity: parallel reductions combine partial states in any"
                    " order",
                )


def _random_elements(values: tuple[Expr, ...], generator: Any) -> tuple[Any, ...]:
    """The values of a reduction with every read, axis and inner reduction replaced by random numbers, small whole ones first."""
    import numpy as np  # late: NumPy takes long to import

    from tilelang.core.numeric import evaluate  # late: imports NumPy

    stand_ins: dict[Expr, Any] = {}

    def stand_in(e: Expr) -> Expr:
        if isinstance(e, (Read, Pad, Reduce)):
            whole = generator.integers(-3, 4, _TRIALS).astype(e.dtype.numpy if not e.dtype.is_float else np.float64)
            whole[0] = 1
            if e.dtype.is_float:
                whole[_TRIALS // 2 :] = generator.standard_normal(_TRIALS - _TRIALS // 2)
            var = Var(f"value{len(stand_ins)}", e.dtype)
            stand_ins[var] = whole
            return var
        if isinstance(e, Axis) and e not in stand_ins:
            stand_ins[e] = generator.integers(0, max(1, e.extent), _TRIALS)
        return e

    renamed = [cast(rewrite(v, stand_in), state_type(v.dtype)) for v in values]
    return tuple(np.broadcast_to(evaluate(v, stand_ins), (_TRIALS,)) for v in renamed)


def _magnitude(x: Any) -> Any:
    import numpy as np  # late: NumPy takes long to import

    return np.nan_to_num(np.abs(np.asarray(x, np.float64)), posinf=1.0, neginf=1.0)


def _close(p: Any, q: Any, scale: Any) -> Any:
    import numpy as np  # late: NumPy takes long to import

    p, q = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(q, np.float64))
    p, q = np.broadcast_to(p, (_TRIALS,)), np.broadcast_to(q, (_TRIALS,))
    with np.errstate(all="ignore"):
        near = np.isfinite(p) & np.isfinite(q) & (np.abs(p - q) <= 1e-6 * np.maximum(scale, np.abs(p)) ** 2)
    return near | (p == q) | (np.isnan(p) & np.isnan(q))


def _show(state: Any, at: int) -> str:
    import numpy as np  # late: NumPy takes long to import

    items = [np.broadcast_to(np.asarray(x), (_TRIALS,))[at] for x in state]
    texts = [f"{float(x):.6g}" if x.dtype.kind == "f" else str(x) for x in items]
    return f"({', '.join(texts)})" if len(texts) > 1 else texts[0]
