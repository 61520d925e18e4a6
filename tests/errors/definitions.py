"""Definitions that mean nothing."""

import math
from typing import Any, cast

import numpy as np

import tilelang as tl
from tests.errors._computations import copy, matmul
from tilelang.computations.computation import Tensor


def expression_as_a_condition() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.define("Y", X[i] if X[i] > 0 else 0.0, i)


def comparison_as_a_condition() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.define("Y", 1.0 if X[i] == 0 else X[i], i)


def function_of_math() -> None:
    i = tl.axes(i=8)
    math.exp(tl.input("X", tl.float32, i)[i])


def value_too_large_to_be_written_out() -> None:
    i = tl.axes(i=8)
    value = tl.input("X", tl.float32, i)
    for n in range(60):
        value = tl.define(f"x{n}", value[i] + value[i] * 0.5, i)
    tl.compile(tl.schedule(value), tl.target("opencl", profile="simulated"))


def two_axes_of_one_name() -> None:
    i, other = tl.axes(i=8), tl.axes(i=8)
    X = tl.input("X", tl.float32, r=8, c=8)
    tl.define("Y", tl.sum(X[i, other], over=other), i)


def axis_that_a_reduction_hides() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, r=8, c=8)
    tl.define("Y", tl.sum(X[i, i], over=i), i)


def loop_over_an_element() -> None:
    i = tl.axes(i=8)
    list(tl.input("X", tl.float32, i)[i])


def function_that_only_numpy_has() -> None:
    i = tl.axes(i=8)
    np.arctan(cast(Any, tl.input("X", tl.float32, i)[i]))


def sum_of_numpy() -> None:
    i = tl.axes(i=8)
    np.sum(cast(Any, tl.input("X", tl.float32, i)[i]))


def rounded_to_digits() -> None:
    i = tl.axes(i=8)
    round(tl.input("X", tl.float32, i)[i], 2)


def matrix_product_of_elements() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.define("Y", X[i] @ X[i], i)


def minus_a_condition() -> None:
    i = tl.axes(i=8)
    tl.define("Y", -(tl.input("X", tl.float32, i)[i] > 0), i)


def tensor_compared_with_a_number() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.define("Y", tl.where(X == 0, 1.0, X[i]), i)


def tensor_assigned() -> None:
    i = tl.axes(i=8)
    tl.input("X", tl.float32, i)[i] = 0


def number_below_an_unsigned_type() -> None:
    i = tl.axes(i=8)
    tl.define("Y", tl.input("X", tl.uint8, i)[i] > -1, i)


def number_that_would_be_infinite() -> None:
    i = tl.axes(i=8)
    tl.define("Y", tl.input("X", tl.float32, i)[i] + 1e300, i)


def number_that_would_be_zero() -> None:
    i = tl.axes(i=8)
    tl.define("Y", tl.input("X", tl.float32, i)[i] / 1e-60, i)


def number_that_no_type_holds() -> None:
    i = tl.axes(i=8)
    tl.define("Y", tl.input("X", tl.float32, i)[i] + 10**400, i)


def fraction_outside_integers() -> None:
    i = tl.axes(i=8)
    tl.pad(tl.input("X", tl.int32, i)[i - 1], 0.5)


def value_outside_that_varies() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.pad(X[i - 1], X[i])


def infinity_as_the_identity_of_integers() -> None:
    i = tl.axes(i=8)
    tl.reduce(tl.minimum, float("inf"), tl.input("X", tl.int32, i)[i], over=i)


def shift_by_too_many_bits() -> None:
    i = tl.axes(i=8)
    tl.define("Y", tl.input("X", tl.int32, i)[i] << 40, i)


def tensor_in_a_loop() -> None:
    i = tl.axes(i=8)
    sum(tl.input("X", tl.float32, i))


def text_in_an_expression() -> None:
    i = tl.axes(i=8)
    tl.define("Y", tl.input("X", tl.float32, i)[i] + cast(Any, "one"), i)


def names_without_expressions() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.define(("Y", "Z"), (X[i],), i)


def axis_that_is_none() -> None:
    i = tl.axes(i=8)
    tl.define("Y", tl.input("X", tl.float32, i)[i], cast(Any, "i"))


def reduction_over_a_name() -> None:
    i = tl.axes(i=8)
    tl.sum(tl.input("X", tl.float32, i)[i], over=cast(Any, "i"))


def reduction_over_an_axis_twice() -> None:
    i = tl.axes(i=8)
    tl.sum(tl.input("X", tl.float32, i)[i], over=(i, i))


