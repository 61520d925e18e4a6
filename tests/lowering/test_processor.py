"""What is read of processors, by what systems say of some; and how many cores a process may use."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lowering import processor_samples as samples
from tilelang.lowering.drivers import processor_linux, processor_macos, processor_windows
from tilelang.lowering.drivers.cores import usable_cores
from tilelang.lowering.drivers.processor import ARM64, X86_64, Cache, processor

FILES = ("level", "type", "size", "ways_of_associativity", "coherency_line_size", "shared_cpu_list")


def folder_of(tmp_path: Path, caches: Sequence[tuple[str, ...]]) -> Path:
    """The folder of a core with its caches."""
    for n, values in enumerate(caches):
        index = tmp_path / "cpu0" / "cache" / f"index{n}"
        index.mkdir(parents=True)
        for name, value in zip(FILES, values, strict=True):
            (index / name).write_text(value + "\n")
    return tmp_path / "cpu0"


def test_sapphire_rapids(tmp_path: Path) -> None:
    core = folder_of(tmp_path, samples.SAPPHIRE_RAPIDS_CACHES)
    found = processor_linux.parse(X86_64, samples.SAPPHIRE_RAPIDS, core, {}, 8, 1 << 36)
    assert (found.vendor, found.name) == ("GenuineIntel", "Intel(R) Xeon(R) Platinum 8488C")
    assert (found.family, found.model, found.stepping, found.logical) == (6, 143, 8, 8)
    assert found.vector_bytes == 64 and {"amx_tile", "avx512_fp16"} <= found.features
    assert found.caches == (
        Cache(1, "data", 48 << 10, 12, 64, 2),
        Cache(1, "instruction", 32 << 10, 8, 64, 2),
        Cache(2, "unified", 2 << 20, 16, 64, 2),
        Cache(3, "unified", 105 << 20, 15, 64, 8),
    )
    assert found.cache(1) == found.caches[0] and found.cache(4) is None


def test_zen_4_and_zen_5(tmp_path: Path) -> None:
    four = processor_linux.parse(X86_64, samples.ZEN4, folder_of(tmp_path / "4", samples.ZEN4_CACHES), {}, 2, 1 << 34)
    five = processor_linux.parse(X86_64, samples.ZEN5, folder_of(tmp_path / "5", samples.ZEN5_CACHES), {}, 8, 1 << 34)
    assert (four.family, five.family) == (25, 26) and four.vector_bytes == five.vector_bytes == 64
    assert four.cache(1) == Cache(1, "data", 32 << 10, 8, 64, 1) and five.cache(1) == Cache(1, "data", 48 << 10, 12, 64, 1)
    assert five.cache(3) == Cache(3, "unified", 32 << 20, 16, 64, 8)
    assert four.details != five.details and "family 25 model 17 stepping 1" in four.details


def test_neoverse_v1(tmp_path: Path) -> None:
    core = folder_of(tmp_path, samples.NEOVERSE_V1_CACHES)
    found = processor_linux.parse(ARM64, samples.NEOVERSE_V1, core, {}, 4, 1 << 34)
    assert (found.vendor, found.name) == ("ARM", "Neoverse V1")
    assert (found.family, found.model, found.stepping) == (1, 0xD40, 1)
    assert found.vector_bytes == 16 and {"bf16", "i8mm", "asimddp"} <= found.features
    assert found.cache(2) == Cache(2, "unified", 1 << 20, 8, 64, 1)
    unknown = samples.NEOVERSE_V1.replace("0x41", "0x77").replace("0xd40", "0xabc")
    assert processor_linux.parse(ARM64, unknown, core, {}, 4, 0).name == "0x77 0xabc"


def test_vectors_by_extensions(tmp_path: Path) -> None:
    def width(flags: str) -> int:
        return processor_linux.parse(X86_64, f"flags\t: {flags}\n", tmp_path, {}, 1, 0).vector_bytes

    assert width(samples.HASWELL_FLAGS) == 32 and width("sse sse2") == width("sse2 avx") == 16
    assert width(samples.HASWELL_FLAGS + " avx512f avx512cd avx512er") == 32  # Knights Landing lacks the others


def test_a_container_without_sys(tmp_path: Path) -> None:
    sysconf = {188: 32768, 189: 8, 190: 64, 191: 1 << 20, 192: 8, 193: 64, 194: 0, 195: -1, 196: 64}
    found = processor_linux.parse(X86_64, samples.ZEN4, tmp_path / "missing", sysconf, 2, 0)
    assert found.caches == (Cache(1, "data", 32768, 8, 64), Cache(2, "unified", 1 << 20, 8, 64))
    nothing = processor_linux.parse(X86_64, "", tmp_path / "missing", {}, 2, 0)
    assert (nothing.name, nothing.caches, nothing.vector_bytes) == ("x86_64 processor", (), 16)
    assert "caches unknown" in nothing.details


def test_files_that_are_damaged(tmp_path: Path) -> None:
    core = folder_of(
        tmp_path, [("1", "Data", "32K", "", "64", "0"), ("x", "Data", "1K", "1", "1", ""), ("2", "Other", "1K", "1", "1", "")]
    )
    assert processor_linux.parse(X86_64, "cpu family : many\n", core, {}, 1, 0).caches == (Cache(1, "data", 32 << 10, 0, 64, 1),)


def test_apple_m1() -> None:
    found = processor_macos.parse(ARM64, samples.APPLE_M1.get)
    assert (found.vendor, found.name, found.logical, found.memory_bytes) == ("Apple", "Apple M1", 8, 16 << 30)
    assert found.features == {"FEAT_FP16", "FEAT_DotProd"} and found.vector_bytes == 16
    assert found.caches == (
        Cache(1, "data", 128 << 10, 0, 128, 1),
        Cache(1, "instruction", 192 << 10, 0, 128, 1),
        Cache(2, "unified", 12 << 20, 0, 128, 4),
    )


def test_a_mac_of_intel() -> None:
    found = processor_macos.parse(X86_64, samples.MAC_OF_INTEL.get)
    assert (found.family, found.model, found.stepping, found.vector_bytes) == (6, 158, 10, 32)
    assert {"sse4_1", "avx", "avx2"} <= found.features
    assert found.cache(2) == Cache(2, "unified", 256 << 10, 4, 64, 2) and found.cache(3) == Cache(
        3, "unified", 9 << 20, 0, 64, 12
    )


def test_windows() -> None:
    present = frozenset({10, 39, 40, 41})
    found = processor_windows.parse(X86_64, samples.WINDOWS_REGISTRY, samples.WINDOWS_CACHES, present, 32, 1 << 35)
    assert (found.vendor, found.name) == ("AuthenticAMD", "AMD Ryzen 9 7950X 16-Core Processor")
    assert (found.family, found.model, found.stepping, found.vector_bytes) == (25, 97, 2, 64)
    assert found.caches == (
        Cache(1, "data", 32 << 10, 8, 64, 2),
        Cache(1, "instruction", 32 << 10, 8, 64, 2),
        Cache(2, "unified", 1 << 20, 8, 64, 2),
        Cache(3, "unified", 32 << 20, 16, 64, 16),
    )
    full = samples.windows_cache(1, 0xFF, 64, 4096, 2, 1)
    assert processor_windows.caches(full) == (Cache(1, "data", 4096, 64, 64, 1),)
    assert processor_windows.caches(full[:20]) == processor_windows.caches(b"") == ()
    arm = processor_windows.parse(ARM64, samples.WINDOWS_ARM_REGISTRY, b"", frozenset({43, 68}), 12, 0)
    assert (arm.family, arm.model, arm.stepping, sorted(arm.features), arm.vector_bytes) == (8, 1, 201, ["asimddp", "bf16"], 16)


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64", reason="compares with Linux's own files"
)
def test_this_processor() -> None:
    found, text = processor(), Path("/proc/cpuinfo").read_text()
    assert found is processor() and found.machine == X86_64 and found.name in " ".join(text.split())
    assert found.features and found.features <= set(text.split()) and found.logical == os.cpu_count()
    assert found.memory_bytes > 1 << 28


def test_reading_it_takes_no_compiler_and_no_numpy() -> None:
    code = """
