"""Commands in surroundings that are not as they should be: streams, files, pipes, memory, time, no device."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import GEMM, PAIR, ROOT, of_json, raising, tilelang


def test_run_refuses_what_does_not_fit_the_memory(gemm: str) -> None:
    result = tilelang("run", gemm, "-s", "plain", "-S", "M=4000000000", "-S", "K=400000000")
    assert result.exit_code == 1 and "error[too-large-to-run]" in result.stderr


def test_the_module_runs_and_a_closed_pipe_is_no_error(gemm: str) -> None:
    command = f"{sys.executable} -m tilelang source {gemm} -s simt | head -1"
    found = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert found.stdout.startswith("//") or found.stdout and "Traceback" not in found.stderr


def test_files_are_written_through_links_and_pipes(tmp_path: Path) -> None:
    path, real, link, pipe = (tmp_path / n for n in ("f.tile", "real", "link", "pipe"))
    path.write_text(PAIR)
    for arguments, start in ((["run", str(path), "-o"], b"\x93NUMPY"), (["explain", str(path), "--html"], b"<!DOCTYPE")):
        real.write_bytes(b"before")
        link.unlink(missing_ok=True)
        link.symlink_to(real)
        assert tilelang(*arguments, str(link)).exit_code == 0
        assert link.is_symlink() and real.read_bytes().startswith(start)
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
            assert tilelang(*arguments, str(pipe)).exit_code == 0
            assert reader.communicate(timeout=20)[0].startswith(start)
        assert pipe.is_fifo()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
@pytest.mark.parametrize("arguments", [("source", "GEMM", "-s", "simt"), ("--help",), ("run", "--help"), ("devices", "--json")])
def test_a_full_standard_output_is_a_short_error(gemm: str, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "tilelang", *(a.replace("GEMM", gemm) for a in arguments)],
            stdout=full, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    assert found.returncode == 1 and found.stderr.startswith("error[output]: ") and found.stderr.count("\n") == 1


def test_no_device_is_json(gemm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilelang.runtime.kernel.devices", lambda: ())
    result = tilelang("run", gemm, "-s", "simt", "--json")
    assert result.exit_code == 3 and of_json(result)["errors"][0]["code"] == "no-device"


def test_what_would_be_simulated_for_minutes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "walk.tile"
    path.write_text("computation f { axis i: 10000000000 output Y = sum[i] 1.0 }\n")
    explained = tilelang("explain", str(path))
    assert explained.exit_code == 0 and "too large to simulate" in explained.stdout
    for arguments in (("simulate",), ("bisect", "--on", "simulator"), ("explain", "--html", f"{tmp_path}/page.html")):
        result = tilelang(*arguments, str(path))
        assert result.exit_code == 1 and "error[too-much-to-simulate]" in result.stderr


@pytest.mark.parametrize("memory", ["shared", "register"])
@pytest.mark.parametrize("place", ["load X in", "compute Z in"])
def test_rings_larger_than_the_memory_are_refused_before_they_are_made(tmp_path: Path, memory: str, place: str) -> None:
    path = tmp_path / "ring.tile"
    for ahead, code in ((99999999, "memory-over-capacity"), (1025, "ring-too-long")):
        path.write_text(
            "computation f(N = 8, K = 4) {\n  input X: int8[i: N, k: K]\n  Z[i, k] = X[i, k] + X[i, k]\n"
            "  output Y[i] = sum[k] Z[i, k]\n}\n"
            f"schedule s for f {{\n  tile i=1 -> block\n  split k=1\n  {place} {memory} ahead {ahead}\n}}\n"
        )
        result = tilelang("check", str(path))
        assert result.exit_code == 1 and f"error[{code}]" in result.stderr and f"{path}:9:3" in result.stderr


def test_what_does_not_fit_the_memory_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "wide.tile"
    path.write_text("computation f { input X: float32[i: 99999999999] axis k: 4 output Y[k] = X[k] }\n")
    explained = tilelang("explain", str(path))
    assert explained.exit_code == 0 and "too large to simulate" in explained.stdout
    for arguments in (("bisect",), ("bisect", "--on", "simulator"), ("explain", "--html", f"{tmp_path}/page.html")):
        result = tilelang(*arguments, str(path))
        assert result.exit_code == 1 and "error[too-large-to-run]" in result.stderr


def test_what_ends_a_command_early_is_told(gemm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilelang.semantics.reference.random_arrays", raising(MemoryError))
    assert "error[too-large-to-run]: there is not enough memory" in tilelang("run", gemm, "-s", "simt").stderr
    monkeypatch.setattr("tilelang.semantics.reference.random_arrays", raising(KeyboardInterrupt))
    plain, told = tilelang("simulate", gemm, "-s", "simt"), tilelang("simulate", gemm, "-s", "simt", "--json")
    assert plain.exit_code == 1 and "Aborted!" in plain.stderr
    assert told.exit_code == 1 and of_json(told)["errors"][0]["code"] == "interrupted"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("arguments", ["source GEMM -s simt", "check GEMM -s simt", "devices"])
def test_closed_streams_are_no_fault(gemm: str, arguments: str, closed: str) -> None:
    command = f"{sys.executable} -m tilelang {arguments.replace('GEMM', gemm)} {closed}"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert found.returncode == 0 and not found.stderr


def test_files_that_cannot_be_written(gemm: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def cut(*arguments: Any, **named: Any) -> None:
        raise OSError("480 requested and 100 written")  # what NumPy says of a full disk

    monkeypatch.setattr("numpy.save", cut)
    result = tilelang("run", gemm, "-s", "simt", "-o", f"{tmp_path}/c.npy")
    assert result.exit_code == 1 and "c.npy cannot be written: 480 requested and 100 written" in result.stderr
    monkeypatch.setattr("numpy.save", raising(KeyboardInterrupt))
    assert tilelang("run", gemm, "-s", "simt", "-o", f"{tmp_path}/c.npy").exit_code == 1
    assert [p.name for p in tmp_path.iterdir()] == ["gemm.tile"]
    path = tmp_path / "f.tile"
    path.write_text("use   opencl_mad4\n")
    monkeypatch.setattr("pathlib.Path.replace", cut)
    result = tilelang("fmt", str(path))
    assert result.exit_code == 1 and "error[output-file]" in result.stderr and path.read_text() == "use   opencl_mad4\n"


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no endless device")
def test_endless_files_are_refused() -> None:
    for command in ("check", "fmt"):
        result = tilelang(command, "/dev/zero")
        assert result.exit_code == 1 and "error[too-large]" in result.stderr
    profile = tilelang("check", str(ROOT / "examples" / "01_matmul.tile"), "-p", "/dev/zero")
    assert profile.exit_code == 1 and "error[profile-syntax]" in profile.stderr


def test_pipes_are_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for command, text, code in (
        ("fmt", b"use   a", "file"),
        ("check", b"\xff", "not-text"),
        ("check", b"computation {", "bracket-not-closed"),
    ):
        with subprocess.Popen(["sh", "-c", 'cat > "$0"', str(pipe)], stdin=subprocess.PIPE) as writer:
            assert writer.stdin is not None
            writer.stdin.write(text)
            writer.stdin.close()
            result = tilelang(command, str(pipe))
        assert f"error[{code}]" in result.stderr and result.exit_code == (2 if code == "file" else 1)
    assert pipe.is_fifo()


def test_names_of_files_may_be_no_text(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.tile")
    Path(path).write_text(PAIR + "schedule for f { tile i=2 -> block }\n")
    for arguments in (("check",), ("run",), ("explain", "--html", f"{tmp_path}/page.html")):
        assert tilelang(*arguments, path).exit_code == 0
    assert "?.tile" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_commands_read_standard_input(gemm: str) -> None:
    assert "-: 1 schedule, no faults found" in tilelang("check", "-", "-s", "simt", input=GEMM).stdout
    assert tilelang("source", "-", "-s", "simt", input=GEMM).stdout == tilelang("source", gemm, "-s", "simt").stdout.replace(
        gemm, "-"
    )
    wrong = tilelang("check", "-", input=GEMM)
    assert "--> -:17:3" in wrong.stderr and "split q=2" in wrong.stderr
