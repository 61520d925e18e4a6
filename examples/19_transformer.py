"""A small transformer, trained on NumPy arrays: its loss, all gradients and the new weights are one computation, and one call a step.

The model reads sequences that count by a step of their own, such as 7 10 13 16, and learns to tell the next number from those before
it. The gradients are those of `tl.grad`, the schedule of each kernel is generated.
Run: `python examples/19_transformer.py`.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

import tilelang as tl

Arrays = dict[str, Any]


class Sizes(NamedTuple):
    """Of a transformer and of the data that a step takes."""

    blocks: int = 4
    batch: int = 8
    length: int = 64
    width: int = 128
    heads: int = 4
    vocabulary: int = 256


class Transformer:
    """The definitions of a transformer. weights: its inputs that are trained; loss: the mean cross entropy of the next tokens."""

    def __init__(self, sizes: Sizes) -> None:
        head = sizes.width // sizes.heads
        self.b, self.t, self.s = tl.axes(b=sizes.batch, t=sizes.length, s=sizes.length)  # sequences; positions, and those before
        self.c, self.f, self.v = tl.axes(c=sizes.width, f=4 * sizes.width, v=sizes.vocabulary)
        self.h, self.d, self.e = tl.axes(h=sizes.heads, d=head, e=head)
        self.head, self.weights = head, list[tl.Tensor]()

        b, t, c, v = self.b, self.t, self.c, self.v
        tokens, targets = (tl.input(name, tl.int32, b, t, range=(0, v.extent)) for name in ("tokens", "targets"))
        embedding, position = self.weight("embedding", v, c), self.weight("position", t, c)
        x = tl.define("x", embedding[tokens[b, t], c] + position[t, c], b, t, c)
        for n in range(sizes.blocks):
            x = self.mlp(f"mlp{n}_", self.attention(f"attention{n}_", x))
        x, unembedding = self.norm("last_", x), self.weight("unembedding", c, v)
        logits = tl.define("logits", tl.sum(x[b, t, c] * unembedding[c, v], over=c), b, t, v)
        likely = tl.define("likely", tl.log_softmax(logits[b, t, v], over=v), b, t, v)
        self.loss = tl.define("loss", tl.mean(-likely[b, t, targets[b, t]], over=(b, t)))

    def weight(self, name: str, *dims: tl.Axis) -> tl.Tensor:
        self.weights.append(tl.input(name, tl.float32, *dims))
        return self.weights[-1]

    def norm(self, name: str, x: tl.Tensor) -> tl.Tensor:
        """Layer normalization of each position."""
        b, t, c = self.b, self.t, self.c
        gain, shift = self.weight(name + "gain", c), self.weight(name + "shift", c)
        return tl.define(name + "norm", tl.layer_norm(x[b, t, c], over=c) * gain[c] + shift[c], b, t, c)

    def attention(self, name: str, x: tl.Tensor) -> tl.Tensor:
        """x plus what each head reads at this position and those before."""
        b, t, s, c, h, d, e = self.b, self.t, self.s, self.c, self.h, self.d, self.e
        n = self.norm(name, x)

        def projected(role: str) -> tl.Tensor:
            W = self.weight(name + role, c, h, d)
            return tl.define(name + role + "s", tl.sum(n[b, t, c] * W[c, h, d], over=c), b, t, h, d)

        q, k, v = projected("query"), projected("key"), projected("value")
        scores = tl.define(name + "scores", tl.sum(q[b, t, h, d] * k[b, s, h, d], over=d) * self.head**-0.5, b, h, t, s)
        shares = tl.define(name + "shares", tl.softmax(scores[b, h, t, s], over=s, where=s <= t), b, h, t, s)
        mixed = tl.define(name + "mixed", tl.sum(shares[b, h, t, s] * v[b, s, h, e], over=s), b, t, h, e)
        W = self.weight(name + "output", h, e, c)
        return tl.define(name + "sum", x[b, t, c] + tl.sum(mixed[b, t, h, e] * W[h, e, c], over=(h, e)), b, t, c)

    def mlp(self, name: str, x: tl.Tensor) -> tl.Tensor:
        """x plus a layer of gelu of each position."""
        b, t, c, f = self.b, self.t, self.c, self.f
        n = self.norm(name, x)
        W1, bias1 = self.weight(name + "up", c, f), self.weight(name + "up_bias", f)
        W2, bias2 = self.weight(name + "down", f, c), self.weight(name + "down_bias", c)
        hidden = tl.define(name + "hidden", tl.sum(n[b, t, c] * W1[c, f], over=c) + bias1[f], b, t, f)
        active = tl.define(name + "active", tl.gelu(hidden[b, t, f]), b, t, f)
        product = tl.sum(active[b, t, f] * W2[f, c], over=f)
        return tl.define(name + "sum", x[b, t, c] + product + bias2[c], b, t, c)


def training_step(sizes: Sizes) -> tl.Computation:
    """The loss and, for each weight W, new_W: one step of gradient descent, which goes as far as the input `rate` says."""
    model, rate = Transformer(sizes), tl.input("rate", tl.float32)
    gradients = tl.grad(model.loss, model.weights)
    new = [
        tl.define(f"new_{w.name}", w[w.dims] - rate[()] * g[w.dims], *w.dims)
        for w, g in zip(model.weights, gradients, strict=True)
    ]
    return tl.computation("step", (model.loss, *new))


def first_weights(step: tl.Computation, seed: int = 0) -> Arrays:
    """Weights to begin with, by name: gains 1, shifts and biases 0, others random."""
    generator, found = np.random.default_rng(seed), {}
    for w in step.inputs:
        if w.name not in ("tokens", "targets", "rate"):
            plain = w.name.endswith(("gain", "shift", "bias"))
            found[w.name] = generator.standard_normal(w.shape, np.float32) * np.float32(0 if plain else 0.05)
            found[w.name] += np.float32(w.name.endswith("gain"))
    return found


def data(sizes: Sizes, number: int) -> Arrays:
    """The tokens of a step, and those that follow them: each sequence counts from a start of its own, by a step of 1 to 8."""
    generator = np.random.default_rng((1, number))
    start, step = generator.integers(0, sizes.vocabulary, (sizes.batch, 1)), generator.integers(1, 9, (sizes.batch, 1))
    counted = ((start + step * np.arange(sizes.length + 1)) % sizes.vocabulary).astype(np.int32)
    return {"tokens": counted[:, :-1].copy(), "targets": counted[:, 1:].copy()}


def train(step: tl.Kernel, sizes: Sizes, steps: int, rate: float = 0.1) -> list[float]:
    """The losses of some steps."""
    weights, losses = first_weights(step.computation), []
    for number in range(steps):
        loss, *new = step(**weights, **data(sizes, number), rate=np.float32(rate))
        weights = dict(zip(weights, new, strict=True))
        losses.append(float(loss))
    return losses


def main(sizes: Sizes | None = None, steps: int = 300) -> None:
    """Trains and prints the mean loss of each tenth of the steps."""
    sizes = sizes or Sizes()
    losses = train(tl.compile(training_step(sizes)), sizes, steps)
    for begin, end in itertools.pairwise(np.linspace(0, steps, 11, dtype=int)):
        print(f"steps {begin} to {end}: loss {np.mean(losses[begin:end]):.3f}")


if __name__ == "__main__":
    main()
