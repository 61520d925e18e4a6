"""Runs cases in this process and prints a line of JSON before and after each; `python -m benchmarks.foreign` reads them."""

import collections
import functools
import json
import random
import re
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import tilelang as tl
from benchmarks.foreign import data, naive, python
from benchmarks.foreign.draw import Drawer
from benchmarks.foreign.names import canonical
from benchmarks.foreign.plans import Planner
from benchmarks.foreign.program import program_text, schedule_text, walk
from benchmarks.foreign.shrink import shrunk
from benchmarks.foreign.steps import StepDrawer
from tilelang.testing.kernel_checks import against_steps

GPUS = (("cuda", "ampere"), ("cuda", "hopper"), ("hip", "cdna3"), ("opencl", "simulated"))
CONSTRUCTED = (("cpu", None), ("cpu", "zen5"), ("cpu", "avx2"), ("cuda", "ampere"), ("cuda", "hopper"), ("hip", "cdna3"))
POINTS = {"cpu": 6000, "simulated": 600, "constructed": 1500}


def target_of(choice: tuple[str, str | None]) -> Any:
    return tl.target(choice[0], profile=choice[1]) if choice[1] else tl.target(choice[0])


def compared(
    program: dict[str, Any], computation: Any, arrays: dict[str, Any], got: dict[str, Any] | None, simulated: bool = False
) -> list[str]:
    """What differs beyond the bound: the naive values from the reference, and the kernel's from both."""
    arrays = {t.name: arrays[t.name] for t in computation.inputs}
    one = program["outputs"][0]
    reference, bound = computation.evaluate(**arrays), computation.bound(**arrays)
    if not isinstance(reference, dict):
        reference, bound = {one: reference}, {one: bound}
    try:
        mine = {n: v[0] for n, v in naive.evaluate(program, arrays).items()} if got is None else {}
    except naive.Unclear:
        mine = {}
    found = []
    for name in program["outputs"]:
        limit = np.asarray(bound[name], np.float64)
        for word, other in (("naive", mine), ("kernel", got or {})):
            if name not in other:
                continue
            a, b = np.asarray(other[name]), np.asarray(reference[name])
            if simulated and b.dtype == bool:
                a = a.astype(bool)
            a = a.reshape(b.shape) if simulated and not b.shape else a
            if a.dtype != b.dtype or a.shape != b.shape:
                found.append(f"{word}: {name} is {a.dtype}{a.shape}, the reference {b.dtype}{b.shape}")
                continue
            same = a == b
            with np.errstate(all="ignore"):
                x, y = a.astype(np.float64), b.astype(np.float64)
                same |= (np.abs(x - y) <= limit * 1.001 + (1e-9 * np.abs(y) if word == "naive" else 0)) | (
                    np.isnan(x) & np.isnan(y)
                )
            same |= ~np.isfinite(limit)
            if not same.all():
                at = tuple(int(n[0]) for n in np.nonzero(~same))
                found.append(
                    f"{word}: {name}{list(at)} is {a[at]}, expected {b[at]} within {limit[at]}; {(~same).sum()} of {same.size}"
                )
    return found


def run(program: dict[str, Any], steps: list[Any] | None, target: Any, seed: int, simulate: bool) -> list[str]:
    """Compiles and runs; gives the faults. Refusals are raised."""
    text = program_text(program)
    if steps is None:
        computation = python.computation(program, random.Random(seed)) if seed % 2 else tl.parse(text, "drawn.tile").computation()
        kernel = tl.compile(computation, target)
    else:
        schedule = tl.parse(text + schedule_text(steps), "drawn.tile").schedule()
        computation = schedule.computation
        kernel = tl.compile(schedule, target)
    faults = []
    kinds = ("exact",) if simulate else ("exact", "random") if program["combiners"] else ("exact", "random", "special")
    for kind in kinds:
        arrays = data.arrays(program, seed, kind)
        given: dict[str, Any] = {t.name: arrays[t.name] for t in computation.inputs}
        if simulate:
            report = tl.simulate(kernel, **given)
            faults += [f"simulator: {f}" for f in report.findings[:1]]
            faults += [f"steps: {f}" for f in against_steps(kernel, given)]
            got = dict(report.outputs)
        else:
            r = random.Random(seed)
            result = kernel(**{name: data.laid_out(array, r) for name, array in given.items()})
            got = result._asdict() if hasattr(result, "_asdict") else {program["outputs"][0]: result}
        faults += [f"{kind}: {f}" for f in compared(program, computation, given, got, simulate)]
    return faults


