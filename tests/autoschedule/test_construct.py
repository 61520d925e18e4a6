"""Constructed schedules: accepted, within the device, right; what they are made of follows from the computation alone."""

import dataclasses
import itertools
import math
import re
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tilelang as tl
from benchmarks.ranking_schedules import SOFTMAX
from tilelang import autoschedule
from tilelang.autoschedule.common.axes import fused
from tilelang.autoschedule.common.construct import construct, ranked
from tilelang.autoschedule.common.loop_summary import read_steps
from tilelang.autoschedule.common.prune import Pruning
from tilelang.autoschedule.common.task_accesses import nest_of
from tilelang.autoschedule.cpu import model
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.construct import best_first, cpu_candidates
from tilelang.autoschedule.cpu.device import cpu_device
from tilelang.autoschedule.cpu.growth import chunk_sizes, seeds
from tilelang.autoschedule.cpu.memory_stalls import wait_cycles
from tilelang.autoschedule.cpu.model import STEPS, IncrementalEstimate
from tilelang.autoschedule.cpu.tile import shared_bytes, steps
from tilelang.autoschedule.models import estimate_loops
from tilelang.computations.computation import as_computation
from tilelang.errors import Refusal
from tilelang.lowering.build.distribution.parallel_mapping import numbers
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Fuse, Place, Split, Step, Tile, Vectorize
from tilelang.schedules.task import plan
from tilelang.testing import Recipe, arrays, check_schedule, lowered, recipes

POCL = tl.load_profile("sapphire_rapids")
COMPUTATIONS = {
    "product": "computation C(M = 37, N = 53, K = 29) { input A: float32[m: M, k: K] input B: float32[k: K, n: N]"
    " output C[m, n] = sum[k] A[m, k] * B[k, n] }",
    "transposed product": "computation C(M = 20, N = 17, K = 40) { input A: float32[k: K, m: M] input B: float32[n: N, k: K]"
    " output C[m, n] = max(sum[k] A[k, m] * B[n, k], 0.0) }",
    "convolution": "computation Z(N = 2, C = 5, H = 9, F = 6) { input X: float32[n: N, c: C, h: H, w: H]"
    " input W: float32[f: F, c: C, r: 3, s: 3] axis p: H axis q: H"
    " output Z[n, f, p, q] = sum[c, r, s] pad(X[n, c, p + r - 1, q + s - 1], 0.0) * W[f, c, r, s] }",
    "strided convolution": "computation Z(N = 2, C = 5, H = 9, F = 6) { input X: float32[n: N, c: C, h: H, w: H]"
    " input W: float32[f: F, c: C] axis p: (H + 1) / 2 axis q: (H + 1) / 2"
    " output Z[n, f, p, q] = sum[c] X[n, c, 2 * p, 2 * q] * W[f, c] }",
    "pieces of whole rows": "computation Z(N = 2, C = 12, H = 32, F = 14) { input X: float32[n: N, c: C, h: H, w: H]"
    " input W: float32[f: F, c: C] axis p: H axis q: H output Z[n, f, p, q] = sum[c] X[n, c, p, q] * W[f, c] }",
    "depthwise": "computation Z(N = 2, C = 5, H = 19) { input X: float32[n: N, c: C, h: H, w: H] input W: float32[c: C, r: 5, s: 5]"
    " axis p: H axis q: H output Z[n, c, p, q] = sum[r, s] pad(X[n, c, p + r - 2, q + s - 2], 0.0) * W[c, r, s] }",
    "strided windows": "computation Z(N = 2, C = 32, H = 21) { input X: float32[n: N, c: C, h: H, w: H] axis r: 3 axis s: 3"
    " axis p: (H + 1) / 2 axis q: (H + 1) / 2 output Z[n, c, p, q] = sum[r, s] pad(X[n, c, 2 * p + r - 1, 2 * q + s - 1], 0.0) }",
    "row sum": "computation Y(M = 33, N = 121) { input X: float32[i: M, j: N] output Y[i] = sum[j] X[i, j] }",
    "pointwise": "computation Y(M = 7, N = 311) { input X: float32[i: M, j: N] output Y[i, j] = max(X[i, j], 0.0) }",
}


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_who_asks_is_told_what_the_search_will_likely_end_with(name: str) -> None:
    """Once, and it changes nothing."""
    computation, told = tl.parse(COMPUTATIONS[name]).computation(), list[tuple[Step, ...]]()
    found = [c.steps for c in itertools.islice(ranked(computation, POCL, likely=told.append), 16)]
    assert found == [c.steps for c in itertools.islice(ranked(computation, POCL), 16)]
    assert len(told) == 1 and Schedule(computation, told[0]).steps == told[0]
    assert told[0] == found[0] or name in ("product", "transposed product", "depthwise")  # small ones


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_the_first_candidates_are_right(name: str) -> None:
    computation = tl.parse(COMPUTATIONS[name]).computation()
    candidates = construct(computation, POCL)
    times = [c.estimate.seconds for c in candidates]
    assert candidates and times == sorted(times)
    for candidate in candidates[:3]:
        report = tl.compile(candidate.schedule).check()
        assert report, f"{candidate.schedule}\n{report}"


