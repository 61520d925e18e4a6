"""Computations of several kernels: each may have roles, loads ahead and accumulators of its own, and is explained."""

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.semantics import reference
from tilelang.testing.tracing import Reading, traced


def two_products(size: int) -> tl.Tensor:
    m, k, h, o = tl.axes(m=size, k=size, h=size, o=size)
    X, first, second = (tl.input(n, tl.float16, *dims) for n, dims in (("X", (m, k)), ("V", (h, k)), ("W", (o, h))))
    between = tl.define("between", tl.sum(X[m, k] * first[h, k], over=k), m, h)
    return tl.define("Y", tl.sum(between[m, h] * second[o, h], over=h), m, o)


@pytest.mark.parametrize("size", [512, 2048])
@pytest.mark.parametrize("profile", ["hopper", "h200"])
def test_a_kernel_of_its_own_may_have_roles(profile: str, size: int) -> None:
    kernel = tl.compile(two_products(size), tl.target("cuda", profile=profile), options=tl.Options(database=""))
    head = next(line for line in str(kernel.schedule).splitlines() if "compute between in global" in line)
    assert "units block" in head and "on producer" in head


def test_roles_of_a_kernel_of_its_own_are_right() -> None:
    text = str(tl.compile(two_products(512), tl.target("cuda", profile="hopper"), options=tl.Options(database="")).schedule)
    small = two_products(256)
    steps = tl.parse(tl.computation("Y", small).text + text).schedule().steps
    kernel = tl.compile(tl.Schedule(tl.computation("Y", small), steps), tl.target("cuda", profile="hopper"))
    arrays = reference.random_arrays(kernel.computation)
    report = tl.simulate(kernel, **arrays)
    assert not report.findings and reference.compare(kernel.computation, arrays, report.outputs)


def test_every_step_of_a_kernel_of_its_own_is_explained() -> None:
    m, k, h = tl.axes(m=256, k=256, h=256)
    X, V, W = (tl.input(n, tl.float32, *dims) for n, dims in (("X", (m, k)), ("V", (k, h)), ("W", (h, k))))
    H = tl.define("H", tl.sum(X[m, k] * V[k, h], over=k), m, h)
    Y = tl.define("Y", tl.sum(tl.gelu(H[m, h]) * W[h, k], over=h), m, k)
    for target in (tl.target("cpu", profile="zen3"), tl.target("cuda", profile="ampere")):
        kernel = tl.compile(Y, target, options=tl.Options(database=""))
        own = kernel.program.kernels[0].name
        assert f"compute {own} in global" in str(kernel.schedule) and f"kernel {own}" in kernel.explain()
    assert np.all(np.isfinite(tl.compile(Y, tl.target("cpu"))(*(np.ones((256, 256), np.float32),) * 3)))


def test_what_a_reduction_over_blocks_reads_at_its_end_is_made_there() -> None:
    i, j, r = tl.axes(i=6, j=6, r=33)
    X, U, V = (tl.input(n, tl.float32, *dims) for n, dims in (("X", (i, r)), ("U", (j, r)), ("V", (i, j))))
    Z = tl.define("Z", tl.exp(V[i, j]), i, j)
    P = tl.define("P", tl.max(V[i, j], over=j), i)
    plain = tl.sum(X[i, r] * U[j, r], over=r)
    both = tl.sum(X[i, r] * U[j, r] * Z[i, j], over=r)
    for value, stage in ((plain + Z[i, j], "Z"), (both + Z[i, j], "Z"), (plain * P[i] + Z[i, j], "P")):
        for memory in (tl.shared, tl.register):
            made = tl.schedule(tl.define("W", value, i, j)).tile(r=8).to(tl.block).compute(stage, memory)
            assert tl.compile(made, tl.target("cpu")).check()


