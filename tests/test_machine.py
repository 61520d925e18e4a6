"""Profiles: what is shipped, what is refused, what a driver's answers change."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilelang.core import dtype as dt
from tilelang.errors import DeviceError, Refusal
from tilelang.profiles.files import load_profile, parse_profile, profile_for, profiles_for, shipped_profiles
from tilelang.profiles.profile import LEVEL_ORDER, Level, Memory, Profile, block

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTED = {
    "volta": "sm_70",
    "ampere": "sm_80",
    "ada": "sm_89",
    "hopper": "sm_90a",
    "h200": "sm_90a",
    "blackwell": "sm_100",
    "blackwell_rtx": "sm_120",
    "cdna2": "gfx90a",
    "cdna3": "gfx942",
    "rdna3": "gfx1100",
}
PROCESSORS = ("avx2", "avx512", "neon", "sapphire_rapids", "zen3", "zen4", "zen5")
OTHERS = ("adreno640", "mali_g76", "opencl_gpu")  # which have no name that a compiler knows
ELSEWHERE = ("datasheet", "artifact", "measured by others", "queried by others")
UNSOURCED = {"schema", "name", "description", "architecture", "dialects", "owner", "cache", "x", "y"}
SHIPPED = {name: (ROOT / f"tilelang/profiles/{name}.toml").read_text(encoding="utf-8") for name in shipped_profiles()}
XEON = re.sub(r'\{ value = (.*), source = ".*" \}', r"\1", SHIPPED["sapphire_rapids"].split("[rates]")[0])  # without sources


def test_profiles_of_a_dialect_are_all_that_list_it() -> None:
    every = [load_profile(name) for name in shipped_profiles()]
    for dialect in {d for p in every for d in p.dialects}:
        assert list(profiles_for(dialect)) == [p for p in every if dialect in p.dialects]


def test_shipped_profiles() -> None:
    assert shipped_profiles() == tuple(sorted((*DOCUMENTED, *PROCESSORS, *OTHERS, "simulated")))


@pytest.mark.parametrize("name", shipped_profiles())
def test_every_shipped_profile_loads(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert hash(profile) == hash(load_profile(name))
    assert [n for n in LEVEL_ORDER if n in profile.level_names] == list(profile.level_names)
    shared = profile.memory("shared").capacity_bytes
    assert shared is not None and shared > 0


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_profiles_are_of_documents(name: str) -> None:
    profile = load_profile(name)
    assert profile.architecture == DOCUMENTED[name]
    numbers = ("vector_bytes", "registers_per_thread", "compute_units", "levels.block.max_threads", "levels.warp.threads")
    for path in (*numbers, "memories.shared.capacity_bytes", "memories.shared.banks"):
        assert (profile.source(path) or "").split(":")[0] in ELSEWHERE, path


def test_waves_and_dialects_of_documented_profiles() -> None:
    waves = {name: load_profile(name).warp_size for name in DOCUMENTED}
    assert {name for name, wave in waves.items() if wave == 64} == {"cdna2", "cdna3"}
    for name, architecture in DOCUMENTED.items():
        assert load_profile(name).dialects == ("hip" if architecture.startswith("gfx") else "cuda", "opencl")
    assert all(load_profile(name).architecture for name in PROCESSORS)


def values_of(facts: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The path and the source of each value of a profile's file that is not a name; the source is empty where none is given."""
    if isinstance(facts, dict) and set(facts) != {"value", "source"}:
        for key in facts.keys() - UNSOURCED:
            yield from values_of(facts[key], f"{path}.{key}")
    elif isinstance(facts, list) and facts and isinstance(facts[0], dict):
        for table in facts:
            yield from values_of(table, f"{path}.{table['name']}")
    else:
        yield path, facts["source"] if isinstance(facts, dict) else ""


@pytest.mark.parametrize("name", shipped_profiles())
def test_every_value_says_where_it_stands(name: str) -> None:
    """What is taken from others names a document with its address, all else how it came about."""
    for path, source in values_of(tomllib.loads(SHIPPED[name])):
        kind, _, place = source.partition(": ")
        assert kind in (*ELSEWHERE, "measured", "queried", "derived", "assumed", "chosen") and place, f"{path}: {source}"
        assert kind not in ELSEWHERE or re.search(r"\b[\w-]+(\.[\w-]+)+/\S", place), f"{path}: {source}"


