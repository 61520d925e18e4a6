"""The emitter, by what its kernels do to memory on the OpenCL device here, and by how its text looks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.lowering.c_family_cases import assert_same, run, splat
from tilelang.core import dtype as dt
from tilelang.core.expr import ANY_FUNCTIONS, FLOAT_FUNCTIONS, Binary, Cast, Const, Expr, Var, index
from tilelang.errors import Span
from tilelang.grammar import parse
from tilelang.lowering import ir
from tilelang.lowering.drivers.processor import processor
from tilelang.lowering.ir import Barrier, Buffer, For, If, Kernel, Let, Load, Pack, Prefetch, Program, Seq, Store, seq
from tilelang.lowering.targets import opencl
from tilelang.lowering.targets.c import emitter, headers
from tilelang.lowering.targets.c.emitter import emit
from tilelang.lowering.targets.c.functions import ULPS
from tilelang.lowering.targets.dialects import DIALECTS

# The extensions of the processor here, and of older ones, whose masked accesses are others.
_HERE = processor()
OTHER_EXTENSIONS = [
    pytest.param((), id="here"),
    *(
        pytest.param(
            (f"-march={level}",), id=level, marks=pytest.mark.skipif(not runs, reason=f"the processor here does not run {level}")
        )
        for level, runs in (
            ("x86-64-v3", _HERE.machine == "x86_64" and _HERE.vector_bytes >= 32),
            ("x86-64", _HERE.machine == "x86_64"),
        )
    ),
]

# ---------------------------------------------------------------- memory


@pytest.mark.parametrize(
    "type",
    [
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "float8_e4m3",
        "float8_e5m2",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "bool",
    ],
)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("options", OTHER_EXTENSIONS)
def test_partial_loads_and_stores_touch_only_what_exists(type: str, lanes: int, options: tuple[str, ...]) -> None:
    t = dt.dtype(type)
    count = np.concatenate([np.arange(-1, lanes + 2), [lanes]]).astype(np.int32)
    rounds = len(count)
    x = np.random.default_rng(1).integers(0, 2 if t.kind == "bool" else 100, rounds * lanes).astype(t.numpy)
    counts = Buffer("counts", dt.int32, (rounds,), "global", "input")
    source, loaded, stored = (Buffer(n, t, (rounds, lanes), "global", "input") for n in ("source", "loaded", "stored"))
    i, n = Var("i", dt.int64, 0, rounds - 1), Var("n", dt.int64, -1, lanes + 2)
    fill = Const(True, t) if t.kind == "bool" else Const(3.0 if t.is_float else 3, t)
    body = seq(
        Let(n, Cast(Load(counts, (i,)), dt.int64)),
        Store(loaded, (i, index(0)), Load(source, (i, index(0)), lanes, n, fill)),
        Store(stored, (i, index(0)), Load(source, (i, index(0)), lanes), n),
    )
    arrays = {"counts": count, "source": x, "loaded": np.zeros(x.shape, t.numpy), "stored": np.zeros(x.shape, t.numpy)}
    run(Kernel("partial", (1, 1, 1), 1, (counts, source, loaded, stored), For(i, index(rounds), body)), arrays, options)
    exists = np.arange(lanes)[None, :] < count[:, None]
    assert_same(
        arrays["loaded"].reshape(rounds, lanes), np.where(exists, x.reshape(rounds, lanes), np.asarray(fill.value, t.numpy))
    )
    assert_same(arrays["stored"].reshape(rounds, lanes), np.where(exists, x.reshape(rounds, lanes), np.zeros((), t.numpy)))


@pytest.mark.parametrize("options", OTHER_EXTENSIONS)
@pytest.mark.parametrize("type", ["float32", "float64", "bfloat16", "uint8", "int64"])
def test_the_ends_of_an_allocation_are_safe(type: str, options: tuple[str, ...]) -> None:
    """Masked access next to memory that does not belong to the process: a fault would end the test run."""
    import mmap

    page = mmap.PAGESIZE
    area = mmap.mmap(-1, 2 * page)
    import ctypes

    libc = ctypes.CDLL(None)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    assert libc.mprotect(ctypes.c_void_p(address + page), page, 0) == 0
    t = dt.dtype(type)
    tail = np.frombuffer(area, t.numpy, 5, page - 5 * t.numpy.itemsize)
    tail[:] = [1, 2, 3, 4, 5]
    x, y = Buffer("x", t, (5,), "global", "input"), Buffer("y", t, (5,), "global", "output")
    fill = Const(0.0 if t.is_float else 0, t)
    for lanes in (4, 8, 16):
        count, first = (index(5), index(0)) if lanes > 4 else (index(3), index(2))
        for source, place, target, to in (
            (x, first, y, index(0)),
            (x, index(0), y, first),
            (y, first, x, index(0)),
            (y, index(0), x, first),
        ):
            arrays = {"x": tail, "y": np.arange(6, 11).astype(t.numpy)}
            expected = arrays[target.name].copy()
            size, start, end = int(count.value), int(place.value), int(to.value)
            expected[end : end + size] = arrays[source.name][start : start + size]
            body = Store(target, (to,), Load(source, (place,), lanes, count, fill), count)
            run(Kernel("tail", (1, 1, 1), 1, (source, target), body), arrays, options)
            assert_same(arrays[target.name], expected)


def test_promoted_registers_are_read_and_written_in_parts() -> None:
    x = np.arange(64, dtype=np.float32)
    source, out = Buffer("source", dt.float32, (64,), "global", "input"), Buffer("out", dt.float32, (64,), "global", "output")
    wide = Buffer("wide", dt.float32, (2, 32), "register", vector=8)
    single = Buffer("single", dt.float32, (4,), "register", vector=1)
    body = seq(
        *(Store(wide, (index(r), index(0)), Load(source, (index(r * 32),), 16)) for r in range(2)),
        *(
            Store(wide, (index(r), index(16 + 4 * v)), Load(source, (index(r * 32 + 16 + 4 * v),), 4))
            for r in range(2)
            for v in range(4)
        ),
        Store(single, (index(0),), Load(wide, (index(1), index(6)), 4)),
        Store(out, (index(0),), Load(wide, (index(0), index(4)), 16)),
        Store(out, (index(16),), Load(single, (index(0),), 4)),
        Store(out, (index(20),), Load(wide, (index(1), index(31)))),
        Store(wide, (index(0), index(0)), splat(Const(9.0, dt.float32), 8), index(3)),
        Store(out, (index(24),), Load(wide, (index(0), index(0)), 8)),
    )
    result = np.zeros(64, np.float32)
    text = run(Kernel("parts", (1, 1, 1), 1, (source, out, wide, single), body), {"source": x, "out": result})
    assert_same(result[:16], x[4:20])
    assert_same(result[16:21], np.append(x[38:42], x[63]))
    assert_same(result[24:32], np.array([9, 9, 9, 3, 4, 5, 6, 7], np.float32))
    assert "float8 wide_0_0" in text and "single_3" in text and "wide[" not in text


def test_a_variable_that_carries_a_value_round_a_loop_is_declared_outside() -> None:
    """The first store stands under a condition, so the loop's body must not be its scope."""
    out = Buffer("out", dt.float32, (4,), "global", "output")
    state = Buffer("state", dt.float32, (1,), "register", vector=1)
    i = Var("i", dt.int64, 0, 3)
    load = Load(state, (index(0),))
    body = seq(
        If(Binary("==", i, index(0)), Store(state, (index(0),), Const(1.0, dt.float32))),
        Store(state, (index(0),), load + load),
        Store(out, (i,), load),
    )
    result = np.zeros(4, np.float32)
    run(Kernel("carry", (1, 1, 1), 1, (out, state), For(i, index(4), body)), {"out": result})
    assert_same(result, np.array([2, 4, 8, 16], np.float32))


