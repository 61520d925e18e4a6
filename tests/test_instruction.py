"""Instruction records: what is refused at creation, what they compute, which names are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilelang.computations import functions as F
from tilelang.core.dtype import bfloat16, float16, float32, int8, int32, int64
from tilelang.core.expr import Axis, Var, cast, index
from tilelang.errors import ComputationError, Refusal, TileLangError
from tilelang.instructions.fragment import Fragment, fragment, row_major
from tilelang.instructions.instruction import Instruction, OperandText, computes, instruction, known, moves, updates, use
from tilelang.instructions.operand import operand
from tilelang.instructions.semantics import Means
from tilelang.instructions.template import functions_defined
from tilelang.lowering import ir
from tilelang.lowering.drivers.interface import Device
from tilelang.profiles.files import load_profile

SHIPPED = known()
WITH_MAPS = [(i, o.name, f) for i in SHIPPED for o in i.operands if (f := i.fragment(o.name)) is not None]


def define(name: str = "test_instruction", **changes: Any) -> Instruction:
    """An instruction of one thread, C[n] += A B[n], with fields exchanged."""
    n = Axis("n", 4)
    A = operand("A", float32, "register")
    B, C = operand("B", float32, "register", n), operand("C", float32, "register", n)
    fields = {"means": updates(C[n], A[()] * B[n]), "operands": (A, B, C), "level": "thread", "replace": True, **changes}
    return instruction(name, **fields)


def fault(**changes: Any) -> str:
    with pytest.raises(ComputationError) as caught:
        define(**changes)
    return caught.value.render()


def dense_operands(made: Instruction, seed: int = 0) -> dict[str, Any]:
    """Small integers for all that the instruction reads, dense, in the operands' types."""
    random = np.random.default_rng(seed)
    return {o.name: random.integers(-3, 4, o.shape).astype(o.dtype.numpy) for o in made.operands if o.name in made.reads}


def run(made: Instruction, dense: dict[str, Any]) -> Any:
    """The instruction on dense operands, through the lanes and back."""
    lanes = {}
    for name, array in dense.items():
        here = made.fragment(name)
        lanes[name] = array if here is None else here.scatter(array)
    result = made.simulate(lanes)[made.writes]
    there = made.fragment(made.writes)
    return result if there is None else there.gather(result, made.operand(made.writes).shape)


def held(name: str, operand: str) -> Fragment:
    found = use(name).fragment(operand)
    assert found is not None
    return found


# ---------------------------------------------------------------- lane maps


@pytest.mark.parametrize("made, name, map", WITH_MAPS, ids=lambda x: getattr(x, "name", x if isinstance(x, str) else ""))
def test_shipped_maps_hold_each_element_equally_often(made: Instruction, name: str, map: Fragment) -> None:
    extents = made.operand(name).shape
    flat = np.ravel_multi_index(tuple(np.moveaxis(map.table, -1, 0)), extents) if extents else np.zeros((1, 1), int)
    elements = int(np.prod(extents, dtype=int))
    copies = map.lanes * map.slots // elements
    assert sorted(flat.ravel().tolist()) == sorted(list(range(elements)) * copies)
    assert map.lanes == made.width and (copies == 1 or name != made.writes)


# What the PTX ISA's figures show, read off lane by lane: (operand, lane, slot) -> coordinates.
FIGURES = [
    ("mma_m16n8k16", "A", 5, 0, (1, 2)),
    ("mma_m16n8k16", "A", 5, 2, (9, 2)),
    ("mma_m16n8k16", "A", 5, 4, (1, 10)),
    ("mma_m16n8k16", "A", 31, 7, (15, 15)),
    ("mma_m16n8k16", "B", 5, 0, (2, 1)),
    ("mma_m16n8k16", "B", 5, 3, (11, 1)),
    ("mma_m16n8k16", "C", 5, 1, (1, 3)),
    ("mma_m16n8k16", "C", 5, 2, (9, 2)),
    ("simulated_mma_m16n8k8", "A", 6, 1, (9, 2)),
    ("simulated_mma_m16n8k8", "A", 6, 2, (1, 6)),
    ("simulated_mma_m16n8k8", "B", 6, 1, (6, 1)),
    ("wgmma_m64n256k16", "C", 0, 4, (0, 8)),
    ("wgmma_m64n256k16", "C", 37, 3, (25, 3)),
    ("wgmma_m64n256k16", "C", 127, 127, (63, 255)),
]


