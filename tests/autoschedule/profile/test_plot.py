"""Pictures of curves: where matplotlib is not installed, a line that says so."""

import sys
from pathlib import Path

import pytest

from tilelang.autoschedule.profile.plot import plot, steps
from tilelang.errors import DeviceError
from tilelang.profiles.files import load_profile
from tilelang.profiles.profile import Curve


def test_without_matplotlib_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DeviceError) as caught:
        plot(load_profile("sapphire_rapids"), tmp_path / "plots")
    assert caught.value.code == "no-matplotlib" and caught.value.help == "pip install matplotlib"
    assert not (tmp_path / "plots").exists()


def test_curves_along_a_footprint_have_plateaus() -> None:
    points = tuple((float(2**k), 300.0 if k < 16 else 100.0) for k in range(10, 24))
    near, far = steps(Curve("reads", "footprint_bytes", "gb_per_s", points))
    assert near == pytest.approx((1024, 32768, 300)) and far == pytest.approx((65536, 2**23, 100))
    assert steps(Curve("tiles", "rows", "gflop_per_s", points)) == ()


def test_every_curve_is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    profile = load_profile("sapphire_rapids")
    found = plot(profile, tmp_path / "plots")
    assert [path.stem for path in found] == [curve.name for curve in profile.curves]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in found)
