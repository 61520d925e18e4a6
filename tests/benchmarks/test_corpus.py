"""The corpus does what its entries say, and what makes and keeps it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import tilelang as tl
from benchmarks.foreign import corpus, counts, forms, log, smaller, steer
from benchmarks.foreign.branches import Branch
from benchmarks.foreign.corpus import Entry
from benchmarks.foreign.mutate import Mutator, joined, parts, shape_of
from benchmarks.foreign.names import canonical

PARTS = 24
PRODUCT = """computation C {
  input A: float32[m: 6, k: 4]
  input B: float32[k: 4, n: 5]
  output C[m, n] = sum[k] A[m, k] * pad(B[k, n + 1], 0.0)
}
"""
STEPS = [
    "tile m=3 n=4 -> block",
    ["accumulate in register", ["via shared pad 1", "tile n=2 -> thread"]],
    ["load A in shared ahead 1", [["compute C in global", ["split m=2"]], "vectorize k=2"]],
    "when m <= 8 { split k=2 unroll } else { split k=1 }",
]
ENTRY = Entry(("cuda", "ampere"), PRODUCT + "schedule for C {\n  tile m=3 -> block\n}\n")


@pytest.mark.parametrize("part", range(PARTS))
def test_the_corpus_does_what_it_says(part: int) -> None:
    """Accepted texts are simulated and held against the reference and their steps; refused ones have their code."""
    assert [f for entry in corpus.entries()[part::PARTS] for f in corpus.replayed(entry)] == []


def test_the_corpus_is_small_and_named_by_what_it_holds() -> None:
    files = sorted(corpus.FOLDER.glob("*.tile"))
    assert len(files) > 50 and sum(f.stat().st_size for f in files) < 5_000_000
    assert [f.name for f in files] == [corpus.read(f.read_text(encoding="utf-8")).name for f in files]


def test_an_entry_says_what_becomes_of_it() -> None:
    assert corpus.read(ENTRY.whole) == Entry(ENTRY.device, ENTRY.text.strip())
    wrong = Entry(ENTRY.device, ENTRY.text, "axis-twice")
    assert corpus.read(wrong.whole).refused == "axis-twice"
    assert corpus.replayed(ENTRY) == [] and "accepted, not refused" in corpus.replayed(wrong)[0]
    twice = Entry(ENTRY.device, ENTRY.text.replace("m=3", "m=3 m=3"))
    assert "refused, axis-twice" in corpus.replayed(twice)[0]


def test_steps_are_read_from_text_as_they_are_written() -> None:
    computation, steps = parts(joined(PRODUCT, STEPS))
    assert computation == PRODUCT
    assert steps[:3] == STEPS[:3] and joined(PRODUCT, steps) == joined(*parts(joined(PRODUCT, steps)))
    assert parts(PRODUCT) == (PRODUCT, [])


def test_the_shape_of_a_long_line_is_found_at_once() -> None:
    long = "computation C {\n  reduce " + "largest_of_two_and_more_" * 3 + "(a, b) => max(a, b)\n"
    shape = shape_of(long + "  input A: float32[i: 4, k: 3]\n  output M[i], N[i] = argmax[k] A[i, k]\n}\n")
    assert [(d["names"], d["axes"]) for d in shape["definitions"]] == [(["M", "N"], ["i"])]


def test_changes_are_often_accepted() -> None:
    mutator, accepted = Mutator(random.Random(3), [ENTRY.text, joined(PRODUCT, STEPS[:1])]), 0
    for _ in range(100):
        try:
            accepted += bool(tl.parse(mutator.changed(ENTRY.text)).schedule())
        except tl.TileLangError:
            pass
    assert accepted > 30


def test_what_a_combiner_does_is_not_changed() -> None:
    """With another number in it, its states may no longer be combined in any order."""
    body = "{ a + b, min(p, q) identity 0, 100 }"
    head = "  combiner both(a: int32, p: int32; b: int32, q: int32) "
    text = f"computation C {{\n  input A: float32[i: 4]\n{head}{body}\n  output S[], L[] = reduce both[i] (1, A[i])\n}}\n"
    mutator = Mutator(random.Random(3), [])
    changed = {mutator.in_computation(text) for _ in range(300)}
    assert len(changed) > 30 and all(body in other for other in changed)


def test_a_campaign_keeps_what_reaches_new_branches_and_goes_on(tmp_path: Path) -> None:
    def campaign() -> steer.Campaign:
        return steer.Campaign((("hip", "cdna3"),), tmp_path / "corpus", tmp_path)

    first = campaign()
    first.shrink_seconds = 0.1
    report = first.case(1)
    assert report["faults"] == [] and report["new"] > 100 and report["digests"]
    known = dict(first.kept)
    assert set(corpus.entries(tmp_path / "corpus")) == set(known)
    again = campaign()
    assert again.kept.keys() == known.keys()
    for refused in (False, True):
        assert again.reached[refused] >= {b for e, found in known.items() if bool(e.refused) == refused for b in found}
    reached = {b for e in again.kept for b in again.kept[e]}
    again.minimise()
    assert {b for e in again.kept for b in again.kept[e]} == reached


@pytest.fixture
def empty(tmp_path: Path) -> steer.Campaign:
    return steer.Campaign((("cuda", "ampere"), ("cpu", "zen5")), tmp_path / "corpus", tmp_path)


def test_programs_that_do_not_fill_a_batch_run_at_the_end(empty: steer.Campaign) -> None:
    report = empty.report(0, None)
    assert empty.attempt(("cpu", "zen5"), PRODUCT + "schedule for C {\n}\n", report, only_new=True)
    assert len(empty.native) == 1 and report["native"] == 0
    empty.finish(report)
    assert empty.native == [] and report["native"] == 1 and report["faults"] == []


def test_texts_after_which_a_device_does_nothing_more_are_told(empty: steer.Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(items: object) -> None:
        raise tl.DeviceError("kernel-failed", "illegal address", help="none")

    monkeypatch.setattr(tl.testing, "check_device", fails)
    report = empty.report(0, None)
    assert empty.attempt(("cpu", "zen5"), PRODUCT + "schedule for C {\n}\n", report, only_new=True)
    empty.finish(report)
    assert report["lost"] and "illegal address" in report["faults"][0] and "schedule for C" in report["text"]


def test_what_cannot_be_simulated_is_not_taken_as_smaller(empty: steer.Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    found, branches = empty.measured(ENTRY.device, ENTRY.text)
    some = {min(branches)}
    assert len(empty.small(found, some)[0].text) < len(found.text)
    monkeypatch.setattr(corpus, "faults", lambda *given: None)
    assert empty.small(found, some)[0] == found


@pytest.mark.parametrize("error", [IndexError("no place"), tl.ComputationError("no-schedule", "none")])
def test_a_program_for_which_no_schedule_is_constructed_is_a_fault(
    empty: steer.Campaign, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*given: object) -> None:
        raise error

    monkeypatch.setattr(tl, "compile", fails)
    report = empty.report(0, None)
    assert list(empty.constructed(random.Random(1), ENTRY.device, report)) == []
    assert len(report["faults"]) == 1 and str(error) in report["faults"][0] and "computation" in report["text"]


def test_a_step_whose_check_crashes_is_tried(empty: steer.Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(schedule: tl.Schedule, profile: object) -> None:
        if "tile" in schedule.text:
            raise KeyError("a step")

    monkeypatch.setattr(tl.Schedule, "check", fails)
    found = [list(empty.drawn(random.Random(seed), ENTRY.device)) for seed in range(10)]
    assert any(parts(texts[-1])[1] and "tile" in str(parts(texts[-1])[1][-1]) for texts in found)
    assert not any("tile" in str(parts(texts[-1])[1][:-1]) for texts in found)


def test_examples_without_a_schedule_are_not_chosen() -> None:
    found = 0
    for seed in range(20):
        try:
            found += isinstance(steer.example(random.Random(seed)), tl.Schedule)
        except tl.TileLangError:
            continue
    assert found > 5


def test_texts_of_others_are_taken_over_at_smaller_sizes_too(tmp_path: Path) -> None:
    made = steer.Campaign((("hip", "cdna3"), ("cuda", "ampere")), tmp_path / "corpus", tmp_path)
    made.shrink_seconds = 0
    report = made.taken_over(iter([PRODUCT.replace("6", "30") + "schedule for C {\n  tile m=20 -> block\n}\n", "no text"]), 30)
    assert report["tried"] == 8 and report["faults"] == []  # two texts, the first of them at a smaller size, for two devices
    assert {e.refused for e in made.kept} == {"", "statement-outside"}


def test_a_set_cover_leaves_out_what_adds_nothing() -> None:
    a, b, c = (Entry(ENTRY.device, text) for text in ("a", "bb", "ccc"))
    one, two, three = (Branch("x", n, n + 1) for n in (1, 2, 3))
    assert corpus.cover({a: {one}, b: {two}, c: {one, two, three}}) == [c]
    assert corpus.cover({a: {one, two}, b: {two}, c: {three}}) == [a, c]


def test_names_do_not_make_a_case_another_one() -> None:
    other = Entry(ENTRY.device, re.sub(r"\bm\b", "q", ENTRY.text).replace("A[", "Left[").replace("A:", "Left:"))
    assert other.text != ENTRY.text and canonical(other.device, other.text) == canonical(ENTRY.device, ENTRY.text)
    assert canonical(ENTRY.device, ENTRY.text) != canonical(ENTRY.device, ENTRY.text.replace("m=3", "m=2"))


def test_a_fault_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smaller, "faults", lambda e: ["wrong"] if "tile m=" in e.text and "sum[k]" in e.text else [])
    found = smaller.faulty(Entry(ENTRY.device, joined(PRODUCT, STEPS)), 5)
    assert parts(found.text)[1] == ["tile m=1 -> block"] and "pad" not in found.text


def test_what_ran_is_counted(tmp_path: Path) -> None:
    report = {
        "seed": 4,
        "device": ("cuda", "hopper"),
        "faults": [],
        "digests": ["x", "x", "y"],
        "tried": 6,
        "verbs": {"verb tile": 2},
    }
    log.note(report, tmp_path)
    log.note(report | {"seed": 9}, tmp_path)
    assert log.following(tmp_path) == 10
    text = counts.summary(log.noted(tmp_path))
    assert "hopper: 2 cases, 12 texts tried, 6 accepted (50 %), 6 simulated, 2 of them distinct" in text and "verb tile 4" in text


def test_what_is_used_is_named() -> None:
    found = forms.used(joined(PRODUCT, STEPS))
    assert (
        found["verb tile"] == 1
        and found["verb tile in braces"] == 1
        and found["load in shared"] == 1
        and found["with ahead"] == 1
    )
    assert found["index axis"] == 3 and found["index shifted up"] == 1 and found["type float32"] == 2 and found["pad"] == 1