@pytest.mark.parametrize("name, operand, lane, slot, coordinates", FIGURES)
def test_shipped_maps_are_those_of_the_figures(
    name: str, operand: str, lane: int, slot: int, coordinates: tuple[int, int]
) -> None:
    found = held(name, operand)
    assert tuple(found.table[lane, slot].tolist()) == coordinates
    assert [int(c.value) for c in found.at(index(lane), index(slot))] == list(coordinates)  # type: ignore[attr-defined]


def lacking(
    taker: Fragment, taken: tuple[int, int], giver: Fragment, given: tuple[int, int]
) -> tuple[int, tuple[int, ...]] | None:
    """The first element, with its lane, that a lane wants by one map of 16 x 16 elements and has not by another: their tiles."""
    wanted, has = (f.distribution.tiled([16 // n for n in tiles], tiles).table() for f, tiles in ((taker, taken), (giver, given)))
    assert wanted is not None and has is not None
    return wanted.foreign(has).sorted().first()


def test_matrix_loads_leave_elements_where_the_product_wants_them() -> None:
    left, right = held("ldmatrix_x4", "D"), held("ldmatrix_x4_trans", "D")
    A, B = held("mma_m16n8k16", "A"), held("mma_m16n8k16", "B")
    assert lacking(A, (1, 1), left, (1, 1)) is None
    assert lacking(B, (1, 2), right, (1, 1)) is None
    assert lacking(B, (1, 2), left, (1, 1)) == (4, (0, 1))
    points = left.distribution.table()
    assert points is not None and points.holders((0, 1)) == [0]


def test_two_accumulators_are_one_operand_of_the_next_product() -> None:
    assert lacking(held("mma_m16n8k16", "A"), (1, 1), held("mma_m16n8k16", "C"), (1, 2)) is None


@pytest.mark.parametrize(
    "map, written, code",
    [
        (fragment(2, 2, lambda lane, slot: lane * 4 + slot), False, "fragment-outside"),
        (fragment(2, 1, lambda lane, slot: lane * 2 + slot), False, "fragment-uncovered"),
        (fragment(2, 4, lambda lane, slot: slot), True, "fragment-written-twice"),
        (fragment(2, 4, lambda lane, slot: (slot, lane)), True, "fragment-rank"),
    ],
)
def test_maps_that_do_not_fit_are_refused(map: Fragment, written: bool, code: str) -> None:
    with pytest.raises(ComputationError) as caught:
        map.check("X", (4,), written)
    assert caught.value.code == code


def test_replicated_operands_may_be_read() -> None:
    """By all lanes, which each hold the whole."""
    both = fragment(2, 4, lambda lane, slot: slot)
    both.check("X", (4,), written=False)
    assert both.table.tolist() == [[[0], [1], [2], [3]]] * 2


def test_the_map_of_one_thread_is_row_major() -> None:
    assert row_major((2, 3)).table.tolist() == [[[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]]
    assert row_major(()).slots == 1


# ---------------------------------------------------------------- meaning


@pytest.mark.parametrize("made", [i for i in SHIPPED if "k" in i.shape and "m" in i.shape], ids=lambda i: i.name)
def test_matrix_instructions_multiply(made: Instruction) -> None:
    dense = dense_operands(made)
    a, b = (dense[name].astype(np.float32) for name in "AB")
    b = b if made.operand("B").dims[0].name == "k" else b.T
    assert np.array_equal(run(made, dense), dense["C"] + a @ b)


@pytest.mark.parametrize("made", [i for i in SHIPPED if i.kind == "move" and "shuffle" not in i.needs], ids=lambda i: i.name)
def test_moves_hand_on_every_element_of_every_type(made: Instruction) -> None:
    for type in made.operands[0].dtypes:
        values = np.arange(int(np.prod(made.operands[0].shape))).reshape(made.operands[0].shape).astype(type.numpy)
        moved = run(made, {made.reads[0]: values})
        assert moved.dtype == values.dtype
        assert moved.tobytes() == values.tobytes()  # also of what is no number


@pytest.mark.parametrize("made", [i for i in SHIPPED if i.name.startswith("shuffle_from")], ids=lambda i: i.name)
def test_every_lane_gets_what_the_lane_has_that_it_names(made: Instruction) -> None:
    generator = np.random.default_rng(0)
    values = generator.permutation(made.lanes).astype(made.operand("S").dtype.numpy)
    named = generator.integers(0, made.lanes, (3, made.lanes)).astype(np.int32)
    found = made.simulate({"S": np.tile(values[:, None], (3, 1, 1)), "L": named[..., None]})["D"]
    assert np.array_equal(found[..., 0], values[named])


@pytest.mark.parametrize("made", [i for i in SHIPPED if i.name.startswith("shuffle_xor")], ids=lambda i: i.name)
def test_exchanges_flip_one_bit_of_the_lane(made: Instruction) -> None:
    distance = int(made.name.split("_")[2])
    values = np.arange(made.lanes).astype(made.operands[0].dtype.numpy)
    assert run(made, {"S": values}).tolist() == [lane ^ distance for lane in range(made.lanes)]


@pytest.mark.parametrize("made", [i for i in SHIPPED if "redux" in i.needs], ids=lambda i: i.name)
def test_what_all_lanes_have_is_combined_into_each(made: Instruction) -> None:
    type = made.operands[0].dtype.numpy
    values, start = np.arange(5, 37).astype(type), np.arange(32).astype(type)
    wanted = {"add": start + values.sum(), "min": np.minimum(start, 5), "max": np.maximum(start, 36)}[made.name.split("_")[1]]
    assert np.array_equal(run(made, {"D": start, "S": values}), wanted)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_multiply_accumulate(lanes: int) -> None:
    made = use(f"opencl_mad{lanes}")
    dense = dense_operands(made)
    assert np.array_equal(run(made, dense), dense["C"] + dense["A"] * dense["B"])


def test_dot() -> None:
    made = use("opencl_dot4")
    dense = dense_operands(made)
    assert run(made, dense) == dense["C"] + dense["A"] @ dense["B"]


def test_several_instances_at_once() -> None:
    made = use("opencl_mad4")
    b, c = np.arange(24, dtype=np.float32).reshape(6, 1, 4), np.ones((6, 1, 4), np.float32)
    a = np.arange(6, dtype=np.float32).reshape(6, 1, 1)
    assert np.array_equal(made.simulate({"A": a, "B": b, "C": c})["C"], c + a * b)


def test_sixteen_bit_operands_are_multiplied_exactly_and_rounded_once() -> None:
    k = Axis("k", 2)
    A, C = operand("A", float16, "register", k), operand("C", float16, "register")
    made = define(means=updates(C[()], A[k] * A[k]), operands=(A, C))
    a = np.array([[1 + 2**-10, 2**-12]], np.float16)
    result = made.simulate({"A": a, "C": np.zeros((1, 1), np.float16)})["C"]
    assert result.dtype == np.float16
    assert result[0, 0] == np.float16(np.float32(a[0, 0]) ** 2 + np.float32(a[0, 1]) ** 2)


def test_updates_by_other_combiners_and_through_the_language() -> None:
    k, n = Axis("k", 3), Axis("n", 2)
    A, C = operand("A", int8, "register", n, k), operand("C", int32, "register", n)
    a, c = np.array([[[100, 100, 100, 1, 2, 3]]], np.int8), np.array([[[5, 5]]], np.int32)
    total = define(means=updates(C[n], F.sum(cast(A[n, k], int32), over=k)), operands=(A, C))
    assert total.simulate({"A": a, "C": c})["C"].ravel().tolist() == [305, 11]
    largest = define(means=updates(C[n], cast(A[n, k], int32), combiner="max"), operands=(A, C))
    assert largest.simulate({"A": a, "C": c})["C"].ravel().tolist() == [100, 5]
    assert str(largest.means) == "C[n] max= max[k] cast(A[n, k], int32)"


def test_pointwise_bodies_with_pad_and_where() -> None:
    n = Axis("n", 4)
    X, Y = operand("X", float32, "register", n), operand("Y", bfloat16, "register", n)
    body = F.where(X[n] < 0, F.pad(X[n - 1], 7.0), F.exp(X[n]))
    made = define(means=computes(Y[n], body), operands=(X, Y))
    x = np.array([[-1, 0, -2, 3]], np.float32)
    expected = np.array([7, 1, 0, np.exp(np.float32(3))], np.float32).astype(ml_dtypes.bfloat16)
    assert np.array_equal(made.simulate({"X": x})["Y"][0], expected)


def test_lanes_with_different_copies_are_reported() -> None:
    n = Axis("n", 2)
    S = operand("S", float32, "register", fragment=fragment(2, 1, lambda lane, slot: ()))
    D = operand("D", float32, "register", n, fragment=fragment(2, 1, lambda lane, slot: lane))
    made = define(means=computes(D[n], S[()] * 2.0), operands=(S, D), level="warp", lanes=2)
    same = np.array([[1], [1]], np.float32)
    assert made.simulate({"S": same})["D"].tolist() == [[2], [2]]
    with pytest.raises(TileLangError) as caught:
        made.simulate({"S": np.array([[1], [3]], np.float32)})
    assert caught.value.code == "replicas-disagree"
    assert caught.value.counterexample == "lane 0, slot 0 has 1.0, another has 3.0"
    assert made.simulate({"S": np.full((2, 1), np.nan, np.float32)})["D"].shape == (2, 1)


# ---------------------------------------------------------------- definitions that are refused


def other_target() -> Means:
    n = Axis("n", 4)
    return moves(operand("D", float32, "register", n)[n], operand("S", float32, "register", n)[n])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"completes": "tomorrow"}, "completes='tomorrow'"),
        ({"issue": "nobody"}, "issue='nobody'"),
        ({"shape": {"n": 8}}, "its shape {'n': 8} differs from the shape of its meaning, {'n': 4}"),
        ({"means": other_target()}, "operand A does not occur"),
        ({"level": "warp"}, "the fragment of A is for 1 lanes, but 32 issue it"),
        ({"limits": {"n": 2}}, "limit n=2 does not hold"),
        ({"template": {"opencl": "{C} += {A} * {X};"}}, "its opencl template has {X}"),
        ({"template": {"opencl": "{C} += {A};"}}, "its opencl template does not mention B"),
        ({"template": {"opencl": "{C} += {A} * {B[4]};"}}, "its opencl template has {B[4]}"),
        ({"template": {"opencl": "{C} += {A} * {B.address};"}}, "its opencl template has {B.address}"),
        ({"template": {"opencl": "{C} += {A} * {B"}}, "its opencl template: "),
        (
            {"template": {"opencl": "two({C}, {A}, {B});"}, "definitions": {"opencl": "void one(float x) { two(x); }"}},
            "its opencl template calls two, which its definitions do not define",
        ),
        ({"definitions": {"opencl": "void one(float x) {}"}}, "it has definitions for opencl, but no template"),
        ({"name": "not a name"}, "its name is not an identifier"),
    ],
)
def test_faulty_definitions_are_refused(changes: dict[str, Any], message: str) -> None:
    text = fault(**changes)
    assert message in text
    assert "test_instruction.py" in text  # the line of the definition


