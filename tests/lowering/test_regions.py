"""Regions of stages and loads in whole programs: the shapes of their buffers, and results that are right."""

import pytest

import tilelang as tl
from tests.lowering.test_stage_chains import CUDA, check_simulated


def shared(kernel: tl.Kernel) -> dict[str, tuple[int, ...]]:
    """The shapes of the buffers in shared memory."""
    return {b.name: b.shape for k in kernel.program.kernels for b in k.buffers if b.memory == "shared"}


def clamped(points: int) -> tl.Schedule:
    """A stencil that repeats its first and last element, and a stage below a tile of 16."""
    i = tl.axes(i=points)
    s = tl.define("S", tl.input("X", tl.float32, i)[i] * 2, i)
    beside = s[tl.maximum(i - 1, 0)] + s[tl.minimum(i + 1, points - 1)]
    return tl.schedule(tl.define("Y", s[i] + beside, i)).tile(i=16).to(tl.block)


@pytest.mark.parametrize("points", [64, 50, 33])
def test_a_clamped_stencil_needs_one_element_on_each_side(points: int) -> None:
    kernel = check_simulated(clamped(points).compute("S", tl.shared).tile(i=1).to(tl.thread), CUDA)
    assert shared(kernel) == {"S_shared": (18,)}


@pytest.mark.parametrize("points", [1, 2, 3, 33])
def test_clamped_readings_of_a_tile_of_one_point_are_near_each_other(points: int) -> None:
    i = tl.axes(i=points)
    s = tl.define("S", tl.input("X", tl.float32, i)[i] * 2, i)
    y = tl.define("Y", s[tl.maximum(i - 1, 0)] + s[tl.minimum(i + 1, points - 1)], i)
    kernel = check_simulated(tl.schedule(y).tile(i=1).to(tl.block).compute("S", tl.shared), CUDA)
    assert shared(kernel) == {"S_shared": (min(points, 3),)}


def test_a_clamped_stage_of_a_piece_lies_in_what_was_loaded_for_the_tile() -> None:
    check_simulated(clamped(50).load("X", tl.shared).split(i=6).compute("S", tl.shared).tile(i=1).to(tl.thread), CUDA)


@pytest.mark.parametrize("tile, columns", [(4, 4), (5, 5), (40, 20), (6, 20)])
def test_a_tile_of_fused_axes_loads_the_columns_that_it_has(tile: int, columns: int) -> None:
    m, n = tl.axes(m=6, n=20)
    y = tl.define("Y", tl.input("X", tl.float32, m, n)[m, n] + 1, m, n)
    made = tl.schedule(y).fuse(mn=("m", "n")).tile(mn=tile).to(tl.block).load("X", tl.shared, layout=tl.layout("m", "n"))
    (shape,) = shared(check_simulated(made.tile(mn=1).to(tl.thread), CUDA)).values()
    assert shape[-1] == columns