@pytest.mark.parametrize("overlap", [False, True])
def test_shared_memory_and_barriers(overlap: bool) -> None:
    """Threads hand values to their neighbours, through two buffers that may lie in the same bytes."""
    x = np.arange(32, dtype=np.float32)
    source, out = Buffer("source", dt.float32, (32,), "global", "input"), Buffer("out", dt.float32, (32,), "global", "output")
    first = Buffer("first", dt.float32, (32,), "shared", offset=0)
    second = Buffer("second", dt.float32, (32,), "shared", offset=0 if overlap else 128)
    t, held = Var("thread", dt.int64, 0, 31), Buffer("held", dt.float32, (1,), "register", vector=1)
    met = Barrier(("shared",), ("first[thread] written, read by another thread",))
    body = seq(
        Store(first, (t,), Load(source, (t,))), met,
        Store(held, (index(0),), Load(first, (Binary("%", t + 1, index(32)),))), met,
        Store(second, (t,), Load(held, (index(0),)) * Const(2.0, dt.float32)), met,
        Store(out, (t,), Load(second, (Binary("%", t + 1, index(32)),))),
    )  # fmt: skip
    result = np.zeros(32, np.float32)
    kernel = Kernel("ring", (1, 1, 1), 32, (source, out, first, second, held), body)
    text = run(kernel, {"source": x, "out": result})
    assert_same(result, 2 * np.roll(x, -2))
    assert text.count("float* restrict") == (3 if overlap else 5), "arrays that share bytes may alias"
    assert text.count("for (") == 5, "a loop over blocks, and four over threads: between three barriers, before and behind"
    text = emit(Program((kernel,), kernel.arguments), opencl.DIALECT)
    assert ("uchar arena[128]" in text) == overlap
    assert text.count("barrier(CLK_LOCAL_MEM_FENCE);  // first[thread] written") == 3


