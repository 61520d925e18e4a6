"""The least and greatest values of integer operators, from those of their operands. None: no bound is known."""

from __future__ import annotations

Interval = tuple[int | None, int | None]
UNKNOWN: Interval = (None, None)

OPERATORS = ("+", "-", "*", "//", "%", "min", "max", "&", "^", "|", "<<", ">>")


def interval_of_operator(op: str, left: Interval, right: Interval) -> Interval:
    """The interval of the exact value of an operator in OPERATORS, before it wraps.

    >>> interval_of_operator("-", (0, 9), (2, 3)), interval_of_operator("<<", (-1, 5), (0, 16))
    ((-3, 7), (-65536, 327680))
    >>> interval_of_operator("//", (0, None), (4, 4)), interval_of_operator("%", (-9, 9), (-5, 3))
    ((0, None), (-4, 2))
    """
    (a, b), (c, d) = left, right
    if op == "min":
        highs = [h for h in (b, d) if h is not None]
        return None if a is None or c is None else min(a, c), min(highs) if highs else None
    if op == "max":
        lows = [x for x in (a, c) if x is not None]
        return max(lows) if lows else None, None if b is None or d is None else max(b, d)
    if op == "//" and c is not None and c == d and c > 0:
        return None if a is None else a // c, None if b is None else b // c
    if op == "%" and c is not None and d is not None:  # a remainder has the divisor's sign; division by zero gives 0
        inside = a is not None and b is not None and 0 <= a and b < c
        return left if inside else (min(c + 1, 0), max(d - 1, 0))
    if op == "&" and any(x is not None and x >= 0 for x in (a, c)):
        highs = [h for x, h in (left, right) if x is not None and x >= 0 and h is not None]
        return (0, min(highs)) if highs else UNKNOWN
    if a is None or b is None:
        return UNKNOWN
    if op == ">>":  # by a negative number or by all bits, it gives 0 or -1
        known = c is not None and d is not None and 0 <= c and d < 32
        return (min(a >> c, a >> d), max(b >> c, b >> d)) if known else (min(a, 0), max(b, 0))  # type: ignore[operator]
    if op == "//":
        most = max(abs(a), abs(b))
        return (0 if a >= 0 and c is not None and c >= 0 else -most), most
    return UNKNOWN if c is None or d is None else _of_known(op, a, b, c, d)


def _of_known(op: str, a: int, b: int, c: int, d: int) -> Interval:
    """The interval of the other operators on a .. b and c .. d."""
    match op:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            products = [x * y for x in (a, b) for y in (c, d)]
            return min(products), max(products)
        case "<<":  # by a negative number or by all bits, it gives 0
            ends = [0, *(x << max(y, 0) for x in (a, b) for y in (c, d))] if d <= 64 else []
            return (min(ends), max(ends)) if ends else UNKNOWN
        case "&" | "^" | "|":
            bits = max((n if n >= 0 else ~n).bit_length() for n in (a, b, c, d))
            return (0 if a >= 0 and c >= 0 else -(1 << bits)), (1 << bits) - 1
        case _:
            return UNKNOWN
