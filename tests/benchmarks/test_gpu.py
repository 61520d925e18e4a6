"""The GPU benchmark without a GPU: its cases, its peers on the processor, and its runs on a recorder in the driver's place."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from benchmarks import gpu, gpu_cases, gpu_session
from benchmarks.gpu_cases import GROUPS, Case
from benchmarks.gpu_peers import peers
from tests.lowering import stub_pycuda
from tests.lowering.test_cuda_driver import recorder as recorder  # the fixture
from tilelang.arguments import as_array
from tilelang.computation import as_computation
from tilelang.machine import load_profile
from tilelang.reference import compare, evaluate_and_bound, random_arrays
from tilelang.targets import DIALECTS, devices_of

SMALL: dict[str, Case] = {
    "matmul": gpu_cases.product(6, 10, 8, tl.float32),
    "matmul of halves": gpu_cases.product(6, 10, 8, tl.float16),
    "matmul transposed": gpu_cases.transposed(6, 10, 8, tl.bfloat16),
    "linear gelu": gpu_cases.linear(6, 10, 8),
    "convolution": gpu_cases.convolution((2, 3, 8, 5, 3, 1, 1)),
    "strided convolution": gpu_cases.convolution((2, 3, 9, 5, 1, 2, 0)),
    "convolution of halves": gpu_cases.convolution((2, 3, 8, 5, 3, 1, 1), type=tl.float16),
    "depthwise": gpu_cases.depthwise((2, 3, 9, 3, 5, 2, 2)),
    "softmax": gpu_cases.by_rows("softmax", "08_softmax", "softmax", 6, 16, "softmax_rows", (4,)),
    "layer norm": gpu_cases.by_rows("layer norm", "09_layer_norm", "layer_norm", 6, 16, "simt", (4,)),
    "row sum": gpu_cases.by_rows("row sum", "06_row_sum", "row_sum", 6, 16, "simt", (4,), exact=True),
    "transpose": gpu_cases.by_rows("transpose", "11_transpose", "transpose", 6, 16, "simt", (), exact=True),
    "gelu": gpu_cases.pointwise("gelu", 96),
    "relu": gpu_cases.pointwise("relu", 96),
    "average pooling": gpu_cases.pooling((2, 3, 9, 3, 3, 2, 1)),
}


def test_cases_have_names_of_their_own() -> None:
    every = [case for group in GROUPS for case in gpu_cases.cases(group)]
    assert len({case.id for case in every}) == len(every)
    kinds = [kind for _, kind, _ in gpu_cases.roller()]
    assert len(kinds) == 119 and {k: kinds.count(k) for k in set(kinds)} == {
        "matmul": 7, "convolution": 44, "depthwise": 23, "average_pooling": 13, "row_sum": 4, "relu": 28,
    }  # fmt: skip


@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL)
def test_schedules_are_built_for_every_kind_of_case(case: Case) -> None:
    """At sizes of the benchmark's own; a device may still refuse one."""
    named = case.schedules(case.make(None), load_profile("ampere"))
    assert named
    for build in named.values():
        try:
            assert isinstance(build(), tl.Schedule)
        except tl.TileLangError as error:
            assert isinstance(error, tl.Refusal)


@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL)
def test_peers_compute_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    computation = as_computation(case.make(None))
    arrays = random_arrays(computation)
    (output,) = computation.outputs
    tensors = {name: tensor(torch, a) for name, a in arrays.items()}
    out = torch.empty(output.shape, dtype=getattr(torch, output.dtype.name))
    for name, call in peers(torch, case, tensors, out).items():
        result = as_array(output.name, call())
        if case.type is tl.float32:
            assert compare(computation, arrays, {output.name: result}), name
        else:  # a library adds in float32, and rounds before an epilogue
            expected, _ = evaluate_and_bound(computation, arrays)
            np.testing.assert_allclose(result.astype(np.float64), expected[output.name].astype(np.float64), rtol=2e-2, atol=2e-2)


