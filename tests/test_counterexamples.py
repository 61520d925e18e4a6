"""The naive interpretation confirms the counterexamples of refusals, and nothing else that is said in their words."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

import tilelang as tl
from benchmarks.foreign import corpus
from benchmarks.foreign.corpus import Entry
from tilelang.testing.counterexamples import READ, Refused, confirmed
from tilelang.testing.tracing import THREAD_LEVELS

AMPERE = ("cuda", "ampere")
OTHERS_HOLD = {
    "a stage that is read backwards": (
        "P[i, j] = X[i, j] * 2.0",
        "P[i, j] + P[i, 7 - j]",
        "units block = 1 warp; tile j=8 -> block; compute P in register { tile j=1 -> thread }; tile j=1 -> thread",
    ),
    "a load by columns that is read by rows": (
        "",
        "X[i, j] + 1.0",
        "tile i=4 j=8 -> block; load X in register { tile i=4 j=2 -> thread }; tile i=1 -> thread",
    ),
    "a stage by columns that is read by rows": (
        "P[i, j] = exp(X[i, j])",
        "P[i, j] + 1.0",
        "tile i=4 j=8 -> block; compute P in register { tile i=4 j=2 -> thread }; tile i=1 -> thread",
    ),
}


def refused(entry: Entry) -> tuple[Refused, tl.TileLangError]:
    """A refused schedule as the naive interpretation takes it, and its refusal."""
    with pytest.raises(tl.TileLangError) as caught:
        corpus.lowered(entry, verify=False)
    computation, steps = tl.parse(entry.text).steps()
    profile = corpus.target_of(entry.device).profile
    levels = {f.name: f.threads or 1 for f in profile.levels if f.name in THREAD_LEVELS}
    values = {computation.tensor(n): np.asarray(a) for n, a in tl.testing.arrays(computation).items()}
    return Refused(computation, steps, levels, values), caught.value


def asked(error: tl.TileLangError) -> bool:
    """Whether the naive interpretation can be asked about a counterexample."""
    words = error.counterexample if error.proven else None
    return words is not None and any(re.match(pattern, words) for pattern, _ in READ.get(error.code, ()))


def test_counterexamples_of_the_corpus_are_confirmed() -> None:
    found = Counter[str]()
    for entry in corpus.entries():
        if entry.refused not in READ:
            continue
        made, error = refused(entry)
        if asked(error) and (seen := confirmed(made, error.code, error.counterexample or "")) is not None:
            assert seen, f"{entry.name}: {error}"
            found[error.code] += 1
    assert set(found) == set(READ), "every code that is read occurs"
    assert sum(found.values()) >= 15


@pytest.mark.parametrize("name", OTHERS_HOLD)
def test_the_owner_of_an_element_that_another_thread_reads_is_confirmed(name: str) -> None:
    stage, value, steps = OTHERS_HOLD[name]
    head = f"computation S {{\n  input X: float32[i: 4, j: 8]\n  {stage}\n  output Z[i, j] = {value}\n}}\n"
    made, error = refused(Entry(AMPERE, f"{head}schedule for S {{ {steps} }}"))
    words = error.counterexample or ""
    assert error.code == "reader-is-not-owner" and confirmed(made, error.code, words)
    thread, owner = re.findall(r"thread (\d+)", words)
    for other in (
        words.replace(f"read by thread {thread}", f"read by thread {owner}"),
        words.replace(f"registers of thread {owner}", f"registers of thread {thread}"),
        re.sub(r"\d+\), rel", "9), rel", words),
    ):
        assert other != words and not confirmed(made, error.code, other), other


def test_words_with_other_numbers_are_not_confirmed() -> None:
    """One number of each counterexample is changed: what it then says of the schedule is not so."""
    count = 0
    for entry in corpus.entries():
        if entry.refused not in READ:
            continue
        made, error = refused(entry)
        words = error.counterexample or ""
        if not asked(error) or confirmed(made, error.code, words) is None:
            continue
        numbers = [m.span() for m in re.finditer(r"\b\d+\b", words)]
        wrong = [f"{words[:a]}{int(words[a:b]) + 1000}{words[b:]}" for a, b in numbers]
        seen = [confirmed(made, error.code, w) for w in wrong]
        assert not all(seen), f"{entry.name}: {words}"
        count += sum(s is False for s in seen)
    assert count >= 30
