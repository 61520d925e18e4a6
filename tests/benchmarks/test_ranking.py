"""The benchmarks of ranking: what they write is read again as the same schedules, and what they draw fits."""

from benchmarks import operators_cases, ranking_candidates, ranking_sweep
from benchmarks.operators_ours import candidates
from benchmarks.ranking import Ranking, mean, rank
from tilelang.autoschedule.cpu.device import cpu_device
from tilelang.profiles.files import load_profile

PROFILE = load_profile("sapphire_rapids")
OPERATORS = {o.id: o for o in operators_cases.read()}


def test_a_schedule_is_read_as_it_was_written() -> None:
    for name in ("M0", "P10", "E1"):
        first = candidates(OPERATORS[name], PROFILE)[0][0].schedule
        assert ranking_candidates.schedule_of(OPERATORS[name], ranking_candidates.text_of(first)).steps == first.steps


def test_a_perfect_model_has_tau_one() -> None:
    perfect = rank([1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
    assert perfect == Ranking(1.0, 1.0, 1.0, 1.0)
    assert mean([perfect, rank([1.0, 2.0], [2.0, 1.0])]).tau == 0.0


def test_what_is_drawn_is_drawn_again_and_can_be_written() -> None:
    device = cpu_device(PROFILE)
    drawn = ranking_sweep.drawn(OPERATORS["R2"], device, 12)
    assert drawn == ranking_sweep.drawn(OPERATORS["R2"], device, 12) and len(set(drawn)) == 12
    for text in drawn:
        assert ranking_candidates.text_of(ranking_candidates.schedule_of(OPERATORS["R2"], text)) == text
