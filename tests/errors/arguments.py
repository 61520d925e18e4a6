"""Arguments that do not fit their kernel: found before the launch."""

import numpy as np

import tilelang as tl
from tests.errors._computations import copy, matmul

A, B = np.ones((8, 4), np.float32), np.ones((4, 8), np.float32)


def _product() -> tl.Kernel:
    return tl.compile(matmul(8, 8, 4))


def one_missing() -> None:
    _product()(A)


def one_too_many() -> None:
    _product()(A, B, np.empty((8, 8), np.float32))


def one_twice() -> None:
    _product()(A, B, A=A)


def one_unknown() -> None:
    _product()(A=A, C=B)


def wrong_shape() -> None:
    _product()(B, A)


def wrong_type() -> None:
    _product()(A, B.astype(np.float64))


def output_of_the_wrong_shape() -> None:
    _product()(A, B, out=np.empty((8, 4), np.float32))


def output_of_the_wrong_type() -> None:
    _product()(A, B, out=np.empty((8, 8)))


def output_that_cannot_be_written() -> None:
    out = np.empty((8, 8), np.float32)
    out.flags.writeable = False
    _product()(A, B, out=out)


def output_that_is_a_list() -> None:
    tl.compile(copy(2, 2))(np.ones((2, 2), np.float32), out=[[0.0, 0.0], [0.0, 0.0]])


def output_that_is_an_input() -> None:
    X = np.ones((8, 8), np.float32)
    tl.compile(copy(8, 8))(X, out=X)


def output_that_overlaps_an_input() -> None:
    memory = np.ones(96, np.float32)
    tl.compile(copy(8, 8))(memory[:64].reshape(8, 8), out=memory[32:].reshape(8, 8))


def outputs_unnamed() -> None:
    _product()(A, B, out={"D": np.empty((8, 8), np.float32)})


def outputs_too_many() -> None:
    _product()(A, B, out=(np.empty((8, 8), np.float32), np.empty((8, 8), np.float32)))


def function_with_too_few() -> None:
    @tl.kernel
    def double(x: tl.Tensor) -> tl.Tensor:
        i = x.dims[0]
        made: tl.Tensor = tl.define("Y", x[i] * 2.0, i)
        return made

    double()


def launch_without_buffers() -> None:
    _product().launch({})


def launch_of_numpy_arrays() -> None:
    _product().launch({"A": A, "B": B, "C": A})


def queue_of_a_text() -> None:
    _product()(A, B, queue="fast")


def output_named_by_a_number() -> None:
    _product()(A, B, out={3: A})


def seed_of_a_text() -> None:
    _product().check(seed="lucky")  # type: ignore[arg-type]


def no_repeats() -> None:
    _product().benchmark(repeats=0)


def index_outside_its_range() -> None:
    i = tl.axes(i=4)
    ids = tl.input("ids", tl.int32, i, range=(0, 10))
    T = tl.input("T", tl.float32, r=10)
    tl.compile(tl.define("Y", T[ids[i]], i))(ids=np.array([1, 2, 10, 3], np.int32), T=np.ones(10, np.float32))


def function_of_a_ragged_list() -> None:
    @tl.kernel
    def double(x: tl.Tensor) -> tl.Tensor:
        raise AssertionError(x)

    double([[1], [1, 2]])


def function_of_any_number_of_arrays() -> None:
    @tl.kernel
    def total(*arrays: tl.Tensor) -> tl.Tensor:
        raise AssertionError(arrays)


def function_that_is_a_method() -> None:
    class Layer:
        @tl.kernel
        def forward(self, x: tl.Tensor) -> tl.Tensor:
            raise AssertionError(x)


def function_that_returns_nothing() -> None:
    @tl.kernel
    def nothing(x: tl.Tensor) -> None:
        pass

    nothing(A)


def list_with_a_number_out_of_range() -> None:
    i = tl.axes(i=2)
    X = tl.input("X", tl.int8, i)
    tl.compile(tl.define("Y", X[i] + X[i], i), "cpu")([100, 200])


def list_of_fractions_for_integers() -> None:
    i = tl.axes(i=2)
    X = tl.input("X", tl.int32, i)
    tl.compile(tl.define("Y", X[i] + X[i], i), "cpu")([1, 2.5])