def test_a_proxy_that_nothing_publishes_to_is_refused() -> None:
    n = Axis("n", 4)
    S, D = operand("S", float32, "shared", n), operand("D", float32, "register", n)
    assert "it reads S through a proxy, but nothing publishes" in fault(means=computes(D[n], S[n]), operands=(S, D), proxy="own")


def test_a_read_outside_its_operand_is_refused() -> None:
    n = Axis("n", 4)
    S, D = operand("S", float32, "register", Axis("s", 6)), operand("D", float32, "register", n)
    assert "at n = 3 the index is 6" in fault(means=computes(D[n], S[2 * n]), operands=(S, D))


def test_meanings_that_are_none() -> None:
    n, k = Axis("n", 4), Axis("k", 4)
    D, S = operand("D", float32, "register", n), operand("S", float32, "register", n)
    cases: tuple[tuple[Callable[[], Means], str], ...] = (
        (lambda: moves(D[n], S[n] * 2), "means-move"),
        (lambda: moves(D[n], S[k]), "means-free-axis"),
        (lambda: moves(D[n + 1], S[n]), "means-target"),
        (lambda: updates(D[n], S[n], combiner="median"), "means-combiner"),
    )
    for make, code in cases:
        with pytest.raises(ComputationError) as caught:
            make()
        assert caught.value.code == code