def test_private_arrays_streaming_stores_and_prefetches() -> None:
    x = np.arange(48, dtype=np.float32)
    source, out = Buffer("source", dt.float32, (48,), "global", "input"), Buffer("out", dt.float32, (49,), "global", "output")
    kept = Buffer("kept", dt.float32, (3, 16), "register")
    i = Var("i", dt.int64, 0, 2)
    body = seq(
        For(i, index(3), seq(Prefetch(source, (i * 16 + 1000000,)), Store(kept, (i, index(0)), Load(source, (i * 16,), 16)))),
        For(i, index(3), Store(out, (i * 16 + 1,), Load(kept, (Binary("-", index(2), i), index(0)), 16), streaming=True)),
        For(i, index(1), Store(out, (i,), Load(kept, (i, index(5))), streaming=True)),
    )
    result = np.zeros(49, np.float32)
    text = run(Kernel("reversed", (1, 1, 1), 1, (source, out, kept), body), {"source": x, "out": result})
    assert_same(result, np.concatenate([x[5:6], x.reshape(3, 16)[::-1].ravel()]))
    assert "__builtin_nontemporal_store" in text and "__builtin_prefetch(source + i * 16 + 1000000)" in text


def test_the_grid_and_zero_extents() -> None:
    out = Buffer("out", dt.int32, (2, 3, 4), "global", "output")
    z, y, x = (Var(f"block_{d}", dt.int64, 0, n - 1) for d, n in zip("zyx", (2, 3, 4), strict=True))
    result = np.zeros(24, np.int32)
    body = Store(out, (z, y, x), Cast(z * 100 + y * 10 + x, dt.int32))
    run(Kernel("grid", (4, 3, 2), 1, (out,), body), {"out": result})
    assert_same(result.reshape(2, 3, 4), np.fromfunction(lambda a, b, c: a * 100 + b * 10 + c, (2, 3, 4), dtype=np.int32))
    run(Kernel("grid", (0, 3, 2), 1, (out,), body), {"out": (untouched := np.ones(24, np.int32))})
    assert untouched.all(), "no block: nothing is stored"


def test_contraction_follows_the_kernel() -> None:
    a = np.float32(1 + 2.0**-12)
    x = np.full(16, a, np.float32)
    out = Buffer("out", dt.float32, (16,), "global", "output")
    source = Buffer("x", dt.float32, (16,), "global", "input")
    v = Load(source, (index(0),), 16)
    kernel = Kernel(
        "rounding", (1, 1, 1), 1, (source, out), Store(out, (index(0),), v * v - Const(float(a * a), dt.float32)), contract=False
    )
    result = np.ones(16, np.float32)
    run(kernel, {"x": x, "out": result})
    assert_same(result, np.zeros(16, np.float32))


# ---------------------------------------------------------------- text


def _text(body: ir.Stmt, *buffers: Buffer, lines: bool = False, **fields: Any) -> str:
    kernel = Kernel("k", (1, 1, 1), 1, buffers, body, **fields)
    return emitter.emit(Program((kernel,), kernel.arguments), opencl.DIALECT, lines)


def test_names_give_way_to_the_language_and_to_helpers() -> None:
    buffers = [
        Buffer(n, dt.float32, (4,), "global", "input")
        for n in ("kernel", "float4", "exp", "maximum_float", "a-b", "a_b", "acc_1")
    ]
    acc = Buffer("acc", dt.float32, (2,), "register", vector=1)
    out = Buffer("out", dt.float32, (4,), "global", "output")
    i = Var("out", dt.int64, 0, 3)
    total: Expr = Load(buffers[0], (i,))
    for b in buffers[1:]:
        total = Binary("max", total, Load(b, (i,)))
    body = seq(
        *(Store(acc, (index(j),), Const(float(j), dt.float32)) for j in range(2)),
        For(i, index(4), Store(out, (i,), total + Load(acc, (index(1),)))),
    )
    arrays = {b.name: np.full(4, k, np.float32) for k, b in enumerate(buffers)} | {"out": np.zeros(4, np.float32)}
    run(Kernel("main", (1, 1, 1), 1, (*buffers, out, acc), body), arrays)
    assert_same(arrays["out"], np.full(4, 7, np.float32))


