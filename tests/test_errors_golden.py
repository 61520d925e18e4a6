"""Every refusal reads well: each case in `tests/errors/` provokes one error, whose whole text stands beside it.

A theme is a file `errors/THEME.py`, a case a function in it, its text `errors/THEME/CASE.txt`. Lines are counted from the case's `def`,
so that a case does not change the texts of those below it. `pytest --update-golden` writes the texts anew; a text that no case gives
fails the run.
"""

import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tilelang.errors import TileLangError

FOLDER = Path(__file__).resolve().parent / "errors"
THEMES = sorted(p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("_"))


def cases(theme: str) -> dict[str, Callable[[], object]]:
    """The cases of a theme by name."""
    module = importlib.import_module(f"tests.errors.{theme}")
    found = inspect.getmembers(module, inspect.isfunction)
    return {n: f for n, f in found if f.__module__ == module.__name__ and not n.startswith("_")}


CASES = {(theme, name): case for theme in THEMES for name, case in cases(theme).items()}


pytestmark = pytest.mark.usefixtures("only_shipped_instructions")


def rendered(case: Callable[[], object]) -> str:
    """The whole text of the error that a case provokes, without the machine's paths and with lines counted from its `def`."""
    with pytest.raises(TileLangError) as caught:
        case()
    error = caught.value
    first = case.__code__.co_firstlineno
    text = error.render()
    if error.span is not None and Path(error.span.file).parent == FOLDER:
        line = error.span.line - first + 1
        assert line >= 1, f"the error points above the case: {error.span}"
        text = text.replace(f"--> {error.span.file}:{error.span.line}", f"--> {Path(error.span.file).name}:{line}")
        text = re.sub(rf"^{error.span.line} \|", f"{line} |", text, flags=re.MULTILINE)
    return text + "\n"


@pytest.mark.parametrize(("theme", "name"), CASES)
def test_error_text(theme: str, name: str, request: pytest.FixtureRequest) -> None:
    path = FOLDER / theme / f"{name}.txt"
    text = rendered(CASES[theme, name])
    if request.config.getoption("--update-golden", default=False):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"no golden text for {theme}.{name}: run pytest --update-golden\n{text}"
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("theme", "name"), CASES)
def test_error_can_be_acted_on(theme: str, name: str) -> None:
    """Whatever is refused says what to do; a refused schedule also says where it was written."""
    with pytest.raises(TileLangError) as caught:
        CASES[theme, name]()
    assert caught.value.help
    assert str(FOLDER) not in caught.value.message


def test_no_golden_text_is_unused() -> None:
    expected = {FOLDER / theme / f"{name}.txt" for theme, name in CASES}
    assert sorted(p for p in FOLDER.rglob("*.txt") if p not in expected) == []