@pytest.mark.parametrize("extents", [(4, 37), (6, 6)])
def test_partial_results_lie_in_the_order_of_their_tensor(extents: tuple[int, int]) -> None:
    i, k, r = tl.axes(i=extents[0], k=extents[1], r=20)
    X = tl.input("X", tl.float32, i, k, r)
    Z, W = tl.define("Z", X[i, k, 0] * 2, i, k), tl.define("W", tl.sum(X[i, k, r], over=r), k, i)
    x = np.random.default_rng(0).integers(-3, 4, (*extents, 20)).astype(np.float32)
    for outputs in ((Z, W), (W, Z)):
        kernel = tl.compile(tl.schedule(tl.computation("c", outputs)).tile(r=5).to(tl.block), tl.target("cpu"))
        report = tl.simulate(kernel, X=x)
        assert not report.findings and np.array_equal(report.outputs["W"], x.sum(2).T)
        assert np.array_equal(kernel(x).W, x.sum(2).T)


def test_an_axis_of_a_kernel_of_its_own_is_not_one_of_the_last() -> None:
    i, j, r = tl.axes(i=9, j=7, r=34)
    X = tl.input("X", tl.float32, i, j, r)
    Y = tl.define("Y", tl.sum(X[i, j, r], over=r), i, j)
    W = tl.define("W", Y[i, j] * 2, i, j)
    for outputs in ((W, Y), (Y, W), (W,)):
        with pytest.raises(tl.Refusal, match="unknown-axis"):
            tl.schedule(tl.computation("c", outputs)).compute("Y", tl.global_).tile(i=5, j=6).to(tl.block).split(j=5, r=34)


@pytest.mark.parametrize("tile", [1, 2, 3, 4])
def test_a_store_in_vectors_of_one_axis_over_vectors_of_another(tile: int) -> None:
    i, j, r = tl.axes(i=8, j=48, r=5)
    X = tl.input("X", tl.float32, i, j, r)
    Y = tl.define("Y", tl.sum(X[i, j, r], over=r), i, j)
    made = tl.schedule(Y).accumulate(tl.register, steps=tl.move().vectorize(i=2)).tile(j=tile).to(tl.thread).vectorize(j=4)
    x = np.random.default_rng(0).integers(-3, 4, (8, 48, 5)).astype(np.float32)
    for target in (tl.target("cpu"), tl.target("cuda", profile="ampere")):
        report = tl.simulate(tl.compile(made, target), X=x)
        assert not report.findings and np.array_equal(report.outputs["Y"], x.sum(2))


@pytest.mark.parametrize("constructed", [True, False])
def test_a_reduction_that_is_read_turned_too(constructed: bool) -> None:
    """One state is one element of each point: C[j, i] beside C[i, j] comes from memory."""
    i, j, k = tl.axes(i=5, j=5, k=3)
    A = tl.input("A", tl.float32, i, j, k)
    C = tl.define("C", tl.sum(A[i, j, k], over=k), i, j)
    a = np.arange(75, dtype=np.float32).reshape(5, 5, 3)
    c = a.sum(2)
    for outputs, expected in {
        (tl.define("D", C[i, j] * C[j, i], i, j),): (c * c.T,),
        (C, tl.define("D", C[j, i] * 2, i, j)): (c, 2 * c.T),
        (C, tl.define("D", C[j, i] + C[j, i], j, i)): (c, 2 * c),
        (tl.define("D", C[j, i] * 2, i, j),): (2 * c.T,),
    }.items():
        whole = tl.computation("turned", outputs)
        found = tl.compile(whole if constructed else tl.schedule(whole), "cpu")(a)
        for array, right in zip(found if len(outputs) > 1 else (found,), expected, strict=True):
            np.testing.assert_array_equal(array, right)


def test_stages_of_a_kernel_of_its_own_are_read_there() -> None:
    """Y itself reads S, which the kernel only makes."""
    made = tl.parse("""computation f {
  input X: float32[q: 13, k: 12]
  S[k] = prod[q] X[q, k]
  output Y[k] = S[k] + 1.0
}
schedule for f {
  compute S in global { tile k=4 -> block; tile k=1 -> thread; accumulate in register; split q=2; compute Y in register }
  tile k=8 -> block
}
""").schedule()
    with pytest.raises(tl.TileLangError, match="nothing in the kernel of S reads Y") as refused:
        made.check("ampere")
    assert refused.value.code == "stage-unread"


