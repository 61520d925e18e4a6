"""`tilelang source FILE`: prints the source that a schedule lowers to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tilelang.cli.common import PROFILES, UNTIL, Asked, of_a_file, target_option
from tilelang.cli.output import emit, is_json

if TYPE_CHECKING:
    from tilelang.runtime.kernel import Kernel


@click.command("source")
@target_option(None, "The dialect of the source. Default: cpu if the profile supports it.")
@UNTIL
@click.option("--assembly", is_flag=True, help="Compile for the profile's architecture and print the assembly.")
@of_a_file
def command(asked: Asked, dialect: str | None, until: int | None, assembly: bool) -> None:
    """Print the source code that a schedule of FILE is lowered to. No device is needed."""
    kernel = without_a_device(asked, dialect, until, usual="cpu")
    text = kernel.assembly if assembly else kernel.source
    if is_json():
        made = {"target": str(kernel.target), "source": kernel.source}
        emit({**made, "architecture": kernel.target.profile.architecture, "assembly": text} if assembly else made)
    else:
        click.echo(text, nl=not text.endswith("\n"))


def without_a_device(asked: Asked, dialect: str | None = None, until: int | None = None, usual: str = "opencl") -> Kernel:
    """The kernel for the requested profile, else for the dialect's shipped default: the same text on every machine.

    usual: the default dialect, if the profile supports it; in OpenCL the threads of a block stay threads.
    """
    from tilelang.runtime.targets import target  # late: a command imports what it needs itself

    if dialect is None and (asked.profile is None or usual in asked.profile.dialects):
        dialect = usual
    return asked.kernel(target(dialect, profile=asked.profile or PROFILES.get(dialect or usual)), until)
