"""Plots the curves of a profile with the fitted plateaus. Imports matplotlib when a plot is asked for."""

from __future__ import annotations

from pathlib import Path

from tilelang.autoschedule.profile.fits import plateaus
from tilelang.errors import DeviceError
from tilelang.profiles.profile import Curve, Profile

STEPS = {"footprint_bytes", "pages", "lines"}  # values of `x` for which curves have plateaus


def plot(profile: Profile, directory: Path) -> tuple[Path, ...]:
    """A picture of each curve, in a directory. Raises DeviceError as `drawing` does."""
    drawing()
    directory.mkdir(parents=True, exist_ok=True)
    return tuple(_picture(curve, profile, directory) for curve in profile.curves)


def drawing() -> None:
    """Prepares matplotlib for writing files. Raises DeviceError `no-matplotlib` if it is not installed."""
    try:
        import matplotlib  # late: an optional library
    except ImportError:
        message = "matplotlib is not installed, so that nothing can be drawn"
        raise DeviceError("no-matplotlib", message, help="pip install matplotlib") from None
    matplotlib.use("Agg")


def _picture(curve: Curve, profile: Profile, directory: Path) -> Path:
    from matplotlib import pyplot  # late: an optional library

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    axes.plot(*zip(*curve.points, strict=True), marker=".")
    for step in steps(curve):
        axes.plot((step[0], step[1]), (step[2], step[2]), linewidth=6, alpha=0.35)
    axes.set(xlabel=curve.x, ylabel=curve.y, xscale="log")
    axes.set_title(f"{curve.name} of {profile.description}", fontsize=9)
    axes.set_ylim(bottom=0)
    path = directory / f"{curve.name}.png"
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path


def steps(curve: Curve) -> tuple[tuple[float, float, float], ...]:
    """The plateaus of a curve, if it can have some: begin, end, and height of each."""
    if curve.x not in STEPS or any(y <= 0 for _, y in curve.points):
        return ()
    found = plateaus(curve.points, falling=curve.points[0][1] > curve.points[-1][1], tolerance=0.06)
    return tuple((step.first, step.last, step.level) for step in found)
