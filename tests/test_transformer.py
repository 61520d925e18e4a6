"""The transformer of examples/19_transformer.py at tiny sizes: its loss and gradients beside NumPy in float64, and beside PyTorch."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.test_examples import load

pytestmark = pytest.mark.slow  # a whole model is scheduled, lowered and compiled

Arrays = dict[str, Any]
SIZES: dict[str, int] = {"blocks": 1, "batch": 3, "length": 5, "width": 8, "heads": 2, "vocabulary": 11}
RATE = np.float32(4096)  # so large that a new weight is its gradient, as exactly as float32 has it


@pytest.fixture(scope="module")
def example() -> Any:
    return load("19_transformer")


@pytest.fixture(scope="module")
def step(example: Any) -> tl.Kernel:
    return tl.compile(example.training_step(example.Sizes(**SIZES)), "cpu")


def rows(x: Any) -> Any:
    """Rows of mean 0 and variance 1."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def loss_of(w: Arrays, tokens: Any, targets: Any) -> Any:
    """The loss by NumPy, in float64."""
    x = w["embedding"][tokens] + w["position"]
    later = np.triu(np.full((SIZES["length"],) * 2, -np.inf), 1)
    for n in range(SIZES["blocks"]):
        a, m = f"attention{n}_", f"mlp{n}_"
        y = rows(x) * w[a + "gain"] + w[a + "shift"]
        q, k, v = (np.einsum("btc,chd->bhtd", y, w[a + role]) for role in ("query", "key", "value"))
        shares = softmax(q @ k.swapaxes(2, 3) / math.sqrt(SIZES["width"] // SIZES["heads"]) + later)
        x = x + np.einsum("bhte,hec->btc", shares @ v, w[a + "output"])
        y = (rows(x) * w[m + "gain"] + w[m + "shift"]) @ w[m + "up"] + w[m + "up_bias"]
        y = y * (1 + np.vectorize(math.erf)(y / math.sqrt(2))) / 2
        x = x + y @ w[m + "down"] + w[m + "down_bias"]
    shares = softmax((rows(x) * w["last_gain"] + w["last_shift"]) @ w["unembedding"])
    return -np.log(np.take_along_axis(shares, targets[..., None], 2)).mean()


def given(example: Any, step: tl.Kernel) -> tuple[Arrays, Arrays]:
    """Weights of which none is 0, and data."""
    generator = np.random.default_rng(3)
    weights = {name: array + generator.standard_normal(array.shape, np.float32) / 4
               for name, array in example.first_weights(step.computation).items()}  # fmt: skip
    return weights, example.data(example.Sizes(**SIZES), 0)


def test_the_loss_and_every_gradient(example: Any, step: tl.Kernel) -> None:
    """Beside float64: the loss, and the change of the loss along a random direction of each weight."""
    weights, data = given(example, step)
    exact = {name: array.astype(np.float64) for name, array in weights.items()}
    loss, *new = step(**weights, **data, rate=RATE)
    assert abs(loss - loss_of(exact, **data)) < 1e-5
    generator = np.random.default_rng(4)
    for (name, array), after in zip(weights.items(), new, strict=True):
        gradient = (array.astype(np.float64) - after) / RATE
        along = generator.standard_normal(array.shape)
        up, down = (loss_of({**exact, name: exact[name] + sign * 1e-5 * along}, **data) for sign in (1, -1))
        assert abs((gradient * along).sum() - (up - down) / 2e-5) < 1e-4 * np.sqrt(array.size), name


def test_it_learns(example: Any, step: tl.Kernel) -> None:
    losses = example.train(step, example.Sizes(**SIZES), 300)
    assert np.mean(losses[-50:]) < np.mean(losses[:50]) - 0.2


def test_beside_pytorch(example: Any, step: tl.Kernel) -> None:
    torch = pytest.importorskip("torch")
    from benchmarks.transformer import Twin

    weights, data = given(example, step)
    twin = Twin(example.Sizes(**SIZES), weights)
    expected = twin.loss(*(torch.from_numpy(array).long() for array in data.values()))
    expected.backward()
    loss, *new = step(**weights, **data, rate=RATE)
    torch.testing.assert_close(torch.tensor(loss), expected.detach())
    for (name, array), after in zip(weights.items(), new, strict=True):
        gradient: Any = twin.weights[name].grad
        np.testing.assert_allclose((array - after) / RATE, gradient.numpy(), rtol=1e-3, atol=1e-5, err_msg=name)


def test_the_data_count(example: Any) -> None:
    sizes = example.Sizes(**SIZES)
    made = example.data(sizes, 7)
    for tokens, targets in zip(made["tokens"], made["targets"], strict=True):
        assert len({(b - a) % sizes.vocabulary for a, b in itertools.pairwise([*tokens, targets[-1]])}) == 1
