"""`tilelang export`: the files for this machine and for others, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import GEMM, of_json, tilelang


@pytest.fixture
def gemm(tmp_path: Path) -> str:
    path = tmp_path / "gemm.tile"
    path.write_text(GEMM)
    return str(path)


def test_it_writes_what_the_schedule_is_called(gemm: str, tmp_path: Path) -> None:
    made = tilelang("export", gemm, "-s", "plain", "-o", str(tmp_path / "out"), "--size", "M=21")
    assert made.exit_code == 0, made.output
    names = [Path(line).name for line in made.stdout.splitlines()]
    assert names[:4] == ["plain.c", "plain.h", "plain_launch.c", "main.c"] and names[-1] == "README.txt"
    assert "21 x 12" in (tmp_path / "out" / "plain.h").read_text()


@pytest.mark.parametrize(
    ("cpu", "system", "profile", "ending", "magic"),
    [
        ("neoverse-v2", "aarch64-linux", "neon", ".so", b"\x7fELF"),
        ("haswell", "x86_64-windows", "avx2", ".dll", b"MZ"),
        ("sapphirerapids", "x86_64-linux", "avx512", ".so", b"\x7fELF"),
        (None, "aarch64-linux", "neon", ".so", b"\x7fELF"),
    ],
)
def test_other_machines(cpu: str | None, system: str, profile: str, ending: str, magic: bytes, gemm: str, tmp_path: Path) -> None:
    given = ["--target-cpu", cpu] if cpu else []
    made = of_json(tilelang("export", gemm, "-s", "simt", "-o", str(tmp_path / "out"), *given, "--target", system, "--json"))
    assert made["profile"] == profile and made["architecture"].endswith("@" + system)
    (library,) = [Path(path) for path in made["files"] if path.endswith(ending)]
    assert library.read_bytes().startswith(magic)
    assert (cpu or "generic") in (tmp_path / "out" / "README.txt").read_text()


def test_errors(gemm: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert "error[unknown-architecture]" in tilelang("export", gemm, "-s", "plain", "-o", out, "--target", "riscv-linux").stderr
    assert "error[export-name]" in tilelang("export", gemm, "-s", "plain", "-o", out, "--name", "2").stderr
    assert "error[profile-dialect]" in tilelang("export", gemm, "-s", "plain", "-o", out, "-p", "ampere").stderr
    assert tilelang("export", gemm, "-s", "plain").exit_code == 2
    assert not Path(out).exists()
