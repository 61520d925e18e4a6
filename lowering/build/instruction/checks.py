"""Refuses steps that the language accepts but no target lowers yet, and instructions that this device does not have."""

from __future__ import annotations

from tilelang.errors import Refusal
from tilelang.instructions.instruction import Instruction, known
from tilelang.instructions.semantics import UPDATE
from tilelang.lowering.build.clusters import no_clusters
from tilelang.lowering.build.instruction.match import record_of
from tilelang.lowering.build.refusals import refuse
from tilelang.profiles.profile import Profile
from tilelang.profiles.toml_schema import near
from tilelang.schedules.steps import Do, Hole, Open, Place, Split, Step, Tile, Units, Vectorize, every_step


def check_lowered(steps: tuple[Step, ...], profile: Profile) -> None:
    """Refuses, in the order of the steps, what no target lowers yet, and instructions that this device does not have."""
    roles = any(team.role for s in steps if isinstance(s, Units) for team in s.teams)
    for step in every_step(steps):
        match step:
            case Units():
                _check_units(step, profile)
            case Place(open=True):
                raise _hole(step, "write the steps out, or remove the braces to use the default steps")
            case Place(on=str()) if not roles:
                raise refuse(step, "unknown-role", f"`{step}`: `units` has no role {step.on}",
                             f"write `units block = 1 warp as {step.on} + 4 warp as consumer`, or remove `on`")  # fmt: skip
            case Place(memory=memory) if not profile.has_memory(memory):
                raise refuse(step, "unknown-memory", f"`{step}`: the profile `{profile.name}` has no memory `{memory}`",
                             near(str(memory), profile.memory_names))  # fmt: skip
            case Place():
                for flag, what in (
                    (step.behind > 1, "`behind` by more than one iteration"),
                    (step.once, "`once`"),
                ):
                    if flag:
                        raise refuse(step, "not-lowered-yet", f"`{step}`: {what} is valid, but not supported yet for this"
                                     " target", "remove it from the schedule for now")  # fmt: skip
            case Tile(sizes=sizes) | Split(sizes=sizes) if any(isinstance(n, Hole) for _, n in sizes):
                raise _hole(step, "write a number for `?`")
            case Tile(count=Hole()) | Vectorize(lanes=Hole()):
                raise _hole(step, "write a number for `?`")
            case Open():
                raise _hole(step, "write the steps out")
            case Do():
                missing = record_of(step).unavailable(profile)
                if missing is not None:
                    raise refuse(step, "instruction-not-here", f"`{step}`: {missing}", _instead(step, profile))
                _check_fragments(step, record_of(step))
            case _:
                pass


def _check_units(step: Units, profile: Profile) -> None:
    """Refuses the composition of a block if this device, or every target, lacks the roles or register budgets for it."""
    if step.level == "cluster":
        _check_cluster(step, profile)
        return
    named = any(team.role for team in step.teams)
    plain = len(step.teams) == 1 and step.teams[0].role is None and step.teams[0].registers is None
    if step.level != "block" or not plain and not (named and profile.can("phased_barriers")):
        what = "roles and register budgets" if step.level == "block" else f"`units` for a {step.level}"
        verb = "are" if step.level == "block" else "is"
        raise refuse(step, "not-lowered-yet", f"`{step}`: {what} {verb} valid, but not supported yet for this target",
                     "units block = N warp")  # fmt: skip


def _check_cluster(step: Units, profile: Profile) -> None:
    if not profile.has_level("cluster"):
        raise no_clusters(step, profile)
    if [(team.level, team.role, team.registers) for team in step.teams] != [("block", None, None)]:
        raise refuse(step, "not-lowered-yet", f"`{step}`: a cluster of roles, or of other units than blocks, is valid, but not"
                     " supported yet for this target", "units cluster = N block")  # fmt: skip


def _hole(step: Step, help: str) -> Refusal:
    return refuse(step, "hole", f"`{step}` has a hole that is not filled", f"compile the schedule, which fills it; or {help}")


def _check_fragments(step: Do, semantics: Instruction) -> None:
    """Refuses an operand in memory if neither a fragment nor a descriptor says where its elements are."""
    for operand in semantics.operands:
        name, memory = operand.name, operand.memory
        region = semantics.kind == UPDATE and memory == "shared"
        if semantics.fragment(name) is None and semantics.host is None and not region:
            raise refuse(step, "instruction-definition", f"`{step}`: operand {name} has several elements in {memory}, but no fragment"
                         " says where they are", f"add fragment= to tl.operand({name!r}, ...)")  # fmt: skip


def _instead(step: Do, profile: Profile) -> str:
    kind = record_of(step).kind
    offered = [i for i in known() if i.kind == kind and i.unavailable(profile) is None]
    here = [i.name for i in offered if i.needs or set(i.dialects) & set(profile.dialects)]
    what = {"move": "moves", "update": "reductions"}.get(kind, "values")
    choice = f"for {what} use one of {', '.join(here)}; or " if here else ""
    return f"{choice}remove the `do` to use plain loops"
