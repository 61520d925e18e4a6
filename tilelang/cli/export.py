"""`tilelang export FILE`: exports a kernel as files for C programs, for this machine or another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tilelang.cli.common import Asked, of_a_file
from tilelang.cli.output import emit, is_json, working

if TYPE_CHECKING:
    from tilelang.profiles.profile import Profile
    from tilelang.runtime.targets import Target

# The default CPU of a system: with only the instructions that every such machine has.
_LEAST = {"x86_64": "x86-64", "aarch64": "generic", "aarch64-macos": "apple-m1"}


@click.command("export")
@click.option(
    "--output", "-o", "folder", required=True, metavar="FOLDER", type=click.Path(), help="Write the files to this folder."
)
@click.option(
    "--name", metavar="NAME", help="Name of the files and functions. Default: the name of the schedule, else of the computation."
)
@click.option(
    "--target-cpu", "cpu", metavar="CPU", help="A CPU by its LLVM name, for example neoverse-v2. Default: this machine's."
)
@click.option(
    "--target", "system", metavar="SYSTEM", help="x86_64 or aarch64, then -linux, -macos or -windows. Default: this system."
)
@of_a_file
def command(asked: Asked, folder: str, name: str | None, cpu: str | None, system: str | None) -> None:
    """Export a schedule of FILE as C: source, header, launchers with and without threads, a static and a shared library, and a main.c.

    --target-cpu and --target compile for another machine. The profile is then the one with that machine's vector extensions, unless
    --profile names another.
    """
    target, architecture = _target(asked.profile, cpu, system)
    kernel = asked.kernel(target)
    with working("compiling"):
        files = kernel.export(folder, name or asked.schedule_name, architecture)
    if is_json():
        emit({"files": [str(path) for path in files], "architecture": architecture, "profile": target.profile.name})
    else:
        click.echo("\n".join(map(str, files)))


def _target(profile: Profile | None, cpu: str | None, system: str | None) -> tuple[Target, str]:
    """The target and the architecture. Raises DeviceError `unknown-architecture`, or if there is no device."""
    from tilelang.lowering.compilers import native  # late: a command imports what it needs itself
    from tilelang.runtime.targets import local_target, target  # late: a command imports what it needs itself

    if cpu is None and system is None:
        found = local_target(profile, "cpu")
        return found, found.profile.architecture or native.NATIVE
    if cpu is None:
        machine = str(system).partition("-")[0]
        cpu = _LEAST.get(str(system)) or _LEAST.get(machine) or native.NATIVE
    architecture = cpu if system is None else f"{cpu}@{system}"
    return target("cpu", profile=profile or native_profile(architecture)), architecture


def native_profile(architecture: str) -> str:
    """The shipped profile with the vectors of an architecture. Raises DeviceError `unknown-architecture`."""
    from tilelang.lowering.compilers import native  # late: a command imports what it needs itself

    if native.system_of(architecture).machine == "aarch64":
        return "neon"
    return "avx512" if "__AVX512F__" in native.macros(architecture) else "avx2"
