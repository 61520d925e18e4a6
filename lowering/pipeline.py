"""The whole lowering on one screen: named passes from a schedule to source. The driver adds verification, dumps and timing.

`lower` returns the final kernel IR; `source` its text in a dialect. Every pass is a pure function of a program.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tilelang.computations.computation import Computation
from tilelang.errors import TileLangError, not_too_deep
from tilelang.lowering import ir
from tilelang.lowering.build.program import build_program
from tilelang.lowering.passes.allocate_shared import allocate_shared
from tilelang.lowering.passes.arrays_in_scratch import move_large_arrays
from tilelang.lowering.passes.barriers import insert_barriers, missing_barrier
from tilelang.lowering.passes.commit_groups import commit_groups
from tilelang.lowering.passes.delay_stores import delay_stores
from tilelang.lowering.passes.fission import SCRATCH_BYTES, run_threads_in_loops
from tilelang.lowering.passes.fuse_loops import fuse_loops
from tilelang.lowering.passes.mark_uniform import mark_uniform
from tilelang.lowering.passes.overlap_tails import overlap_tails
from tilelang.lowering.passes.peel_to_alignment import peel_to_alignment
from tilelang.lowering.passes.pipeline_products import pipeline_products
from tilelang.lowering.passes.proxy_fences import insert_proxy_fences
from tilelang.lowering.passes.scalar_replacement import replace_by_scalars
from tilelang.lowering.passes.sink_waits import sink_waits
from tilelang.lowering.passes.transpose_in_registers import transpose_in_registers
from tilelang.lowering.passes.unroll import unroll
from tilelang.lowering.passes.unswitch_loops import unswitch_loops
from tilelang.lowering.passes.vectorize import vectorize
from tilelang.lowering.passes.vectorize_moves import vectorize_moves
from tilelang.lowering.passes.version_guards import version_guards
from tilelang.lowering.printer import to_text
from tilelang.lowering.verify import CHAIN, InternalError, verify
from tilelang.lowering.workarounds import WORKAROUNDS
from tilelang.options import Options
from tilelang.profiles.profile import Profile
from tilelang.renamed import PASSES
from tilelang.schedules.steps import Step

Pass = Callable[[ir.Kernel], ir.Kernel]

# Passes that only some targets need, by name: for features a dialect lacks (`Dialect.passes`) or bugs of a device's compiler.
NEEDED: Mapping[str, Pass] = {
    "threads_in_loops": run_threads_in_loops,
    "arrays_in_scratch": move_large_arrays,
    **WORKAROUNDS,
}


def passes(profile: Profile, needs: Sequence[str] = ()) -> tuple[tuple[str, Pass], ...]:
    """The passes after `build`, in order. needs: names of further passes that a target needs."""
    lanes = profile.max_vector_lanes
    capacity, line_bytes = profile.memory("shared").capacity_bytes, profile.memory("global").line_bytes
    most_shared = SCRATCH_BYTES if "threads_in_loops" in needs else None
    lockstep = max((level.threads or 1 for level in profile.levels if level.lockstep), default=1)

    def needed(*names: str) -> tuple[tuple[str, Pass], ...]:
        return tuple((name, NEEDED[name]) for name in names if name in needs)

    return (
        ("commit_groups", commit_groups),
        ("pipeline_products", pipeline_products),
        *(
            (("vectorize_moves", lambda kernel: vectorize_moves(kernel, lanes, max(profile.vector_bytes))),)
            if lockstep == 1
            else ()
        ),
        ("fuse_loops", fuse_loops),
        ("delay_stores", delay_stores),
        (
            "allocate_shared",
            lambda kernel: allocate_shared(kernel, capacity if capacity is not None else sys.maxsize, most_shared),
        ),
        ("barriers", insert_barriers),
        ("proxy_fences", insert_proxy_fences),
        ("sink_waits", sink_waits),
        ("unswitch_loops", unswitch_loops),
        *needed("threads_in_loops"),
        *needed("unconditional_barriers"),
        *(
            (("peel_to_alignment", lambda kernel: peel_to_alignment(kernel, line_bytes)),)
            if profile.zero_copy_host and line_bytes
            else ()
        ),
        *((("transpose_in_registers", lambda kernel: transpose_in_registers(kernel, lanes)),) if lockstep == 1 else ()),
        *((("overlap_tails", overlap_tails),) if lockstep == 1 else ()),
        ("vectorize", lambda kernel: vectorize(kernel, lanes)),
        ("unroll", lambda kernel: unroll(kernel, profile.unrolled_register_elements)),
        *((("version_guards", version_guards),) if lockstep == 1 else ()),
        *needed("barrier_at_loop_end", "diverge_tail_conditions"),
        ("mark_uniform", lambda kernel: mark_uniform(kernel, lockstep)),
        ("scalar_replacement", replace_by_scalars),
        *needed("arrays_in_scratch"),
    )


def _with_new_pass_names(options: Options) -> Options:
    """Translates former pass names in `debug`, with a warning."""
    old = (options.debug or "").removeprefix("pass:")
    if options.debug != f"pass:{old}" or old not in PASSES:
        return options
    warnings.warn(f"the pass {old} is now called {PASSES[old]}", DeprecationWarning, stacklevel=3)
    return dataclasses.replace(options, debug=f"pass:{PASSES[old]}")


@not_too_deep
def lower(
    computation: Computation,
    steps: tuple[Step, ...],
    profile: Profile,
    options: Options | None = None,
    needs: Sequence[str] = (),
) -> ir.Program:
    """The final kernel IR of a computation under a schedule's steps. needs: as for `passes`. Raises Refusal."""
    options = _with_new_pass_names(options or Options())
    watch = _Watch(options)
    after = passes(profile, needs)
    names = ["build", *(name for name, _ in after)]
    told: dict[str, None] | None = {} if options.debug == "guards" else None
    if options.debug and told is None and options.debug.removeprefix("pass:") not in names:
        near = difflib.get_close_matches(options.debug.removeprefix("pass:"), names, 1)
        help = f"did you mean pass:{near[0]}?" if near else "use one of " + ", ".join(names)
        raise TileLangError("option-value", f"debug={options.debug!r}: there is no such pass", help=help)
    program = watch.step("build", None, lambda _: build_program(computation, steps, profile, told))
    sys.stderr.writelines(f"{text}\n" for text in told or ())
    for name, run in after:
        program = watch.step(name, program, functools.partial(_each, run=run))
    return program


