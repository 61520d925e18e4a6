"""Rules that drop candidates: each drops some, is counted, and can be switched off by its name."""

from pathlib import Path

import pytest

import tilelang as tl
from tests.autoschedule.test_construct import COMPUTATIONS
from tilelang.autoschedule.common.complete import candidates, search
from tilelang.autoschedule.common.prune import RULES, Pruning
from tilelang.computations.computation import Computation
from tilelang.errors import TileLangError

LARGE = "computation C(M = 640, N = 640, K = 5000) { input A: float32[m: M, k: K] input B: float32[k: K, n: N] output C[m, n] ="
PRODUCT = LARGE + " sum[k] A[m, k] * B[k, n] }"
DROPPED = {  # where a rule drops something: before anything is compiled
    ("registers", "sapphire_rapids"): PRODUCT, ("shared", "sapphire_rapids"): PRODUCT,
    ("tails", "sapphire_rapids"): COMPUTATIONS["convolution"],
    ("registers", "mali_g76"): PRODUCT, ("slow-shared", "mali_g76"): PRODUCT, ("threads", "mali_g76"): PRODUCT,
    ("shared", "ada"): PRODUCT, ("grid", "cdna3"): LARGE.replace("640", "1048576") + " sum[k] A[m, k] * B[k, n] }",
}  # fmt: skip
REPORTED = {"reported-registers", "reported-spills"}  # after: tests/autoschedule/test_measure.py


def parsed(text: str) -> Computation:
    return tl.parse(text).computation()


@pytest.mark.parametrize(("rule", "profile"), DROPPED)
def test_a_rule_drops_candidates_unless_it_is_off(rule: str, profile: str) -> None:
    computation, on, off = parsed(DROPPED[rule, profile]), Pruning(), Pruning.without([rule])
    found = candidates(computation, tl.load_profile(profile), on)
    assert on.dropped[rule] > 0 and on.kept >= len(found) > 0
    assert candidates(computation, tl.load_profile(profile), off)
    assert not off.dropped[rule] and off.off == {rule}


def test_every_rule_is_tested() -> None:
    assert {rule for rule, _ in DROPPED} | REPORTED == RULES.keys()


def test_the_chapter_has_the_same_rules() -> None:
    chapter = (Path(__file__).resolve().parents[2] / "docs" / "autoscheduler.md").read_text(encoding="utf-8")
    rows = chapter.partition("| rule | what it drops |\n|---|---|\n")[2].partition("\n\n")[0]
    assert rows.splitlines() == [f"| `{rule}` | {what} |" for rule, what in RULES.items()]


def test_shares_are_of_all_that_was_generated() -> None:
    made = Pruning()
    assert made.generated == 0 and made.shares == {}
    for broken in (True, False, True):
        if not made.drops("shared", broken):
            made.keeps()
    assert made.drops("tails", True) and (made.kept, made.generated) == (1, 4)
    assert made.shares == {"shared": 0.5, "tails": 0.25}
    made.gives_up("barrier-in-divergent-control")
    assert (made.kept, made.generated) == (0, 4) and made.shares["barrier-in-divergent-control"] == 0.25


@pytest.mark.slow
def test_fillings_are_counted_by_the_same_rules() -> None:
    half = tl.schedule(parsed(PRODUCT)).tile(m=tl.hole, n=tl.hole).to(tl.block).load("A", tl.shared).rest()
    found = search(half, tl.load_profile("sapphire_rapids"))
    assert found.schedules and found.pruning.dropped["shared"] > 0 and found.pruning.kept > 0
    assert not search(half, tl.load_profile("sapphire_rapids"), Pruning.without("shared")).pruning.dropped["shared"]


def test_an_unknown_rule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    computation = parsed(COMPUTATIONS["pointwise"])
    with pytest.raises(TileLangError, match="no candidate is dropped by a rule 'sharde'") as caught:
        tl.compile(computation, options=tl.Options(without_rules="registers, sharde"))
    assert caught.value.code == "unknown-rule" and caught.value.help == "did you mean shared?"
    monkeypatch.setenv("TILELANG_WITHOUT_RULES", "x")
    with pytest.raises(TileLangError) as caught:
        tl.compile(computation)
    assert caught.value.help == "use one of " + ", ".join(RULES)


def test_what_other_rules_found_is_neither_recalled_nor_kept(tmp_path: Path) -> None:
    computation = parsed(COMPUTATIONS["pointwise"])
    options = tl.Options(database=str(tmp_path / "schedules.sqlite"))
    assert tl.compile(computation, trials=1, options=options.replace(without_rules="shared")).check()
    assert not (tmp_path / "schedules.sqlite").exists()
