"""The kernels whose pages are looked at, and their pages, each made once."""

from __future__ import annotations

import functools
import importlib

import tilelang as tl
from tilelang.cli.page import page


def simulated(schedule: tl.Schedule) -> tl.Kernel:
    return tl.compile(schedule, target=tl.target("opencl", profile="simulated"))


@functools.cache
def product(size: int = 64) -> tl.Kernel:
    example = importlib.import_module("examples.01_matmul")
    return simulated(example.gemm_simt(example.matmul(size, size, size)))


@functools.cache
def softmax() -> tl.Kernel:
    example = importlib.import_module("examples.08_softmax")
    return simulated(example.softmax_rows(example.softmax(3, 1023)))


def double(name: str = "X") -> tl.Tensor:
    i, j = tl.axes(i=64, j=64)
    return tl.define("Y", 2 * tl.input(name, tl.float32, i, j)[i, j], i, j)


KERNELS = {"product": product, "softmax": softmax}


@functools.cache
def written(name: str) -> str:
    return page(KERNELS[name]())