def test_a_move_does_not_convert() -> None:
    n = Axis("n", 4)
    D, S = operand("D", float16, "register", n), operand("S", float32, "register", n)
    assert "it copies between different types" in fault(means=moves(D[n], S[n]), operands=(D, S))


# ---------------------------------------------------------------- names, availability, text


def test_names() -> None:
    made = define("test_names")
    assert use("test_names") is made
    assert define("test_names", replace=False) == made  # the same definition again
    with pytest.raises(ComputationError, match="there is already an instruction"):
        define("test_names", replace=False, error_ulps=3)
    with pytest.raises(Refusal, match=r"did you mean .*mma_m16n8k16"):
        use("mma_m16n8k15")


def test_definitions_are_deterministic_values() -> None:
    assert define("test_values") == define("test_values")
    assert hash(define("test_values")) == hash(define("test_values"))


def test_availability_is_the_profiles() -> None:
    pocl = load_profile("sapphire_rapids")
    assert use("opencl_mad16").unavailable(pocl, "opencl") is None
    assert use("opencl_mad16").unavailable(pocl, "cuda") == "it has no template for cuda, only in cpu, opencl"
    assert use("mma_m16n8k16").unavailable(pocl, "opencl") == "profile sapphire_rapids does not have mma_m16n8k16"
    simulated = load_profile("simulated")
    assert use("simulated_mma_m16n8k8").unavailable(simulated) is None
    assert use("simulated_mma_m16n8k8").unavailable(simulated, "opencl") == "it has no template for opencl"
    assert use("wgmma_m64n256k16").unavailable(load_profile("hopper")) is None
    assert use("wgmma_m64n256k16").unavailable(load_profile("ampere")) == "profile ampere does not have wgmma"
    for made in SHIPPED:
        assert made.template or made.needs, f"{made.name} could run nowhere"


