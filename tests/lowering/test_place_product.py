"""A sample of the product of places, readers and reads; `benchmarks/places.py` goes through all of it."""

import random
from collections import Counter

import pytest

from tests.lowering.place_product import cases, outcome

# Refusals that a case may meet: an element that another thread owns, a stage that is gathered from or that nothing reads, a store in
# the middle of a walk.
REFUSED = {"reader-is-not-owner", "reads-scattered", "stage-unread", "not-lowered-yet"}


def test_the_product_is_whole() -> None:
    every = list(cases())
    assert len(every) == len(set(every)) == 2 * (4 * 3 + 2) * 5 * 11 * 4 * 3


@pytest.mark.parametrize("part", range(6))
def test_a_sample_is_right_or_refused(part: int) -> None:
    found = Counter[str]()
    for case in random.Random(part).sample(list(cases()), 50):
        came = outcome(case)
        assert came == "right" or came in REFUSED, f"{case}: {came}"
        found[came] += 1
    assert found["right"] >= 35
