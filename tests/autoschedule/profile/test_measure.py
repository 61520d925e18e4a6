"""Measuring into files: resumed where it broke off, whole or not at all, an aspect of its own again."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.autoschedule.profile.benches import Compiling
from tilelang.autoschedule.profile.aspects import Aspect
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.autoschedule.profile.measure import Outcome, Progress, measure, read_rows, rows_text
from tilelang.autoschedule.profile.text import profile_text
from tilelang.errors import DeviceError
from tilelang.profiles.files import load_profile, parse_profile, shipped_profiles
from tilelang.profiles.profile import QUERIED

POCL = load_profile("sapphire_rapids")
BENCH = Compiling(POCL, "opencl", False)


def aspects(seconds: float = 2e-3) -> dict[str, Aspect]:
    """Two aspects: the second needs the first, and knows what it found."""

    def clock(bench: Bench, found: Findings) -> None:
        found.rate("cycle_ns", found.time("chain", 1, lambda rounds: rounds * seconds).seconds * 1e3, "a chain")
        found.fact("l1", "ways", 8, "lines")

    def reads(bench: Bench, found: Findings) -> None:
        found.curve("reads", "footprint_bytes", "gb_per_s", [(2048, 7), (1024, 9 * found.known["cycle_ns"])], "sums")

    return {"clock": Aspect("a cycle", clock), "reads": Aspect("bytes", reads, needs=("clock",))}


def run(path: Path, *asked: str, kinds: Mapping[str, Aspect] | None = None) -> Outcome:
    return measure(BENCH, path, asked, kinds or aspects(), repeats=3)


def test_everything_is_measured_once(tmp_path: Path) -> None:
    path = tmp_path / "here" / "mine.toml"
    assert run(path).measured == ("clock", "reads")
    profile = load_profile(path)
    assert profile.rate("cycle_ns") == 2 and profile.source("rates.cycle_ns") == "measured: a chain"
    assert profile.memory("l1").ways == 8 and profile.source("memories.l1.ways") == "measured: lines"
    curve = profile.curve("reads")
    assert curve is not None and curve.points == ((1024, 18), (2048, 7))
    assert profile.levels == BENCH.profile.levels and profile.description == str(BENCH.device)
    assert run(path).measured == ()
    assert sorted(p.name for p in path.parent.iterdir()) == ["mine.csv", "mine.toml"]
    with path.with_suffix(".csv").open(encoding="utf-8") as table:
        row = next(csv.DictReader(table))
    assert (row["aspect"], row["series"], float(row["seconds"]), row["repeats"]) == ("clock 1", "chain", 2e-3, "3")


def test_what_was_not_measured_here_says_so(tmp_path: Path) -> None:
    """A rate that is shipped as measured was measured elsewhere; what is assumed stays that; what the driver says is of this device."""
    path, bench = tmp_path / "mine.toml", Compiling(POCL.with_queried(compute_units=2, source=QUERIED), "opencl", False)
    first = measure(bench, path, ("clock",), aspects(), 3).profile
    assert first == load_profile(path) and first.unmeasured == ("reads",)
    sources = dict(load_profile(path).sources)
    assert {name for name, how in sources.items() if how.startswith("measured")} == {"rates.cycle_ns", "memories.l1.ways"}
    assert {name for name, how in sources.items() if not how.startswith(("measured", "shipped: "))} == {"compute_units"}
    assert first.source("rates.float32_gflops") == f"shipped: {POCL.source('rates.float32_gflops')}"
    assert first.assumed("rates.page_bytes") and not first.assumed("rates.float32_gflops")
    assert measure(bench, path, (), aspects(), 3).profile.unmeasured == ()


def test_what_broke_off_goes_on(tmp_path: Path) -> None:
    path, broken = tmp_path / "mine.toml", aspects()

    def interrupted(bench: Bench, found: Findings) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, kinds=broken | {"reads": Aspect("bytes", interrupted)})
    assert load_profile(path).rate("cycle_ns") == 2
    assert run(path).measured == ("reads",)


def test_one_aspect_is_measured_again_with_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert run(path, "reads").measured == ("clock", "reads")
    assert run(path, "reads").measured == ("reads",)
    assert run(path, "clock", kinds=aspects(3e-3)).measured == ("clock",)
    profile = parse_profile(path.read_text(encoding="utf-8"))
    assert profile.rate("cycle_ns") == 3 and profile.curve("reads") is not None
    newer = aspects() | {"clock": Aspect("a cycle", aspects()["clock"].ask, version=2)}
    assert run(path, kinds=newer).measured == ("clock",)


def nothing(bench: Bench, found: Findings) -> None:
    found.time("nothing", 1, lambda rounds: 0.0)


def a_drivers_own(bench: Bench, found: Findings) -> None:
    raise RuntimeError("clWaitForEvents failed: OUT_OF_RESOURCES")


@pytest.mark.parametrize("fails", [nothing, a_drivers_own])
def test_an_aspect_that_fails_is_told_and_left_out(tmp_path: Path, fails: Callable[[Bench, Findings], None]) -> None:
    path = tmp_path / "mine.toml"
    outcome = run(path, kinds={"clock": Aspect("a cycle", fails), "launch": Aspect("launches", aspects()["clock"].ask)})
    assert outcome.measured == ("launch",) and outcome.warnings[0].startswith("clock is not measured: ")
    assert run(path).measured == ("clock", "reads")


def test_what_does_not_apply_is_told_and_recorded_as_that(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"

    def strange(bench: Bench, found: Findings) -> None:
        found.rate("half_ns", found.time("half", 1, lambda rounds: rounds * 1e-3).seconds, "half of it")
        raise NotApplicable("it has no clock, no hands")

    kinds = aspects() | {"clock": Aspect("a cycle", strange)}
    kinds["reads"] = Aspect("bytes", lambda bench, found: None)
    outcome = run(path, kinds=kinds)
    assert outcome.measured == ("reads",) and outcome.left_out == {"clock": "it has no clock, no hands"}
    assert 'clock 1,"not applicable: it has no clock, no hands"' in path.with_suffix(".csv").read_text(encoding="utf-8")
    assert load_profile(path).rate("half_ns") is None
    again = run(path, kinds=kinds)
    assert again.measured == () and again.left_out == {}


def test_repeats_that_differ_are_told(tmp_path: Path) -> None:
    times = iter([0.01, 0.02] * 100)

    def unsteady(bench: Bench, found: Findings) -> None:
        found.time("noise", 64, lambda rounds: next(times))

    outcome = run(tmp_path / "mine.toml", kinds={"noise": Aspect("noise", unsteady)})
    assert len(outcome.warnings) == 1 and "noise at 64" in outcome.warnings[0] and outcome.measured == ("noise",)


def test_files_of_another_device_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(profile_text(load_profile("volta")), encoding="utf-8")
    with pytest.raises(DeviceError) as caught:
        run(path)
    assert caught.value.code == "other-device"
    with pytest.raises(DeviceError) as caught:
        run(path, "clokc")
    assert caught.value.code == "unknown-aspect"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError) as caught:
        run(tmp_path / "file" / "mine.toml")
    assert caught.value.code == "output-file"


def test_a_damaged_table_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    run(path)
    table = path.with_suffix(".csv")
    table.write_text(table.read_text(encoding="utf-8")[:40], encoding="utf-8")
    assert run(path).measured == ("clock", "reads")


@pytest.mark.parametrize("damage", ["chain,a,b,c,d,e,f", "chain,1,2", "chain", "", '"chain'])
def test_an_aspect_with_a_line_that_is_no_row_is_measured_again(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    run(path)
    table = path.with_suffix(".csv")
    whole = table.read_text(encoding="utf-8").splitlines()
    assert whole[1].startswith("clock 1,chain,1,0.002")
    table.write_text("\n".join([whole[0], f"clock 1,{damage}", whole[2]]), encoding="utf-8")
    assert "clock" in run(path).measured
    assert sorted(table.read_text(encoding="utf-8").splitlines()) == sorted(whole)


def test_a_table_that_is_no_text_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    run(path)
    for damage in (b"\xff\xfe\x00", b"\xff" * 200_000, b"aspect\nclock 1,chain,\xff,2,3,4,5,6\n"):
        path.with_suffix(".csv").write_bytes(damage)
        assert run(path).measured == ("clock", "reads")


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    progress = Progress(
        begin=lambda total: told.append(f"{total} aspects"), aspect=lambda name, about: told.append(f"{name}: {about}"),
        sample=told.append, done=lambda: told.append("done"),
    )  # fmt: skip
    measure(BENCH, tmp_path / "mine.toml", (), aspects(), 3, progress)
    assert told == ["2 aspects", "clock: a cycle", "chain", "done", "reads: bytes", "done"]
    measure(BENCH, tmp_path / "mine.toml", ("reads",), aspects(), 3, progress)
    assert told[6:] == ["1 aspects", "reads: bytes", "done"]


@pytest.mark.parametrize("name", shipped_profiles())
def test_profiles_are_written_as_they_are_read(name: str) -> None:
    profile = load_profile(name)
    again = parse_profile(profile_text(profile, "two\nlines"))
    assert again == profile and again.sources == profile.sources


def test_rows_are_written_as_they_are_read() -> None:
    found = Findings({}, repeats=3)
    found.time("reads of, say, lines", 1024, lambda rounds: rounds * 1e-3)
    assert read_rows(rows_text({"a 1": found.rows, "b 2": []})) == {"a 1": found.rows, "b 2": []}


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(DeviceError, match="No space left"):
        run(tmp_path / "mine.toml")
    assert not list(tmp_path.iterdir())
