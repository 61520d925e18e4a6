"""The training step of examples/19_transformer.py beside a PyTorch twin: their losses, and the time of a step.

    python benchmarks/transformer.py [--steps 300] [--rounds 15] [--kernels 12]

Both begin with the same weights and take the same data. Prints the largest relative difference between the losses of both; then the
time of a step of ours, of eager PyTorch, and of torch.compile (loss, gradients and optimizer), which take turns; then the kernels that
take the most time. A step is the loss, all gradients, and the new weights.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/transformer.py` from anywhere

import numpy as np
import torch
from torch.nn import functional

import tilelang as tl
from benchmarks import machine
from benchmarks.harness import Contestant, compare

Arrays = dict[str, Any]
RATE = 0.1  # at 0.5 the loss leaps, and then the last bit of a float32 decides what it is


def load_example() -> ModuleType:
    """The example as a module."""
    path = Path(__file__).resolve().parent.parent / "examples" / "19_transformer.py"
    spec = importlib.util.spec_from_file_location("transformer_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Twin:
    """The same model in PyTorch. sizes: the example's; weights: arrays by name, which are copied."""

    def __init__(self, sizes: Any, weights: Arrays) -> None:
        self.sizes = sizes
        self.weights = {name: torch.tensor(array, requires_grad=True) for name, array in weights.items()}
        self.optimizer = torch.optim.SGD(self.weights.values(), lr=RATE)
        self.forward: Callable[[Any, Any], Any] = self.loss
        self.update: Callable[[], Any] = self.optimizer.step

    def compile(self) -> None:
        """From now on by torch.compile."""
        self.forward, self.update = torch.compile(self.loss), torch.compile(self.optimizer.step)

    def norm(self, name: str, x: Any) -> Any:
        return functional.layer_norm(x, x.shape[-1:], self.weights[name + "gain"], self.weights[name + "shift"])

    def attention(self, name: str, x: Any) -> Any:
        n, w = self.norm(name, x), self.weights
        q, k, v = ((n @ w[name + role].flatten(1)).unflatten(2, (self.sizes.heads, -1)).transpose(1, 2)
                   for role in ("query", "key", "value"))  # fmt: skip
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + mixed.transpose(1, 2).flatten(2) @ w[name + "output"].flatten(0, 1)

    def mlp(self, name: str, x: Any) -> Any:
        n, w = self.norm(name, x), self.weights
        hidden = functional.gelu(n @ w[name + "up"] + w[name + "up_bias"])
        return x + hidden @ w[name + "down"] + w[name + "down_bias"]

    def loss(self, tokens: Any, targets: Any) -> Any:
        w = self.weights
        x = w["embedding"][tokens] + w["position"]
        for n in range(self.sizes.blocks):
            x = self.mlp(f"mlp{n}_", self.attention(f"attention{n}_", x))
        logits = self.norm("last_", x) @ w["unembedding"]
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def step(self, tokens: Any, targets: Any) -> float:
        """Trains once; the loss before that."""
        loss = self.forward(tokens, targets)
        loss.backward()
        self.update()
        self.optimizer.zero_grad()
        return float(loss.detach())


class Ours:
    """The example's step over two sets of weights, which take turns as inputs and outputs."""

    def __init__(self, kernel: tl.Kernel, weights: Arrays) -> None:
        self.kernel, self.weights = kernel, {name: array.copy() for name, array in weights.items()}
        self.new = {name: np.empty_like(array) for name, array in weights.items()}

    def step(self, tokens: Any, targets: Any) -> float:
        """Trains once; the loss before that."""
        out = {f"new_{name}": array for name, array in self.new.items()}
        loss, *_ = self.kernel(**self.weights, tokens=tokens, targets=targets, rate=np.float32(RATE), out=out)
        self.weights, self.new = self.new, self.weights
        return float(loss)


def stream(example: ModuleType, sizes: Any, as_torch: bool) -> Callable[[], tuple[Any, Any]]:
    """The data of steps 0, 1, ... one after another, made beforehand: that of 64 steps, again and again."""
    made = [tuple(example.data(sizes, n).values()) for n in range(64)]
    if as_torch:
        made = [(torch.from_numpy(a), torch.from_numpy(b).long()) for a, b in made]
    return itertools.cycle(made).__next__


