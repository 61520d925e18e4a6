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


def test_what_leads_to_a_refusal_alone_refuses_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sample.py").write_text(
        textwrap.dedent("""\
            if TYPE_CHECKING:
                import this

            def f(a, b):
                if a:
                    if b:
                        message = a
                    else:
                        message = b
                    raise refuse(a, _words(message))
                return _plain(a)

            def _words(a):
                return 1 if a else _more(a) if a > 1 else 3

            def _more(a):
                if a:
                    return 1
                return 2

            def _plain(a):
                if a:
                    return 1
                return 2
            """)
    )
    monkeypatch.setattr(branches, "ROOT", tmp_path)
    source = branches.Source("sample.py")
    found = {(b.line, b.to) for b in source.refusing}
    assert found == {(5, 6), (6, 7), (6, 9), (17, 18), (17, 19)}
    assert {b.line for b in source.branches} == {5, 6, 17, 22}


def test_branches_that_nothing_reaches_are_named_by_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = branches.unreachable()
    assert len(found) >= 10 and all(b in branches.source(b.file).branches and why for b, why in found.items())
    (tmp_path / "list.json").write_text(
        '[{"file": "lowering/build/pipelining/warp_specialization.py", "line": "if nothing:", "to": ["pass"], "why": "no"}]'
    )
    monkeypatch.setattr(branches, "UNREACHED", tmp_path / "list.json")
    with pytest.raises(ValueError, match="no such branch"):
        branches.unreachable()
