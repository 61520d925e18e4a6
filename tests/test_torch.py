"""PyTorch operators made of computations: values, gradients by `gradcheck`, `torch.compile`; and gradients beside autograd's."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl

torch = pytest.importorskip("torch")

from tilelang.torch import Operator, operator  # noqa: E402 - where there is PyTorch

F = torch.nn.functional
I, J = tl.axes(i=4, j=5)


def softmax_operator(dtype: tl.DType = tl.float64) -> Operator:
    X, W = tl.input("X", dtype, I, J), tl.input("W", dtype, J)
    return operator(tl.define("y", tl.softmax(X[I, J], over=J) * W[J], I, J))


def tensors(*shapes: tuple[int, ...], seed: int = 0) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, dtype=torch.float64, generator=generator, requires_grad=True) for s in shapes]


def test_values_and_gradients() -> None:
    op, (x, w) = softmax_operator(), tensors((4, 5), (5,))
    torch.testing.assert_close(op(x, w), torch.softmax(x, 1) * w)
    torch.testing.assert_close(op(W=w, X=x), op(x, w))
    assert torch.autograd.gradcheck(op, (x, w))
    assert torch.autograd.gradgradcheck(op, (x, w))


def test_only_what_is_needed_is_differentiated() -> None:
    op, (x, w) = softmax_operator(), tensors((4, 5), (5,))
    op(x.detach(), w).sum().backward()
    assert list(op.gradients) == [(False, True)]
    assert [t.name for t in op.gradients[False, True].computation.outputs] == ["dy_dW"]


def test_torch_compile_keeps_the_operator_whole() -> None:
    op, (x, w) = softmax_operator(), tensors((4, 5), (5,))
    torch.library.opcheck(op.op, (x, w))

    def loss(a: Any, b: Any) -> Any:
        return (op(a * 2, b) ** 2).sum() + op(X=a, W=b).sum()

    torch.compile(loss, fullgraph=True, backend="aot_eager")(x, w).backward()
    compiled, x.grad, w.grad = (x.grad, w.grad), None, None
    loss(x, w).backward()
    torch.testing.assert_close(compiled, (x.grad, w.grad))


def test_several_outputs_some_of_integers() -> None:
    X = tl.input("X", tl.float64, I, J)
    total, first = tl.define("total", tl.sum(X[I, J] ** 2, over=J), I), tl.define("first", tl.argmax(X[I, J], over=J), I)
    op = operator(tl.computation("both", (total, first)))
    (x,) = tensors((4, 5))
    a, b = op(x)
    assert b.dtype == torch.int32 and not b.requires_grad and torch.equal(b, x.argmax(1).int())
    a.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x)


def test_indices_have_no_gradient() -> None:
    t, e = tl.axes(t=6, e=3)
    ids, table = tl.input("ids", tl.int32, t, range=(0, 4)), tl.input("table", tl.float64, v=4, e=3)
    op = operator(tl.define("rows", table[ids[t], e] ** 2, t, e))
    places = torch.tensor([0, 3, 3, 1, 0, 3], dtype=torch.int32)
    (values,) = tensors((4, 3))
    assert torch.autograd.gradcheck(lambda a: op(places, a), (values,))


def test_tensors_are_shared_and_copied_only_if_they_are_not_contiguous() -> None:
    X = tl.input("X", tl.float32, I, J)
    op = operator(tl.schedule(tl.define("y", X[I, J] * 2, I, J)))
    x = torch.arange(20, dtype=torch.float32).reshape(5, 4).T
    assert torch.equal(op(x), x * 2)
    assert torch.equal(op(x.contiguous()), x * 2)


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float32], ids=str)
def test_types(dtype: tl.DType) -> None:
    X = tl.input("X", dtype, I, J)
    op = operator(tl.define("y", tl.gelu(X[I, J]), I, J))
    x = torch.linspace(-2, 2, 20).reshape(4, 5).to(getattr(torch, dtype.name)).requires_grad_()
    op(x).sum().backward()
    other = x.detach().clone().requires_grad_()
    F.gelu(other).sum().backward()
    torch.testing.assert_close(x.grad, other.grad)


def test_refusals() -> None:
    op, (x, w) = softmax_operator(), tensors((4, 5), (5,))
    for given, message in (
        ((x.float(), w), "the tensor for X: float64[i: 4, j: 5] has the shape (4, 5) and the type torch.float32"),
        ((x.T, w), "the tensor for X: float64[i: 4, j: 5] has the shape (5, 4) and the type torch.float64"),
        ((x, np.ones(5)), "[1. 1. 1. 1. 1.] for W: float64[j: 5] is not a tensor"),
    ):
        with pytest.raises(tl.ComputationError) as caught:
            op(*given)
        assert caught.value.message == message
    with pytest.raises(tl.ComputationError) as caught:
        op.kernel("meta")
    assert caught.value.code == "torch-device" and caught.value.message == "there are no kernels for tensors on meta"


def test_without_torch_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None\nimport tilelang.torch"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: tilelang.torch needs PyTorch: pip install 'tilelang-rtile[torch]'" in found.stderr


# ---------------------------------------------------------------- graphs beside autograd

M, N, K, H = tl.axes(m=6, n=5, k=7, h=8)
Graph = tuple[Callable[[], tuple[list[tl.Tensor], tl.Tensor]], Callable[..., Any]]


def inputs(**shapes: tuple[Any, ...]) -> list[tl.Tensor]:
    return [tl.input(name, tl.float64, *axes) for name, axes in shapes.items()]


def product() -> Any:
    A, B = inputs(A=(M, K), B=(K, N))
    return [A, B], tl.define("y", tl.sum(A[M, K] * B[K, N], over=K), M, N)


def layer_norm() -> Any:
    X, scale, shift = inputs(X=(M, N), scale=(N,), shift=(N,))
    return [X, scale, shift], tl.define("y", tl.layer_norm(X[M, N], over=N) * scale[N] + shift[N], M, N)


def rms_norm() -> Any:
    X, scale = inputs(X=(M, N), scale=(N,))
    return [X, scale], tl.define("y", tl.rms_norm(X[M, N], over=N, epsilon=1e-3) * scale[N], M, N)


def batch_norm() -> Any:
    X, scale, shift = inputs(X=(M, N, K), scale=(N,), shift=(N,))
    mean = tl.define("mean", tl.mean(X[M, N, K], over=(M, K)), N)
    var = tl.define("var", tl.var(X[M, N, K], over=(M, K)), N)
    normal = (X[M, N, K] - mean[N]) * tl.rsqrt(var[N] + 1e-5)
    return [X, scale, shift], tl.define("y", tl.relu(normal * scale[N] + shift[N]), M, N, K)


def cross_entropy() -> Any:
    (X,) = inputs(X=(M, N))
    scores = tl.define("scores", tl.log_softmax(X[M, N], over=N), M, N)
    return [X], tl.define("y", tl.mean(-tl.sum(scores[M, N], over=N, where=N == (M * 2) % 5), over=M))


def attention(causal: bool = False) -> Any:
    q, k, d = tl.axes(q=6, key=6, d=4)
    Q, Ks, V = inputs(Q=(q, d), Ks=(k, d), V=(k, d))
    S = tl.define("S", tl.sum(Q[q, d] * Ks[k, d], over=d) * 0.5, q, k)
    P = tl.define("P", tl.softmax(S[q, k], over=k, where=k <= q if causal else None), q, k)
    return [Q, Ks, V], tl.define("y", tl.sum(P[q, k] * V[k, d], over=k), q, d)


def convolution(stride: int, padding: int, dilation: int = 1) -> Any:
    b, o, c, s, t = tl.axes(b=2, o=3, c=2, s=3, t=3)
    size = (9 + 2 * padding - dilation * 2 - 1) // stride + 1
    p, q = tl.axes(p=size, q=size)
    X, W = tl.input("X", tl.float64, b, c, y=9, x=9), tl.input("W", tl.float64, o, c, s, t)
    read = tl.pad(X[b, c, p * stride + s * dilation - padding, q * stride + t * dilation - padding], 0)
    return [X, W], tl.define("out", tl.sum(read * W[o, c, s, t], over=(c, s, t)), b, o, p, q)


def mlp() -> Any:
    X, W1, b1, W2 = inputs(X=(M, K), W1=(K, H), b1=(H,), W2=(H, N))
    hidden = tl.define("hidden", tl.gelu(tl.sum(X[M, K] * W1[K, H], over=K) + b1[H]), M, H)
    return [X, W1, b1, W2], tl.define("y", tl.sum(hidden[M, H] * W2[H, N], over=H), M, N)


def pooling(overlap: bool) -> Any:
    p, w = tl.axes(p=4, w=3 if overlap else 2)
    X = tl.input("X", tl.float64, M, x=9)
    return [X], tl.define("y", tl.max(X[M, 2 * p + w], over=w), M, p)


def embedding() -> Any:
    t = tl.axes(t=9)
    (table,) = inputs(table=(K, N))
    return [table], tl.define("y", tl.tanh(table[t * 3 % 7, N]), t, N)


def rotary() -> Any:
    (X,) = inputs(X=(M, H))
    angle = tl.cast(M, tl.float64) * 0.1 * tl.cast(H % 4 + 1, tl.float64)
    other = tl.where(H < 4, -X[M, (H + 4) % 8], X[M, (H + 4) % 8])
    return [X], tl.define("y", X[M, H] * tl.cos(angle) + other * tl.sin(angle), M, H)


def group_norm_silu() -> Any:
    g, c = tl.axes(g=2, c=4)
    X = tl.input("X", tl.float64, M, h=8)
    return [X], tl.define("y", tl.silu(tl.layer_norm(X[M, g * 4 + c], over=c)), M, g, c)


def of_batch_norm(x: Any, scale: Any, shift: Any) -> Any:
    return F.relu(F.batch_norm(x, None, None, scale, shift, training=True))


def of_attention(causal: bool) -> Callable[..., Any]:
    return lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal, scale=0.5)[0]


def of_rotary(x: Any) -> Any:
    angle = torch.arange(6, dtype=torch.float64)[:, None] * 0.1 * (torch.arange(8) % 4 + 1)
    return x * torch.cos(angle) + torch.cat((-x[:, 4:], x[:, :4]), 1) * torch.sin(angle)


GRAPHS: dict[str, Graph] = {
    "product": (product, torch.matmul),
    "layer norm": (layer_norm, lambda x, a, b: F.layer_norm(x, (5,), a, b)),
    "rms norm": (rms_norm, lambda x, a: F.rms_norm(x, (5,), a, 1e-3)),
    "batch norm and relu": (batch_norm, of_batch_norm),
    "softmax and loss": (cross_entropy, lambda x: F.cross_entropy(x, torch.arange(6) * 2 % 5)),
    "attention": (attention, of_attention(False)),
    "causal attention": (lambda: attention(True), of_attention(True)),
    "convolution": (lambda: convolution(1, 1), lambda x, w: F.conv2d(x, w, padding=1)),
    "strided convolution": (lambda: convolution(2, 1), lambda x, w: F.conv2d(x, w, stride=2, padding=1)),
    "dilated convolution": (lambda: convolution(3, 2, 2), lambda x, w: F.conv2d(x, w, stride=3, padding=2, dilation=2)),
    "gelu MLP": (mlp, lambda x, w, b, v: F.gelu(x @ w + b) @ v),
    "max pooling": (lambda: pooling(False), lambda x: F.max_pool1d(x[:, None], 2, 2)[:, 0]),
    "overlapping max pooling": (lambda: pooling(True), lambda x: F.max_pool1d(x[:, None], 3, 2)[:, 0]),
    "embedding": (embedding, lambda table: torch.tanh(table[torch.arange(9) * 3 % 7])),
    "rotary embedding": (rotary, of_rotary),
    "group norm and silu": (group_norm_silu, lambda x: F.silu(F.group_norm(x, 2, eps=1e-5)).reshape(6, 2, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_beside_autograd(name: str) -> None:
    """The compiled kernels' values and gradients, in float64."""
    build, theirs = GRAPHS[name]
    wanted, output = build()
    op = operator(output)
    order = [next(n for n, t in enumerate(wanted) if t is i) for i in op.computation.inputs]
    given = tensors(*(t.shape for t in wanted), seed=3)
    found, expected = op(*(given[n] for n in order)), theirs(*given)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
    seed = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    ours = torch.autograd.grad(found, given, seed)
    torch.testing.assert_close(ours, torch.autograd.grad(expected, given, seed), rtol=1e-9, atol=1e-11)


def test_an_output_array_is_returned_itself() -> None:
    i = tl.axes(i=5)
    X = tl.input("X", tl.float32, i)
    twice, half = tl.define("twice", X[i] * 2, i), tl.define("half", X[i] / 2, i)
    x, out, other = torch.arange(5.0), torch.empty(5), torch.empty(5)
    assert tl.compile(twice, target="cpu")(x, out=out) is out and torch.equal(out, x * 2)
    found = tl.compile(tl.computation("both", (twice, half)), target="cpu")(x, out={"half": other})
    assert found.half is other and torch.equal(other, x / 2) and isinstance(found.twice, np.ndarray)