def reduction_with_too_few_identities() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]), (0.0,), (X[i], X[i]), over=i)


def combiner_named_by_a_text() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.reduce("sum", 0.0, X[i], over=i)  # type: ignore[arg-type]


def combiner_of_one_argument() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.reduce(lambda a: a, 0.0, X[i], over=i)  # type: ignore[arg-type, misc]


def combiner_with_too_few_members() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.reduce(lambda a, b: (a[0] + b[0],), (0.0, 0.0), (X[i], X[i]), over=i)


def combiner_that_is_not_associative() -> None:
    i = tl.axes(i=8)
    tl.reduce(lambda a, b: a - b, 0.0, tl.input("X", tl.float32, i)[i], over=i)


def combiner_that_reads_a_tensor() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.reduce(lambda a, b: a + b * X[0], 0.0, X[i], over=i)


def combiner_of_an_axis() -> None:
    i = tl.axes(i=8)
    tl.reduce(lambda a, b: tl.where(i > 3, a, b), 0.0, tl.input("X", tl.float32, i)[i], over=i)


def root_of_whole_numbers() -> None:
    i = tl.axes(i=8)
    tl.sqrt(tl.input("X", tl.int32, i)[i])


def read_outside() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    tl.define("Y", X[i + 1], i)


def computation_of_a_number() -> None:
    tl.schedule(cast(Tensor, 3))


def output_that_is_an_input() -> None:
    i = tl.axes(i=8)
    tl.schedule(tl.computation("identity", outputs=(tl.input("X", tl.float32, i),)))


def schedule_of_another_computation() -> None:
    tl.compile(copy(), schedule=tl.schedule(matmul()))


def kernel_that_returns_its_argument() -> None:
    @tl.kernel
    def same(x: Tensor) -> tuple[Tensor, ...]:
        return (x,)

    same(np.ones(4, np.float32))


def check_of_an_empty_range() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.int32, i, range=(5, 5))
    tl.compile(tl.define("Y", X[i] + 1, i)).check()


def tensor_where_an_element_is_meant() -> None:
    m, k = tl.axes(m=4, k=4)
    tl.define("Y", tl.input("X", tl.float32, m, k) * 2.0, m, k)


def array_in_an_expression() -> None:
    m = tl.axes(m=4)
    tl.define("Y", tl.input("X", tl.float32, m)[m] + np.ones(4), m)


def range_of_a_text() -> None:
    tl.input("ids", tl.int32, tl.axes(i=4), range="ab")  # type: ignore[arg-type]


def licence_of_a_number() -> None:
    i = tl.axes(i=4)
    tl.define("Y", tl.input("X", tl.float32, i)[i], i, allow=3)  # type: ignore[call-overload]


def outputs_of_a_number() -> None:
    tl.computation("c", outputs=3)


def extent_of_eighty_bits() -> None:
    tl.axes(i=2**80)


def literal_beyond_its_type() -> None:
    m = tl.axes(m=4)
    tl.define("Y", tl.input("X", tl.int32, m)[m] + 2**40, m)


def range_that_the_type_cannot_hold() -> None:
    tl.input("ids", tl.uint8, tl.axes(i=4), range=(0, 300))


def more_dimensions_than_an_array_has() -> None:
    a = tl.axes(**{f"a{k}": 1 for k in range(65)})
    tl.input("X", tl.float32, *a)


def more_axes_than_an_array_has() -> None:
    a, b = (tl.axes(**{f"{name}{k}": 1 for k in range(40)}) for name in "ab")
    X, Z = tl.input("X", tl.float32, *a), tl.input("Z", tl.float32, *b)
    tl.define("Y", tl.sum(X[a] * Z[b], over=b), *a)


def rounded_to_one_digit() -> None:
    i = tl.axes(i=8)
    round(tl.input("X", tl.float32, i)[i], 1)


def numpy_rounded_to_tens() -> None:
    i = tl.axes(i=8)
    np.round(cast(Any, tl.input("X", tl.float32, i)[i]), -1)


def length_of_a_tensor() -> None:
    i = tl.axes(i=8)
    len(cast(Any, tl.input("X", tl.float32, i)))


def index_of_dots() -> None:
    i = tl.axes(i=8)
    tl.input("X", tl.float32, i)[cast(Any, ...)]


def index_below_zero() -> None:
    i, j = tl.axes(i=8, j=4)
    tl.define("Y", tl.input("X", tl.float32, i, j)[-1, j], j)
