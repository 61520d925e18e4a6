"""The GPU benchmark without a GPU: its cases, its peers on the processor, and its runs on a recorder in the driver's place."""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from benchmarks import gpu, gpu_cases, gpu_peers, gpu_session, gpu_watch
from benchmarks.gpu_cases import GROUPS, Case
from benchmarks.gpu_peers import peers
from benchmarks.gpu_watch import LOST, Watch, supervise
from tests.gpu.emulated import Driver
from tests.lowering import stub_cuda
from tests.lowering.test_cuda_driver import recorder as recorder  # the fixture
from tilelang.computations.arguments import as_array
from tilelang.computations.computation import as_computation
from tilelang.lowering.compilers import nvrtc
from tilelang.lowering.compilers.compiled import Compiled
from tilelang.lowering.drivers import interface
from tilelang.profiles.files import load_profile
from tilelang.runtime.targets import DIALECTS, devices_of
from tilelang.semantics.reference import compare, evaluate_and_bound, random_arrays
from tilelang.testing import emulation

SMALL: dict[str, Case] = {
    "matmul": gpu_cases.product(6, 10, 8, tl.float32),
    "matmul of halves": gpu_cases.product(6, 10, 8, tl.float16),
    "matmul by tf32": gpu_cases.product_by_tf32(6, 10, 8),
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
    out = torch.empty(output.shape, dtype=getattr(torch, output.dtype.name))
    tensors = {name: tensor(torch, a) for name, a in arrays.items()} | {output.name: out}
    for name, call in peers(torch, case, on_gpu=False).items():
        result = as_array(output.name, call(tensors))
        if case.type is tl.float32:
            assert compare(computation, arrays, {output.name: result}), name
        else:  # a library adds in float32, and rounds before an epilogue
            expected, _ = evaluate_and_bound(computation, arrays)
            np.testing.assert_allclose(result.astype(np.float64), expected[output.name].astype(np.float64), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("case", [case for case in SMALL.values() if case.exact], ids=[n for n, c in SMALL.items() if c.exact])
def test_what_is_expected_of_whole_numbers_is_the_reference_s_to_the_bit(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    monkeypatch.setattr(gpu_peers, "CHUNK_BYTES", 1)  # image by image
    computation, generator = as_computation(case.make(None)), np.random.default_rng(0)
    arrays = {t.name: generator.integers(-2, 3, t.shape).astype(t.dtype.numpy) for t in computation.inputs}
    (output,) = computation.outputs
    out = torch.empty(output.shape, dtype=getattr(torch, output.dtype.name))
    result = gpu_peers.expected(torch, case, {name: tensor(torch, a) for name, a in arrays.items()} | {output.name: out})
    expected, _ = evaluate_and_bound(computation, arrays)
    assert np.array_equal(as_array(output.name, result), expected[output.name])


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
    monkeypatch.setattr(gpu, "devices_of", lambda name: ((), tl.DeviceError("no-driver", f"no {name}", help="install it")))
    assert gpu.main(["memory", "--worker"]) == gpu.NO_DEVICE
    assert "There is no GPU here: nothing was measured." in capsys.readouterr().out


@pytest.fixture
def stub(recorder: stub_cuda.Recorder) -> Iterator[stub_cuda.Recorder]:
    if "cuda" not in DIALECTS:
        pytest.skip("CUDA is not lowered to")
    devices_of.cache_clear()
    yield recorder
    devices_of.cache_clear()


RELU = ("constructed", "1024 a block", "2048 a block")  # its schedules


def relu_of(count: int) -> Any:
    """What the kernel `Y` of a ReLU does."""

    def run(x: int, y: int) -> None:
        given, made = (np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)) for address in (x, y))
        np.maximum(given, 0, out=made)

    return run


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """PyTorch on the processor, small memories, few samples; its `compile` gives the function itself."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    for name, value in (
        ("CACHE_BYTES", 1 << 8),
        ("COPY_BYTES", 1 << 20),
        ("SAMPLES", 1),
        ("CHOOSING_SAMPLES", 1),
        ("ENQUEUED", 1),
        ("MOST_CALLS", 2),
    ):
        monkeypatch.setattr(gpu_session, name, value)
    monkeypatch.setattr(gpu, "Session", lambda target, device, stage: gpu_session.Session(target, "cpu", stage))
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "none.jsonl")
    return torch


def measured(results: Path, *arguments: str) -> int:
    """What a worker ends with."""
    return gpu.main(["memory", "--worker", "--results", str(results), *arguments])


def only(monkeypatch: pytest.MonkeyPatch, *cases: Case) -> None:
    monkeypatch.setattr(gpu_cases, "cases", lambda group: cases)


def last(results: Path) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(results.read_text().splitlines()[-1])
    return row


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("right", [True, False])
def test_a_run_is_kept_and_goes_on(
    right: bool, stub: stub_cuda.Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only(monkeypatch, gpu_cases.pointwise("relu", 96), gpu_cases.pointwise("relu", 100), SMALL["matmul of halves"])
    results = tmp_path / "gpu.jsonl"
    if right:
        stub.kernels["Y"] = relu_of(96)
    assert measured(results, "--only", "relu", "--limit-s", "-1") == 0
    assert "2 cases are left" in capsys.readouterr().out and not results.exists()
    assert measured(results, "--only", "relu/float32/96") == (0 if right else 1)
    row = last(results)
    assert row["right"] is right and ("us" in row) is right and set(row["peers_us"]) == {"PyTorch", "torch.compile"}
    assert row["device"] == "Stub (gpu, CUDA)" and row["driver_version"] == "13.0" and row["date"] and row["versions"]["torch"]
    assert row["sets"] == 2 and row["copy_gb_per_s"] > 0 and row["copied_by"] in ("PyTorch", "1024 a block", "2048 a block")
    assert ("wrong" in row and set(row["wrong"]) == set(RELU)) is not right
    capsys.readouterr()
    assert measured(results, "--only", "relu/float32/96") == (0 if right else 1)
    shown = capsys.readouterr().out
    assert "0 of 1 cases to measure" in shown and ("relu float32" in shown) is right and ("WRONG" in shown) is not right
    assert len(results.read_text().splitlines()) == 1


@pytest.mark.usefixtures("quick")
def test_a_kernel_that_fails_is_left_out_and_the_next_worker_goes_on(
    stub: stub_cuda.Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault(*_: int) -> None:
        raise stub_cuda.Failed(stub_cuda.ILLEGAL_ADDRESS)

    only(monkeypatch, gpu_cases.pointwise("relu", 96))
    monkeypatch.setattr(gpu_session.Session, "copy_gb_per_s", lambda self: (4000.0, "nobody"))
    stub.kernels["Y"] = fault
    results = tmp_path / "gpu.jsonl"
    for name in RELU:
        assert measured(results) == LOST
        shown = capsys.readouterr().out
        assert f"{name}: " in shown and "an illegal memory access" in shown and "tried without it" in shown
        assert last(results)["again"] and name in last(results)["failed"]
    assert measured(results) == 1  # all that is left are the peers
    row = last(results)
    assert "again" not in row and set(row["failed"]) == set(RELU) and len(row["peers_us"]) == 2
    shown = capsys.readouterr().out
    assert "FAILED: memory/ours/relu/float32/96: 1024 a block: " in shown
    assert measured(results) == 1 and "0 of 1 cases" in capsys.readouterr().out


@pytest.mark.usefixtures("stub")
def test_who_fails_again_is_given_up(quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("CUDA error: unspecified launch failure")

    only(monkeypatch, gpu_cases.pointwise("relu", 96))
    monkeypatch.setattr(gpu_peers, "expected", broken)
    results = tmp_path / "gpu.jsonl"
    assert [measured(results) for _ in range(3)] == [LOST, LOST, 1] and last(results)["again"] is False
    assert "unspecified launch failure" in last(results)["failed"]["the expected result"]


def test_peers_and_arrays_that_do_not_fit_are_told(
    quick: Any, stub: stub_cuda.Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def too_large(*_: Any, **__: Any) -> Any:
        raise quick.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    only(monkeypatch, gpu_cases.pointwise("relu", 96))
    stub.kernels["Y"] = relu_of(96)
    real, results = gpu_peers.peers, tmp_path / "gpu.jsonl"
    monkeypatch.setattr(gpu_peers, "peers", lambda *a, **k: real(*a, **k) | {"torch.compile": too_large})
    assert measured(results) == 0
    assert (
        set(last(results)["peers_us"]) == {"PyTorch"} and "OutOfMemoryError" in last(results)["peers_left_out"]["torch.compile"]
    )
    assert "torch.compile is left out: OutOfMemoryError: CUDA out of memory" in capsys.readouterr().out
    results.unlink()
    arrays = gpu_session.Session.arrays

    def large(self: gpu_session.Session, y: tl.Tensor, whole: bool) -> Any:
        return arrays(self, y, whole) if y.shape == (1 << 18,) else too_large()

    monkeypatch.setattr(gpu_session.Session, "arrays", large)
    assert measured(results) == 0
    assert "does not fit" in last(results)["left_out"] and "does not fit into the device's memory" in capsys.readouterr().out


def test_without_pytorch_rows_are_compared_and_ours_alone_are_timed(
    stub: stub_cuda.Recorder, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_session, "_torch", lambda device: None)
    only(monkeypatch, gpu_cases.pointwise("relu", 96))
    stub.kernels["Y"] = relu_of(96)
    assert measured(tmp_path / "gpu.jsonl") == 0
    row = last(tmp_path / "gpu.jsonl")
    assert row["us"] > 0 and row["right"] and row["checked"] == "4 rows" and row["peers_us"] == {}
    assert "PyTorch sees no GPU" in capsys.readouterr().out


@pytest.mark.usefixtures("quick", "stub")
@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL)
def test_every_kind_of_case_goes_all_the_way(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With kernels that do nothing, which is told of each, and with all its peers on the processor."""
    only(monkeypatch, case)
    assert measured(tmp_path / "gpu.jsonl") == 1
    row = last(tmp_path / "gpu.jsonl")
    assert row["wrong"] and not row["right"] and row["peers_us"] and not row["peers_left_out"] and "us" not in row
    assert row["checked"] == ("every element" if case.exact else "4 rows")


def bytes_of(arrays: dict[str, Any]) -> dict[str, Any]:
    """Tensors as an emulated device takes them."""
    import torch

    return {name: a.view(-1).view(torch.uint8).numpy() for name, a in arrays.items()}


@pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "case",
    [
        gpu_cases.pointwise("gelu", 1024),
        SMALL["transpose"],
        gpu_cases.product(8, 16, 16, tl.bfloat16),
        pytest.param(gpu_cases.transposed(64, 256, 64, tl.float16), marks=pytest.mark.slow),
    ],
    ids=lambda case: case.operator,
)
def test_a_case_is_right_on_an_emulated_device(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedules, their texts, arrays, checks and times: everything but the device."""
    driver, real = Driver("cuda"), interface.load
    monkeypatch.setattr(interface, "load", lambda name: driver if name == "cuda" else real(name))
    monkeypatch.setattr(gpu_session.Session, "addresses", staticmethod(bytes_of))
    monkeypatch.setattr(gpu_session, "COPY_BYTES", 1 << 14)  # whose elements are emulated one by one
    monkeypatch.setattr(nvrtc, "compile_source", lambda source, architecture, *_: Compiled(architecture, "none", b"", ()))
    devices_of.cache_clear()
    only(monkeypatch, case)
    try:
        assert measured(tmp_path / "gpu.jsonl") == 0
    finally:
        devices_of.cache_clear()
    row = last(tmp_path / "gpu.jsonl")
    assert row["right"] and not row["wrong"] and row["us"] > 0 and row["peers_us"]
    if case.operator == "matmul transposed":
        assert set(row["candidates_us"]) >= {"warpgroups", "warps"}


def test_a_stage_that_does_not_end_is_told_and_the_process_left() -> None:
    told, left = list[str](), threading.Event()
    watch = Watch(0.05, told.append, lambda code: left.set() if code == LOST else None)
    watch.begin("quick")
    watch.begin("slow")
    assert left.wait(30) and told == ["slow"]
    watch.begin("quick")
    watch.end()
    assert told == ["slow"]


def test_what_is_late_is_kept(stub: stub_cuda.Recorder, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = gpu_cases.pointwise("relu", 96)
    target = gpu.gpu()
    assert target is not None
    run = gpu.Run(target, [case], tmp_path / "gpu.jsonl", 100, "")
    run.now = case
    run.late("1024 a block")
    assert last(tmp_path / "gpu.jsonl")["failed"] == {"1024 a block": "it did not end in 120 s"}
    assert gpu.Run(target, [case], tmp_path / "gpu.jsonl", 100, "").todo == [case]


def test_a_lost_worker_is_followed_by_another(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "worker.py"
    script.write_text(
        "import pathlib, sys\np = pathlib.Path(sys.argv[1])\nn = int(p.read_text()) if p.exists() else 0\np.write_text(str(n + 1))\n"
        "assert sys.argv[2] == '--limit-s' and float(sys.argv[3]) <= 500\nsys.exit(7 if n < 2 else 1)\n"
    )
    count = tmp_path / "count"
    assert supervise([sys.executable, str(script), str(count)], 500) == 1 and count.read_text() == "3"
    assert capfd.readouterr().out.count("another process goes on") == 2
    count.unlink()
    assert supervise([sys.executable, str(script), str(count)], 10) == LOST and count.read_text() == "1"
    assert "run it again" in capfd.readouterr().out
    monkeypatch.setattr(gpu_watch, "GRACE_S", 1)
    assert supervise([sys.executable, "-c", "import time; time.sleep(60)"], 0) == LOST
    assert "was stopped" in capfd.readouterr().out


def test_the_plan_of_every_device() -> None:
    """Each kind of case has a schedule on each kind of device, whatever the sizes: those of threads alone, where no other."""
    kinds = [gpu_cases.product(4095, 4095, 4095, tl.float16), gpu_cases.convolution((2, 3, 8, 5, 3, 1, 1), type=tl.float16)]
    for profile in ("volta", "ampere", "hopper", "blackwell", "cdna3", "rdna3"):
        shown = gpu.plan([*kinds, gpu_cases.pointwise("gelu", 1 << 20)], profile)
        assert "NONE" not in shown and "instruction-mismatch" in shown or profile in ("volta", "cdna3", "rdna3")
    large = gpu.plan(
        [gpu_cases.product(65536, 4096, 1024, tl.float16), gpu_cases.transposed(256, 512, 128, tl.float16)], "hopper"
    )
    assert "warps, warps, one by one" in large and "warpgroups, warps, simt" in large


def test_another_source_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "gpu.jsonl"
    path.write_text(json.dumps({"case": "a", "device": "Stub", "sources": "old"}) + "\n")
    assert (
        gpu.known([path], "Stub", "old")
        and not gpu.known([path], "Stub", gpu.sources())
        and not gpu.known([path], "Other", "old")
    )
    path.write_text(path.read_text() + '{"case": "b", "dev')
    assert set(gpu.known([path], "Stub", "old")) == {"a"}