def code_of(error: Exception) -> str:
    return str(getattr(error, "code", type(error).__name__))


def case(kind: str, seed: int) -> dict[str, Any]:
    """One program, and a schedule that was grown for it step by step."""
    r = random.Random(seed * 7919 + 1)
    program = Drawer(seed, POINTS[kind]).program()
    report: dict[str, Any] = {"seed": seed, "kind": kind, "faults": [], "verbs": {}, "program": program}
    try:
        computation = tl.parse(program_text(program), "drawn.tile").computation()
    except tl.TileLangError as error:
        return report | {"program_refused": code_of(error), "error": str(error)[:1500]}
    for values in ("exact", "random"):
        report["faults"] += [f"{values}: {f}" for f in compared(program, computation, data.arrays(program, seed, values), None)]
    choice = r.choice(CONSTRUCTED) if kind == "constructed" else ("cpu", None) if kind == "cpu" else r.choice(GPUS)
    report |= {"target": choice, "steps": None, "opened": False}
    if kind != "constructed":
        planner = Planner(StepDrawer(program, r, "roles" if choice[1] == "hopper" else ""), r, choice[1])
        report["steps"] = grown(program, planner, target_of(choice).profile, report)
        if r.random() < 0.2:
            report |= {"steps": planner.opened(report["steps"]), "opened": True}
    faults = faults_of(program, report["steps"], choice, seed, report["opened"], report)
    report["faulty"] = report.get("faulty") or (report["steps"] if faults else None)
    report["faults"] += faults
    if report["faults"]:
        report["text"] = program_text(program) + (schedule_text(report["steps"]) if report["steps"] is not None else "")
    report["verbs"] = counted(program, report["steps"] or [])
    if report.get("ran"):
        text = program_text(program) + (schedule_text(report["steps"]) if report["steps"] is not None else "")
        report["native_digests" if choice == ("cpu", None) else "digests"] = [canonical((choice[0], str(choice[1])), text)]
    return report


def grown(program: dict[str, Any], planner: Planner, profile: Any, report: dict[str, Any]) -> list[Any]:
    """Steps that were accepted one after the other: of a plan, then changes at random."""
    r, steps = planner.random, list[Any]()
    refused: dict[str, str] = {}
    codes: collections.Counter[str] = collections.Counter()
    plan = planner.steps() if r.random() < 0.7 else []
    more = r.choice((0, 3, 8)) if plan else r.choice((15, 30))
    report |= {"tried": len(plan) + more, "accepted": 0}
    for n in range(len(plan) + more):
        trial = [*steps, plan[n]] if n < len(plan) else planner.drawer.mutated(steps)
        try:
            tl.parse(program_text(program) + schedule_text(trial), "drawn.tile").schedule().check(profile)
            steps = trial
            report["accepted"] += 1
        except tl.TileLangError as error:
            codes[code_of(error)] += 1
            refused.setdefault(code_of(error), str(error)[:700])
        except Exception:
            report["faults"].append("check: " + traceback.format_exc()[-1500:] + schedule_text(trial))
            report["faulty"] = trial
    report |= {"refused": dict(codes), "examples": refused}
    return steps


def faults_of(
    program: dict[str, Any],
    steps: list[Any] | None,
    choice: tuple[str, str | None],
    seed: int,
    opened: bool,
    report: dict[str, Any] | None = None,
) -> list[str]:
    """What is wrong with a program under a schedule, None for a constructed one. report: gets whether it ran, or the refusal's code."""
    report = {} if report is None else report
    target = target_of(choice)
    try:
        if steps is not None and not opened:
            tl.parse(program_text(program) + schedule_text(steps), "drawn.tile").schedule().check(target.profile)
    except tl.TileLangError as error:
        report["not_run"] = code_of(error)
        return []
    except Exception:
        return ["check: " + traceback.format_exc()[-1500:]]
    try:
        found = run(program, steps, target, seed, simulate=choice != ("cpu", None))
        report["ran"] = True
        return found
    except tl.TileLangError as error:
        report["not_run"] = code_of(error)
        if steps is None:
            return ["constructed, refused: " + str(error)[:600]]
        return [] if opened or code_of(error) == "too-much-to-simulate" else ["refused after check: " + str(error)[:600]]
    except Exception:
        return ["run: " + traceback.format_exc()[-2000:]]


