"""What a file leaves open: constructed, filled, searched for and timed, from the command line."""

import contextlib
import shutil
from pathlib import Path
from unittest.mock import Mock

import platformdirs
import pytest

import tilelang as tl
from tests.cli.commands import ROOT, of_json, raising, tilelang
from tilelang.autoschedule.tune.database import Database
from tilelang.cli.output import compiling
from tilelang.grammar import format_text
from tilelang.runtime import targets

HALF = """computation product(M, N, K) {
  input A: float32[m: M, k: K]
  input B: float32[k: K, n: N]
  output C[m, n] = sum[k] A[m, k] * B[k, n]
}
"""
SIZES = ("-S", "M=40", "-S", "N=48", "-S", "K=20")
XEON = ("-p", "sapphire_rapids")  # what is searched for, whichever device is here


@pytest.mark.slow
def test_a_file_without_a_schedule_has_one_constructed(tmp_path: Path) -> None:
    path = tmp_path / "product.tile"
    path.write_text(HALF)
    result = tilelang("run", str(path), *SIZES, "--check")
    assert result.exit_code == 0 and "product: right" in result.stdout, result.output
    steps = of_json(tilelang("explain", str(path), *SIZES, "--json"))["steps"]
    assert any("accumulate" in (s["step"] or "") for s in steps)
    assert of_json(tilelang("explain", str(path), *SIZES, "--until", "0", "--json"))["schedule"] == "schedule for product { }"


@pytest.mark.slow
def test_fill_writes_a_file_that_runs(tmp_path: Path) -> None:
    path, made = tmp_path / "half.tile", tmp_path / "filled.tile"
    path.write_text(HALF + "schedule half for product {\n  tile m=? n=16 -> block\n  ...\n}\n")
    result = tilelang("fill", str(path), *SIZES, "-s", "half", "-o", str(made))
    assert result.exit_code == 0 and not result.stdout, result.output
    text = made.read_text()
    assert "schedule half for product" in text and "n=16 -> block" in text and "?" not in text and "..." not in text
    assert tilelang("fmt", "--check", str(made)).exit_code == 0
    assert tilelang("run", str(made), "--check").exit_code == 0
    assert tilelang("fill", str(path), *SIZES, "-s", "half").stdout == text
    found = of_json(tilelang("fill", str(path), *SIZES, "-s", "half", "--json", "--profile", "volta"))
    assert found["profile"] == "volta" and found["seconds"] >= found["bound"] > 0 and "n=16 -> block" in found["text"]


def test_the_profile_of_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(ROOT / "examples" / "17_no_schedule.tile")
    given = tilelang("fill", path, "--profile", "avx2").stdout
    assert given != tilelang("fill", path).stdout
    monkeypatch.setenv("TILELANG_PROFILE", "avx2")
    assert tilelang("fill", path).stdout == given


def test_candidates_for_what_a_file_leaves_open_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, path = tmp_path / "schedules.sqlite", tmp_path / "half.tile"
    monkeypatch.setenv("TILELANG_DATABASE", str(kept))
    path.write_text(HALF + "schedule half for product {\n  tile m=? n=16 -> block\n  ...\n}\n")
    assert tilelang("run", str(path), *SIZES, "--trials", "2", "--until", "1").exit_code == 0
    timed = Database(kept).entries()
    assert timed and {e.trials for e in timed} == {2} and all("n=16" in e.key.given for e in timed)
    fastest = format_text(min(timed, key=lambda e: e.median_s).schedule + "\n")
    monkeypatch.setattr(
        "tilelang.autoschedule.tune.best.measure", raising(AssertionError)
    )  # what is remembered is not timed again
    filled = tilelang("fill", str(path), *SIZES, "--trials", "2")
    assert filled.exit_code == 0 and filled.stdout.endswith(fastest), filled.output


def test_trials_need_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "product.tile"
    path.write_text(HALF)
    monkeypatch.setenv("TILELANG_DEVICE", "none of that name")
    result = tilelang("fill", str(path), *SIZES, "--trials", "2")
    assert result.exit_code == 3 and "error[no-such-device]" in result.stderr
    assert tilelang("fill", str(path), *SIZES).exit_code == 0


def test_a_terminal_shows_how_far_trials_are(monkeypatch: pytest.MonkeyPatch) -> None:
    spinner = Mock()
    monkeypatch.setattr("tilelang.cli.output.working", lambda what: contextlib.nullcontext(spinner))
    with compiling() as tell:
        tell("check", 1, 8)
        tell("time", 5, 11)
    assert [str(call.args[0]) for call in spinner.update.call_args_list] == [
        "checking candidates: 1 of 8", "timing them in turns: 5 of 11"
    ]  # fmt: skip


