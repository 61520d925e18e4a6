"""`tilelang fill FILE`: prints a schedule with its holes filled, or a generated one."""

from __future__ import annotations

import click

from tilelang.cli.common import TRIALS, Asked, of_a_file, target_option
from tilelang.cli.output import emit, is_json, write_whole
from tilelang.cli.search import described, searched_for
from tilelang.grammar import format_text


@click.command("fill")
@target_option(None, "The dialect to generate for. Default: the profile's first one, else cpu.")
@TRIALS
@click.option("--output", "-o", type=click.Path(dir_okay=False), metavar="FILE", help="Write the result to FILE.")
@of_a_file
def command(asked: Asked, dialect: str | None, trials: int, output: str | None) -> None:
    """Fill the holes of a schedule of FILE and print the result as a complete file for the given sizes.

    If the file has no schedule, one is generated: for the profile that --profile names, else for this machine's device, as `tl.compile`
    does, else for the default profile of the target. Only --trials needs a device. The given steps of the schedule are not changed. If
    a hole cannot be filled, the error says why.
    """
    from tilelang.runtime.targets import local_target  # late: a command imports what it needs itself

    kernel = asked.kernel(local_target(asked.profile, dialect) if trials else searched_for(asked, dialect), trials=trials)
    schedule = kernel.schedule.text
    if asked.schedule_name is not None:
        schedule = schedule.replace("schedule for", f"schedule {asked.schedule_name} for", 1)
    text = format_text(f"# for {described(kernel.target)}\n{kernel.computation.text}\n{schedule}\n")
    if output is not None:
        write_whole(output, lambda file: file.write(text.encode()))
    if is_json():
        found = kernel.estimate
        made_for = {"profile": kernel.target.profile.name, "origin": kernel.target.origin}
        emit({"text": text, "seconds": found.seconds, "bound": found.bound, **made_for})
    elif output is None:
        click.echo(text, nl=False)