@pytest.mark.parametrize("name", ["volta", "ampere", "hopper", "h200", "cdna2", "cdna3"])
def test_rates_of_documented_profiles_fit_together(name: str) -> None:
    """The peak is what the lanes do at the clock; a compute unit has what its blocks may have."""
    profile = load_profile(name)
    rates = dict(profile.rates)
    lanes = rates["float32_gflops"] / (rates["clock_ghz"] * (profile.compute_units or 1) * 2)
    assert lanes == pytest.approx({"cdna2": 64, "cdna3": 128}.get(name, 64 if name in ("volta", "ampere") else 128), rel=0.15)
    assert rates["matrix_float16_gflops"] > 4 * rates["float32_gflops"]
    shared = profile.memory("shared").capacity_bytes or 0
    assert shared <= rates["core_shared_bytes"] <= shared + 2048


def test_general_profiles_are_the_least_of_the_others() -> None:
    general = load_profile("opencl_gpu")
    for name in (*DOCUMENTED, "adreno640", "mali_g76"):
        other = load_profile(name)
        assert general.max_block_threads <= other.max_block_threads and general.registers_per_thread <= other.registers_per_thread
        assert (general.memory("shared").capacity_bytes or 0) <= (other.memory("shared").capacity_bytes or 0)
    assert [load_profile(name).vector_bytes[-1] for name in PROCESSORS] == [32, 64, 16, 64, 32, 64, 64]
    assert not any(load_profile(name).lockstep for name in PROCESSORS)


def test_facts() -> None:
    xeon, simulated, hopper = load_profile("sapphire_rapids"), load_profile("simulated"), load_profile("hopper")
    assert (xeon.warp_size, xeon.async_copy, xeon.zero_copy_host) == (32, False, True)
    assert not xeon.has_level("cluster")
    assert xeon.vector_lanes(dt.float32) == (1, 2, 4, 8, 16)
    assert xeon.vector_lanes(dt.float64) == (1, 2, 4, 8)
    assert simulated.level_names == ("kernel", "cluster", "block", "warpgroup", "warp", "thread")
    assert simulated.memory("shared").capacity_bytes == 48 * 1024 and simulated.async_copy and simulated.can("async_copy")
    assert simulated.registers_per_thread == 255
    assert simulated.vector_lanes(dt.float16) == (1, 2, 4, 8)
    assert hopper.memory("shared").capacity_bytes == 227 * 1024
    assert hopper.can("bulk_tensor_copy") and not xeon.can("bulk_tensor_copy")


def test_levels_and_memories_are_values() -> None:
    assert Level("block") == block and repr(block) == "block"
    assert Level("tensor_core_group") != block
    names: list[object] = [Memory("shared"), Level("shared")]
    assert names[0] != names[1]


def test_unknown_level_and_memory() -> None:
    xeon = load_profile("sapphire_rapids")
    with pytest.raises(Refusal) as caught:
        xeon.level("wrap")
    assert caught.value.message == "the profile `sapphire_rapids` has no level `wrap`"
    assert (caught.value.code, caught.value.help) == ("unknown-level", "did you mean `warp`?")
    with pytest.raises(Refusal) as caught:
        xeon.memory(Memory("scratch"))
    assert caught.value.code == "unknown-memory"


def test_queried_limits_replace_the_file_s() -> None:
    xeon = load_profile("sapphire_rapids")
    found = xeon.with_queried(max_block_threads=256, shared_bytes=65536, compute_units=7, source="queried: CL_DEVICE")
    assert (found.max_block_threads, found.memory("shared").capacity_bytes, found.compute_units) == (256, 65536, 7)
    assert found.source("memories.shared.capacity_bytes") == "queried: CL_DEVICE"
    assert found.memory("global") == xeon.memory("global")
    assert xeon.max_block_threads == 4096


def test_rates_of_all_units_follow_their_number() -> None:
    """Arithmetic follows it; memory of another device, and how much of it is near, is assumed, so that it bounds nothing. What belongs
    to one unit stays."""
    xeon = load_profile("sapphire_rapids")
    same, many = (xeon.with_queried(compute_units=units) for units in (xeon.compute_units, 64))
    assert (same.rates, same.curves) == (xeon.rates, xeon.curves)
    assert {name: y / dict(xeon.rates)[name] for name, y in many.rates if y != dict(xeon.rates)[name]} == {
        "float32_gflops": 32, "sustained_gflops": 32, "global_gb_per_s": 32, "distant_gb_per_s": 32,
        "near_global_bytes": 32}  # fmt: skip
    assert (many.source("rates.float32_gflops") or "").startswith(
        "derived: 32 times that of Intel Xeon (Sapphire Rapids): measured"
    )
    assert not many.assumed("rates.float32_gflops") and many.assumed("rates.global_gb_per_s")
    assert many.assumed("rates.near_global_bytes")
    before, after = (p.curve("read_bandwidth") for p in (xeon, many))
    assert before is not None and after is not None and after.at(1e6) == 32 * before.at(1e6)
    assert many.assumed("curves.read_bandwidth.points") and many.curve("latency") == xeon.curve("latency")