@pytest.mark.parametrize("rows", [34, 38, 46])
def test_rows_without_a_large_divisor_fill_the_registers_and_the_rest_is_a_piece_of_its_own(rows: int) -> None:
    text = COMPUTATIONS["product"].replace("M = 37, N = 53, K = 29", f"M = {rows}, N = 1024, K = 64")
    first = construct(tl.parse(text).computation(), POCL)[0].schedule
    cut = [dict(s.sizes)["m"] for s in first.steps if isinstance(s, (Tile, Split)) and "m" in dict(s.sizes)]
    assert min(n for n in cut if isinstance(n, int) and n > 1) in (4, 6, 8) and tl.compile(first).check()


@pytest.mark.parametrize("profile", ["sapphire_rapids", "avx2", "avx512"])
def test_a_processor_known_from_documents_has_times_that_differ(profile: str) -> None:
    text = COMPUTATIONS["product"].replace("M = 37, N = 53, K = 29", "M = 256, N = 512, K = 300")
    device = cpu_device(tl.load_profile(profile))
    first, *others = construct(tl.parse(text).computation(), tl.load_profile(profile))
    assert 0 < first.estimate.seconds < max(other.estimate.seconds for other in others)
    until = re.sub(r"\{ vectorize.*?\}", "", str(first.schedule).split("accumulate in register")[0])
    piece = {axis: int(size) for axis, size in re.findall(r"\b([mn])=(\d+)", until)}  # the last size of each
    assert 4 < math.prod(piece.values()) / device.lanes <= device.registers  # what is read once serves several vectors


@pytest.mark.parametrize("extent", [10**10, 2**61 + 1, 6561])
def test_a_long_axis_takes_no_longer(extent: int) -> None:
    rounds = chunk_sizes(extent)  # finds its divisors, up to a limit that keeps this fast
    assert rounds[-1] == extent and all(extent % n == 0 or n & (n - 1) == 0 for n in rounds)


def test_every_estimate_adds_up_and_is_above_its_bound() -> None:
    for text in COMPUTATIONS.values():
        for candidate in construct(tl.parse(text).computation(), POCL):
            found = candidate.estimate
            assert found.seconds == pytest.approx(sum(s for _, s in found.parts)) and found.seconds >= found.bound > 0


@pytest.mark.parametrize("profile", ["sapphire_rapids", "ampere"])
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_no_candidate_is_another_one_again(name: str, profile: str) -> None:
    found = [c.schedule.text for c in construct(tl.parse(COMPUTATIONS[name]).computation(), tl.load_profile(profile))]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("depth, prefetched", [(4032, True), (128, False)])
def test_the_next_chunk_is_prefetched(depth: int, prefetched: bool) -> None:
    """16 MB of B from memory take a tenth of the time of 128 rows; a short reduction is one chunk."""
    m, n, k = tl.axes(m=128, n=1000, k=depth)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    product = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n))
    first = next(ranked(product.computation, tl.load_profile("zen4")))
    moves = [s for s in first.steps if isinstance(s, Place) and s.tensor_name == "B" and s.memory in ("l2", "shared")]
    assert [(s.memory, s.ahead) for s in moves] == [("l2", 1)] * prefetched + [("shared", 0)]


