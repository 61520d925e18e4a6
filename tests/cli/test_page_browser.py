"""The page of a kernel in a real browser: what lights, what tips and pictures say, what keys do, that nothing sticks out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.browser import Browser, installed
from tests.cli.pages import KERNELS, written


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = installed()
    if program is None:
        pytest.skip("no browser is installed: chromium, or another that speaks its protocol")
    with Browser(program, tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.mark.parametrize("name", KERNELS)
def test_a_browser_shows_loops_lines_and_cells(name: str, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "a page & more.html"
    path.write_text(written(name), encoding="utf-8")
    browser.open(path)
    row = "document.querySelector('.row.loop, .row.condition')"
    browser.click(row)
    first, last = browser.value(f"[+{row}.dataset.from, +{row}.dataset.to]")
    lit = browser.value("[...document.querySelectorAll('.line.on')].map((line) => +line.dataset.line)")
    assert lit == list(range(first, last + 1))
    inner = f"document.getElementById('k0-l{first + 1}')"
    browser.click(inner)
    assert browser.value("document.querySelectorAll('.row.on').length") == 1
    assert browser.value(f"{inner}.classList.contains('on')")
    canvas = "document.querySelector('#moves canvas')"
    browser.middle(canvas)
    x, y = browser.value(f"(() => {{ const b = {canvas}.getBoundingClientRect(); return [b.left, b.top]; }})()")
    left = browser.value(f"{canvas}.width") - 8
    browser.point(x + left, y + 20)
    tip = browser.value("document.getElementById('tip').textContent")
    assert re.match(r"[AX]\[0, \d+\]\nthread \d+: warp \d+, lane \d+\nfirst in request \d+ of \d+", tip)
    assert browser.value("!document.getElementById('tip').hidden")
    assert browser.complaints == []


def test_a_browser_links_unrolled_steps_and_lines_both_ways(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(written("product"), encoding="utf-8")
    browser.open(path)
    step = "[...document.querySelectorAll('.steps .step')].find((s) => s.textContent === 'split m=32 n=16')"
    lit = "[...document.querySelectorAll('.line.on')].map((line) => line.textContent)"
    browser.click(step)
    written_out = browser.value(lit)
    assert sum("+ A_register" in line for line in written_out) == 64
    browser.click("[...document.querySelectorAll('.line')].find((line) => line.textContent.includes('+ A_register'))")
    steps = "[...document.querySelectorAll('.steps .step.%s')].map((s) => s.textContent)"
    assert browser.value(steps % "on") == ["tile m=4 n=4 -> thread"]
    assert "split m=32 n=16" in browser.value(steps % "around") and len(browser.value(lit)) == 64
    assert browser.value("document.querySelector('.from').textContent").startswith("From tile m=4 n=4 -> thread; divided by tile")
    browser.click("[...document.querySelectorAll('.from .step')].find((s) => s.textContent === 'split m=32 n=16')")
    assert browser.value(lit) == written_out
    x, y = browser.middle(step)
    browser.point(x, y)
    assert browser.value("document.querySelectorAll('.line.near').length") == len(written_out)
    assert browser.complaints == []


def test_a_browser_obeys_the_keyboard_in_the_source(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(written("softmax"), encoding="utf-8")
    browser.open(path)
    browser.value("document.querySelector('.source').focus()")
    for _ in range(14):
        browser.press("ArrowDown")
    line = browser.value("+document.querySelector('.line.cursor').dataset.line")
    browser.press("Enter")
    assert line in browser.value("[...document.querySelectorAll('.line.on')].map((line) => +line.dataset.line)")
    assert browser.value("document.querySelectorAll('.row.on').length") == 1
    assert browser.complaints == []


def test_a_browser_shows_one_request(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(written("product"), encoding="utf-8")
    browser.open(path)
    figure = "document.querySelector('#moves .picture')"
    browser.click(f"{figure}.querySelector('[data-go=worst]')")
    assert re.match(
        r"Request \d+ of 32, warp 0: 32 threads, 128 elements", browser.value(f"{figure}.querySelector('.said').textContent")
    )
    browser.value(f"{figure}.querySelector('canvas').focus()")
    browser.press("ArrowRight")
    assert browser.value("document.getElementById('tip').textContent").startswith("A[0, 0]\nthread 0 in this request")
    browser.press("Escape")
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    assert browser.value("document.getElementById('tip').textContent").startswith("A[1, 0]\nthread 2: warp 0, lane 2")
    assert browser.complaints == []


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize("name", KERNELS)
def test_nothing_sticks_out(name: str, width: int, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(written(name), encoding="utf-8")
    browser.resize(width)
    browser.open(path)
    assert browser.value("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('.picture')].filter((f) => f.scrollWidth > f.clientWidth + 1).map((f) => f.id)"
    assert browser.value(wide) == []


def test_a_browser_shows_what_one_unit_holds(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(written("product"), encoding="utf-8")
    browser.open(path)
    figure = "[...document.querySelectorAll('#registers .picture')].find((f) => f.textContent.includes('C_state'))"
    said = f"{figure}.querySelector('.said').textContent"
    browser.value(f"{figure}.querySelector('canvas').focus()")
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
        browser.press(key)
    tip = browser.value("document.getElementById('tip').textContent")
    assert tip == "C[2, 0]\nthread 0: warp 0, lane 0, in C_state[0, 0, 2, 0]"
    browser.press("Enter")
    assert browser.value(said) == "Thread 0 (warp 0, lane 0) holds 64 elements of C, in 64 registers of C_state."
    browser.press("Escape")
    browser.click(f"{figure}.querySelector('canvas')")  # in the middle, without a move of the mouse before
    assert re.match(r"Thread \d+ \(warp \d, lane \d+\) holds 64 elements of C", browser.value(said))
    browser.value(
        f"(() => {{ const s = {figure}.querySelector('select'); s.value = 'warp'; s.dispatchEvent(new Event('change')); }})()"
    )
    assert browser.value(said) == "A click on a cell, or the buttons, show what one unit holds alone."
    browser.click(f"{figure}.querySelector('[data-go=next]')")
    browser.click(f"{figure}.querySelector('[data-go=next]')")
    assert browser.value(said) == "Warp 1 holds 2,048 elements of C, in 2,048 registers of C_state."
    assert browser.complaints == []


def tip_at(browser: Browser, figure: str, line: int, column: int, lines: int, columns: int) -> str:
    """What the tip says over one cell of a picture."""
    browser.middle(f"{figure}.querySelector('canvas')")
    box = f"{figure}.querySelector('canvas').getBoundingClientRect()"
    x, y, width, height = browser.value(f"(() => {{ const b = {box}; return [b.left, b.top, b.width, b.height]; }})()")
    size, top = (height - 17) / lines, 16
    browser.point(x + width - 1 - (columns - column - 0.5) * size, y + top + (line + 0.5) * size)
    said = browser.value("document.getElementById('tip').textContent")
    assert isinstance(said, str)
    return said


def test_a_browser_shows_what_was_computed_by_hand(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(written("product"), encoding="utf-8")
    browser.resize(1280)
    browser.open(path)
    # A_shared[k, m], rows of 128 padded by 4: A[5, 3] stands 3 * 132 + 5 = 401 words in, 12 rows of 32 banks and 17.
    shared = "document.getElementById('shared-0-0')"
    said = "A_shared[0, 3, 5]: bank 17, row 12, byte 1,604\nholds A[5, 3] when it is first read"
    assert tip_at(browser, shared, 12, 17, 66, 32) == said
    # C[37, 50]: m = 32 + 1 * 4 + 1, n = 1 * 32 + 16 + 0 * 4 + 2: piece (1, 1) of warp 1, lane 1 * 4 + 0, element (1, 2).
    state = "[...document.querySelectorAll('#registers .picture')].find((f) => f.textContent.includes('C_state'))"
    said = "C[37, 50]\nthread 36: warp 1, lane 4, in C_state[1, 1, 1, 2]"
    assert tip_at(browser, state, 37, 50, 64, 64) == said
    # C: 16 stores of 2 warps, each of 8 rows of 4 times 16 bytes side by side, which lie in 2 transactions of 32 bytes a row.
    stores = "[...document.querySelectorAll('#moves .picture')].find((f) => f.textContent.includes('write C'))"
    moved, asked = 16 * 2 * 8 * 2, 16 * 2 * 32 * 16 // 32
    assert f"transactions of 32 bytes{moved:,}, at best {asked:,}" in browser.value(f"{stores}.textContent")
    assert browser.complaints == []


@pytest.mark.parametrize("name", ["softmax", "product"])
def test_no_label_is_cut_off(name: str, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(written(name), encoding="utf-8")
    browser.open(path)
    browser.value(
        "(() => { const draw = CanvasRenderingContext2D.prototype.fillText; window.cut = []; window.drawn = 0;"
        " CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { window.drawn++;"
        " if (y + 5 > this.canvas.height / (window.devicePixelRatio || 1)) window.cut.push([text, y]);"
        " return draw.apply(this, arguments); }; })()"
    )
    browser.value("document.querySelectorAll('canvas').forEach((c) => c.dispatchEvent(new Event('mouseleave')))")
    assert browser.value("window.drawn") and browser.value("window.cut") == []
