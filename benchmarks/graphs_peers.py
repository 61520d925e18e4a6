"""The memory-bound graphs beside torch.compile, onnxruntime, OpenVINO and JAX.

    python benchmarks/graphs_peers.py [--only rms_norm,adam] [--sizes 3] [--types float32,bfloat16] [--rounds 7]

Prints `graph type size: ours us, peers us, ratio to the best`, and at the end the geometric mean and the lowest. All take the same
arrays. onnxruntime and OpenVINO run what PyTorch exports of its function, and write to arrays that were there before, as we do;
torch.compile and JAX make their results. Our results are checked against the reference, a peer's against ours; what is wrong or
fails is not timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/graphs_peers.py` from anywhere

import numpy as np

import tilelang as tl
from benchmarks import machine
from benchmarks.graphs_memory_bound import GRAPHS
from benchmarks.harness import Contestant, compare, launcher
from benchmarks.peers import Array
from tilelang.semantics import reference

Results = list[Array]
Call = Callable[[], Any]
TOLERANCE = {"float32": 1e-4, "bfloat16": 3e-2}  # of a peer beside ours, of the largest result
POSITIVE = ("variance", "rstd", "V")


def random_arrays(computation: tl.Computation, seed: int = 0) -> dict[str, Array]:
    """Inputs by name; variances are positive."""
    found = reference.random_arrays(computation, seed)
    return {name: np.abs(array) if name in POSITIVE else array for name, array in found.items()}


def ours(computation: tl.Computation, arrays: Mapping[str, Array]) -> tuple[Call, Results]:
    """A call of the kernel, and what it computes. SystemExit: that is wrong."""
    kernel = tl.compile(computation, "cpu")
    out = {t.name: np.empty(t.shape, t.dtype.numpy) for t in kernel.computation.outputs}
    begin, finish = launcher(kernel, {**arrays, **out}, tuple(out))

    def call() -> None:
        begin()
        finish()

    call()
    report = reference.compare(kernel.computation, dict(arrays), out)
    if not report:
        raise SystemExit(f"{computation.name} is wrong: {report}")
    return call, list(out.values())


def to_torch(array: Array) -> Any:
    """A tensor over an array's memory."""
    import torch

    return (
        torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if array.dtype.name == "bfloat16" else torch.from_numpy(array)
    )


def by_torch(name: str, given: Sequence[Array], threads: int) -> Call:
    """The graph compiled by torch.compile."""
    import torch

    from benchmarks import graphs_torch

    torch.set_num_threads(threads)
    torch._dynamo.reset()
    compiled: Any = torch.compile(getattr(graphs_torch, name), dynamic=False)
    tensors = [to_torch(a) for a in given]

    def call() -> Any:
        with torch.inference_mode():
            return compiled(*tensors)

    return call


def by_jax(name: str, given: Sequence[Array]) -> Call:
    """The graph compiled by JAX."""
    import jax

    from benchmarks import graphs_jax

    compiled, arrays = jax.jit(getattr(graphs_jax, name)), [jax.device_put(a) for a in given]
    finished: Any = jax.block_until_ready
    return lambda: finished(compiled(*arrays))


def exported(name: str, given: Sequence[Array]) -> bytes:
    """The graph as a model of ONNX, as PyTorch exports it."""
    import torch

    from benchmarks import graphs_torch

    def forward(module: object, *tensors: Any) -> Any:
        return getattr(graphs_torch, name)(*tensors)

    graph = type("Graph", (torch.nn.Module,), {"forward": forward})()
    made: Any = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(graph, tuple(to_torch(a) for a in given), made, opset_version=18, dynamo=False)
    model: bytes = made.getvalue()
    return model


def by_onnxruntime(model: bytes, given: Sequence[Array], out: Results, threads: int) -> Call:
    """The model in onnxruntime, arrays bound once."""
    import onnxruntime

    from benchmarks.peers_onnxruntime import type_of

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for info, array in zip(session.get_inputs(), given, strict=True):
        binding.bind_input(info.name, "cpu", 0, type_of(array), array.shape, array.ctypes.data)
    for info, array in zip(session.get_outputs(), out, strict=True):
        binding.bind_output(info.name, "cpu", 0, type_of(array), array.shape, array.ctypes.data)

    def call() -> Results:
        session.run_with_iobinding(binding)
        return out

    return call