def test_variables_of_one_name_in_nested_loops_stay_apart() -> None:
    out = Buffer("out", dt.int32, (2, 3), "global", "output")
    outer, inner = Var("i", dt.int64, 0, 1), Var("i", dt.int64, 0, 2)
    body = For(outer, index(2), For(inner, index(3), Store(out, (outer, inner), Cast(outer * 10 + inner, dt.int32))))
    result = np.zeros(6, np.int32)
    run(Kernel("k", (1, 1, 1), 1, (out,), body), {"out": result})
    assert_same(result.reshape(2, 3), np.array([[0, 1, 2], [10, 11, 12]]))


def test_lines_lead_to_the_schedule() -> None:
    out = Buffer("out", dt.float32, (4,), "global", "output")
    zero = Const(0.0, dt.float32)
    body = Seq((Store(out, (index(0),), zero, span=Span("gemm.py", 12)), Store(out, (index(1),), zero, span=Span("gemm.py", 14))))
    assert '#line 12 "gemm.py"\n    out[0] = 0.0f;\n#line 14 "gemm.py"\n    out[1] = 0.0f;' in _text(body, out, lines=True)
    assert "#line" not in _text(body, out)


@pytest.mark.parametrize("lines", [False, True])
def test_every_statement_knows_its_lines(lines: bool) -> None:
    i, j = tl.axes(i=40, j=64)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)  # a kernel of its own
    y = tl.define("Y", tl.exp(X[i, j] - peak[i]), i, j)
    plan = tl.schedule(y).tile(i=32, j=32).to(tl.block).load("X", tl.shared).tile(i=1, j=4).to(tl.thread).vectorize(j=4)
    program = tl.compile(plan, target=tl.target("opencl", profile="sapphire_rapids")).program
    text, places = emitter.emit_placed(program, opencl.DIALECT, lines)
    assert text == emit(program, opencl.DIALECT, lines) and len(places) == len(program.kernels) == 2
    written = text.split("\n")
    for kernel, at in zip(program.kernels, places, strict=True):
        numbered = list(ir.statements(kernel.body))
        assert len(at) == len(numbered)
        for stmt, own in zip(numbered, at, strict=True):
            shown = [written[n].strip() for n in own if not written[n].startswith("#line")]
            match stmt:
                case For(var=var):
                    assert f"{var.name}" in shown[0] and shown[-1].startswith("}")
                case If():
                    assert shown[0].startswith("if (") and shown[-1] == "}"
                case Barrier():
                    assert not shown if kernel.threads == 1 else [s[:8] for s in shown] == ["barrier("]
                case Store(buffer=buffer):
                    assert len(shown) >= 1 and buffer.name in shown[-1]


def test_a_whole_text() -> None:
    A = Buffer("A", dt.float32, (8, 16), "global", "input")
    C = Buffer("C", dt.float32, (8, 16), "global", "output")
    acc = Buffer("acc", dt.float32, (16,), "register", vector=16)
    i = Var("i", dt.int64, 0, 7)
    body = seq(
        Store(acc, (index(0),), Pack((Const(0.0, dt.float32),) * 16)),
        For(i, index(8), Store(acc, (index(0),), Load(acc, (index(0),), 16) + Load(A, (i, index(0)), 16))),
        Store(C, (index(0), index(0)), Load(acc, (index(0),), 16)),
    )
    assert (
        _text(body, A, C, acc)
        == """\
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));

// 1 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k(
    __global const float* restrict A,
    __global float* restrict C)
{
    float16 acc = (float16)(0.0f);
    for (int i = 0; i < 8; ++i) {
        acc = acc + *(__global const float16_u*)(A + i * 16);
    }
    *(__global float16_u*)(C) = acc;
}
"""
    )


