"""Limits that a pass shares with a driver, or with the generated default schedule."""

from tilelang.core.expr import Call, Cast, Expr

MOST_SCRATCH_BYTES = 64 << 20  # per block on a CPU: its shared memory, and what its threads keep across barriers
MOST_OPERATIONS = 1 << 17  # operations in the unrolled loops of a kernel; clang takes 20 s for 250,000
_FUNCTION, _CONVERSION = 24, 12  # operations in a function call, and in a conversion from or to a float of 8 or 16 bits


def operations(e: Expr, known: dict[Expr, int]) -> int:
    """The operations in the text of an expression, in which functions and conversions of small floats are inlined.

    known: the results of earlier calls, by expression.
    """
    found = known.get(e)
    if found is None:
        small = isinstance(e, Cast) and any(t.is_float and t.bits <= 16 for t in (e.dtype, e.operand.dtype))
        own = _FUNCTION if isinstance(e, Call) else _CONVERSION if small else 1
        found = known[e] = own + sum([operations(c, known) for c in e.children() if isinstance(c, Expr)])
    return found
