"""Mutants of the compiler: what is drawn changes what the code does, and verdicts are reported as they are."""

from __future__ import annotations

import pytest

from benchmarks import compiler_mutants
from benchmarks.compiler_mutants import ROOT, Mutant

SOURCE = (
    'def f(x: int | None) -> int:\n    """Text."""\n    y: int = 1\n    return sum(a for a, _ in zip([x], [y], strict=True))\n'
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int | None", "int & None"),
        ("-> int", "-> str"),
        ("y: int", "y: str"),
        ("Text", "Other"),
        ("strict=True", "strict=False"),
    ],
)
def test_changes_without_effect_are_not_drawn(before: str, after: str) -> None:
    assert compiler_mutants._behaviour(SOURCE.replace(before, after)) == compiler_mutants._behaviour(SOURCE)


def test_changes_with_an_effect_are() -> None:
    assert compiler_mutants._behaviour(SOURCE.replace("= 1", "= 2")) != compiler_mutants._behaviour(SOURCE)
    assert compiler_mutants._behaviour(SOURCE.replace("return", "return (")) is None


def test_the_mutations_of_a_place_change_its_line() -> None:
    pytest.importorskip("cosmic_ray")
    file = "lowering/passes/groups.py"
    text = (ROOT / file).read_text(encoding="utf-8")
    (_, line, _), mutations = next(iter(sorted(compiler_mutants._places(ROOT, file).items())))
    operator, occurrence = mutations[0]
    changed = Mutant(file, line, operator, compiler_mutants._mutated(ROOT, file, operator, occurrence))
    differing = [n for n, (a, b) in enumerate(zip(text.splitlines(), changed.text.splitlines(), strict=False), 1) if a != b]
    assert differing and differing[0] == line and changed.difference()


def test_a_command_that_fails_or_hangs_is_noticed() -> None:
    assert compiler_mutants._fails(ROOT, ["false"], 10)
    assert compiler_mutants._fails(ROOT, ["sleep", "30"], 0.1)
    assert not compiler_mutants._fails(ROOT, ["true"], 10)