def test_windows_are_fused_only_where_operands_share_them() -> None:
    texts = [str(c.schedule) for c in construct(tl.parse(COMPUTATIONS["convolution"]).computation(), POCL)]
    assert any("fuse p_q=(p, q)" in t for t in texts) and not any("f_p" in t for t in texts)


SHIFTED = Recipe(  # reads of one tensor that are one row apart
    "network",
    (
        ("extents", (4, 4, 4)),
        ("dtype", "float32"),
        ("inputs", ("ac",)),
        ("stages", (("sum", "a", "c", ((0, "shifted"), (0, "plain")), "+", ()),)),
        ("outputs", "last"),
    ),
)


@pytest.mark.slow
@given(recipes())
@example(SHIFTED)
def test_what_is_said_to_fit_is_at_least_what_the_lowering_takes(recipe: Recipe) -> None:
    computation = recipe.build()
    task = plan(computation, set())[-1]
    for fusions, nest in fused(nest_of(task)) if nest_of(task).points else ():
        for tile in seeds(nest, fusions, cpu_device(POCL)):
            try:
                program = lowered(Schedule(computation, steps(nest, tile)), POCL)
            except Refusal as refusal:
                assert refusal.code == "unrolled-too-long"  # of float16 that is converted element by element
                continue
            assert program.kernels[-1].shared_bytes <= shared_bytes(nest, tile), str(steps(nest, tile))


def test_reductions_of_rows_share_a_kernel_with_what_reads_them() -> None:
    computation = tl.parse(SOFTMAX).computation(M=20, N=70)
    candidates = [c.schedule for c in construct(computation, POCL)]
    rows = [s for s in candidates if "compute shifted in shared" in str(s)]
    kernels = [s for s in candidates if "compute peak in global" in str(s) and "compute total in global" in str(s)]
    assert rows and kernels and len(rows) + len(kernels) == len(candidates)
    for schedule in (*rows, kernels[0]):
        assert tl.compile(schedule).check()


@pytest.mark.parametrize(("rows", "columns", "together"), [(512, 1024, 2), (511, 1024, 1), (512, 16384, 1)])
def test_rows_are_computed_in_pairs_where_they_stay_near(rows: int, columns: int, together: int) -> None:
    """While the lanes of one row become its sum, the other row goes on."""
    first = construct(tl.parse(SOFTMAX).computation(M=rows, N=columns), tl.load_profile("zen5"))[0].schedule
    assert f"split i={together}\n" in str(first)


def test_rows_in_pairs_are_right() -> None:
    candidates = construct(tl.parse(SOFTMAX).computation(M=64, N=70), POCL)
    pairs = [c.schedule for c in candidates if "split i=2" in str(c.schedule)]
    assert len(pairs) == 2 and all(tl.compile(schedule).check() for schedule in pairs)


def test_rows_of_two_axes_are_walked_in_the_order_of_memory() -> None:
    """Chunks of the last axis inside the other one, and the next row's chunks are fetched, however many axes a row has."""
    r, c, p = tl.axes(r=64, c=4, p=96)
    X = tl.input("X", tl.float32, r, c, p)
    computation = as_computation(tl.define("Y", tl.layer_norm(X[r, c, p], over=(c, p)), r, c, p))
    first = construct(computation, tl.load_profile("zen5"))[0].schedule
    assert "split c=1 p=" in str(first)
    assert tl.compile(first).check()


def test_a_row_that_is_read_at_a_label_too_is_fetched_by_the_read_along_it() -> None:
    i, j = tl.axes(i=64, j=1024)
    X, labels = tl.input("X", tl.float32, i, j), tl.input("labels", tl.int64, i, range=(0, 1024))
    total = tl.define("total", tl.sum(tl.exp(X[i, j]), over=j), i)
    loss = tl.define("loss", tl.log(total[i]) - X[i, labels[i]], i)
    computation = as_computation(tl.define("Y", tl.exp(X[i, j] + loss[i]) + X[i, labels[i]], i, j))
    rows = [c.schedule for c in construct(computation, tl.load_profile("zen5")) if "load X[i, j] in" in str(c.schedule)]
    assert rows and tl.compile(rows[0]).check()