@pytest.mark.slow
def test_what_is_searched_for_is_the_device_here_as_a_compiled_kernel_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda *a, **k: str(tmp_path))
    monkeypatch.delenv("TILELANG_PROFILE", raising=False)
    monkeypatch.setenv("TILELANG_TARGET", "cpu")
    targets._local_target.cache_clear()
    try:
        (device,), _ = targets.devices_of("cpu")
        file, path = str(ROOT / "examples" / "17_no_schedule.tile"), targets.measured_path(device)
        shipped = targets.local_target().profile.name
        assert tilelang("fill", file).stdout.startswith(f"# for {device}, profile {shipped} (shipped)\n")
        path.parent.mkdir(parents=True)
        shutil.copy(ROOT / "tilelang" / "profiles" / "avx2.toml", path)
        targets._local_target.cache_clear()
        filled = tilelang("fill", file).stdout
        assert filled.startswith(f"# for {device}, profile avx2 (measured)\n") and format_text(filled) == filled
        assert filled.endswith(tl.compile(tl.read(file).computation()).schedule.text + "\n")
        assert f"for {device}, profile avx2 (measured): " in tilelang("explain", "--search", file).stdout
        for command in (("fill",), ("explain", "--search")):
            assert of_json(tilelang(*command, file, "--json"))["origin"] == "measured"
            assert of_json(tilelang(*command, file, "--json", "-p", "sapphire_rapids"))["origin"] == "given"
            if not targets.devices_of("cuda")[0]:
                assert of_json(tilelang(*command, file, "--json", "--target", "cuda"))["profile"] == "ampere"
    finally:
        targets._local_target.cache_clear()


def test_the_target_of_the_environment_has_its_own_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without a device: it was refused as none of the processor's."""
    monkeypatch.setenv("TILELANG_TARGET", "cuda")
    monkeypatch.setenv("TILELANG_DEVICE", "none of that name")
    monkeypatch.delenv("TILELANG_PROFILE", raising=False)
    found = of_json(tilelang("fill", str(ROOT / "examples" / "17_no_schedule.tile"), "--json"))
    assert found["profile"] == "ampere" and found["origin"] == "given"


def test_fill_says_what_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "half.tile"
    path.write_text(HALF + "schedule half for product {\n  tile m=? n=8192 -> block\n  tile m=1 n=1 -> thread\n}\n")
    result = tilelang("fill", str(path), "-S", "M=8", "-S", "N=8192", "-S", "K=4", *XEON)
    assert result.exit_code == 1 and "error[too-many-threads]" in result.stderr and f"{path}:8:3" in result.stderr, result.stderr


@pytest.mark.slow
def test_explain_shows_the_search(tmp_path: Path) -> None:
    path = tmp_path / "half.tile"
    path.write_text(HALF + "schedule half for product {\n  tile m=? n=? -> block\n  load A in shared\n  ...\n}\n")
    result = tilelang("explain", "--search", str(path), "-S", "M=64", "-S", "N=64", "-S", "K=40000", *XEON)
    assert result.exit_code == 0, result.output
    assert "is chosen" in result.stdout and "no less than" in result.stdout
    (shared,) = (line.split() for line in result.stdout.splitlines() if line.startswith("shared "))
    assert int(shared[1]) > 0 and shared[2].endswith("%")
    found = of_json(tilelang("explain", "--search", str(path), *SIZES, *XEON, "--json"))
    first = found["candidates"][found["taken"]]
    assert first["seconds"] == pytest.approx(sum(first["parts"].values())) and first["dropped"] is None
    assert found["generated"] - found["dropped"] >= sum(c["dropped"] is None for c in found["candidates"]) > 1
    assert found["dropped"] == sum(r["dropped"] for r in found["rules"])
    assert sum(r["share"] for r in found["rules"]) == pytest.approx(found["dropped"] / found["generated"])
    seconds = [c["seconds"] for c in found["candidates"][:-1]]
    assert seconds == sorted(seconds)


def test_the_search_says_what_it_had_to_do_without(tmp_path: Path) -> None:
    path = tmp_path / "product.tile"
    path.write_text(HALF)
    shown = tilelang("explain", "--search", str(path), *SIZES, "-p", "mali_g76").stdout
    said = of_json(tilelang("explain", "--search", str(path), *SIZES, "-p", "mali_g76", "--json"))["notes"]
    assert said == [
        "C: no register tiles that fit are so large that shared memory takes less time than arithmetic; kept are m=4 n=4"
    ]
    assert f"note: {said[0]}" in shown.splitlines()
    assert of_json(tilelang("explain", "--search", str(path), *SIZES, *XEON, "--json"))["notes"] == []


def test_rules_of_the_search_are_switched_off_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "product.tile"
    path.write_text(HALF)

    def dropped(*options: str) -> dict[str, int]:
        found = of_json(tilelang("explain", "--search", str(path), *SIZES, *XEON, "--json", *options))
        assert {r["rule"] for r in found["rules"] if not r["on"]} == set(options[1::2])
        return {r["rule"]: r["dropped"] for r in found["rules"]}

    assert dropped()["registers"] > 0
    assert dropped("--without", "registers", "--without", "tails")["registers"] == 0
    unknown = tilelang("explain", "--search", str(path), *SIZES, "--without", "register")
    assert unknown.exit_code == 2 and "did you mean registers?" in unknown.stderr
    assert tilelang("explain", str(path), *SIZES, "--without", "registers").exit_code == 2
