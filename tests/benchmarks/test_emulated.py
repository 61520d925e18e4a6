"""The large run of the emulation: no example is forgotten."""

from benchmarks import emulated
from tests.test_examples import NAMES, SIZES, load


def test_every_example_has_a_large_size() -> None:
    assert set(emulated.LARGE) == {name for name in NAMES if load(name).schedules(*SIZES[name][0])}
