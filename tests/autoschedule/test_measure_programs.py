"""What a compiler reports of candidates drops some of them: before they are timed, and where none is timed."""

import dataclasses
from collections.abc import Iterator

import pytest

import tilelang as tl
from tilelang.autoschedule.tune import programs as module
from tilelang.autoschedule.tune.measure import measure
from tilelang.autoschedule.tune.programs import chosen, program_of
from tilelang.autoschedule.tune.worker import Program
from tilelang.errors import DeviceError
from tilelang.lowering.compilers import nvrtc
from tilelang.lowering.compilers.compiled import CompiledKernel
from tilelang.runtime import schedule_selection

i, j = tl.axes(i=1024, j=24)
PLAIN = tl.schedule(tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j] * 2.0, over=j), i))
CANDIDATES = [PLAIN.tile(i=n).to(tl.block) for n in (4, 8, 16)]
SPILLING, FITTING = (PLAIN.tile(i=n).to(tl.thread).split(j=1).accumulate(tl.register) for n in (300, 1))
needs_nvrtc = pytest.mark.skipif(not nvrtc.libraries(), reason="NVRTC is not installed")


def target_with(**rates: float) -> tl.Target:
    here = tl.target("cpu")
    return dataclasses.replace(here, profile=dataclasses.replace(here.profile, rates=tuple(rates.items())))


def report(monkeypatch: pytest.MonkeyPatch, registers: tuple[int, ...], spilled: tuple[int, ...]) -> list[list[CompiledKernel]]:
    """Reports that are given one after another, and taken from the list that is returned."""
    reports = [[CompiledKernel("k", r, 0, 0, s, 0)] for r, s in zip(registers, spilled, strict=True)]
    monkeypatch.setattr(module, "reported", lambda *given: reports.pop(0))
    return reports


@pytest.mark.parametrize(
    ("registers", "spilled", "without", "codes"),
    [
        ((40, 40, 40), (0, 96, 0), "", ["", "reported-spills", ""]),
        ((40, 40, 40), (0, 96, 0), "reported-spills", ["", "", ""]),
        ((40, 40, 40), (80, 96, 40), "", ["", "", ""]),
        ((40, 40, 40), (8, 96, 40), "", ["", "reported-spills", "reported-spills"]),
        ((40, 40, 101), (80, 96, 0), "", ["", "", "reported-registers"]),
        ((40, 40, 101), (80, 96, 0), "reported-registers", ["reported-spills", "reported-spills", ""]),
    ],
)
def test_what_the_compiler_reports_drops_candidates(
    monkeypatch: pytest.MonkeyPatch, registers: tuple[int, ...], spilled: tuple[int, ...], without: str, codes: list[str]
) -> None:
    report(monkeypatch, registers, spilled)
    options = tl.Options(without_rules=without or None)
    found = measure(PLAIN.computation, CANDIDATES, target_with(core_registers=100.0), samples=4, options=options)
    assert [t.code for t in found.trials] == codes and found.given_up == {c: codes.count(c) for c in codes if c}
    assert found.pruning.dropped == found.given_up and found.pruning.generated == len(codes)


@pytest.mark.parametrize(
    ("registers", "spilled", "without", "number", "asked"),
    [
        ((40, 40), (0, 0), "", 0, 1),
        ((40, 40), (20, 0), "", 0, 1),
        ((40, 40), (96, 0), "", 1, 2),
        ((40, 40), (96, 0), "reported-spills", 0, 1),
        ((101, 40), (0, 96), "reported-spills", 1, 2),
        ((101, 40), (0, 0), "reported-registers", 0, 1),
        ((40, 40, 40, 40, 40), (96, 80, 88, 90, 0), "", 1, 4),
        ((101, 40, 101, 40, 40), (0, 80, 0, 72, 0), "", 3, 4),
    ],
)
def test_where_nothing_is_timed_a_few_are_compiled_until_one_fits(
    monkeypatch: pytest.MonkeyPatch, registers: tuple[int, ...], spilled: tuple[int, ...], without: str, number: int, asked: int
) -> None:
    left = report(monkeypatch, registers, spilled)
    programs = (program_of(s, tl.target("cpu"), tl.Options()) for s in (PLAIN,) * len(registers))
    options = tl.Options(without_rules=without or None)
    assert chosen(programs, target_with(core_registers=100.0), options) == number
    assert len(registers) - len(left) == asked


def test_what_has_no_text_is_passed_over() -> None:
    program = program_of(FITTING, tl.target("cpu"), tl.Options())
    none = DeviceError("no-instruction", "the dialect has no text for it")
    assert chosen(iter((none, program)), tl.target("cpu"), tl.Options(without_rules="reported-spills")) == 1
    assert chosen(iter((none,)), tl.target("cpu"), tl.Options()) == 0


@needs_nvrtc
@pytest.mark.parametrize(("plan", "spills"), [(FITTING, False), (SPILLING, True)])
def test_the_compiler_tells_what_is_spilled(plan: tl.Schedule, spills: bool) -> None:
    target = tl.target("cuda", profile="hopper")
    program = program_of(plan, target, tl.Options())
    assert isinstance(program, Program)
    (found,) = module.reported(program, target, tl.Options(cache_dir=""))
    assert (module.in_memory_bytes(found) > 0) == spills
    assert module.reported(program, tl.target("opencl", profile="simulated"), tl.Options()) == []


@needs_nvrtc
@pytest.mark.parametrize(("here", "without", "taken"), [(True, "", 1), (True, "reported-spills", 0), (False, "", 0)])
def test_the_likeliest_gives_way_where_its_kernel_spills(
    monkeypatch: pytest.MonkeyPatch, here: bool, without: str, taken: int
) -> None:
    """Nothing is compiled for a device that is not here."""
    device = dataclasses.replace(tl.devices()[0], driver="cuda", architecture="sm_90a") if here else None
    target = tl.Target("cuda", tl.load_profile("hopper"), device)
    compiled = list[str]()

    def compile_source(source: str, *rest: object) -> object:
        compiled.append(source)
        return real(source, *rest)  # type: ignore[arg-type]

    def constructed(*given: object, **_: object) -> Iterator[tl.Schedule]:
        return iter((SPILLING, FITTING))

    real = nvrtc.compile_source
    monkeypatch.setattr(nvrtc, "compile_source", compile_source)
    monkeypatch.setattr(schedule_selection, "constructed", constructed)
    found = tl.compile(PLAIN.computation, target, options=tl.Options(database="", cache_dir="", without_rules=without or None))
    assert found.schedule is (SPILLING, FITTING)[taken] and len(compiled) == (0 if not here else taken + 1)