@pytest.mark.parametrize("made", [i for i in SHIPPED if "opencl" in i.dialects], ids=lambda i: i.name)
def test_the_text_does_on_a_device_what_the_meaning_says(made: Instruction, opencl_device: Device) -> None:
    import pyopencl as cl

    slots = {o.name: o.shape[0] if o.shape else 1 for o in made.operands}
    spelled = {name: f"float{n}" if n > 1 else "float" for name, n in slots.items()}
    loads = "".join(f"{t} {name} = *(__global {t}*)({name}_in); " for name, t in spelled.items())
    text = made.render("opencl", {name: OperandText(name) for name in slots})
    arguments = ", ".join(f"__global float* {name}_in" for name in slots)
    source = f"__kernel void go({arguments}) {{ {loads}{text} *(__global {spelled[made.writes]}*)({made.writes}_in) = {made.writes}; }}"
    context = cl.Context([opencl_device.handle])
    queue = cl.CommandQueue(context)
    dense = dense_operands(made, seed=3)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = {name: cl.Buffer(context, flags, hostbuf=np.ascontiguousarray(dense[name])) for name in slots}
    cl.Program(context, source).build().go(queue, (1,), (1,), *buffers.values())
    out = np.empty(slots[made.writes], np.float32)
    cl.enqueue_copy(queue, out, buffers[made.writes])
    assert np.array_equal(out, run(made, dense).ravel())  # small integers: exact in every order


def test_text() -> None:
    texts = {"C": OperandText("acc", ("acc.s0",)), "A": OperandText("a"), "B": OperandText("b")}
    assert use("opencl_mad16").render("opencl", texts) == "acc += a * b;"
    made = define(template={"cuda": 'asm("{{%0}}" : "+f"({C[0]}) : {A}, {B});'})
    assert made.render("cuda", texts) == 'asm("{%0}" : "+f"(acc.s0) : a, b);'


