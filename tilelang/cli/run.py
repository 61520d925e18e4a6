"""`tilelang run FILE`: runs a schedule on this machine's device, on given or random inputs."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from tilelang.cli.check import verdict_facts
from tilelang.cli.common import RIGHT, SEED, TRIALS, UNTIL, WRONG, Asked, of_a_file, once, target_option
from tilelang.cli.output import emit, is_json, show, table, working, write_whole
from tilelang.computations import arguments
from tilelang.errors import ComputationError

if TYPE_CHECKING:
    from tilelang.runtime.kernel import Kernel

SECONDS = 30.0  # time limit of the simulation
_ROOM = 0.8  # fraction of the free memory that arrays may use


class ArrayFile(click.ParamType[Any]):
    """NAME=FILE.npy."""

    name = "NAME=FILE.npy"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, equals, path = str(value).partition("=")
        if not equals or not name.isidentifier() or not path:
            self.fail(f"{value!r} names no array; write it as a=a.npy", param, ctx)
        return name, path


@click.command("run")
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    type=ArrayFile(),
    callback=once,
    help="Read an input from a file; other inputs are random. Repeatable.",
)
@click.option(
    "--output", "-o", "outputs", multiple=True, metavar="[NAME=]FILE.npy", help="Write an output to a file. Repeatable."
)
@click.option("--check", "checked", is_flag=True, help="Compare the outputs with the reference, within the derived error bound.")
@click.option(
    "--simulate/--no-simulate",
    "simulated",
    default=True,
    show_default=True,
    help="With --check: also simulate the schedule at small sizes, which finds data races.",
)
@click.option("--time", "timed", is_flag=True, help="Print the median time of the kernels on the device.")
@UNTIL
@TRIALS
@SEED
@target_option(None, "cpu, cuda, hip or opencl. Default: the best device's.")
@of_a_file
def command(
    asked: Asked, inputs: Any, outputs: Any, checked: bool, simulated: bool, timed: bool, until: int | None, trials: int, seed: int,
    dialect: str | None,
) -> None:  # fmt: skip
    """Run a schedule of FILE on this machine's device.

    Without a schedule in the file, a generated one is used. Prints a summary of the outputs. With --check, the schedule is also
    simulated at small sizes, and the command exits with 1 if a result is wrong.
    """
    from tilelang.runtime.kernel import devices  # late: a command imports what it needs itself
    from tilelang.runtime.simulated_check import check_simulated  # late: a command imports what it needs itself
    from tilelang.runtime.targets import local_target, no_device  # late: a command imports what it needs itself

    if not devices():
        raise no_device()
    target = local_target(asked.profile, dialect)
    kernel = asked.kernel(target, until, trials)
    check_memory(kernel.computation)
    paths = output_paths([t.name for t in kernel.computation.outputs], outputs)
    given = load_arrays(kernel.computation, inputs, seed)
    with working("running"):
        results = kernel._by_name(kernel(**given))
    save(results, paths)
    found: dict[str, Any] = {"computation": kernel.computation.name, "target": str(kernel.target), "outputs": {}}
    rows = []
    for name, array in results.items():
        facts = describe(array)
        found["outputs"][name] = facts
        rows.append(
            (name, facts["type"], " x ".join(map(str, facts["shape"])) or "1")
            + tuple("" if facts[k] is None else facts[k] for k in ("least", "mean", "greatest"))
        )
    text = [table(("output", "type", "shape", "least", "mean", "greatest"), rows)]
    right = True
    if checked:
        with working("checking"):
            report = checked_report(kernel, given, results, seed, bool(inputs))
        right = bool(report)
        found["check"] = {"right": right, "report": str(report)}
        text.append(str(report))
        if simulated:
            with working("simulating"):
                verdict = check_simulated(kernel.schedule, kernel.target, SECONDS, seed)
            right = right and verdict.faulty is None
            found["check"]["simulated"] = verdict_facts(verdict)
            text.append(str(verdict))
    if timed:
        with working("timing"):
            seconds = kernel.benchmark(seed=seed)
        found["seconds"] = seconds
        text.append(f"{seconds * 1e3:.3f} ms (median on {kernel.target.device})")
    if is_json():
        emit(found)
    else:
        show("\n".join(text))
    sys.exit(RIGHT if right else WRONG)


def checked_report(kernel: Kernel, given: Any, results: Any, seed: int, own: bool) -> Any:
    """The comparison with the reference: of this run if inputs came from files; else of random data and small integers."""
    from tilelang.semantics import reference  # late: a command imports what it needs itself

    if own:
        made = kernel.schedule
        return reference.compare(made.computation, given, results, error_ulps=made.error_ulps, loops=made.shared_loops)
    return kernel.check(seed)


def check_memory(computation: Any) -> None:
    """Refuses sizes whose arrays exceed the free memory, before allocating any."""
    size, free = tensor_bytes(computation), _free_bytes()
    if size > free * _ROOM:
        message = f"the tensors of {computation.name} take {size:,} bytes, {free:,} are free"
        raise ComputationError("too-large-to-run", message, help="use smaller sizes: --size NAME=VALUE")


def tensor_bytes(computation: Any) -> int:
    """The total size of a computation's inputs and defined tensors."""
    return arguments.tensor_bytes(*computation.inputs, *(t for d in computation.definitions for t in d.tensors))


