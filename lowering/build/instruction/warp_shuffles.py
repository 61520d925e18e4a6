"""Finds the warp shuffle instructions of a device by their meaning, not by name."""

from __future__ import annotations

import functools

from tilelang.core.dtype import DType, int32
from tilelang.core.expr import Axis, Read
from tilelang.instructions.instruction import Instruction, known
from tilelang.instructions.semantics import MOVE, UPDATE
from tilelang.profiles.profile import Profile


def warp_lanes(profile: Profile) -> int:
    """The number of threads that can exchange registers; 0 if the device has no warps."""
    return next((f.threads or 0 for f in profile.levels if f.name == "warp"), 0)


def exchange(profile: Profile, distance: int, type: DType) -> Instruction | None:
    """An instruction that gives every lane the value of lane `lane ^ distance`; None if the device has none."""
    wanted = tuple(lane ^ distance for lane in range(warp_lanes(profile)))
    return next((i for i in known() if i.kind == MOVE and _offered(i, profile, type) and _sources(i) == wanted), None)


def reduction(profile: Profile, combiner: str, lanes: int, type: DType) -> Instruction | None:
    """An instruction that gives every lane the combination of all lanes' values; None if the device has none."""
    return next(
        (i for i in known() if i.kind == UPDATE and _offered(i, profile, type) and _combines_all(i, combiner, lanes)), None
    )


def gather(profile: Profile, type: DType) -> tuple[Instruction, str] | None:
    """An instruction that gives every lane the value of a lane that it names, and the operand that holds that lane's number."""
    lanes = warp_lanes(profile)
    for i in known():
        named = _naming(i) if i.kind == MOVE and i.lanes == lanes > 1 else None
        if named is not None and _offered(i, profile, type, named):
            return i, named
    return None


def _naming(found: Instruction) -> str | None:
    """The operand in which each lane gives the number of the lane to read from."""
    if len(found.operands) != 3 or len(found.reads) != 2 or not isinstance(found.means.value, Read):
        return None
    source = found.means.value.tensor.name
    (named,) = (name for name in found.reads if name != source)
    here = found.operand(named).dtype == int32 and all(_one_a_lane(found, o.name) for o in found.operands)
    return named if here and _takes_named(found, source, named) else None


@functools.lru_cache(maxsize=64)
def _takes_named(found: Instruction, source: str, named: str) -> bool:
    """Whether every lane gets the value of the lane that it names."""
    import numpy as np  # late: NumPy takes long to import

    numbers, lanes = np.arange(found.lanes), np.arange(found.lanes) * 5 % found.lanes
    got = found.simulate(
        {source: numbers[:, None].astype(found.operand(source).dtype.numpy), named: lanes[:, None].astype(np.int32)}
    )
    return bool((got[found.writes].ravel() == lanes).all())


def _offered(found: Instruction, profile: Profile, type: DType, named: str = "") -> bool:
    """Whether the device has an instruction in all its dialects, for one register of a type per lane. named: the operand with
    lane numbers."""
    if len(found.operands) != (3 if named else 2):
        return False
    here = found.unavailable(profile) is None and all(d in found.dialects for d in profile.dialects)
    carried = [o for o in found.operands if o.name != named]
    registers = all(o.memory == "register" and type in o.dtypes and len(o.dims) == 1 for o in carried)
    return here and registers and found.lanes > 1 and all(_one_a_lane(found, o.name) for o in found.operands)


def _one_a_lane(found: Instruction, name: str) -> bool:
    held = found.fragment(name)
    return held is not None and held.slots == 1 and held.table[:, 0, 0].tolist() == list(range(found.lanes))


@functools.lru_cache(maxsize=256)
def _sources(found: Instruction) -> tuple[int, ...]:
    """For each lane, the lane whose value it gets."""
    import numpy as np  # late: NumPy takes long to import

    (source,) = found.reads
    numbers = np.arange(found.lanes).reshape(found.lanes, 1)
    return tuple(int(n) for n in found.simulate({source: numbers})[found.writes].ravel())


def _combines_all(found: Instruction, combiner: str, lanes: int) -> bool:
    value, target = found.means.value, found.means.target
    alone = isinstance(value, Read) and all(isinstance(i, Axis) and i not in target.indices for i in value.indices)
    return found.means.combiner == combiner and alone and found.lanes == lanes
