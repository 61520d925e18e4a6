"""`tilelang source FILE`: what a schedule lowers to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tilelang.cli.common import Asked, emit, is_json, of_a_file

if TYPE_CHECKING:
    from tilelang.runtime import Kernel


@click.command("source")
@click.option("--target", default="opencl", show_default=True, metavar="DIALECT", help="The language of the source.")
@click.option("--until", type=click.IntRange(0), metavar="STEP", help="Only the first steps of the schedule.")
@of_a_file
def command(asked: Asked, target: str, until: int | None) -> None:
    """Print the source that a schedule of FILE lowers to. No device is needed."""
    kernel = without_a_device(asked, target, until)
    if is_json():
        emit({"target": str(kernel.target), "source": kernel.source})
    else:
        click.echo(kernel.source, nl=not kernel.source.endswith("\n"))


def without_a_device(asked: Asked, dialect: str = "opencl", until: int | None = None) -> Kernel:
    """The kernel for the profile asked for, else for PoCL's as it ships: the same text on every machine."""
    from tilelang.runtime import compile, target

    return compile(asked.schedule(until), target(dialect, profile=asked.profile or "pocl"))
