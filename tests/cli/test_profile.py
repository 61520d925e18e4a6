"""`tilelang profile` on the device here: files, JSON, what was asked wrongly."""

import dataclasses
import io
import sys
from pathlib import Path

import click
import platformdirs
import pytest

from tests.cli.commands import of_json, raising, tilelang
from tilelang import load_profile
from tilelang.autoschedule.profile.aspects import ASPECTS
from tilelang.cli.profile import _progress, command
from tilelang.profiles.files import read_profile
from tilelang.runtime import kernel, targets
from tilelang.runtime.targets import local_target, measured_path, target


def test_an_aspect_is_measured_into_files(tmp_path: Path) -> None:
    path = tmp_path / "here.toml"
    result = tilelang("profile", "--aspect", "clock", "--output", str(path))
    assert result.exit_code == 0, result.output
    assert "cycle_ns" in result.stdout and "clock: the time of a cycle" in result.stderr
    profile = load_profile(path)
    assert profile.rate("cycle_ns") and path.with_suffix(".csv").exists()
    assert str(target("opencl", profile=str(path))) == f"opencl for {profile.name}"
    found = of_json(tilelang("profile", "-a", "clock", "-o", str(path), "--json"))
    assert found["measured"] == ["clock"] and found["profile"] == str(path) and found["rates"]["cycle_ns"] > 0


def test_who_cannot_draw_is_told_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "here.toml"
    result = tilelang("profile", "-a", "clock", "-o", str(path), "--plot", str(tmp_path / "plots"))
    assert result.exit_code == 1 and "pip install matplotlib" in result.stderr and not path.exists()


def test_who_breaks_off_is_told_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "here.toml"
    assert tilelang("profile", "--aspect", "clock", "--output", str(path)).exit_code == 0
    interrupted = dataclasses.replace(ASPECTS["launch"], ask=raising(KeyboardInterrupt))
    monkeypatch.setitem(ASPECTS, "launch", interrupted)
    result = tilelang("profile", "--output", str(path))
    assert result.exit_code == 1 and f"the results so far are in {path}; run the same command" in result.stderr
    assert load_profile(path).rate("cycle_ns")


def test_a_terminal_sees_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar, how many of those that are asked for are done, and how long the rest takes."""
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "160")
    with click.Context(command).scope(), _progress() as progress:
        progress.begin(3)
        for name in ("clock", "launch"):
            progress.aspect(name, "its time")
            progress.sample("chain of 4")
            progress.done()
    last = click.unstyle(screen.getvalue()).splitlines()[-1]
    assert "launch: its time" in last and "━" in last and "2/3" in last and "chain of 4" in last


def test_aspects_are_listed() -> None:
    assert "multiply-add" in tilelang("profile", "--list").stdout
    assert "latency" in of_json(tilelang("profile", "--list", "--json"))["aspects"]
    assert list(of_json(tilelang("profile", "--list", "-a", "clock", "--json"))["aspects"]) == ["clock"]
    result = tilelang("profile", "--list", "--aspect", "clokc")
    assert result.exit_code == 2 and "error[unknown-aspect]" in result.stderr and "did you mean `clock`?" in result.stderr


def test_an_aspect_that_is_not_there(tmp_path: Path) -> None:
    result = tilelang("profile", "--aspect", "clokc", "--output", str(tmp_path / "x.toml"))
    assert result.exit_code == 2 and "error[unknown-aspect]" in result.stderr


def test_a_profile_of_another_device_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "volta.toml"
    text = Path("tilelang/profiles/volta.toml").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    result = tilelang("profile", "-a", "clock", "-o", str(path))
    assert result.exit_code == 1 and "error[other-device]" in result.stderr and path.read_text(encoding="utf-8") == text


def test_what_was_measured_on_other_devices_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a release whose device for the processor was PoCL's."""
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda *a, **k: str(tmp_path))
    old = tmp_path / "profiles" / "opencl-pthread-01234567.toml"
    old.parent.mkdir()
    old.write_text("schema = 1\n")
    assert f"{old}: not used, because its device is not in this machine" in tilelang("devices").stdout
    assert of_json(tilelang("devices", "--json"))["unused_profiles"] == [str(old)]


def test_what_was_measured_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda *a, **k: str(tmp_path))
    targets._local_target.cache_clear()
    try:
        device, origin = local_target(dialect="cpu").device, local_target(dialect="cpu").origin
        assert device is not None and measured_path(device).parent == tmp_path / "profiles" and origin == "shipped"
        assert "the shipped profile" in tilelang("devices").stdout
        assert tilelang("profile", "-a", "clock", "--target", "cpu").exit_code == 0
        targets._local_target.cache_clear()
        assert f"partly measured: {measured_path(device)}" in tilelang("devices").stdout
        measured = read_profile(measured_path(device))
        assert local_target(dialect="cpu").origin == "partly measured"
        here = local_target(dialect="cpu").profile
        assert here.rate("cycle_ns") == measured.rate("cycle_ns") and here.max_block_threads == device.max_threads
        for name in ASPECTS:
            monkeypatch.setitem(ASPECTS, name, dataclasses.replace(ASPECTS[name], ask=lambda bench, found: None))
        assert tilelang("profile", "--target", "cpu").exit_code == 0
        targets._local_target.cache_clear()
        assert local_target(dialect="cpu").origin == "measured"
    finally:
        targets._local_target.cache_clear()


def test_what_was_measured_and_is_damaged_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda *a, **k: str(tmp_path))
    targets._local_target.cache_clear()
    try:
        device = local_target(dialect="cpu").device
        assert device is not None
        path = measured_path(device)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\xff\xfe")
        targets._local_target.cache_clear()
        assert local_target(dialect="cpu").origin == "shipped" and "it is not text; `tilelang profile`" in caplog.text
        result = tilelang("profile", "-a", "clock", "--target", "cpu")
        assert result.exit_code == 0 and f"{path} is not a valid profile" in result.stderr and load_profile(path).rate("cycle_ns")
        assert path.with_name(path.name + ".damaged").read_bytes() == b"\xff\xfe"
    finally:
        targets._local_target.cache_clear()


def test_a_file_that_is_no_profile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe")
    result = tilelang("profile", "-a", "clock", "-o", str(path))
    assert result.exit_code == 2 and "error[profile-not-found]" in result.stderr and path.read_bytes() == b"\xff\xfe"


def test_a_device_that_no_profile_describes_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    device = local_target(dialect="cpu").device
    assert device is not None
    strange = dataclasses.replace(device, architecture="gfx1200", kind="gpu")
    monkeypatch.setattr(kernel, "devices", lambda: (strange,))
    result = tilelang("devices")
    assert result.exit_code == 0 and "no shipped profile describes gfx1200" in result.stdout