def by_openvino(model: bytes, given: Sequence[Array], out: Results, threads: int) -> Call:
    """The model in OpenVINO, computed in the type of the arrays."""
    import openvino

    from benchmarks.peers_openvino import tensor

    half = out[0].dtype.name == "bfloat16"
    options = {
        "INFERENCE_NUM_THREADS": str(threads), "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "bf16" if half else "f32",
    }  # fmt: skip
    core = openvino.Core()
    request = core.compile_model(core.read_model(io.BytesIO(model)), "CPU", options).create_infer_request()
    for number, array in enumerate(given):
        request.set_input_tensor(number, tensor(array))
    for number, array in enumerate(out):
        request.set_output_tensor(number, tensor(array))

    def call() -> Results:
        request.infer()
        return out

    return call


def peers(name: str, given: Sequence[Array], results: Results, threads: int) -> dict[str, Call]:
    """A call of each peer that is installed and has all of a graph; what has not is named."""
    into: dict[str, Results] = {who: [np.zeros_like(r) for r in results] for who in ("onnxruntime", "OpenVINO")}
    makers: dict[str, tuple[str, Callable[[], Call]]] = {
        "torch.compile": ("torch", lambda: by_torch(name, given, threads)),
        "JAX": ("jax", lambda: by_jax(name, given)),
        "onnxruntime": ("onnxruntime", lambda: by_onnxruntime(exported(name, given), given, into["onnxruntime"], threads)),
        "OpenVINO": ("openvino", lambda: by_openvino(exported(name, given), given, into["OpenVINO"], threads)),
    }
    found = {}
    for who, (module, make) in makers.items():
        if importlib.util.find_spec(module) is None:
            continue
        try:
            call = make()
            wrong = difference(call(), results)
        except Exception as error:  # whatever a library raises that lacks an operation or a type
            print(f"  {who} lacks {name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}", flush=True)
            continue
        if wrong > TOLERANCE[results[0].dtype.name]:
            print(f"  {who} is wrong by {wrong:.2g} of the largest result", flush=True)
        else:
            found[who] = call
    return found


def difference(found: Any, results: Results) -> float:
    """How far results are from ours at most, as a part of the largest of each."""
    every = [found] if not isinstance(found, tuple | list) else list(found)
    most = 0.0
    for other, own in zip(every, results, strict=True):
        if hasattr(other, "detach"):
            other = other.detach().float().numpy()
        a, b = np.asarray(other).astype(np.float64).reshape(own.shape), own.astype(np.float64)
        most = max(most, float(np.max(np.abs(a - b)) / max(1e-30, float(np.max(np.abs(b))))))
    return most


def measured(name: str, size: tuple[int, ...], dtype: Any, rounds: int, threads: int) -> float:
    """Prints a line; what our rate is of the best peer's (infinite where there is none)."""
    computation = GRAPHS[name].computation(size, dtype)
    arrays = random_arrays(computation)
    call, results = ours(computation, arrays)
    calls = peers(name, [arrays[t.name] for t in computation.inputs], results, threads)
    found = compare([Contestant("ours", "ours", call), *(Contestant(who, who, c) for who, c in calls.items())], rounds, 0.1)
    times = ", ".join(f"{who} {found.median_ms(who) * 1e3:.0f} us" for who in ("ours", *calls))
    ratio = min((found.ratio("ours", who) for who in calls), default=math.inf)
    print(f"{name} {computation.inputs[0].dtype} {'x'.join(map(str, size))}: {times}, {ratio:.2f}", flush=True)
    return ratio


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a line for each graph, type and size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(GRAPHS), help="graphs, with commas between")
    parser.add_argument("--sizes", default="0,1,2", help="which sizes of each graph, from the smallest")
    parser.add_argument("--types", default="float32,bfloat16")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args(arguments)
    print(machine.machine(), flush=True)
    ratios, threads = [], len(os.sched_getaffinity(0))
    for name in given.only.split(","):
        for dtype in given.types.split(",") if GRAPHS[name].half else ["float32"]:
            for number in map(int, given.sizes.split(",")):
                ratios.append(measured(name, GRAPHS[name].sizes[number], getattr(tl, dtype), given.rounds, threads))
    known = [r for r in ratios if r < math.inf]
    if known:
        print(f"geometric mean {math.exp(sum(map(math.log, known)) / len(known)):.2f}, lowest {min(known):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