class Guess:
    """What looks like `IncrementalEstimate`: lower bounds that rise to an estimate, one for each step that is counted."""

    def __init__(self, bounds: list[int]) -> None:
        self.bounds, self.number = sorted(bounds), 0

    def count(self) -> None:
        self.number += not self.whole

    @property
    def least_seconds(self) -> float:
        return self.bounds[self.number]

    @property
    def whole(self) -> bool:
        return self.number == len(self.bounds) - 1


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3)), st.integers(0, 6))
def test_best_first_is_the_order_of_estimates_and_counts_no_more_than_it_takes(found: list[list[int]], below: int) -> None:
    guesses = [Guess(bounds) for bounds in found]
    order = best_first(cast(Any, [(guess, n) for n, guess in enumerate(guesses)]), below)
    for n in sorted((n for n in range(len(found)) if max(found[n]) < below), key=lambda n: max(found[n])):
        assert next(order)[1] == n
        assert all(g.bounds[g.number - 1] <= max(found[n]) for g in guesses if g.number)
    assert next(order, None) is None
    assert all(g.bounds[g.number - 1] < below for g in guesses if g.number)


def test_best_first_takes_what_stands_there_twice() -> None:
    one = Guess([1, 2, 3])
    assert [what for _, what in best_first(cast(Any, [(one, "a"), (Guess([2]), "b"), (one, "c")]))] == ["b", "a", "c"]


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_counting_in_steps_changes_no_estimate(name: str) -> None:
    (task,) = plan(tl.parse(COMPUTATIONS[name]).computation(), set())
    root = nest_of(task)
    made = [m for m in cpu_candidates(root, cpu_device(POCL)) if not any(isinstance(s, Fuse) for s in m.steps)]
    for one in made[:20]:
        loops = read_steps(root, one.steps)
        counted = IncrementalEstimate((loops,), cpu_device(POCL))
        bounds = [counted.least_seconds]
        while not counted.whole:
            counted.count()
            bounds.append(counted.least_seconds)
        assert len(bounds) == STEPS and bounds == sorted(bounds)
        assert bounds[-1] == counted.estimate.seconds and counted.estimate == one.estimate
        assert counted.estimate == estimate_loops((loops,), POCL)