CENTRED = """computation centred {
  input X: float32[i: 24, j: 32]
  input W: float32[j: 32, k: 16]
  mean[i] = (sum[j] X[i, j]) / 32.0
  rest[i, j] = X[i, j] - mean[i]
  output Y[i, k] = sum[j] rest[i, j] * W[j, k]
}
schedule rows for centred {
  compute rest in global { tile i=8 -> block; split i=1; compute mean_sum in register { vectorize j=16 }; vectorize j=16 }
  tile i=8 k=16 -> block
}
schedule threads for centred {
  compute rest in global { tile i=1 -> block; compute mean_sum in register { tile j=1 -> thread }; tile j=1 -> thread }
  tile i=8 k=16 -> block
}
"""


@pytest.mark.parametrize(("name", "target"), [("rows", tl.target("cpu")), ("threads", tl.target("opencl", profile="simulated"))])
def test_a_kernel_of_its_own_makes_its_own_stages(name: str, target: tl.Target) -> None:
    """The sum is no kernel and no array: the rows that need it make it."""
    schedule = tl.parse(CENTRED).schedule(name)
    kernel = tl.compile(schedule, target)
    assert [k.name for k in kernel.program.kernels] == ["rest", "Y_1"]
    assert [b.name for b in kernel.program.buffers if b.role == "workspace"] == ["rest"]
    assert not tl.simulate(kernel).findings
    given = testing.arrays(schedule.computation)
    program = testing.lowered(schedule, testing.tiny_profile())
    assert not Reading(schedule, testing.tiny_profile(), given).faults(traced(program, given))
    explained = kernel.explain()
    assert explained.count("compute mean_sum in register") == 1
    assert tl.parse(f"{schedule.computation.text}\n{schedule}").schedule().steps == schedule.steps


def test_what_a_kernel_of_its_own_keeps_is_made_once_more_for_others() -> None:
    """`mean` is read in both kernels: where it is kept in one of them, the other has it from a kernel of its own."""
    text = CENTRED.replace("rest[i, j] * W[j, k]", "rest[i, j] * W[j, k] * mean[i]")
    kernel = tl.compile(tl.parse(text).schedule("rows"), tl.target("cpu"))
    assert [k.name for k in kernel.program.kernels] == ["rest", "mean_sum_1", "Y_2"]
    assert kernel.check().ok


def test_steps_in_the_braces_of_such_a_stage_are_checked() -> None:
    text = CENTRED.replace("mean_sum in register { vectorize j=16 }", "mean_sum in register { vectorize z=16 }")
    with pytest.raises(tl.Refusal, match="there is no axis `z`"):
        tl.compile(tl.parse(text).schedule("rows"), tl.target("cpu"))


@pytest.mark.parametrize("profile", ["ampere", "cdna3", "mali_g76"])
def test_partial_results_are_combined_by_a_thread_each(profile: str) -> None:
    """Not by one thread a block, which is what the plain schedule of a kernel has on processors."""
    m, n, k = tl.axes(m=33, n=48, k=4096)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    product = tl.schedule(tl.define("C", tl.relu(tl.sum(A[m, k] * B[k, n], over=k)), m, n))
    made = testing.lowered(product.tile(m=16, n=16, k=1024).to(tl.block).tile(m=1, n=1).to(tl.thread), tl.load_profile(profile))
    assert [(kernel.name, kernel.threads) for kernel in made.kernels] == [("C", 256), ("C_combine_1", 256)]
    assert made.kernels[1].grid == (7, 1, 1)


@pytest.mark.parametrize("member", ["Y_argmax_0", "Y_argmax_1"])
def test_any_tensor_of_a_reduction_names_its_kernel(member: str) -> None:
    i, j = tl.axes(i=5, j=7)
    X = tl.input("X", tl.float32, i, j)
    largest = tl.define("Y", tl.cast(tl.argmax(X[i, j], over=j) + 1, tl.float32), i)
    schedule = tl.schedule(largest).compute(member, tl.global_, steps=tl.move().tile(i=2).to(tl.block))
    kernel = tl.compile(schedule, tl.target("cuda", profile="ampere"))
    assert kernel.resources[0].grid == (3, 1, 1) and not testing.check_kernel(kernel)
