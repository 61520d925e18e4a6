"""The memory-bound graphs compute what they say: ours against the reference, the peers' against ours, at odd small sizes."""

import importlib
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from benchmarks import graphs_peers
from benchmarks.graphs_memory_bound import GRAPHS, TINY
from tilelang import testing
from tilelang.autoschedule.common.complete import in_order
from tilelang.schedules.task import tasks_of
from tilelang.semantics import reference

CASES = [(name, t) for name, graph in GRAPHS.items() for t in (("float32", "bfloat16") if graph.half else ("float32",))]


def test_there_are_twelve_with_three_sizes_and_six_in_two_types() -> None:
    assert len(GRAPHS) == 12 == len(TINY) and sum(g.half for g in GRAPHS.values()) == 6
    assert all(len(g.sizes) == 3 for g in GRAPHS.values())


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_graph_is_right(name: str, dtype: str) -> None:
    computation = GRAPHS[name].computation(TINY[name], getattr(tl, dtype))
    _, results = graphs_peers.ours(computation, arrays := graphs_peers.random_arrays(computation))
    assert reference.compare(computation, arrays, {t.name: a for t, a in zip(computation.outputs, results, strict=True)})


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("profile", ["zen4", "avx2", "ampere"])
def test_the_first_schedule_is_one_that_the_device_takes(name: str, profile: str) -> None:
    """At the middle size; a refused one would be replaced by a slower one without a word."""
    device, graph = tl.load_profile(profile), GRAPHS[name]
    first = next(in_order(graph.computation(graph.sizes[1]), device))
    assert testing.lowered(first.schedule, device)


@pytest.mark.parametrize("name", ["row_and_column_sums", "layer_norm_backward", "log_softmax_loss"])
@pytest.mark.parametrize("profile", ["zen3", "zen4", "sapphire_rapids"])
def test_a_kernel_reads_rows_once_for_all_outputs(name: str, profile: str) -> None:
    """What belongs to a row is stored, and the row is added to sums over all rows."""
    graph = GRAPHS[name]
    for size in graph.sizes[1:]:
        schedule = next(in_order(graph.computation(size), tl.load_profile(profile))).schedule
        assert len(tasks_of(schedule.computation, schedule.steps)) == 1, schedule


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("module", ["torch", "jax"])
def test_peers_compute_the_same(name: str, module: str) -> None:
    """Without their compilers."""
    library: Any = pytest.importorskip(module)
    functions = importlib.import_module(f"benchmarks.graphs_{module}")
    computation = GRAPHS[name].computation(TINY[name])
    arrays = graphs_peers.random_arrays(computation)
    _, results = graphs_peers.ours(computation, arrays)
    given = [arrays[t.name] for t in computation.inputs]
    made = [graphs_peers.to_torch(a) if module == "torch" else library.numpy.asarray(a) for a in given]
    assert graphs_peers.difference(getattr(functions, name)(*made), results) < 1e-5


def test_what_differs_is_told() -> None:
    a = np.ones((2, 3), np.float32)
    assert graphs_peers.difference((a, a), [a, 2 * a]) == 0.5
    with pytest.raises(ValueError):
        graphs_peers.difference(a, [a, a])