@pytest.mark.parametrize(
    "text",
    [
        "computation C(M = 512, N = 224, K = 192) { input A: float32[m: M, k: K] input B: float32[k: K, n: N]"
        " output C[m, n] = sum[k] A[m, k] * B[k, n] }",
        "computation Z(N = 8, C = 64, H = 28, F = 96) { input X: float32[n: N, c: C, h: H, w: H]"
        " input W: float32[f: F, c: C, r: 3, s: 3] axis p: H axis q: H"
        " output Z[n, f, p, q] = sum[c, r, s] pad(X[n, c, p + r - 1, q + s - 1], 0.0) * W[f, c, r, s] }",
    ],
    ids=["product", "convolution"],
)
def test_sizes_of_the_best_seeds_suit_other_register_tiles(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """About as good a schedule as from all seeds of all register tiles, and a climb from each start, from fewer estimates."""
    (task,) = plan(tl.parse(text).computation(), set())
    counts, seconds = list[int](), list[float]()
    for constants in (CPU, dataclasses.replace(CPU, best_sizes=1 << 10, near=math.inf)):
        monkeypatch.setattr("tilelang.autoschedule.cpu.construct.CPU", constants)
        device = cpu_device(tl.load_profile("zen3"))
        before = device.pruning.kept
        seconds.append(next(cpu_candidates(nest_of(task), device)).estimate.seconds)
        counts.append(device.pruning.kept - before)
    assert counts[0] < 0.75 * counts[1]
    assert seconds[0] < 1.05 * seconds[1]


def test_the_first_candidate_leaves_some_of_the_others_without_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    computation, asked = tl.parse(COMPUTATIONS["convolution"]).computation(), list[Any]()
    whole = wait_cycles

    def noted(*given: Any) -> Any:
        asked.append(given)
        return whole(*given)

    monkeypatch.setattr(model, "wait_cycles", noted)
    pruning = Pruning()
    first = next(ranked(computation, POCL, pruning))
    assert len(asked) < pruning.kept
    assert [(c.steps, c.estimate) for c in construct(computation, POCL)[:1]] == [(first.steps, first.estimate)]


def test_a_copy_in_shared_memory_turns_and_parts_what_vectors_read() -> None:
    strided = tl.parse(COMPUTATIONS["strided windows"]).computation()
    (task,) = plan(strided, set())
    texts = ["; ".join(map(str, made.steps)) for made in cpu_candidates(nest_of(task), cpu_device(POCL))]
    assert any("w % 2, w / 2)" in t and "vectorize q" in t for t in texts) and any(
        "h, w, c)" in t and "vectorize c" in t for t in texts
    )


def test_walks_of_chunks_have_no_tails_and_windows_are_not_written_out_beside_many_results() -> None:
    text = """computation Z(N = 1, C = 48, H = 28, F = 64) { input X: float32[n: N, c: C, h: H, w: H]
      input W: float32[f: F, c: C, r: 3, s: 3]
      axis p: H - 2 axis q: H - 2 output Z[n, f, p, q] = sum[c, r, s] X[n, c, p + r, q + s] * W[f, c, r, s] }"""
    for candidate in construct(tl.parse(text).computation(), POCL):
        walks = [s for s in candidate.steps if isinstance(s, Split)]
        cuts = {a: n for s in walks for a, n in s.sizes if a in ("c", "c_r_s") and isinstance(n, int)}
        assert all({"c": 48, "c_r_s": 432}[a] % n == 0 for a, n in cuts.items()), candidate.steps
        pieces = math.prod(n for s in walks[:-1] for a, n in s.sizes if a in ("f", "q", "p") and isinstance(n, int))
        assert pieces <= 16 * 8 or not any(s.unroll for s in walks if dict(s.sizes).keys() == {"s"}), candidate.steps


def test_dimensions_may_have_other_names_than_axes() -> None:
    text = """computation C(M = 24, N = 96, K = 40) { axis m: M axis n: N axis k: K input A: float32[x: M, y: K]
      input B: float32[u: K, v: N] output C[m, n] = sum[k] A[m, k] * B[k, n] }"""
    candidates = construct(tl.parse(text).computation(), POCL)
    assert any("load B in register { vectorize v=16 }" in str(c.schedule) for c in candidates)
    for candidate in candidates[:1] + candidates[-1:]:
        assert not check_schedule(candidate.schedule, arrays(candidate.computation))


@pytest.mark.parametrize(("extent", "filters"), [(14, 32), (13, 40)])
def test_many_results_with_lanes_apart_are_turned_and_not_stored_one_by_one(extent: int, filters: int) -> None:
    text = f"""computation Z(C = 8, H = {extent}, F = {filters}) {{ input X: float32[c: C, h: H + 2, w: H + 2]
      input W: float32[f: F, c: C, r: 3, s: 3] axis p: H axis q: H
      output Z[f, p, q] = sum[c, r, s] X[c, p + r, q + s] * W[f, c, r, s] }}"""
    computation = tl.parse(text).computation()
    turned = []
    for fusions, nest in fused(nest_of(plan(computation, set())[-1])):
        for tile in seeds(nest, fusions, cpu_device(POCL)):
            schedule = Schedule(computation, steps(nest, tile))
            if "via shared" in schedule.text:
                turned.append(schedule)
                assert lowered(schedule, POCL).kernels[-1].shared_bytes <= shared_bytes(nest, tile), schedule
    assert turned
    for schedule in turned[:2]:
        kernel = tl.compile(schedule)
        assert kernel.check() and kernel.source.count("Z[") <= 4, schedule


def test_no_operator_or_device_has_a_name_here() -> None:
    words = (
        "matmul|gemm|conv|pool|depthwise|softmax|relu|attention|bert|norm(?!al\\b)"
        "|pocl|nvidia|amd|intel|v100|a100|h100|h200|mi210|mi300|adreno|mali"
        "|cuda|(?<!c)hip|opencl|volta|ampere|hopper|sm_|gfx|avx"
    )
    base = Path(autoschedule.__file__).parent
    for path in sorted(path for folder in ("common", "cpu", "gpu", "tune") for path in (base / folder).glob("*.py")):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if ">>>" not in line]
        found = re.findall(rf"\b\w*(?:{words})\w*\b", "\n".join(lines), re.IGNORECASE)
        assert not found, f"{path.name}: {found}"


