"""`tilelang fill FILE`: a schedule with its holes filled, or a constructed one, as text."""

from __future__ import annotations

import click

from tilelang.cli.common import TRIALS, Asked, of_a_file, target_option
from tilelang.cli.output import emit, is_json, write_whole
from tilelang.cli.search import described, searched_for
from tilelang.grammar import format_text


@click.command("fill")
@target_option(None, "The language it is compiled to. Default: the first of the profile's, else cpu.")
@TRIALS
@click.option("--output", "-o", type=click.Path(dir_okay=False), metavar="FILE", help="Write it there.")
@of_a_file
def command(asked: Asked, dialect: str | None, trials: int, output: str | None) -> None:
    """Print the computation and the schedule of FILE, the holes filled: a file by itself, at the sizes that are given.

    Where the file has no schedule, one is constructed: for the profile that --profile names, else for the device here, as `tl.compile`
    does, else for the target's own profile; only --trials needs a device. What was given of the schedule stays as it is; where nothing
    fits a hole, the refusal says why.
    """
    from tilelang.targets import local_target

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