def _free_bytes() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 1 << 33


def load_arrays(computation: Any, paths: dict[str, str], seed: int) -> dict[str, Any]:
    """The inputs by name: from files, else random. Nothing in a file is executed: pickles are not allowed."""
    import numpy as np  # late: NumPy takes long to import

    from tilelang.semantics.reference import random_arrays  # late: a command imports what it needs itself

    names = [t.name for t in computation.inputs]
    for name in paths:
        if name not in names:
            raise click.UsageError(f"{computation.name} has no input `{name}`; it has {', '.join(names) or 'none'}")
    found = dict(random_arrays(computation, seed))
    for name, path in paths.items():
        array = _array_of(path)
        tensor = next(t for t in computation.inputs if t.name == name)
        wanted = np.dtype(tensor.dtype.numpy)
        if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
            array = array.view(wanted)  # types that NumPy lacks are stored as raw bytes
        found[name] = array
    return found


def _array_of(path: str) -> Any:
    """The array that a file of `numpy.save` holds. Pickled objects are refused without being read."""
    import numpy as np  # late: NumPy takes long to import

    try:
        with open(path, "rb") as file:
            start = file.read(len(np.lib.format.MAGIC_PREFIX))
            if start != np.lib.format.MAGIC_PREFIX:
                kind = "an archive of several arrays" if start.startswith(b"PK") else "no file of `numpy.save`"
                raise ValueError(f"it is {kind}; save one array by `numpy.save`")
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = "it holds Python objects; save an array of numbers" if "allow_pickle" in str(error) else error
        raise click.UsageError(f"{path} cannot be read as an array: {why}") from None


def output_paths(names: list[str], asked: tuple[str, ...]) -> list[tuple[str, str]]:
    """The file for each output."""
    found: list[tuple[str, str]] = []
    for text in asked:
        name, equals, path = text.partition("=")
        if not equals:
            name, path = names[0], text
            if len(names) > 1:
                raise click.UsageError(f"there are several outputs: --output NAME={path}, NAME one of {', '.join(names)}")
        if name not in names:
            raise click.UsageError(f"there is no output `{name}`; there is {', '.join(names)}")
        if name in dict(found):
            raise click.UsageError(f"there are two files for the output `{name}`: {dict(found)[name]} and {path}")
        found.append((name, path))
    return found


def save(results: dict[str, Any], paths: list[tuple[str, str]]) -> None:
    """Writes outputs to files atomically."""
    import numpy as np  # late: NumPy takes long to import

    for name, path in paths:
        write_whole(path, functools.partial(np.save, arr=results[name], allow_pickle=False))


def describe(array: Any) -> dict[str, Any]:
    """The shape, type, and range of values of an array."""
    import numpy as np  # late: NumPy takes long to import

    values = np.asarray(array)
    numbers = values.astype(np.float64) if values.size else None
    facts: dict[str, Any] = {"shape": list(values.shape), "type": str(values.dtype)}
    with np.errstate(all="ignore"):  # infinities have no mean
        for name, what in (("least", np.min), ("mean", np.mean), ("greatest", np.max)):
            facts[name] = float(f"{what(numbers):.6g}") if numbers is not None else None
    return facts
