"""What threads in lockstep share is named once where descriptors are made of it, and only there."""

from __future__ import annotations

import tilelang as tl
from tests.lowering.role_kernels import Pipeline
from tests.lowering.test_roles import by_boxes, linear, lowered
from tilelang.lowering import ir
from tilelang.lowering.passes.mark_uniform import mark_uniform


def test_a_warpgroup_s_number_is_bound_in_front_of_its_loops() -> None:
    (kernel,) = lowered(by_boxes(linear(128, 64, 320), 64, 1, back="registers"), "hopper").kernels
    consumer = next(role for role in kernel.roles if role.name == "consumer")
    first = ir.parts(consumer.body)[0]
    assert isinstance(first, ir.Let) and first.alike and str(first.value) == "thread // 128"
    products = [s for s in ir.statements(consumer.body) if isinstance(s, ir.Instruction)]
    indices = [i for s in products for name, _, at in s.operands if s.region(name) is not None for i in at]
    assert any(e is first.var for i in indices for e in i.walk())
    assert not any(getattr(e, "name", "") == "thread" for i in indices for e in i.walk())


def test_units_that_no_lockstep_fills_keep_their_expression() -> None:
    (kernel,) = lowered(by_boxes(linear(128, 64, 320), 64, 1, back="registers"), "hopper").kernels
    assert mark_uniform(kernel, 96) == kernel, "a warpgroup is not a multiple of 96 threads"


def test_kernels_without_descriptors_stay_as_they_are() -> None:
    (kernel,) = Pipeline(copies=False).program.kernels
    assert mark_uniform(kernel, 32) == kernel


def test_the_name_is_one_value_of_a_warp_in_the_text() -> None:
    plan = by_boxes(linear(128, 64, 320), 64, 1, back="registers")
    text = tl.compile(plan, target=tl.target("cuda", profile="hopper")).source
    assert text.count("const int unit = alike_in_warp(thread_1 / 128);") == 1
    assert (
        "A_shared, (round_ * 5 + k) % 3 * 1024 + unit * 512 + k_1 * 2, B_shared, (round_ * 5 + k) % 3 * 512 + k_1 * 2);" in text
    )