@pytest.mark.parametrize(("threads", "read"), [(1, "*(A + i * 16 + j + 3)"), (2, "A[i * 16 + j + 3]")])
def test_terms_of_an_offset_are_added_to_the_pointer_one_by_one_in_a_task_of_a_processor(threads: int, read: str) -> None:
    A = Buffer("A", dt.float32, (8, 16), "global", "input")
    C = Buffer("C", dt.float32, (8,), "global", "output")
    i, j = Var("i", dt.int64, 0, 7), Var("j", dt.int64, 0, 11)
    body = For(i, index(8), For(j, index(12), Store(C, (i,), Load(A, (i, j + 3)))))
    assert f"C[i] = {read};" in emitter.emit(Program((Kernel("k", (1, 1, 1), threads, (A, C), body),), (A, C)), opencl.DIALECT)


@pytest.mark.parametrize(
    "file", ["a\nint evil;.tile", "a\r\nint evil;", "evil\\", "evil??/", 'evil" \\"', "\u2028evil */ /*", "é evil"]
)
def test_names_of_files_stay_in_their_line(file: str) -> None:
    text = "computation f { input X: float32[i: 8, j: 8] output Y[j] = sum[i] X[i, j] }"
    text += " schedule for f { tile j=4 -> block split i=4 load X in shared tile j=1 -> thread }"
    kernel = tl.compile(parse(text, file).schedule())
    plain = tl.compile(parse(text, "plain").schedule())
    for lines in (False, True):
        evil, good = (emit(k.program, opencl.DIALECT, lines=lines).splitlines() for k in (kernel, plain))
        assert len(evil) == len(good)
        code = [line.split("//")[0] for line in evil if not line.startswith("#line")]
        assert code == [line.split("//")[0] for line in good if not line.startswith("#line")]
        assert all(not line.endswith(("\\", "??/")) for line in evil)
    assert kernel.check()


def test_asynchronous_copies_land_at_once() -> None:
    """Where the language has none; what does not exist becomes 0, as in the copy."""
    x, y = Buffer("x", dt.float32, (4,), "global", "input"), Buffer("y", dt.float32, (4,), "shared")
    some = Var("some", dt.int64, 0, 4)
    copies = [ir.Copy(y, (index(0),), x, (index(0),), 4), ir.Copy(y, (index(0),), x, (index(0),), 4, some)]
    copies += [ir.Copy(y, (index(1),), x, (index(1),), 1), ir.Copy(y, (index(1),), x, (index(1),), 1, some)]
    text = _text(ir.Seq((ir.Let(some, index(3)), *copies, ir.Commit(), ir.Wait(0))), x, y)
    assert text.count("y[1] = x[1];") == 1 and "y[1] = 0 < some ? x[1] : 0.0f;" in text and "load_first" in text


def test_the_table_of_errors_covers_every_function() -> None:
    stated = emitter.ulps(opencl.DIALECT)
    assert set(stated) >= {*FLOAT_FUNCTIONS, *ANY_FUNCTIONS, "pow", "/"}
    assert all(stated[name] == ULPS[name] for name in opencl.DIALECT.own["float"])


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: str(dialect.name))
def test_what_headers_are_for_is_found_in_the_different_words_of_a_text(dialect: emitter.Dialect) -> None:
    text = (
        "".join(header for _, header in dialect.headers) + "float4 x4 =min(vec<float, 4>(2), as_int4(joined8(a,b))); double y;\n"
    )
    for pattern, _ in dialect.headers:
        if " " not in pattern and pattern.startswith(r"\b"):
            found = sorted({match.groups() for match in re.finditer(pattern, text)})
            assert headers._matches(pattern, headers._words(text)) == found


def test_places_of_numbers_alone_may_take_64_bits() -> None:
    """Three gigabytes are reserved, and only the pages at the end of each row are touched."""
    n = 2**30
    a, j = tl.axes(a=3, j=5)
    z, chosen = np.zeros((3, n), np.uint8), np.array([1, 0, 1, 0, 1], np.int8)
    z[:, -5:] = np.arange(15).reshape(3, 5)
    Z, C = tl.input("Z", tl.uint8, a=3, b=n), tl.input("C", tl.int8, j)
    total = tl.define("total", tl.sum(Z[a, j + (n - 5)], over=a), j)
    rows = tl.define("rows", Z[tl.where(C[j] > 0, 2, 0), j + (n - 5)], j)
    assert tl.compile(tl.schedule(total).split(a=1, unroll=True), target="cpu")(z).tolist() == [15, 18, 21, 24, 27]
    assert tl.compile(tl.schedule(rows), target="cpu")(Z=z, C=chosen).tolist() == [10, 1, 12, 3, 14]