def test_an_output_that_another_one_reads_has_a_kernel_of_its_own() -> None:
    i, j = tl.axes(i=33, j=50)
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    both = tl.computation("both", (peak, tl.define("softmax", tl.exp(x[i, j] - peak[i]) / total[i], i, j)))
    for candidate in construct(both, POCL):
        candidate.schedule.check(POCL)
    assert tl.compile(both).check()


@pytest.mark.parametrize("profile", ["zen5", "avx2", "ampere"])
def test_an_axis_that_drops_out_of_an_index_is_none_of_the_reads(profile: str) -> None:
    p, l, j, q = tl.axes(p=8, l=13, j=7, q=1)
    few, rows = tl.input("few", tl.float32, j), tl.input("rows", tl.float32, p)
    one = tl.define("one", tl.sum(few[j], over=j), q)
    least = tl.define("least", tl.min(rows[p] + one[l % 1] * few[j], over=j), p, q, l)
    assert construct(tl.computation("c", least), tl.load_profile(profile))


def test_seeds_that_work_far_longer_than_the_best_takes_are_not_searched_from(monkeypatch: pytest.MonkeyPatch) -> None:
    computation = tl.parse(COMPUTATIONS["depthwise"].replace("N = 2, C = 5, H = 19", "N = 2, C = 96, H = 28")).computation()
    root, device = nest_of(plan(computation, set())[-1]), cpu_device(POCL)
    assert len(list(fused(root))) == 2  # with windows fused, operands are copied element by element
    some = list(cpu_candidates(root, device))
    monkeypatch.setattr("tilelang.autoschedule.cpu.construct.CPU", dataclasses.replace(CPU, hopeless=math.inf))
    every = list(cpu_candidates(root, device))
    assert len(some) < len(every) and some[0].steps == every[0].steps


def test_a_tensor_whose_reads_move_apart_is_not_prefetched() -> None:
    """No load could bring it: its reads have no region together, and every schedule would be refused."""
    text = (
        "computation c { input T: int32[p: 4, q: 10] axis d: 127 axis c: 5 axis a: 3 axis b: 3"
        " output o[d, c, a, b] = T[a, 3 * a + 3] + T[2 - b, c % 6] }"
    )
    computation, profile = tl.parse(text).computation(), tl.load_profile("zen4")
    for candidate in construct(computation, profile):
        assert not any("load T in l1" in str(step) for step in candidate.steps)
        tl.compile(tl.Schedule(computation, candidate.steps), tl.target("cpu", profile=profile))


def test_a_tensor_that_is_read_through_another_one_is_not_prefetched() -> None:
    i, j, k = tl.axes(i=8, j=17, k=521)
    table, chosen = tl.input("table", tl.bfloat16, a=17, b=256), tl.input("chosen", tl.uint64, i, k)
    read = table[j, tl.cast(chosen[i, k] % 256, tl.int64)]
    what = tl.computation("largest", tl.define("Y", tl.max(read, over=k), i, j))
    profile = tl.load_profile("zen4")
    candidates = list(itertools.islice(construct(what, profile), 16))
    assert candidates
    for candidate in candidates:
        tl.compile(tl.Schedule(what, candidate.steps), tl.target("cpu", profile=profile))


def test_of_a_tensor_whose_reads_move_apart_each_read_is_loaded_by_itself() -> None:
    text = (
        "computation c { input X: float32[p: 9] input ids: uint8[c: 33] axis b: 9 axis d: 3"
        " output o[d, c] = sum[b] max(X[b], max(pad(X[c + b * 2 - 1], 2.0), X[min(ids[c], 8)]) + X[d + 3]) }"
    )
    computation, profile = tl.parse(text).computation(), tl.load_profile("zen4")
    for candidate in construct(computation, profile):
        assert not any(isinstance(step, Place) and step.verb == "load" and step.what == "X" for step in candidate.steps)
        tl.Schedule(computation, candidate.steps).check(profile)


