"""The benchmark of the 119 operators without its times: their sizes, computations, peers and what is called right."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import importlib.util
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from benchmarks import operators, operators_cases, operators_ours, operators_peers, operators_table, operators_targets
from benchmarks.operators_cases import Operator
from benchmarks.operators_hand import by_hand
from benchmarks.operators_peers import by_numpy, expected_and_bound, random_arrays, wrong
from tilelang.computations.computation import as_computation
from tilelang.semantics.reference import compare

OPERATORS = operators_cases.read()


def test_the_table_is_what_the_rule_makes() -> None:
    assert operators_cases.TABLE.read_text(encoding="utf-8") == operators_cases.text(operators_cases.from_roller())


def test_no_operator_is_left_out_and_each_ends_in_a_second() -> None:
    assert len(OPERATORS) == 119 and len([o for o in OPERATORS if not o.duplicate_of]) == 108
    assert all(operators_cases.seconds(o) < 1 and o.why for o in OPERATORS)
    by_id = {o.id: o for o in OPERATORS}
    assert all(by_id[o.duplicate_of].extents == o.extents for o in OPERATORS if o.duplicate_of)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: o.id)
def test_computation_and_numpy_agree(operator: Operator) -> None:
    """At a few rows, channels and pixels; the computation's own bound decides."""
    small = operators_cases.tiny(operator)
    computation, arrays = as_computation(small.computation()), random_arrays(small)
    name = computation.outputs[0].name
    assert {t.name: t.shape for t in (*computation.inputs, *computation.outputs)} == small.shapes
    result = by_numpy(small, arrays, np.empty(small.shapes[name], np.float32))
    given = {n: a for n, a in arrays.items() if n != name}
    assert (report := compare(computation, given, {name: result})), report
    assert not wrong(result, *expected_and_bound(small, arrays))


