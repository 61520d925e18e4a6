"""States and stops in shared memory below `fuse` and `unfuse`: one element per point of the axes that are left."""

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults


def images(bias: bool) -> tl.Schedule:
    """Sums over channels of images of 5 x 3 pixels, two of them, to 7 filters."""
    n, p, q, f, c = tl.axes(n=2, p=5, q=3, f=7, c=9)
    X, W, b = tl.input("X", tl.float32, n, p, q, c), tl.input("W", tl.float32, f, c), tl.input("b", tl.float32, f)
    total = tl.sum(X[n, p, q, c] * W[f, c], over=c)
    return tl.schedule(tl.define("Z", tl.relu(total + b[f]) if bias else total, n, p, q, f)).fuse(npq=("n", "p", "q"))


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_a_state_in_shared(inner: bool, threads: bool) -> None:
    made = images(bias=True).tile(npq=8, f=4).to("block").accumulate("shared", layout=tl.layout("f", "npq").pad(1)).split(c=4)
    made = made.accumulate("register") if inner else made
    assert not faults(made.tile(npq=2, f=1).to("thread") if threads else made)


def test_a_state_in_shared_that_later_rounds_combine() -> None:
    made = images(bias=False).tile(npq=8, f=4).to("block").split(c=4).accumulate("shared").tile(npq=2, f=1).to("thread")
    assert not faults(made)


@pytest.mark.parametrize("back", [tl.move(), tl.move().tile(npq=1, f=4).to("thread").vectorize(f=4)])
def test_results_stop_in_shared(back: tl.Move) -> None:
    stop = tl.move().via("shared", layout=tl.layout("npq", "f").pad(1))
    steps = stop.tile(npq=1, f=4).to("thread").vectorize(f=4) if back.steps else stop
    made = images(bias=True).tile(npq=8, f=4).to("block").accumulate("register", steps=steps)
    assert not faults(made.tile(npq=2, f=1).to("thread"))


def test_pointwise_results_stop_in_shared() -> None:
    i, j = tl.axes(i=10, j=12)
    X = tl.input("X", tl.float32, i, j)
    turned = tl.define("Y", tl.exp(X[i, j]), j, i)
    made = (
        tl.schedule(turned)
        .unfuse(j={"a": 3, "b": 4})
        .tile(i=4, a=2)
        .to("block")
        .via("shared", layout=tl.layout("a", "b", "i").pad(1))
    )
    assert not faults(made.tile(a=1, b=1, i=1).to("thread"))


def test_axes_that_a_step_below_changes_are_refused() -> None:
    made = images(bias=False).tile(f=4).to("block").accumulate("shared").unfuse(npq={"x": 6, "y": 5})
    with pytest.raises(tl.Refusal) as refused:
        made.check()
    assert refused.value.code == "not-lowered-yet" and "unfuse" in (refused.value.help or "")


@pytest.mark.parametrize("accumulate", ["none", "register", "shared"])
@pytest.mark.parametrize("below", ["lanes", "threads", "threads of lanes", "fused again"])
def test_parts_of_a_reduced_axis_that_unfuse_makes_below_the_state_meet(below: str, accumulate: str) -> None:
    """The lanes and threads of j_inner hold partial sums, though no axis had that name where the state was made."""
    i, j = tl.axes(i=3, j=40)
    X = tl.input("X", tl.float32, i, j)
    made = tl.schedule(tl.define("Y", tl.sum(X[i, j], over=j), i))
    made = (made if accumulate == "none" else made.accumulate(accumulate)).split(j=40).unfuse(j={"outer": 20, "inner": 2})
    match below:
        case "lanes":
            made = made.vectorize(inner=2)
        case "threads":
            made = made.tile(inner=1).to("thread")
        case "threads of lanes":
            made = made.tile(outer=4).to("thread").vectorize(inner=2)
        case "fused again":
            made = made.fuse(whole=("outer", "inner")).tile(whole=4).to("thread").vectorize(whole=4)
    assert not faults(made)


def moved(memory: str, steps: tl.Move, threads: bool) -> tl.Schedule:
    a, b = tl.axes(a=6, b=8)
    X = tl.input("X", tl.float32, a, b)
    made = tl.schedule(tl.define("Y", X[a, b] * 2, a, b)).tile(a=6).to("block").load("X", memory, steps=steps)
    return made.tile(a=1, b=2).to("thread") if threads else made


FUSED, PARTS = tl.move().fuse(z=("a", "b")), tl.move().unfuse(b={"c": 2, "d": 4})


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize(
    "steps",
    [
        FUSED,
        FUSED.vectorize(z=4),
        FUSED.split(z=4),
        FUSED.tile(z=4).to("thread"),
        FUSED.tile(z=8).to("thread").split(z=2),
        PARTS,
        PARTS.tile(d=2).to("thread"),
        PARTS.fuse(z=("a", "c")).tile(z=3).to("thread"),
    ],
    ids=lambda steps: "; ".join(map(str, steps.steps)),
)
def test_a_load_moves_all_of_the_axes_that_its_braces_make(steps: tl.Move, threads: bool) -> None:
    """What is left of a fused axis, or of the parts of one, is walked like what is left of a dimension."""
    assert not faults(moved("shared", steps, threads))


@pytest.mark.parametrize("steps", [FUSED.tile(z=4).to("thread"), PARTS.tile(c=1).to("thread")], ids=["fuse", "unfuse"])
def test_owners_by_axes_that_braces_make_are_refused(steps: tl.Move) -> None:
    with pytest.raises(tl.Refusal) as refused:
        moved("register", steps, True).check("simulated")
    assert refused.value.code == "not-lowered-yet"


def staged(steps: tl.Move) -> tl.Schedule:
    a, b, r, s = tl.axes(a=6, b=8, r=3, s=4)
    X = tl.input("X", tl.float32, a, b, r, s)
    sums = tl.define("sums", tl.sum(X[a, b, r, s], over=(r, s)), a, b)
    made = tl.schedule(tl.define("Y", sums[a, b] * 2, a, b)).tile(a=6).to("block").compute("sums", "register", steps=steps)
    return made.tile(a=1, b=1).to("thread")


def test_a_stage_in_registers_fuses_its_reductions() -> None:
    assert not faults(staged(tl.move().fuse(rs=("r", "s")).tile(a=1, b=1).to("thread").split(rs=5)))
    assert not faults(staged(tl.move().unfuse(s={"t": 2, "u": 2}).tile(a=1, b=1).to("thread").split(u=1)))


@pytest.mark.parametrize("steps", [FUSED, FUSED.tile(z=1).to("thread"), PARTS.tile(a=1, c=1, d=1).to("thread")], ids=range(3))
def test_a_stage_in_registers_by_other_axes_is_refused(steps: tl.Move) -> None:
    with pytest.raises(tl.Refusal) as refused:
        staged(steps).check("simulated")
    assert refused.value.code == "not-lowered-yet"
