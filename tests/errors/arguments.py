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
