"""The demo of the README: right on the device here, and clear where there is none."""

from __future__ import annotations

import pytest

from tilelang import demo


def test_demo_prints_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PAUSE_S", 0.0)
    assert demo.main(matmul_size=130, softmax_size=70, rounds=1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[3:]] == ["matrix product", "softmax in one kernel"]
    assert all("right" in line for line in lines[3:])


def test_demo_without_a_device(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_PLATFORM", "no such platform")
    assert demo.main() == 3
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error[no-such-device]") and "= help:" in captured.err


def test_a_wrong_result_is_said_and_returned(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    measured = [demo.Line("matrix product", False, 7.0, 1e-3, 1e-3)]
    monkeypatch.setattr(demo, "measure", lambda *arguments: measured[0])
    assert demo.main() == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--bogus"], ["--size", "abc"], ["--rounds", "0"], ["--matmul-size", "abc"], ["word"]])
def test_words_that_it_does_not_know_are_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        demo.command(words)
    assert caught.value.code == 2 and "usage: python -m tilelang.demo" in capsys.readouterr().err


def test_help_and_sizes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        demo.command(["--help"])
    assert caught.value.code == 0 and "--softmax-size" in capsys.readouterr().out
    monkeypatch.setattr(demo, "main", lambda **sizes: sizes["matmul_size"] + sizes["softmax_size"] + sizes["rounds"])
    assert demo.command(["--rounds", "3"]) == 1024 + 2048 + 3


@pytest.mark.parametrize(
    ("name", "value", "code", "exit_code"),
    [
        ("TILELANG_DUMP", "/proc/x", "dump", 2),
        ("TILELANG_DEBUG", "foo", "option-value", 2),
        ("TILELANG_DEBUG", "pass:foo", "option-value", 2),
        ("TILELANG_NOTHING", "1", "unknown-option", 2),
        ("TILELANG_PROFILE", "nope", "profile-not-found", 3),
    ],
)
def test_settings_that_cannot_be(
    name: str, value: str, code: str, exit_code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    assert demo.main(matmul_size=8, softmax_size=8, rounds=1) == exit_code
    assert capsys.readouterr().err.startswith(f"error[{code}]")