@pytest.mark.parametrize("dtype", [tl.float32, tl.int32])
def test_a_tensor_is_packed_for_one_of_its_reads(dtype: tl.DType) -> None:
    """In a product of a matrix and its own transpose, only the rows along the vectors need another order."""
    i, j, k = tl.axes(i=129, j=129, k=401)
    X = tl.input("X", dtype, i, k)
    first = next(ranked(tl.computation("G", tl.define("G", tl.sum(X[i, k] * X[j, k], over=k), i, j)), tl.load_profile("avx2")))
    loads = [str(step) for step in first.steps if isinstance(step, Place) and (step.verb, step.memory) == ("load", "shared")]
    assert loads and all(load.startswith(("load X[i, k] in shared", "load X[j, k] in shared")) for load in loads)
    read_back = tl.parse(first.schedule.computation.text + first.schedule.text).schedule()
    assert read_back.text == first.schedule.text
    assert tl.compile(read_back).check().ok


@pytest.mark.parametrize("name", ["zen3", "zen5", "avx512", "neon"])
def test_a_matrix_that_is_used_once_is_read_row_by_row(name: str) -> None:
    """A row vector times a matrix: long rows, no more of them in turn than the prefetcher follows."""
    profile, (j, k) = tl.load_profile(name), tl.axes(j=4096, k=4096)
    A, B = tl.input("A", tl.float32, k), tl.input("B", tl.float32, k, j)
    (best, *_) = construct(as_computation(tl.define("C", tl.sum(A[k] * B[k, j], over=k), j)), profile)
    tile, rows = best.steps[:2]
    assert isinstance(tile, Tile) and isinstance(rows, Split)
    assert numbers(tile)["j"] >= 1024 and numbers(rows)["k"] <= (profile.rate("followed_rows") or 4)


@pytest.mark.parametrize("name", ["zen3", "zen4", "zen5"])
def test_rows_that_end_inside_a_vector_are_not_fused(name: str) -> None:
    """Vectors across the ends of padded rows are assembled from single elements, each at an index of its own."""
    n, y, x, h, w = tl.axes(n=8, y=60, x=60, h=56, w=56)
    X = tl.input("X", tl.float32, n, h, w)
    padded = tl.define("Y", tl.pad(X[n, y - 2, x - 2], 0), n, y, x)
    best = construct(as_computation(padded), tl.load_profile(name))[0].steps
    assert any(isinstance(step, Vectorize) for step in best) and not any(isinstance(step, Fuse) for step in best)


@pytest.mark.parametrize("columns", [(), (1,)])
def test_long_rows_are_read_several_at_a_time(columns: tuple[int, ...]) -> None:
    """A matrix times a vector, or a column: rows of the matrix together, and no prefetches of the vector, which is read again."""
    m, k = tl.axes(m=4096, k=4096)
    others = tuple(tl.axes(n=n) for n in columns)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, *others)
    product = tl.define("C", tl.sum(A[m, k] * B[(k, *others)], over=k), m, *others)
    best = construct(as_computation(product), tl.load_profile("zen3"))[0].steps
    rows = [numbers(step)["m"] for step in best if isinstance(step, Split) and "m" in numbers(step)]
    assert rows == [4, 1] and not any(isinstance(step, Place) and step.verb == "load" for step in best)


@pytest.mark.parametrize("name", ["zen5", "ampere", "mali_g76"])
def test_a_gather_costs_the_rows_that_it_reads(name: str) -> None:
    """An embedding bag over a table of 20,000 rows is not priced as if each element read the whole table."""
    times = []
    for rows in (1000, 20000):
        i, b, j, v = tl.axes(i=256, b=8, j=128, v=rows)
        table, ids = tl.input("table", tl.float32, v, j), tl.input("ids", tl.int32, i, b, range=(0, rows))
        bags = tl.define("bags", tl.sum(table[ids[i, b], j], over=b), i, j)
        times.append(construct(as_computation(bags), tl.load_profile(name))[0].estimate.seconds)
    assert times[1] < 3 * times[0]