def test_the_functions_of_a_definition() -> None:
    text = """
    #define TWICE(x) ((x) + \\
                      (x))
    struct Pair { float first, second; };
    typedef float (*Function)(float);
    // static void in_a_comment() {}
    template <int N> static __device__ __forceinline__ void __attribute__((convergent)) one(float& x, float (&y)[4]) {
        if (N > 1) { asm volatile("{ .reg .b32 r; mov.b32 r, %0; }" : : "f"(x)); }
    }
    static int declared(int);
    static inline int other(int x) { return declared(TWICE(x)); }
    """
    assert functions_defined(text) == ("TWICE", "one", "other")
    made = define(template={"opencl": "{C} = other({A}, {B});"}, definitions={"opencl": text})
    assert made.definitions_in("opencl") == (text,) and made.definitions_in("cuda") == ()


def test_a_copy_that_fills_what_is_outside_asks_for_what_exists() -> None:
    """Without {existing} the copy of a partial tile would read past the end of the tensor."""
    e = Axis("e", 4)
    run_of_four = fragment(1, 4, lambda lane, slot: slot)
    D, S = (operand(name, float32, memory, e, fragment=run_of_four) for name, memory in (("D", "shared"), ("S", "global")))
    fields: dict[str, Any] = {"means": moves(D[e], S[e]), "operands": (D, S), "completes": "in-order group"}
    wrong = fault(**fields, outside=0, template={"hip": "copy({D.address}, {S.address});"})
    assert (
        "error[instruction-definition]: `test_instruction`: outside=0 needs the number of bytes that exist, but its hip" in wrong
    )
    define(**fields, template={"hip": "copy({D.address}, {S.address});"})
    define(**fields, outside=0, template={"hip": "copy({D.address}, {S.address}, {existing});"})


def test_free_extents() -> None:
    box = use("tma_load_2d")
    small = box.resized(r=128)
    assert small.shape == {"r": 128, "c": 64}
    assert small.operand("S").shape == (128, 64)
    values = np.arange(128 * 64).reshape(128, 64).astype(np.int16)
    assert np.array_equal(small.simulate({"S": values})["D"], values)
    with pytest.raises(Refusal, match="does not support r = 512"):
        box.resized(r=512)
    with pytest.raises(Refusal, match="mma_m16n8k16. does not support m = 32"):
        use("mma_m16n8k16").resized(m=32)


def test_the_simulator_runs_a_matrix_instruction() -> None:
    from tilelang.lowering.simulator.simulate import run as simulate

    made = use("simulated_mma_m16n8k8")
    a, b, c = (dense_operands(made)[name] for name in "ABC")
    arrays = {n: held(made.name, n).scatter(x) for n, x in (("A", a), ("B", b), ("C", c))}
    thread = Var("thread", int64, 0, 31)
    outer = {n: ir.Buffer(f"{n}_in", float32, x.shape, "global", "input") for n, x in arrays.items()}
    result = ir.Buffer("result", float32, arrays["C"].shape, "global", "output")
    inner = {n: ir.Buffer(f"{n}_held", float32, x.shape[1:], "register") for n, x in arrays.items()}
    loads = [
        ir.Store(inner[n], (index(s),), ir.Load(outer[n], (thread, index(s)))) for n in "ABC" for s in range(inner[n].shape[0])
    ]
    stores = [ir.Store(result, (thread, index(s)), ir.Load(inner["C"], (index(s),))) for s in range(4)]
    product = ir.Instruction(made, tuple((n, inner[n], (index(0),)) for n in "ABC"), width=32)
    buffers = (*outer.values(), result)
    kernel = ir.Kernel("product", (1, 1, 1), 32, (*buffers, *inner.values()), ir.seq(*loads, product, *stores))
    report = simulate(ir.Program((kernel,), buffers), {f"{n}_in": x for n, x in arrays.items()})
    assert not report.findings
    assert np.array_equal(report.outputs["result"], held(made.name, "C").scatter(c + a @ b))
