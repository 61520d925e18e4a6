"""benchmarks/tutorial.py takes its schedules from the page, and writes its times there."""

from __future__ import annotations

import pytest

import tilelang as tl
from benchmarks import tutorial

PAGE = tutorial.PAGE.read_text(encoding="utf-8")


def test_each_step_of_the_page_has_a_schedule_and_a_line_for_its_time() -> None:
    product, steps = tutorial.steps(PAGE)
    assert list(steps) == list(range(1, 11))
    assert [int(number) for number in tutorial.LINE.findall(PAGE)] == list(steps)
    before = -1
    for step in steps.values():
        assert len(step(product(64)).steps) >= before
        before = len(step(product(64)).steps)


def test_the_lines_of_the_page_are_as_the_command_writes_them() -> None:
    lines = [m[0] for m in tutorial.LINE.finditer(PAGE)]
    for line in lines:
        words = line.split()
        assert tutorial.text(int(words[1].strip(":")), float(words[2]), float(words[4])) == line


def test_a_step_is_checked_before_it_is_timed() -> None:
    product, steps = tutorial.steps(PAGE)
    ms, share = tutorial.measured(steps[10](product(40)), 40, rounds=1)
    assert ms > 0 and share > 0
    m, n, k = tl.axes(m=40, n=40, k=40)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    with pytest.raises(SystemExit, match="another result"):
        tutorial.measured(tl.define("C", 2 * tl.sum(A[m, k] * B[k, n], over=k), m, n), 40, rounds=1)