def tensor(torch: Any, array: Any) -> Any:
    """A NumPy array as PyTorch's, which takes bfloat16 by its bits."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def test_rows_of_a_case_are_its_computation_on_fewer() -> None:
    arrays = random_arrays(as_computation(SMALL["layer norm"].make(None))) | {"Y": np.zeros((6, 16), np.float32)}
    small, known = gpu_cases.part(SMALL["layer norm"], 2, arrays)
    assert {n: a.shape for n, a in known.items()} == {"X": (2, 16), "gamma": (16,), "beta": (16,), "Y": (2, 16)}
    assert as_computation(small).outputs[0].shape == (2, 16)
    wide = gpu_cases.linear(6, 100, 8)
    _, known = gpu_cases.part(wide, 2, random_arrays(as_computation(wide.make(None))))
    assert {n: a.shape for n, a in known.items()} == {"A": (2, 8), "B": (64, 8), "bias": (64,)}


def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "devices_of", lambda name: ((), tl.DeviceError("no-driver", f"no {name}", mend="install it")))
    assert gpu.main(["memory"]) == gpu.NO_DEVICE
    assert "There is no GPU here: nothing was measured." in capsys.readouterr().out


@pytest.fixture
def stub(recorder: stub_pycuda.Recorder) -> Iterator[stub_pycuda.Recorder]:
    if "cuda" not in DIALECTS:
        pytest.skip("CUDA is not lowered to")
    devices_of.cache_clear()
    yield recorder
    devices_of.cache_clear()


def relu_of(count: int) -> Any:
    """What the kernel `Y` of a ReLU does."""

    def run(x: int, y: int) -> None:
        given, made = (np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)) for address in (x, y))
        np.maximum(given, 0, out=made)

    return run


@pytest.mark.parametrize("right", [True, False])
def test_a_run_is_kept_and_goes_on(
    right: bool, stub: stub_pycuda.Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    cases = (gpu_cases.pointwise("relu", 96), gpu_cases.pointwise("relu", 100), SMALL["matmul of halves"])
    monkeypatch.setattr(gpu_cases, "cases", lambda group: cases)
    monkeypatch.setattr(gpu_session, "CACHE_BYTES", 1 << 8)
    monkeypatch.setattr(gpu, "Session", lambda target: gpu_session.Session(target, "cpu"))
    monkeypatch.setattr(gpu_session.Session, "copy_gb_per_s", lambda self: 4000.0)
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "none.jsonl")
    results = tmp_path / "gpu.jsonl"
    if right:
        stub.kernels["Y"] = lambda x, y: relu_of(96)(x, y)
    assert gpu.main(["memory", "--results", str(results), "--only", "relu", "--limit-s", "-1"]) == 0
    assert "2 cases are left for the next run" in capsys.readouterr().out and not results.exists()
    assert gpu.main(["memory", "--results", str(results), "--only", "relu/float32/96"]) == (0 if right else 1)
    (row,) = map(json.loads, results.read_text().splitlines())
    assert row["right"] is right and row["us"] > 0 and set(row["peers_us"]) == {"PyTorch", "torch.compile"}
    assert row["device"] == "Stub (gpu, CUDA)" and row["driver_version"] == "13.0" and row["date"] and row["versions"]["torch"]
    assert row["sets"] == 2 and len({c[1] for c in stub.named("launch")}) == 1
    capsys.readouterr()
    assert gpu.main(["memory", "--results", str(results), "--only", "relu/float32/96"]) == (0 if right else 1)
    shown = capsys.readouterr().out
    assert "0 of 1 cases to measure" in shown and "relu float32" in shown and ("WRONG" in shown) is not right
    assert len(results.read_text().splitlines()) == 1


def test_a_kernel_that_fails_ends_the_run_and_is_left_out_of_the_next(
    stub: stub_pycuda.Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault(*_: int) -> None:
        raise stub_pycuda.LogicError("cuLaunchKernel failed: an illegal memory access was encountered")

    monkeypatch.setattr(gpu_cases, "cases", lambda group: (gpu_cases.pointwise("relu", 96), gpu_cases.pointwise("relu", 100)))
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "gpu.jsonl")
    monkeypatch.setattr(gpu_session, "_torch", lambda device: None)
    stub.kernels["Y"] = fault
    for left in (1, 0):
        assert gpu.main(["memory", "--results", str(tmp_path / "gpu.jsonl")]) == 1
        shown = capsys.readouterr().out
        assert "an illegal memory access" in shown and f"{left} cases are left" in shown
    assert gpu.main(["memory", "--results", str(tmp_path / "gpu.jsonl")]) == 1
    assert "0 of 2 cases" in capsys.readouterr().out


def test_another_source_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "gpu.jsonl"
    path.write_text(json.dumps({"case": "a", "device": "Stub", "sources": "old"}) + "\n")
    assert (
        gpu.known([path], "Stub", "old")
        and not gpu.known([path], "Stub", gpu.sources())
        and not gpu.known([path], "Other", "old")
    )