def _each(program: ir.Program | None, run: Pass) -> ir.Program:
    assert program is not None
    return program.replace(kernels=tuple(run(k) for k in program.kernels))


class _Watch:
    """Verifies, dumps and times each pass as the options request."""

    def __init__(self, options: Options) -> None:
        self.options, self.number, self.done = options, 0, list[str]()

    def step(self, name: str, before: ir.Program | None, run: Callable[[ir.Program | None], ir.Program]) -> ir.Program:
        start = time.perf_counter()
        program = run(before)
        seconds = time.perf_counter() - start
        if self.options.verify:
            if program != before or name in CHAIN:  # otherwise it was verified before
                verify(program, name, after=self.done)
            # Not after later passes: masked lanes from `vectorize` would look like conflicts.
            if name in ("barriers", "unconditional_barriers") and any(missing_barrier(k) for k in program.kernels):
                raise InternalError(f"after {name}: two conflicting accesses have no barrier between them")
        self.done.append(name)
        if self.options.dump:
            self._dump(
                Path(self.options.dump), f"{self.number:02}_{name}.ir", f"# {name}: {seconds * 1e3:.2f} ms\n{to_text(program)}"
            )
        if self.options.debug == f"pass:{name}":
            old = to_text(before).splitlines() if before is not None else []
            sys.stderr.write(
                "\n".join(difflib.unified_diff(old, to_text(program).splitlines(), "before", name, lineterm="")) + "\n"
            )
        self.number += 1
        return program

    @staticmethod
    def _dump(folder: Path, name: str, text: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        except OSError as error:
            raise TileLangError(
                "dump",
                f"cannot write {folder / name}: {error.strerror}",
                help="set TILELANG_DUMP to a directory with room that you can write to",
            ) from None