def times_of_kernels(ours: Ours, data: Arrays, repeats: int = 5) -> list[tuple[str, float]]:
    """The seconds of each launch by its name, medians, the slowest first."""
    kernel, connection = ours.kernel, ours.kernel._connection
    outputs = {"loss": np.empty((), np.float32), **{f"new_{n}": a for n, a in ours.new.items()}}
    held = {name: connection.host_array(a, "output" if name in outputs else "input", None)
            for name, a in {**ours.weights, **data, "rate": np.array(RATE, np.float32), **outputs}.items()}  # fmt: skip
    buffers = {name: h.buffer for name, h in held.items()}
    found = [[event.seconds for event in kernel.launch(buffers)] for _ in range(repeats + 1)][1:]
    names = [launch.name for launch in kernel._launch_plan.launches]
    return sorted(zip(names, np.median(found, axis=0).tolist(), strict=True), key=lambda k: -k[1])


def compared(example: ModuleType, sizes: Any, ours: Ours, twin: Twin, steps: int) -> None:
    """Prints how far the losses of some steps are apart."""
    torch_stream = [tuple(map(torch.from_numpy, example.data(sizes, n).values())) for n in range(steps)]
    mine = [ours.step(*example.data(sizes, n).values()) for n in range(steps)]
    theirs = [twin.step(a, b.long()) for a, b in torch_stream]
    apart = np.abs(np.array(mine) / np.array(theirs) - 1)
    print(f"losses of {steps} steps: {theirs[0]:.4f} to {theirs[-1]:.4f} (PyTorch), {mine[0]:.4f} to {mine[-1]:.4f} (ours); "
          f"at most {apart.max():.2%} apart, at step {apart.argmax()}", flush=True)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares, measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=300, help="whose losses are compared")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--kernels", type=int, default=12, help="how many of the slowest kernels are printed")
    given = parser.parse_args(arguments)
    example = load_example()
    sizes, found = example.Sizes(), machine.machine()
    torch.set_num_threads(found.cores)
    print(found, f"load {os.getloadavg()[0]:.1f}, PyTorch {torch.__version__}", flush=True)
    begun = time.perf_counter()
    step = example.training_step(sizes)
    defined = time.perf_counter()
    kernel = tl.compile(step, "cpu")
    planned = time.perf_counter()
    weights = example.first_weights(step)
    ours, twin = Ours(kernel, weights), Twin(sizes, weights)
    ours.step(*example.data(sizes, 0).values())
    print(f"{len(step.definitions)} definitions in {defined - begun:.2f} s, their schedules in {planned - defined:.2f} s, "
          f"compiled and run once in {time.perf_counter() - planned:.2f} s: {len(kernel._launch_plan.launches)} kernels, "
          f"{sum(size for _, size in kernel._workspace) / 1e6:.1f} MB of workspace", flush=True)  # fmt: skip
    ours = Ours(kernel, weights)
    if given.steps:
        compared(example, sizes, ours, twin, given.steps)
    if given.rounds:
        compiled = Twin(sizes, weights)
        compiled.compile()
        sides: dict[str, Ours | Twin] = {"ours": ours, "eager": twin, "torch.compile": compiled}
        streams = {who: stream(example, sizes, who != "ours") for who in sides}
        for who in sides:
            for _ in range(3):
                sides[who].step(*streams[who]())

        def contestant(who: str) -> Contestant:
            return Contestant(who, who, lambda: sides[who].step(*streams[who]()))

        times = compare([contestant(who) for who in sides], given.rounds)
        for who in sides:
            cpu = float(np.median(times.processor_seconds[who])) * 1e3
            print(
                f"{who}: {times.median_ms(who):.2f} ms a step ({times.best_ms(who):.2f} at best, {cpu:.2f} ms of processor time)"
            )
        for who in ("eager", "torch.compile"):
            print(f"time of ours / {who}: {1 / times.ratio('ours', who):.2f}, at best {1 / times.best_ratio('ours', who):.2f}")
    every = times_of_kernels(ours, example.data(sizes, 0))
    whole = sum(seconds for _, seconds in every)
    print(f"all kernels: {whole * 1e3:.2f} ms")
    for name, seconds in every[: given.kernels]:
        print(f"  {seconds * 1e6:8.0f} us  {seconds / whole:5.1%}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
