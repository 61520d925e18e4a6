"""Keywords of the text format, and quoting of names that collide with them."""

from __future__ import annotations

RESERVED = frozenset(
    """
    accumulate ahead all allow and any argmax argmin as at axis behind combiner compute computation do else for fuse identity in inf
    inline input launch layout load max min nan not on once only or order of output outputs pad peel prod reduce registers schedule
    split stream sum swizzle tile tilelang true false unfuse units unroll use vectorize via when
    """.split()
)


def spelled(name: str) -> str:
    """A name as written in the text format: in backquotes if it is a keyword.

    >>> print(spelled("m"), spelled("order"))
    m `order`
    """
    return f"`{name}`" if name in RESERVED else name