def test_a_quotient_needs_what_any_tile_reaches() -> None:
    """Tiles of 5 begin at every place within 3 elements, and reach two quotients or three; tiles of 6 two."""
    i = tl.axes(i=30)
    whole = tl.axes(q=10)
    s = tl.define("S", tl.input("X", tl.float32, whole)[whole] * 2, whole)
    for tile, elements in ((6, 2), (5, 3), (4, 2), (1, 1)):
        made = tl.schedule(tl.define("Y", s[i // 3] + 1, i)).tile(i=tile).to(tl.block).compute("S", tl.shared)
        assert shared(check_simulated(made, CUDA)) == {"S_shared": (elements,)}, tile


def test_a_stage_that_is_read_whole_and_in_pieces_is_made_whole() -> None:
    i, j = tl.axes(i=13, j=13)
    doubled = tl.define("D", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)
    made = tl.schedule(tl.define("Y", doubled[i, j] + doubled[j, i], i, j)).tile(i=4).to(tl.block)
    assert shared(check_simulated(made.compute("D", tl.shared), CUDA)) == {"D_shared": (13, 13)}
    check_simulated(made.load("X", tl.shared).compute("D", tl.shared).tile(j=2).to(tl.thread), CUDA)
    with pytest.raises(tl.Refusal, match="do not share a region"):
        tl.compile(made.split(j=5).compute("D", tl.shared), CUDA)  # neither reading has all that the other one reads


def test_a_thread_without_points_makes_no_element_that_was_not_loaded() -> None:
    """Both points of thread 1 lie beyond the tile, and each thread reads one element, so no end of the index tells."""
    i = tl.axes(i=5)
    s = tl.define("S", tl.input("X", tl.float32, i)[tl.minimum(i + 1, 4)] * 2, i)
    made = tl.schedule(tl.define("Y", s[(i + 2) // 2] + 1, i)).tile(i=2).to(tl.block).load("X", tl.shared).split(i=4)
    made = made.tile(i=2).to(tl.thread).compute("S", tl.register)
    for target in (CUDA, tl.target("cpu", profile="zen5")):
        check_simulated(made, target)


def test_a_clamped_piece_makes_no_element_that_was_not_loaded_for_the_tile() -> None:
    """The tile has one point, and reads one element; a piece of two points may reach 8 elements before where it begins."""
    i = tl.axes(i=9)
    s = tl.define("S", tl.pad(tl.input("X", tl.float32, i)[i - 2], -1) + 1, i)
    made = tl.schedule(tl.define("Y", s[tl.minimum(i * 2, 8)] + 1, i)).tile(i=1).to(tl.block).load("X", tl.shared)
    kernel = check_simulated(made.split(i=2).compute("S", tl.shared), CUDA)
    assert shared(kernel)["X_shared"] == (1,)


def test_a_piece_of_one_point_that_does_not_exist_needs_nothing() -> None:
    m, n = tl.axes(m=5, n=4)
    s = tl.define("S", tl.input("X", tl.float32, m, n)[m, n] * 2, m, n)
    made = tl.schedule(tl.define("Y", tl.sum(s[m, n], over=n), m)).tile(m=3).to(tl.block).load("X", tl.shared)
    check_simulated(made.split(m=2).tile(m=1).to(tl.thread).compute("S", tl.register), CUDA)


def test_a_load_that_a_stage_reads_in_rows_and_a_fused_tile_in_pieces_has_the_rows() -> None:
    i, j = tl.axes(i=4, j=6)
    x = tl.input("X", tl.float32, i, j)
    total = tl.define("T", tl.sum(x[i, j], over=j), i)
    made = tl.schedule(tl.define("Y", x[i, j] - total[i], i, j)).fuse(ij=("i", "j")).tile(ij=2).to(tl.block)
    kernel = check_simulated(made.load("X", tl.shared).compute("T", tl.shared), CUDA)
    assert shared(kernel) == {"X_shared": (1, 6), "T_shared": (1,)}


def test_a_remainder_that_the_axis_never_reaches_is_the_axis() -> None:
    a, l, j = tl.axes(a=3, l=3, j=3)
    x = tl.input("X", tl.float32, a, b=3)
    e = tl.define("E", x[l, l] + 0, l, j)
    made = tl.schedule(tl.define("G", e[j % 33, j] + 1, l, j)).tile(l=1, j=2).to(tl.block).compute("E", tl.register)
    (kernel,) = check_simulated(made, CUDA).program.kernels
    assert [b.shape for b in kernel.registers] == [(2, 2)]


@pytest.mark.parametrize("step", ["tile m=32 -> thread", "tile m=3 -> thread", "tile m=1 -> thread", "split m=32", "split m=3"])
def test_a_stage_of_one_element_in_registers_is_read_by_a_quotient(step: str) -> None:
    """Of the points that exist, each reads the one element; the index is not a constant."""
    text = """computation c {
      input A: float32[p: 8]
      axis m: 8
      axis p: 8
      axis q: 1
      G[q] = sum[p] A[p] + q
      output Y[m] = A[m] + G[m // 8]
    }
    schedule for c { tile m=3 -> block; STEP; compute G in register }
    """
    check_simulated(tl.parse(text.replace("STEP", step)).schedule(), CUDA)


def registers(kernel: tl.Kernel) -> dict[str, tuple[int, ...]]:
    """The shapes of the buffers in registers."""
    return {b.name: b.shape for k in kernel.program.kernels for b in k.registers}


@pytest.mark.parametrize(
    ("value", "held"),
    [
        ("X[max(i - 3, 0)]", 1),
        ("X[min(i + 5, 31)]", 1),
        ("X[min(max(i * 2 - 9, 0), 31)]", 1),
        ("X[max((i - 3) // 2, 0)]", 1),
        ("X[max(i - 3, 0)] + X[i]", 11),  # threads read different parts of the block's region
    ],
)
def test_a_thread_holds_the_elements_that_it_reads_at_clamped_indices(value: str, held: int) -> None:
    text = f"computation c {{ axis i: 30 input X: float32[a: 32] output Y[i] = ({value}) * 2.0 }}"
    steps = "tile i=8 -> block; load X in register; tile i=1 -> thread"
    kernel = check_simulated(tl.parse(f"{text} schedule for c {{ {steps} }}").schedule(), CUDA)
    assert registers(kernel) == {"X_register": (held,)}


@pytest.mark.parametrize(
    ("index", "steps", "held"),
    [
        ("min(max(i * 2 + 3, 0), 11)", "tile i=1 -> block; split i=8; load X in shared", 1),  # only one of these points exists
        ("min(max(i - 3, 0), 11)", "tile i=4 -> block; load X in shared; tile i=1 -> thread", 4),
        ("min(i + k + 3, 9)", "tile i=16 -> block; split k=2; load X in shared ahead 1; tile i=4 -> thread", 7),
        ("min((i + k) // 2 + 3, 9)", "tile i=16 -> block; load X in shared; tile i=4 -> thread", 7),
    ],
)
def test_a_clamped_region_is_counted_from_its_clamped_start(index: str, steps: str, held: int) -> None:
    text = f"computation c {{ axis i: 20 axis k: 9 input X: float32[a: 12] output Y[k, i] = X[{index}] + 1.0 }}"
    kernel = check_simulated(tl.parse(f"{text} schedule for c {{ {steps} }}").schedule(), CUDA)
    assert [shape[-1] for shape in shared(kernel).values()] == [held]
