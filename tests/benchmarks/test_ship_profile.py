"""A measured profile as one that is shipped: whose every number says which machine it is of."""

import dataclasses

from benchmarks.ship_profile import shipped, text_of
from tilelang.profiles.files import load_profile, parse_profile
from tilelang.profiles.profile import QUERIED, SHIPPED

MACHINE = "2 cores of a made-up processor"


def test_each_number_says_which_machine_it_is_of() -> None:
    given = load_profile("sapphire_rapids")
    changed = {"rates.cycle_ns": "measured: a chain", "memories.l2.ways": QUERIED, "compute_units": QUERIED}
    sources = tuple((path, changed.get(path, SHIPPED + how)) for path, how in given.sources)
    measured = dataclasses.replace(given, sources=sources, architecture="native", unmeasured=("clock",))
    made = shipped(measured, "mine", "a made-up processor", "znver9", "Vendor 1 2", MACHINE, "sapphire_rapids")
    assert (made.name, made.architecture, made.processors, made.unmeasured) == ("mine", "znver9", ("Vendor 1 2",), ())
    assert made.source("rates.cycle_ns") == f"measured: a chain; {MACHINE}"
    assert made.source("memories.l2.ways") == made.source("compute_units") == f"queried: reported by the system on {MACHINE}"
    assert made.assumed("rates.piece_cycles") and "sapphire_rapids.toml: derived: fitted" in (
        made.source("rates.piece_cycles") or ""
    )
    assert made.source("vector_bytes") == given.source("vector_bytes"), "what documents say of the instruction set holds"
    again = parse_profile(text_of(made, MACHINE))
    assert again == made and again.sources == made.sources and MACHINE in text_of(made, MACHINE).splitlines()[0]


def test_what_was_not_measured_again_stays_as_it_was() -> None:
    given = load_profile("zen4")
    sources = tuple((path, "measured: a chain" if path == "rates.cycle_ns" else SHIPPED + how) for path, how in given.sources)
    measured = dataclasses.replace(given, sources=sources)
    made = shipped(measured, "zen4", given.description, given.architecture or "", "Vendor 1 2", MACHINE, "zen4")
    assert made.source("rates.cycle_ns") == f"measured: a chain; {MACHINE}"
    assert made.source("rates.exp_cycles") == given.source("rates.exp_cycles")
    assert made.source("rates.piece_cycles") == given.source("rates.piece_cycles")
