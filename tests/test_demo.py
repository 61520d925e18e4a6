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
