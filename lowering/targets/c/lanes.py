"""Single lanes of vector values as scalar expressions: the emitter's fallback where C has no vector form."""

from __future__ import annotations

from typing import Any

from tilelang.core.expr import Binary, Const, Expr, Select, index
from tilelang.core.simplify import interval
from tilelang.lowering.ir import Load, Pack, Ramp, Shuffle


def readable(e: Expr) -> bool:
    """Whether all lanes of a value can be evaluated without an out-of-bounds access."""
    for part in e.walk():
        if isinstance(part, Load) and part.count is None and not part.buffer.vector:
            for position, (i, extent) in enumerate(zip(part.indices, part.buffer.shape, strict=True)):
                low, high = interval(i)
                last = extent - (part.lanes if position == len(part.indices) - 1 else 1)
                if low is None or high is None or low < 0 or high > last:
                    return False
    return True


def lane(e: Any, number: int) -> Any:
    """One lane of a value, as a scalar expression."""
    match e:
        case Load(buffer, indices, n, count, fill):
            inner = tuple(lane(i, number) for i in indices)
            if n == 1:
                return Load(buffer, inner, 1, count, fill)
            element = Load(buffer, (*inner[:-1], Binary("+", inner[-1], index(number))))
            if count is None:
                return element
            assert fill is not None, "a partial load needs a fill"
            return Select(Binary("<", index(number), count), element, fill)
        case Ramp(base, _):
            return Binary("+", base, Const(number, base.dtype))
        case Pack(items):
            return items[number]
        case Shuffle(first, second, numbers):
            n = len(numbers)
            return lane(first if numbers[number] < n else second, numbers[number] % n)
        case Expr():
            return e.map_children(lambda child: lane(child, number) if isinstance(child, Expr) else child)
    return e
