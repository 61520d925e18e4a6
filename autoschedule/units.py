"""The instructions with which a device multiplies and adds, by what its profile lists, and the rates that a profile has for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tilelang.dtype import DType
from tilelang.instruction import Instruction, known
from tilelang.machine import Profile


def usable(profile: Profile, licences: Collection[str]) -> Iterator[Instruction]:
    """The instructions that add to results, of what a profile lists, in one of its dialects, with these licences."""
    for made in known():
        listed = made.needs and all(profile.can(need) for need in made.needs)
        if listed and made.kind == "update" and set(made.licences) <= set(licences):
            if not made.template or not set(made.dialects).isdisjoint(profile.dialects):
                yield made


def multiplies(made: Instruction, type: DType) -> bool:
    """Whether an instruction adds up products of elements of a type."""
    factors = [o for o in made.operands if o.name != made.writes]
    return len(factors) == 2 and all(type in o.dtypes for o in factors)


def rates_of(multiplied: DType, licences: Collection[str]) -> list[str]:
    """The names of the rates that products of a type may have, by instructions that need no licence and by such as need one.

    >>> from tilelang import float32
    >>> rates_of(float32, ("tf32",))
    ['matrix_float32_gflops', 'matrix_tf32_gflops']
    """
    return [f"matrix_{name}_gflops" for name in (multiplied.name, *licences)]


def needed_rates(profile: Profile, multiplied: DType, licences: Collection[str]) -> set[str]:
    """The names of the rates of those instructions that multiply elements of a type, on a device whose schedules have such."""
    if not profile.lockstep:
        return set()
    made = [i for i in usable(profile, licences) if multiplies(i, multiplied)]
    return {rate for i in made for rate in rates_of(multiplied, i.licences)[1 if i.licences else 0 :]}