def sort_of(fault: str) -> str:
    """What two faults of one root have in common: the error and the function that raised it, or the words before numbers."""
    last = fault.split("schedule drawn_so")[0].strip().splitlines()
    functions = re.findall(r'File "([^"]+)", line \d+, in (\w+)', fault)
    if functions:
        return f"{functions[-1]} {last[-1].split(':')[0]}"
    return re.sub(r"[\d\[(].*", "", last[0].replace("exact: ", "").replace("random: ", "").replace("special: ", ""))


def shrink(kind: str, seed: int, seconds: float) -> str:
    """The smallest text found that has the first fault of a case, and the fault."""
    report = case(kind, seed)
    if not report["faults"]:
        return "no fault"
    sort = sort_of(report["faults"][0])
    choice, opened = report.get("target", ("cpu", None)), report.get("opened", False)

    def faults(program: dict[str, Any], steps: list[Any] | None) -> list[str]:
        try:
            computation = tl.parse(program_text(program), "drawn.tile").computation()
            found = [f for v in ("exact", "random") for f in compared(program, computation, data.arrays(program, seed, v), None)]
            return found + faults_of(program, steps, choice, seed, opened)
        except (tl.TileLangError, ValueError, KeyError, IndexError, TypeError, naive.Unclear):
            return []

    program, steps = shrunk(
        (report["program"], report.get("faulty")), lambda c: any(sort_of(f) == sort for f in faults(*c)), seconds
    )
    text = program_text(program) + (schedule_text(steps) if steps is not None else "")
    return f"{choice}\n{text}\n" + "\n".join(faults(program, steps))


def counted(program: dict[str, Any], steps: list[Any]) -> dict[str, int]:
    found: collections.Counter[str] = collections.Counter()
    for step in steps:
        words = (step if isinstance(step, str) else step[0]).split()
        found["verb " + words[0]] += 1
        found.update(f"{words[0]} {p} {words[words.index(p) + 1]}" for p in ("in", "->") if p in words)
        found.update(f"with {m}" for m in ("layout", "ahead", "pad", "unroll", "peel", "order", "stream", "behind") if m in words)
        found["in braces"] += not isinstance(step, str)
    found.update("type " + i["dtype"] for i in program["inputs"])
    for d in program["definitions"]:
        for e in d["values"]:
            for x in walk(e):
                if x[0] == "reduce":
                    found["reduce " + x[1].split("__")[0]] += 1
                elif x[0] == "read":
                    found["read " + ("of input" if x[1][0] in "ABTM" else "of definition")] += 1
                    found.update("index " + (i[1] if i[0] == "binary" else i[0]) for i in x[2])
                elif x[0] in ("pad", "where", "cast"):
                    found[x[0]] += 1
    return dict(found)


def main() -> None:
    if sys.argv[1] == "shrink":
        print(shrink(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
        return
    kind, profile, first, count, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    end, seed = time.monotonic() + seconds, first

    def beat() -> None:
        print(json.dumps({"begin": seed}), flush=True)

    run_case: Callable[[int], dict[str, Any]] = functools.partial(case, kind)
    finish: Callable[[dict[str, Any]], None] | None = None
    if kind == "steered":
        from benchmarks.foreign import steer

        made = steer.campaign(profile, beat, resumed="resumed" in sys.argv[6:])
        run_case, finish = made.case, made.finish
    last = False
    while not last:
        beat()
        began = time.monotonic()
        try:
            report = run_case(seed)
        except Exception:
            report = {"seed": seed, "kind": kind, "faults": ["case: " + traceback.format_exc()[-2000:]]}
        last = seed + 1 == first + count or time.monotonic() > end
        if last and finish is not None and not report.get("lost"):
            finish(report)
        report["took"] = round(time.monotonic() - began, 2)
        print(json.dumps(report, default=str), flush=True)
        if report.get("lost"):
            sys.exit(1)  # another process goes on
        seed += 1


if __name__ == "__main__":
    main()
