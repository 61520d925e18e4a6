"""A schedule as loops: rounds, boxes, and where what comes from."""

import pytest

import tilelang as tl
from tilelang.autoschedule.common.loop_summary import Loops, loops_of
from tilelang.testing import lowered

PRODUCT = """
computation C(M = 1000, N = 96, K = 64) {
  input A: float32[m: M, k: K]
  input B: float32[k: K, n: N]
  output C[m, n] = sum[k] A[m, k] * B[k, n]
}
schedule cpu for C {
  tile m=128 n=96 -> block
  accumulate in shared
  split k=16
  load B in shared layout (n / 48, k, n % 48) { vectorize n=16 }
  load A in shared
  split n=48 m=8
  accumulate in register
  split k=1
  load B in register
  split m=1 unroll
  vectorize n=16
}
schedule threads for C {
  tile m=64 n=32 -> block
  load A in l1 ahead 2
  tile m=4 n=4 -> thread 64
}
"""


def read(name: str) -> Loops:
    (found,) = loops_of(tl.parse(PRODUCT).schedule(name))
    return found


def test_rounds_boxes_and_sources() -> None:
    loops = read("cpu")
    assert [str(x) for x in loops.loops] == ["block m:8 n:1", "loop k:4", "loop n:2 m:16", "loop k:16", "loop m:8 unroll"]
    assert (loops.units("block"), loops.rounds(2), loops.rounds()) == (8, 32, 8 * 4 * 32 * 16 * 8)
    assert [str(p) for p in loops.places] == [
        "accumulate state in shared from global, 0 bytes",
        "load B in shared from global, 6144 bytes by 16",
        "load A in shared from global, 8192 bytes",
        "accumulate state in register from shared, 0 bytes",
        "load B in register from shared, 192 bytes",
    ]
    assert loops.vector == ("n", 16) and loops.tiles[-1] == {"m": 1, "n": 48, "k": 1}


def test_units_that_take_several_rounds_and_caches() -> None:
    loops = read("threads")
    assert (loops.units("thread"), loops.loops[1].total, loops.units("block")) == (64, 128, 48)
    assert [(p.memory, p.source, p.ahead) for p in loops.places] == [("l1", "global", 2)]


def test_stages_have_loops_of_their_own() -> None:
    document = tl.parse("""
    computation Y(M = 8, N = 100) {
      input X: float32[i: M, j: N]
      peak[i] = max[j] X[i, j]
      output Y[i, j] = X[i, j] - peak[i]
    }
    schedule rows for Y { tile i=2 -> block; compute peak in register { split j=16; vectorize j=16 }; vectorize j=4 }
    schedule apart for Y { tile i=2 -> block }
    """)
    (rows,) = loops_of(document.schedule("rows"))
    (stage,) = [p.stage for p in rows.places]
    assert stage is not None and [str(x) for x in stage.loops] == ["loop j:7"] and stage.vector == ("j", 16)
    assert [x.nest.task.name for x in loops_of(document.schedule("apart"))] == ["peak", "Y"]


@pytest.mark.parametrize("type", ["float16", "float32", "float64", "int32"])
def test_what_a_block_keeps_is_what_the_lowering_takes(type: str) -> None:
    """Sums in the type that they are kept in, boxes with their padding, once for each that is there at once."""
    text = PRODUCT.replace("float32", type).replace(
        "schedule threads",
        "schedule padded for C {"
        + """
  tile m=64 n=32 -> block
  accumulate in shared
  split k=16
  load B in shared layout (k, n) pad 4
  load A in shared
  tile m=4 n=4 -> thread
  accumulate in register
}
schedule threads""",
    )
    pocl = tl.load_profile("sapphire_rapids")
    for name in ("cpu", "padded"):
        schedule = tl.parse(text).schedule(name)
        (kernel,) = lowered(schedule, pocl).kernels
        assert loops_of(schedule, pocl)[-1].held_bytes("shared") == kernel.shared_bytes


@pytest.mark.parametrize("profile", ["cdna3", "zen5"])
@pytest.mark.parametrize(
    "below", ["unfuse n=(na: 8, nb: 3); split na=4", "fuse x=(m, n); split x=4", "unfuse k=(ka: 2, kb: 8); split ka=1"]
)
def test_axes_that_change_below_other_cuts(below: str, profile: str) -> None:
    """A walk of one round is not a cut, so its axis may still be divided."""
    document = tl.parse(f"""
    computation F {{
      input A: float32[b: 6, m: 8, n: 24, k: 16]
      output F[b, m, n] = sum[k] A[b, m, n, k] * 2.0
    }}
    schedule s for F {{ tile b=2 -> block; split m=8 n=24; {below} }}
    """)
    kernel = tl.compile(document.schedule("s"), tl.target("hip" if profile == "cdna3" else "cpu", profile=profile))
    assert 0 < kernel.estimate.bound <= kernel.estimate.seconds


# `F_sum` is one number, which `G` needs whole: a kernel of its own makes it, and `F` has no axis `j` then.
APART = """
computation drawn {
  input A: float32[j: 8, n: 16]
  E[n] = A[0, n]
  output Z[n] = min[j] A[j, n]
  F[n] = cast(n, float32) + (sum[j] E[j])
  output G[j] = sum[n] (E[15 - j] + F[n])
}
schedule s for drawn {
  PREFIX
  tile j=4 -> block
  split n=8
  compute F in shared { split j=2 n=2; vectorize j=2 }
  split n=?
}
"""


@pytest.mark.parametrize("prefix", ["", "compute F in global"])
def test_a_stage_may_lack_an_axis_that_another_kernel_reduces(prefix: str) -> None:
    """A stage that nobody reads is not made, whatever its steps cut; holes elsewhere are filled all the same."""
    schedule = tl.parse(APART.replace("PREFIX", prefix)).schedule()
    assert tl.compile(schedule, tl.target("cuda", profile="ampere")).schedule.steps


def test_a_kernel_that_the_schedule_refines_is_the_task_that_it_makes() -> None:
    text = APART.split("schedule")[0].replace("sum[j] E[j]", "sum[j] A[j, n]")
    text += "schedule s for drawn { compute F in global { split j=2 n=4 }\n tile n=4 -> block }"
    loops = loops_of(tl.parse(text).schedule())[-1]
    (stage,) = [p.stage for p in loops.places if p.stage is not None]
    assert [str(x) for x in stage.loops] == ["loop j:4 n:4"]