def test_rates_of_an_older_architecture_are_assumed_of_a_newer_one() -> None:
    ampere = load_profile("ampere")
    same, newer = (ampere.with_queried(compute_units=54, architecture=name) for name in ("sm_80", "sm_86"))
    assert same.rate("float32_gflops") == newer.rate("float32_gflops") == (ampere.rate("float32_gflops") or 0) / 2
    assert newer.assumed("rates.float32_gflops") and not same.assumed("rates.float32_gflops")


def refused(text: str) -> DeviceError:
    with pytest.raises(DeviceError) as caught:
        parse_profile(text, "mine.toml")
    caught.value.span = None  # the line above
    return caught.value


def test_wrong_files_are_refused() -> None:
    assert str(refused(XEON.replace("compute_units =", "compute_unit ="))) == (
        "error[profile-key]: mine.toml: unknown key `compute_unit`\n  = help: did you mean `compute_units`?"
    )
    assert refused(XEON.replace("transaction_bytes = 64", "transactionbytes = 64")).help == "did you mean `transaction_bytes`?"
    assert str(refused(XEON.replace("schema = 1", "schema = 2"))) == (
        "error[profile-schema]: mine.toml has schema = 2; this version reads schema = 1\n  = help: schema = 1"
    )
    assert refused(XEON.replace("schema = 1", "")).code == "profile-schema"
    assert refused("schema = 1\nname = [").code == "profile-syntax"
    assert (
        refused(XEON.replace('description = "Intel Xeon (Sapphire Rapids)"', "")).message == "mine.toml: `description` is missing"
    )
    assert refused(XEON.replace("threads = 32", 'threads = "32"')).code == "profile-value"
    assert refused(XEON.replace("threads = 32", "threads = -32")).code == "profile-value"
    assert refused(XEON.replace('owner = "block"', 'owner = "blok"')).help == "did you mean `block`?"
    assert "not in order" in refused(XEON.replace('"warp"', '"cluster"')).message
    assert "no level `block`" in refused(XEON.replace('name = "block"', 'name = "core"')).message


