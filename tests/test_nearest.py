"""Which profile stands in for a processor, and what of it the system's own words replace: by what was recorded on several machines."""

import dataclasses

import pytest

import tilelang as tl
from tilelang.autoschedule.cpu.device import cpu_device
from tilelang.autoschedule.profile.text import profile_text
from tilelang.lowering.drivers import host
from tilelang.lowering.drivers.processor import Cache, Processor
from tilelang.profiles.files import Head, heads_for, load_profile, parse_profile, shipped_profiles
from tilelang.profiles.profile import QUERIED, Profile
from tilelang.runtime.nearest_profile import nearest_to, with_caches
from tilelang.runtime.targets import shipped_target

L1, L2 = Cache(1, "data", 32 << 10, 8, 64, 1), Cache(2, "unified", 1 << 20, 8, 64, 1)
ZEN4 = Processor(
    "x86_64", "Linux", "AuthenticAMD", "AMD EPYC", 25, 17, 1, frozenset(), 2,
    (L1, Cache(1, "instruction", 32 << 10, 8, 64, 1), L2, Cache(3, "unified", 32 << 20, 16, 64, 2)), 16 << 30,
)  # fmt: skip
FEATURES = {64: frozenset({"avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"}), 32: frozenset({"avx2"}), 16: frozenset[str]()}


def made(vendor: str, family: int, model: int, width: int, machine: str = "x86_64") -> Processor:
    changed = dataclasses.replace(ZEN4, vendor=vendor, family=family, model=model, features=FEATURES[width], machine=machine)
    assert changed.vector_bytes == width
    return changed


def profile(name: str, *processors: str, like: str = "sapphire_rapids", rates: int = 99) -> Profile:
    given = load_profile(like)
    return dataclasses.replace(given, name=name, processors=processors, rates=given.rates[:rates])


PROFILES = [
    profile("measured_xeon", "GenuineIntel 6 143"),
    profile("zen4", "AuthenticAMD 25 17", rates=20),
    profile("zen5", "AuthenticAMD 26 2", rates=20),
    profile("zen2", "AuthenticAMD 23 49", like="avx2", rates=3),
    profile("any_avx512", like="avx512"),
    profile("any_avx2", like="avx2"),
    profile("graviton2", "ARM * 3340", like="neon"),
]


@pytest.mark.parametrize(
    ("seen", "name"),
    [(made("AuthenticAMD", 25, 17, 64), "zen4"), (made("AuthenticAMD", 26, 2, 64), "zen5"),
     (made("AuthenticAMD", 26, 36, 64), "zen5"), (made("AuthenticAMD", 25, 97, 64), "zen4"),
     (made("AuthenticAMD", 23, 1, 32), "zen2"), (made("GenuineIntel", 6, 106, 64), "measured_xeon"),
     (made("GenuineIntel", 6, 60, 32), "any_avx2"), (made("CentaurHauls", 7, 91, 64), "measured_xeon"),
     (made("GenuineIntel", 6, 23, 16), "any_avx2"), (made("ARM", 1, 3340, 16, "arm64"), "graviton2"),
     (made("Apple", 0, 34, 16, "arm64"), "graviton2")],
)  # fmt: skip
def test_the_nearest_model_of_the_vendor_then_the_width_then_the_most_rates(seen: Processor, name: str) -> None:
    assert nearest_to(seen, PROFILES).name == name


def test_the_systems_caches_replace_the_profiles() -> None:
    given = load_profile("sapphire_rapids")
    found = with_caches(given, ZEN4)
    assert [(c.bytes, c.ways) for c in cpu_device(found).caches] == [(32 << 10, 8), (1 << 20, 8)]
    assert found.rate("l3_bytes") == 32 << 20 and found.source("rates.l3_bytes") == QUERIED
    assert found.source("memories.l2.ways") == found.source("memories.l1.capacity_bytes") == QUERIED
    assert found.rate("cycle_ns") == given.rate("cycle_ns")


@pytest.mark.parametrize(("units", "size"), [(2, 32), (8, 32), (9, 64), (64, 256)])
def test_the_last_cache_is_that_of_all_cores_in_use(units: int, size: int) -> None:
    """Eight cores of two threads each share 32 MiB."""
    caches = (dataclasses.replace(L1, shared_by=2), L2, Cache(3, "unified", 32 << 20, 16, 64, 16))
    given = dataclasses.replace(load_profile("sapphire_rapids"), compute_units=units)
    assert with_caches(given, dataclasses.replace(ZEN4, caches=caches)).rate("l3_bytes") == size << 20


def test_a_second_cache_that_cores_share_counts_with_the_share_of_one() -> None:
    caches = (L1, Cache(2, "unified", 4 << 20, 16, 64, 4))
    found = with_caches(load_profile("neon"), dataclasses.replace(ZEN4, machine="arm64", caches=caches))
    assert found.memory("l2").capacity_bytes == 1 << 20 and found.memory("l2").ways == 16


def test_what_the_system_does_not_know_stays() -> None:
    given = load_profile("avx2")
    assert with_caches(given, dataclasses.replace(ZEN4, caches=())) == given
    found = with_caches(given, dataclasses.replace(ZEN4, caches=(Cache(1, "data", 48 << 10),)))
    assert found.memory("l1") == dataclasses.replace(given.memory("l1"), capacity_bytes=48 << 10)


def test_the_processor_here_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilelang.runtime.targets.processor", lambda: ZEN4)
    found = shipped_target(host.describe_processor(ZEN4, 2)).profile
    assert found.memory("l1").capacity_bytes == 32 << 10 and found.memory("shared").capacity_bytes == 1 << 20
    elsewhere = dataclasses.replace(host.describe_processor(ZEN4, 2), details="another machine's")
    assert QUERIED not in (shipped_target(elsewhere).profile.source("memories.l1.ways") or "")


@pytest.mark.parametrize("text", ["AuthenticAMD 25", "25 17", "AuthenticAMD x 17", ""])
def test_what_names_no_processor_is_refused(text: str) -> None:
    text_of_profile = profile_text(dataclasses.replace(load_profile("avx2"), processors=(text,)))
    with pytest.raises(tl.DeviceError, match="does not name a processor"):
        parse_profile(text_of_profile)


def test_a_head_says_what_the_whole_profile_says() -> None:
    for head in (head for dialect in ("cpu", "opencl", "cuda", "hip") for head in heads_for(dialect)):
        whole = load_profile(head.name)
        assert all(getattr(whole, field.name) == getattr(head, field.name) for field in dataclasses.fields(Head))
    assert {p.name for name in ("cpu", "opencl", "cuda", "hip") for p in heads_for(name)} == set(shipped_profiles())