@pytest.mark.parametrize("kind", operators_cases.CLASSES)
def test_peers_that_are_installed_are_right_and_write_where_they_are_told(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every window, stride and padding that there is; NumPy at least, PyTorch, Numba, TVM where they are installed."""
    if importlib.util.find_spec("torch"):
        monkeypatch.setattr(importlib.import_module("torch"), "compile", lambda function, dynamic: function)
    forms = {(small := operators_cases.tiny(o)).extents[4:]: small for o in OPERATORS if o.kind == kind}
    for small in forms.values():
        arrays = random_arrays(small)
        expected = expected_and_bound(small, arrays)
        found = operators_peers.peers(small, arrays, 1)
        assert set(found) == set(operators_peers.NAMES) - set(operators_peers.absent())
        for who, (_, call) in found.items():
            assert not wrong(np.asarray(call()), *expected), (who, small)
            if (who, kind) not in ALLOCATES:
                assert np.shares_memory(np.asarray(call()), np.asarray(call())), (who, small)


ALLOCATES = {
    ("PyTorch", "convolution"), ("PyTorch", "depthwise"), ("torch.compile", "convolution"), ("torch.compile", "matmul"),
    *(("JAX", kind) for kind in operators_cases.CLASSES),
}  # fmt: skip


@pytest.mark.parametrize("kind", operators_cases.CLASSES)
def test_a_dropped_term_is_wrong(kind: str) -> None:
    small = operators_cases.tiny(next(o for o in OPERATORS if o.kind == kind))
    arrays = random_arrays(small)
    value, bound = expected_and_bound(small, arrays)
    first = list(small.shapes)[0]
    arrays[first].flat[0] += 3  # of the first element of the result
    result = by_numpy(small, arrays, np.empty(value.shape, np.float32))
    assert wrong(result, value, bound)
    assert "nan" in wrong(np.full(value.shape, np.nan, np.float32), value, bound)


def test_operations_and_bytes_are_counted() -> None:
    one = Operator("C", "convolution", (2, 3, 8, 5, 3, 2, 1))
    assert one.shapes == {"X": (2, 3, 8, 8), "W": (5, 3, 3, 3), "Z": (2, 5, 4, 4)}
    assert one.flops == 2 * 2 * 5 * 16 * 27 and one.bytes == 4 * (2 * 3 * 64 + 5 * 27 + 2 * 5 * 16)
    pool = dataclasses.replace(one, kind="average_pooling", extents=(2, 3, 8, 3, 3, 2, 1))
    assert pool.flops == 2 * 3 * 16 * 9


# ---------------------------------------------------------------- schedules and runs


@pytest.mark.parametrize("kind", operators_cases.CLASSES)
def test_hand_written_schedules_are_right(kind: str) -> None:
    """For each form that there is, at a few pixels; at the benchmark's sizes they are accepted."""
    of_kind = [o for o in OPERATORS if o.kind == kind and not o.duplicate_of]
    written = [schedule for o in of_kind if (schedule := by_hand(o)) is not None]
    assert written
    for schedule in written[:3]:
        tl.compile(schedule)
    small = by_hand(operators_cases.tiny(of_kind[0]))
    if small is not None:
        assert (report := tl.compile(small).check()), report


def test_wrong_results_are_not_compared(quick: tl.Target, monkeypatch: pytest.MonkeyPatch) -> None:
    others = operators_peers.peers

    def lying(*given: Any) -> dict[str, tuple[str, operators_peers.Peer]]:
        return {**others(*given), "liar": ("liar", lambda: np.zeros_like(list(given[1].values())[-1]))}

    monkeypatch.setattr(operators_peers, "peers", lying)
    row = operators.times(operators_cases.tiny(OPERATORS[0]), quick, 1)
    assert "liar" in row["wrong"] and "liar" not in row["row_us"] and "PyTorch" in row["row_us"]


def test_only_the_peers_that_are_named_are_measured(quick: tl.Target) -> None:
    before = {"NumPy": 1.0, "PyTorch": 5.0, "TVM": 9.0}
    earlier = {"alone_us": before, "row_us": before, "revision": "before"}
    row = operators.times(operators_cases.tiny(OPERATORS[0]), quick, 1, earlier, ["PyTorch"])
    assert row["row_us"]["NumPy"] == 1.0 and row["row_us"]["TVM"] == 9.0 and row["row_us"]["PyTorch"] != 5.0
    assert "TVM" not in row["absent"]


def test_each_peers_version_stands_with_its_time(quick: tl.Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept time has the version that it was measured with; a row of before without versions has unknown ones."""
    monkeypatch.setattr(operators_peers, "versions", lambda: {"NumPy": "3", "PyTorch": "4", "TVM": "5"})
    small, before = operators_cases.tiny(OPERATORS[0]), {"NumPy": 1.0, "PyTorch": 5.0, "TVM": 9.0, "Numba": 8.0}
    earlier = {"alone_us": before, "row_us": before, "peer_versions": {"NumPy": "1", "PyTorch": "2", "TVM": "0.9"}}
    assert operators.times(small, quick, 1)["peer_versions"] == {"NumPy": "3", "PyTorch": "4"}
    again = operators.times(small, quick, 1, earlier, ["PyTorch"])
    assert again["peer_versions"] == {"NumPy": "1", "PyTorch": "4", "TVM": "0.9"}
    old = operators.times(small, quick, 1, {"alone_us": before, "row_us": before}, ["PyTorch"])
    assert old["peer_versions"] == {"PyTorch": "4"}
    assert operators_table.measured_with([again, old]) == [
        "version of NumPy: 1 (1 operators), unknown (1 operators)",
        "version of PyTorch: 4 (2 operators)",
        "version of TVM: 0.9 (1 operators), unknown (1 operators)",
        "version of Numba: unknown (2 operators)",
    ]


def test_versions_are_those_of_the_peers_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"numpy": "2.4", "apache-tvm": "0.27"}

    def version(distribution: str) -> str:
        if distribution not in installed:
            raise importlib.metadata.PackageNotFoundError(distribution)
        return installed[distribution]

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert operators_peers.versions() == {"NumPy": "2.4", "TVM": "0.27"}


@pytest.mark.parametrize("kind", operators_cases.CLASSES)
def test_a_kernel_is_called_as_its_user_calls_it(kind: str, quick: tl.Target) -> None:
    small = operators_cases.tiny(next(o for o in OPERATORS if o.kind == kind))
    arrays, name = random_arrays(small), list(small.shapes)[-1]
    out = np.full(small.shapes[name], np.nan, np.float32)
    operators_ours.called(tl.compile(small.computation(), quick), arrays, out).begin()
    assert not wrong(out, *expected_and_bound(small, arrays))  # nothing is waited for


def test_the_call_is_a_column_and_no_peer(quick: tl.Target) -> None:
    row = {**promised(), "extents": [1], "bytes": 1e3, "copy_gb_per_s": 1.0, "flops": 1.0, "peak_gflops": 1.0}
    called = {**row, "row_us": {**row["row_us"], "called": 1.0}, "alone_us": {**row["alone_us"], "called": 20.0}}
    assert operators_table.best_peer(called, "row_us")[0] == "NumPy"
    first, second = (line.split() for line in operators_table.operators([called, row]).splitlines()[2:])
    assert first[4] == "20.0" and len(second) == len(first) - 1  # a row of before has none
    assert operators_table.classes([called, row]).splitlines()[2].split()[6:8] == ["2.00", "0.50"]
    assert "called" in operators.times(operators_cases.tiny(OPERATORS[0]), quick, 1)["alone_us"]


def test_the_worst_of_each_class_are_named() -> None:
    rows = [promised(operator=f"M{n}", row_us={"ours": 1.0, "NumPy": 20.0 - n}) for n in range(12)]
    rows += [promised(operator="E0", **{"class": "pointwise"})]
    product, pointwise = operators_table.slowest(rows).splitlines()
    assert product.startswith("product: M11 9.00, M10 10.00, M9 11.00") and "M1 " not in product and "M2 18.00" in product
    assert pointwise == "pointwise: E0 2.00"


def test_a_sweep_goes_from_the_first_to_the_last_that_was_estimated(quick: tl.Target, monkeypatch: pytest.MonkeyPatch) -> None:
    small = operators_cases.tiny(next(o for o in OPERATORS if o.kind == "row_sum"))
    found = operators_ours.estimated(small, quick.profile)
    monkeypatch.setattr(operators, "SWEPT", len(found))
    row = operators.sweep(small, quick, 1)
    assert [text for _, text in row["ranked"]] == [operators.described(c.schedule) for c in found] and row["candidates"] == len(
        found
    )
    monkeypatch.setattr(operators, "SWEPT", 3)
    assert [us for us, _ in operators.sweep(small, quick, 1)["ranked"]] == [
        row["ranked"][n][0] for n in (0, 1, 1 + (len(found) - 1) // 2)
    ]


def test_means_are_against_the_best_peer_of_each_operator() -> None:
    first = {"what": "times", "class": "product", "row_us": {"ours": 2.0, "hand": 1.0, "NumPy": 8.0, "PyTorch": 4.0}}
    second = {"what": "times", "class": "product", "row_us": {"ours": 4.0, "NumPy": 2.0, "PyTorch": 3.0}}
    assert [operators_table.best_peer(row, "row_us") for row in (first, second)] == [("PyTorch", 4.0), ("NumPy", 2.0)]
    assert operators_table.geometric_mean(operators_table.ratio(r, "row_us") for r in (first, second)) == pytest.approx(1.0)
    limited = {"bytes": 2e6, "copy_gb_per_s": 10.0, "flops": 1e6, "peak_gflops": 100.0}
    assert operators_table.of_limit(limited, 400.0) == pytest.approx(0.5)  # 200 us of bytes, 10 us of operations


def test_pruned_shares_are_of_what_all_operators_of_a_class_generated() -> None:
    rows = [
        {"class": "product", "generated": 100, "pruned": {"registers": 10}},
        {"class": "product", "generated": 300, "pruned": {"shared": 30, "registers": 30}},
        {"class": "pooling", "generated": 50, "pruned": {}},
    ]
    lines = [line.split() for line in operators_table.pruned(rows).splitlines()]
    assert lines[0] == ["class", "generated", "registers", "shared", "all", "rules"]
    assert lines[2:] == [
        ["product", "400", "10.0%", "7.5%", "17.5%"],
        ["pooling", "50", "0.0%", "0.0%", "0.0%"],
        ["all", "450", "8.9%", "6.7%", "15.6%"],
    ]


def test_ranking_is_in_the_order_of_the_model() -> None:
    row = {"ranked_us": {"10": 1.0, "2": 4.0, "0": 2.0}, "ranked": [[n, ""] for n in range(11)]}
    assert operators_table.ranked(row) == [2.0, 4.0, 1.0]
    assert operators_table.kendall(row) == pytest.approx(-1 / 3)


def test_a_turn_waits_once_for_calls_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators_ours, "MOST", 1)
    monkeypatch.setattr(operators_ours, "WARM_S", 0)
    done: list[str] = []
    operators_ours.turn(operators_ours.Call("one", "here", lambda: done.append("begin"), lambda: done.append("finish")))
    assert done == ["begin", "finish"] * 4


def test_a_later_run_measures_the_best_peer_again_and_keeps_the_others(quick: tl.Target) -> None:
    before = {"NumPy": 1e-3, "PyTorch": 5.0, "elsewhere": 9.0, "hand": 7.0}
    earlier = {"alone_us": before, "row_us": before, "revision": "before"}
    row = operators.times(operators_cases.tiny(OPERATORS[0]), quick, 1, earlier)
    assert row["row_us"]["NumPy"] > 1e-3 and row["row_us"]["PyTorch"] == 5.0 and row["row_us"]["elsewhere"] == 9.0
    assert row["others_measured_at"] == "before" and row["row_us"].get("hand") != 7.0


def promised(**changes: Any) -> dict[str, Any]:
    """A row of the results: twice as fast as the best peer in a row, as fast alone."""
    times = {"row_us": {"ours": 5.0, "NumPy": 10.0, "hand": 4.0}, "alone_us": {"ours": 10.0, "NumPy": 10.0, "hand": 8.0}}
    estimate = {"estimate_us": 3.0, "bound_us": 1.0, "parts_us": {"operations": 2.0, "launch": 1.0}}
    known = {"what": "times", "operator": "M1", "class": "product", "schedule_ms": 50.0, "kernel_ms": 2000.0}
    return {**known, **times, **estimate, **changes}


def test_targets_say_what_is_met_and_why_the_rest_is_not() -> None:
    rows = [promised(), promised(operator="E1", **{"class": "pointwise"}, row_us={"ours": 20.0, "NumPy": 10.0})]
    text = operators_targets.show(rows)
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert lines["all, no trials: x best peer"][-7:] == ["1.2", "1.00", "1.00", "2", "of", "108", "no"]
    assert lines["all, no trials: x best of four old peers"][-7:] == ["1.4", "1.00", "1.00", "2", "of", "108", "no"]
    assert lines["pointwise: x best peer"][-6:] == ["0.50", "1.00", "1", "of", "19", "no"]
    assert lines["products: x hand-written schedule"][-4:] == ["0.80", "0.80", "1", "no"]
    assert lines["M1 and M2: x best peer, the least"][-4:] == ["2.00", "1.00", "1", "yes"]
    assert lines["ms to a running kernel, median"][-4:] == ["150", "2000.00", "2", "no"]
    assert lines["pooling: x best peer"][-2:] == lines["all, 8 trials: x best peer"][-2:] == ["not", "measured"]
    assert "E1 0.50: 20 us measured, 3 estimated (operations 2, launch 1), no less than 1" in text


def test_kendalls_tau_is_told_without_a_target() -> None:
    row = {"what": "ranking", "operator": "M1", "class": "product", "ranked": [[1.0, ""], [2.0, ""], [3.0, ""]]}
    text = operators_targets.show([{**row, "ranked_us": {"0": 1.0, "1": 3.0, "2": 2.0}}])
    line = next(line for line in text.splitlines() if line.startswith("Kendall's tau"))
    assert line.split()[-4:] == ["0.33", "1", "of", "108"]


def test_a_target_that_only_calls_in_a_row_meet_is_called_so() -> None:
    row = promised(alone_us={"ours": 20.0, "NumPy": 10.0, "hand": 9.0})
    assert "in a row" in next(line for line in operators_targets.show([row]).splitlines() if line.startswith("M1 and M2"))[60:]