@pytest.mark.parametrize(
    "before, after",
    [
        ("threads = 32", "threads = 0"), ("threads = 32", f"threads = {1 << 70}"), ("vector_bytes = [1,", 'vector_bytes = ["1",'),
        ("vector_bytes = [1,", "vector_bytes = [0, 1,"), ("16, 32, 64]", "16, 24, 64]"),
        ("max_vector_lanes = 16", "max_vector_lanes = 3"),
        ("vector_bytes = [1,", "vector_bytes = [-1,"), ("vector_bytes = [1,", "rates = 3\nvector_bytes = [1,"),
        ("vector_bytes = [1,", 'rates = { a_ns = "x" }\nvector_bytes = [1,'), ("grid_max = [", "grid_max = [1, "),
        ('name = "shared"', 'name = "shared"\nbank_bytes = 0'), ('name = "shared"', 'name = "shared"\nwide_read_lanes = [0, 2]'),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(before: str, after: str) -> None:
    assert before in XEON and refused(XEON.replace(before, after)).code == "profile-value"


def test_wrong_shapes_of_a_file_are_refused() -> None:
    assert refused("schema = 1\nlevels = 3").code == refused("schema = 1\nmemories = [3]").code == "profile-value"
    assert refused("schema = 1\na = " + "[" * 100_000).code == "profile-syntax"


@pytest.mark.parametrize(
    ("architecture", "name"),
    [("sm_70", "volta"), ("sm_75", "volta"), ("sm_86", "ampere"), ("sm_90a", "hopper"), ("sm_90", "hopper"), ("sm_103a", "blackwell"),
     ("sm_121", "blackwell_rtx"), ("gfx90a", "cdna2"), ("gfx1100", "rdna3")],
)  # fmt: skip
def test_the_profile_of_an_architecture(architecture: str, name: str) -> None:
    assert profile_for(architecture).name == name


@pytest.mark.parametrize("architecture", ["sm_61", "gfx906", "gfx1200"])
def test_an_architecture_that_no_profile_describes(architecture: str) -> None:
    with pytest.raises(DeviceError, match=f"no shipped profile describes {architecture}") as caught:
        profile_for(architecture)
    assert caught.value.code == "profile-not-found"


def test_of_one_architecture_the_device_s_name_decides() -> None:
    assert [profile_for("sm_90a", name).name for name in ("", "NVIDIA H100 80GB HBM3", "NVIDIA H200")] == [
        "hopper",
        "hopper",
        "h200",
    ]


def test_missing_profiles() -> None:
    with pytest.raises(DeviceError) as caught:
        load_profile("hoper")
    assert (caught.value.code, caught.value.help) == ("profile-not-found", "did you mean `hopper`? Or pass a path.")
    with pytest.raises(DeviceError) as caught:
        load_profile("/nowhere/mine.toml")
    assert "No such file" in caught.value.message


def test_a_profile_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        XEON.replace('name = "sapphire_rapids"', 'name = "mine"') + "\n[rates]\nglobal_gb_per_s = 21\n", encoding="utf-8"
    )
    found: Profile = load_profile(path)
    assert found.name == "mine" and found.rates == (("global_gb_per_s", 21.0),)


def test_a_name_like_no_other_gets_the_list() -> None:
    with pytest.raises(DeviceError) as caught:
        load_profile("nope")
    assert "did you mean" not in str(caught.value) and "`sapphire_rapids`" in str(caught.value)
    with pytest.raises(DeviceError, match="did you mean `hopper`"):
        load_profile("hoper")


CURVE = """
[rates]
launch_us = { value = 50, source = "measured: an empty kernel" }

[[curves]]
name = "read_bandwidth"
x = "footprint_bytes"
y = "gb_per_s"
points = { value = [[1024, 100], [4096, 50]], source = "measured: sums" }
"""


@pytest.mark.parametrize("value", ['"x"', "nan", "inf", "true", "[1]", f"1{'0' * 400}", "-1"])
def test_a_rate_that_is_no_number_is_named(value: str) -> None:
    text = f"{XEON}\n[rates]\nlaunch_us = 3\ncycle_ns = {value}\nblock_us = 4\n"
    assert re.fullmatch("mine.toml: the rate `cycle_ns` is [^`]+", refused(text).message)


@pytest.mark.parametrize("rate", ["clock_ghz", "global_gb_per_s", "float32_gflops", "core_schedulers"])
def test_a_divisor_of_nothing_is_refused(rate: str) -> None:
    assert f"the rate `{rate}` is 0" in refused(f"{XEON}\n[rates]\n{rate} = 0\n").message


def test_rates_and_curves_are_read_with_their_sources() -> None:
    profile = parse_profile(XEON + CURVE)
    curve = profile.curve("read_bandwidth")
    assert curve is not None and (curve.x, curve.y, curve.points) == ("footprint_bytes", "gb_per_s", ((1024, 100), (4096, 50)))
    assert profile.rate("launch_us") == 50 and profile.rate("land_us") is None and profile.curve("writes") is None
    assert profile.source("rates.launch_us") == "measured: an empty kernel"
    assert profile.source("curves.read_bandwidth.points") == "measured: sums"
    assert [curve.at(x) for x in (1, 1024, 2048, 4096, 1 << 30)] == [100, 100, 75, 50, 50]
    assert hash(profile) != hash(load_profile("volta"))


@pytest.mark.parametrize(
    "before, after",
    [
        ("[[1024, 100], [4096, 50]]", "[]"), ("[[1024, 100], [4096, 50]]", "[[0, 100]]"), ("[4096, 50]", "[1024, 50]"),
        ("[4096, 50]", "[4096]"), ("[4096, 50]", '[4096, "50"]'), ("[4096, 50]", "4096"), ("[4096, 50]", "[4096, 0]"),
        ("[4096, 50]", "[4096, nan]"), ("[4096, 50]", "[inf, 50]"), ("[4096, 50]", f"[4096, 1{'0' * 400}]"), ('"read_bandwidth"', "3"),
    ],
)  # fmt: skip
def test_wrong_curves_are_refused(before: str, after: str) -> None:
    assert refused(XEON + CURVE.replace(before, after)).code == "profile-value"


def test_two_curves_of_one_name_are_refused() -> None:
    assert "two curves" in refused(XEON + CURVE + CURVE[CURVE.index("[[curves]]") :]).message


def test_a_former_name_is_told_to_whoever_uses_it() -> None:
    with pytest.warns(FutureWarning, match="`pocl` is now called `sapphire_rapids`"):
        assert load_profile("pocl") == load_profile("sapphire_rapids")
