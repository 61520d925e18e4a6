"""Which branches a call takes, and which of them refuse."""

from __future__ import annotations

import functools
import textwrap
from pathlib import Path

import pytest

import tilelang as tl
from benchmarks.foreign import branches


def test_a_call_takes_branches_of_what_it_runs() -> None:
    i = tl.axes(i=10)
    Y = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    profile = tl.target("cuda", profile="ampere").profile
    meter = branches.Meter()
    plain, cut = (
        meter.run(functools.partial(s.check, profile))[1] for s in (tl.schedule(Y), tl.schedule(Y).tile(i=4).to(tl.block))
    )
    assert cut - plain and {b.file.split("/")[0] for b in cut} <= {"lowering", "tilelang"}
    assert not any(b in branches.source(b.file).refusing for b in cut)
    error, refused = meter.run(lambda: tl.schedule(Y).tile(i=4).to(tl.block).split(q=4))
    assert isinstance(error, tl.TileLangError)
    assert any(b in branches.source(b.file).refusing for b in refused)


def test_branches_that_can_only_raise_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sample.py").write_text(
        textwrap.dedent("""\
            def f(a, b):
                if a:
                    raise refuse("x")
                for n in b:
                    if n:
                        raise Missing
                    if n < 0:
                        message = n
                        raise Refusal(message)
                if b:
                    return 1
                raise AssertionError(a)

            def g(a) -> Refusal:
                return 1 if a else 2 if a > 1 else 3
            """)
    )
    monkeypatch.setattr(branches, "ROOT", tmp_path)
    source = branches.Source("sample.py")
    assert {(b.line, b.to) for b in source.refusing} == {(2, 3), (7, 8), (10, 12)}
    assert (5, 6) in {(b.line, b.to) for b in source.branches}
