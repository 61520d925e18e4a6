"""Errors: one rendering, the caller's line, picklable."""

import pickle
from pathlib import Path

import pytest

from tilelang.errors import ComputationError, DeviceError, ParseError, Refusal, Span, TileLangError, caller_span


def test_whole_rendering(tmp_path: Path) -> None:
    source = tmp_path / "gemm.tile"
    source.write_text("schedule gemm for matmul {\n  tile m=128\n}\n", encoding="utf-8")
    error = Refusal(
        "tile-without-level",
        "`tile` needs a level",
        span=Span(str(source), 2, 3, 7),
        counterexample="m = 128 has no unit",
        help="write -> block",
        notes=("levels of this profile: block, thread",),
    )
    assert str(error) == (
        "error[tile-without-level]: `tile` needs a level\n"
        f"  --> {source}:2:3\n"
        "2 |   tile m=128\n"
        "  |   ^^^^\n"
        "  = note: levels of this profile: block, thread\n"
        "  = counterexample: m = 128 has no unit\n"
        "  = help: write -> block"
    )


def test_parts_that_are_absent_leave_no_line() -> None:
    error = TileLangError("code", "what")
    error.span = None
    assert str(error) == "error[code]: what"
    assert str(Refusal("code", "what", span=Span("/nowhere.py", 3))) == "error[code]: what\n  --> /nowhere.py:3"


def test_not_proven_is_said() -> None:
    assert "  = not proven: k = 3" in str(Refusal("code", "what", counterexample="k = 3", proven=False))


def test_a_whole_line_is_shown_without_its_indent(tmp_path: Path) -> None:
    source = tmp_path / "gemm.py"
    source.write_text("if True:\n    s.tile(m=3)\n", encoding="utf-8")
    assert "2 | s.tile(m=3)\n" in str(Refusal("code", "what", span=Span(str(source), 2), help="x"))


@pytest.mark.parametrize("kind", [TileLangError, Refusal, ParseError, ComputationError, DeviceError])
def test_errors_survive_a_pickle(kind: type[TileLangError]) -> None:
    error = kind("code", "what", span=Span("a.py", 1, 2, 3), counterexample="c", help="m", proven=False, notes=("n",))
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert copy.__getstate__() == error.__getstate__()


def test_every_error_is_one_family() -> None:
    for kind in (Refusal, ParseError, ComputationError, DeviceError):
        assert issubclass(kind, TileLangError)


def test_the_caller_is_outside_the_package() -> None:
    span = caller_span()
    assert span is not None
    assert Path(span.file) == Path(__file__)
    assert (Path(__file__).read_text(encoding="utf-8").splitlines()[span.line - 1]).strip() == "span = caller_span()"


def test_the_former_name_of_help_still_works() -> None:
    with pytest.warns(DeprecationWarning, match="`mend` is now called `help`"):
        error = TileLangError("a-code", "a message", mend="another way")
    assert error.help == "another way"
    with pytest.warns(DeprecationWarning, match="`mend` is now called `help`"):
        assert error.mend == "another way"
