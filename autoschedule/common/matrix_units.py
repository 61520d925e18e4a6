"""The multiply-add instructions of a device, from the list in its profile, and their rates.

A profile may have a rate for which no instruction is defined. Schedules then do not use it, and `missing` reports it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tilelang.autoschedule.common.operations import multiplied_type
from tilelang.computations.computation import Computation
from tilelang.core.dtype import DType
from tilelang.instructions.instruction import Instruction, known
from tilelang.profiles.profile import Profile


def usable(profile: Profile, licences: Collection[str]) -> Iterator[Instruction]:
    """The instructions in a profile's list that update an accumulator, have one of its dialects, and need no other licences than
    these."""
    for made in known():
        listed = made.needs and all(profile.can(need) for need in made.needs)
        if listed and made.kind == "update" and set(made.licences) <= set(licences):
            if not made.template or not set(made.dialects).isdisjoint(profile.dialects):
                yield made


def multiplies(made: Instruction, type: DType) -> bool:
    """Whether an instruction accumulates products of elements of this type."""
    factors = [o for o in made.operands if o.name != made.writes]
    return len(factors) == 2 and all(type in o.dtypes for o in factors)


def rates_of(multiplied: DType, licences: Collection[str]) -> list[str]:
    """The names of the rates that products of a type may have: of instructions that need no licence, then of those that need one.

    >>> from tilelang import float32
    >>> rates_of(float32, ("tf32",))
    ['matrix_float32_gflops', 'matrix_tf32_gflops']
    """
    return [f"matrix_{name}_gflops" for name in (multiplied.name, *licences)]


def needed_rates(profile: Profile, multiplied: DType, licences: Collection[str]) -> set[str]:
    """The names of the rates of the instructions that multiply elements of a type, on devices whose generated schedules use them."""
    if not profile.lockstep:
        return set()
    made = [i for i in usable(profile, licences) if multiplies(i, multiplied)]
    return {rate for i in made for rate in rates_of(multiplied, i.licences)[1 if i.licences else 0 :]}


def missing(computation: Computation, profile: Profile) -> list[str]:
    """A note for each kind of product that has a rate for matrix instructions in the profile, but no such instruction.

    >>> import tilelang as tl
    >>> m, n, k = tl.axes(m=64, n=64, k=64)
    >>> A, B = tl.input("A", tl.float16, m, k), tl.input("B", tl.float16, k, n)
    >>> product = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)).computation
    >>> missing(product, tl.load_profile("ampere")), len(missing(product, tl.load_profile("volta")))
    ([], 1)
    """
    found: dict[str, None] = {}
    for d in computation.definitions:
        multiplied = multiplied_type(d.reduction) if d.reduction is not None else None
        if multiplied is None or dict(profile.rates).keys().isdisjoint(rates_of(multiplied, d.allow)):
            continue
        if not any(i.level != "thread" and multiplies(i, multiplied) for i in usable(profile, d.allow)):
            licence = f" with the licences {', '.join(d.allow)}" if d.allow else ""
            found[f"the profile `{profile.name}` has a rate for matrix products of {multiplied}{licence}, but no such instruction is"
                  f" defined for {' or '.join(profile.dialects)}: schedules do not use any"] = None  # fmt: skip
    return list(found)