import sys
from tilelang.lowering.drivers.processor import processor
processor()
print(sorted({"numpy", "subprocess", "pyopencl", "tilelang.lowering.compilers.interface"} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).resolve().parents[2])
    assert done.stdout.strip() == "[]", done.stderr


# ---------------------------------------------------------------- cores


@pytest.fixture
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 2, 3}, raising=False)


def cores(tmp_path: Path, of_process: str, files: dict[str, str]) -> int:
    (tmp_path / "cgroup").write_text(of_process)
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return usable_cores(tmp_path / "groups", tmp_path / "cgroup")


@pytest.mark.parametrize(
    ("of_process", "files", "expected"),
    [
        ("", {}, 3),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "800000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "damaged"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2),  # of the group above
        ("0::/not/seen/here\n", {"cpu.max": "200000 100000\n"}, 2),  # of the container, at the top
        (
            "4:memory:/x\n3:cpu,cpuacct:/x\n",
            {"cpu,cpuacct/x/cpu.cfs_quota_us": "200000", "cpu,cpuacct/x/cpu.cfs_period_us": "100000"},
            2,
        ),
        ("3:cpuacct,cpu:/x\n", {"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ("0::/../..\n", {"cpu.max": "100000 100000\n"}, 1),
    ],
)
def test_cores_by_affinity_and_control_group(
    tmp_path: Path, three_cores: None, of_process: str, files: dict[str, str], expected: int
) -> None:
    assert cores(tmp_path, of_process, files) == expected


def test_cores_where_the_system_has_no_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert usable_cores(tmp_path, tmp_path / "missing") == 5
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(tmp_path, tmp_path / "missing") == 1
