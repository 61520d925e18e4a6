"""What the targets in C++ make of the kernel IR where they differ from OpenCL: the text, and that its compilers take it."""

from __future__ import annotations

import pytest

import tilelang as tl
from tests.gate.machine_code import compile_for_architecture
from tilelang.core import dtype as dt
from tilelang.core.expr import ANY_FUNCTIONS, FLOAT_FUNCTIONS, Binary, Call, Const, Expr, Select, Var, index
from tilelang.instructions.instruction import fragment, moves
from tilelang.instructions.operand import operand
from tilelang.lowering import ir
from tilelang.lowering.ir import Barrier, Buffer, Copy, Kernel, Load, Program, Stmt, Store, seq
from tilelang.lowering.targets import cuda, hip
from tilelang.lowering.targets.c import emitter
from tilelang.lowering.targets.c.dialect import Dialect

BOTH = pytest.mark.parametrize("dialect", [cuda.DIALECT, hip.DIALECT], ids=lambda d: d.name)
THREAD = Var("thread", dt.int64, 0, 31)


def emitted(body: Stmt, *buffers: Buffer, dialect: Dialect = cuda.DIALECT, **options: object) -> str:
    """The text of a kernel of 32 threads, which the target's compiler takes."""
    kernel = Kernel("k", (1, 1, 1), 32, buffers, body, **options)  # type: ignore[arg-type]
    source = emitter.emit(Program((kernel,), kernel.arguments), dialect)
    compile_for_architecture({"cuda": "sm_80", "hip": "gfx90a"}[dialect.name])(source)
    return source


def floats(name: str, *shape: int, memory: str = "global", type: dt.DType = dt.float32, **more: int) -> Buffer:
    return Buffer(name, type, shape, memory, **more)  # type: ignore[arg-type]


@BOTH
def test_a_vector_is_as_wide_as_its_alignment_is_certain(dialect: Dialect) -> None:
    x, y = floats("x", 256), floats("y", 256)
    stores = (Store(y, (THREAD * 8 + at,), Load(x, (THREAD * 8 + at,), 4)) for at in (0, 1, 2))
    text = emitted(seq(*stores), x, y, dialect=dialect)
    assert "*(float4*)(y + thread * 8) = *(const float4*)(x + thread * 8);" in text
    assert "*(float4_u*)(y + thread * 8 + 1) = *(const float4_u*)(x + thread * 8 + 1);" in text
    assert "typedef vec<float, 4, 4> float4_u;" in text and "typedef vec<float, 4, 8> float4_u8;" in text


@BOTH
def test_vectors_are_made_taken_apart_and_chosen_between(dialect: Dialect) -> None:
    x, y = floats("x", 256), floats("y", 256)
    held = floats("held", 8, memory="register", vector=8)
    value = Load(x, (THREAD * 8,), 8)
    positive: Expr = Select(Binary("<", Const(0.0, dt.float32), value), value, Const(1.0, dt.float32))
    body = seq(
        Store(held, (index(0),), positive),
        Store(held, (index(2),), Load(x, (THREAD * 2,), 2)),
        Store(y, (THREAD * 8,), Load(held, (index(4),), 4)),
        Store(y, (THREAD * 8 + 4,), Load(held, (index(1),))),
    )
    text = emitted(body, x, y, held, dialect=dialect)
    assert (
        "choose(float8(0.0f) < *(const float8_u16*)(x + thread * 8), *(const float8_u16*)(x + thread * 8), float8(1.0f))" in text
    )
    assert "set_part<2>(held, *(const float2*)(x + thread * 2));" in text
    assert "= part<4, 4>(held);" in text and "= held[1];" in text


@BOTH
def test_a_choice_between_two_places_is_one_between_values(dialect: Dialect) -> None:
    """C++ would choose between the places, and keep the registers in memory."""
    x, held = floats("x", 256), floats("held", 4, memory="register", vector=4)
    near = Binary("<", THREAD, index(3))
    body = seq(
        Store(held, (index(0),), Load(x, (THREAD * 4,), 4)),
        Store(x, (THREAD * 4,), Select(near, Load(x, (THREAD * 4,), 4), Load(held, (index(0),), 4))),
        Store(x, (THREAD,), Select(near, Load(x, (THREAD * 4,)), Load(held, (index(1),)))),
    )
    text = emitted(body, x, held, dialect=dialect)
    assert (
        "? float4(*(float4*)(x + thread * 4)) : held" in text.replace("const ", "") and "? (float)x[thread * 4] : held[1]" in text
    )


def test_registers_that_narrower_slots_fill() -> None:
    """Of variables and of arrays alike; a template names them where lanes have whole ones."""
    j = tl.axes(j=8)
    D, S = (operand(n, (dt.float16,), memory, j, fragment=fragment(1, 8, lambda lane, slot: slot)) for n, memory in
            (("D", "register"), ("S", "shared")))  # fmt: skip
    wrapper = "__device__ void brought(unsigned& a, unsigned& b, unsigned& c, unsigned& d, void* s) { a = b = c = d = 0; }\n"
    made = tl.instruction("brought", means=moves(D[j], S[j]), operands=(D, S), level="thread", replace=True,
                          template={"cuda": "brought({D.words}, {S.address});"}, definitions={"cuda": wrapper})  # fmt: skip
    s, y = floats("s", 64, memory="shared", type=dt.float16), floats("y", 64, type=dt.float16)
    held = floats("held", 8, memory="register", type=dt.float16, vector=8)
    array = floats("array", 16, memory="register", type=dt.float16)
    body = seq(
        ir.Instruction(made, (("D", held, (index(0),)), ("S", s, (index(0),)))),
        ir.Instruction(made, (("D", array, (index(8),)), ("S", s, (index(0),)))),
        Store(y, (index(0),), Load(held, (index(0),), 8)),
        Store(y, (index(8),), Load(array, (index(8),), 8)),
    )
    text = emitted(body, y, s, held, array)
    assert "brought(word<0>(held), word<1>(held), word<2>(held), word<3>(held), (s));" in text
    assert "brought(word<0>(array + 8), word<1>(array + 8), " in text
    for types, memory in (((dt.float32,), "register"), ((dt.float16,), "shared")):
        wide = operand("D", types, memory, j, fragment=fragment(1, 8, lambda lane, slot: slot))
        other = operand("S", types, "shared", j, fragment=fragment(1, 8, lambda lane, slot: slot))
        with pytest.raises(tl.ComputationError, match="do not fill registers of 32 bits"):
            tl.instruction("no_words", means=moves(wide[j], other[j]), operands=(wide, other), level="thread",
                           template={"cuda": "f({D.words}, {S.address});"})  # fmt: skip


def test_shared_memory_beyond_what_a_kernel_may_declare() -> None:
    big, small = floats("big", 12288, memory="shared", offset=0), floats("small", 16, memory="shared", offset=49152)
    y = floats("y", 32)
    body = seq(
        Store(big, (THREAD,), Const(1.0, dt.float32)),
        Store(small, (index(0),), Const(2.0, dt.float32)),
        Barrier(("shared",)),
        Store(y, (THREAD,), Load(big, (Binary("-", index(31), THREAD),)) + Load(small, (index(0),))),
    )
    kernel = Kernel("k", (1, 1, 1), 32, (y, big, small), body)
    text = emitted(body, y, big, small)
    assert "extern __shared__ uchar arena[] __attribute__((aligned(1024)));" in text
    assert "float* const small = (float*)(arena + 49152);" in text and "__syncthreads();" in text
    assert emitter.dynamic_shared_bytes(kernel, cuda.DIALECT) == kernel.shared_bytes == 49216
    assert emitter.dynamic_shared_bytes(kernel.replace(buffers=(y, big)), cuda.DIALECT) == 0
    assert emitter.dynamic_shared_bytes(kernel, hip.DIALECT) == 0
    assert "__shared__ float big[12288]" in emitted(body, y, big, small, dialect=hip.DIALECT)


def copies(n: Var) -> tuple[ir.Stmt, Buffer, Buffer]:
    """A copy of 16 bytes a thread, one of which only the first elements exist, one of 4 bytes, and one that is misaligned."""
    x, s = floats("x", 512), floats("s", 512, memory="shared")
    body = seq(
        Copy(s, (THREAD * 4,), x, (THREAD * 4,), 4),
        Copy(s, (THREAD * 4 + 128,), x, (THREAD * 4 + 128,), 4, n),
        Copy(s, (THREAD * 4 + 257,), x, (THREAD * 4 + 257,), 1),
        Copy(s, (THREAD * 4 + 301,), x, (THREAD * 4 + 301,), 4),
        ir.Commit(),
        ir.Wait(1),
        Barrier(("shared",)),
        Store(x, (THREAD,), Load(s, (index(0),))),
    )
    return ir.Seq((ir.Let(n, index(3)), *(body.body if isinstance(body, ir.Seq) else ()))), x, s


def test_asynchronous_copies() -> None:
    body, x, s = copies(Var("n", dt.int64, 0, 4))
    text = emitted(body, x, s)
    assert "async_copy_16(s + thread * 4, x + thread * 4);" in text and "async_commit();" in text and "async_wait<1>();" in text
    assert "async_copy_first_16(s + thread * 4 + 128, x + thread * 4 + 128, n * 4);" in text
    assert "async_copy_4(s + thread * 4 + 257, x + thread * 4 + 257);" in text
    assert "*(float4_u*)(s + thread * 4 + 301) = *(const float4_u*)(x + thread * 4 + 301);" in text.replace(
        "(float4_u*)(x", "(const float4_u*)(x"
    )


def test_copies_that_the_language_does_not_have_are_made_at_once() -> None:
    body, x, s = copies(Var("n", dt.int64, 0, 4))
    text = emitted(body, x, s, dialect=hip.DIALECT)
    assert "async" not in text and "*(float4*)(s + thread * 4) = *(float4*)(x + thread * 4);" in text.replace("const ", "")


def test_copies_compile_for_devices_without_them() -> None:
    body, x, s = copies(Var("n", dt.int64, 0, 4))
    assert [k.name for k in compile_for_architecture("sm_70")(emitted(body, x, s)).compiled.kernels] == ["k"]


@BOTH
def test_streaming_stores(dialect: Dialect) -> None:
    x, y = floats("x", 513), floats("y", 513)
    body = seq(*(Store(y, (THREAD * 16 + at,), Load(x, (THREAD * 16,), 16), streaming=True) for at in (0, 1)))
    text = emitted(body, x, y, dialect=dialect)
    assert "store_streaming(y + thread * 16, " in text and "*(float16_u*)(y + thread * 16 + 1) = " in text


def test_products_that_must_not_be_contracted() -> None:
    x, y = floats("x", 256), floats("y", 256)
    value = Load(x, (THREAD,)) * Load(x, (THREAD + 1,)) + Load(y, (THREAD,))
    wide = Load(x, (THREAD * 4,), 4) * Load(x, (THREAD * 4 + 4,), 4)
    body = seq(Store(y, (THREAD,), value), Store(y, (THREAD * 4,), wide))
    text = emitted(body, x, y, contract=False)
    assert "rounded_product(x[thread], x[thread + 1]) + y[thread]" in text and "rounded_product_float4(" in text
    assert "#pragma clang fp contract(off)" in emitted(body, x, y, dialect=hip.DIALECT, contract=False)
    assert "rounded_product" not in emitted(body, x, y)


@BOTH
def test_exp_under_licence(dialect: Dialect) -> None:
    x = floats("x", 32)
    value = Call("exp", (Load(x, (THREAD,)),))
    assert "= fast_exp(x[thread]);" in emitted(Store(x, (THREAD,), value), x, dialect=dialect, fast_math=("exp",))
    assert "= exp(x[thread]);" in emitted(Store(x, (THREAD,), value), x, dialect=dialect)


def test_a_barrier_for_shared_memory_alone_awaits_nothing_else() -> None:
    s, y = floats("s", 32, memory="shared"), floats("y", 32)
    exchange = (Store(s, (THREAD,), Const(0.0, dt.float32)), Store(y, (THREAD,), Load(s, (index(31) - THREAD,))))
    for memory, hip_text in ((("shared",), "shared_barrier();"), (("global", "shared"), "__syncthreads();")):
        body = seq(exchange[0], Barrier(memory), exchange[1])
        assert f"\n    {hip_text}\n" in emitted(body, s, y, dialect=hip.DIALECT)
        assert "\n    __syncthreads();\n" in emitted(body, s, y)


@BOTH
def test_loops_with_barriers_stay_loops_where_the_compiler_would_write_them_out(dialect: Dialect) -> None:
    s, y = floats("s", 32, memory="shared"), floats("y", 32)
    k = Var("k", dt.int64, 0, 3)
    inner = seq(Store(s, (THREAD,), Load(y, (THREAD,))), Barrier(("shared",)), Store(y, (THREAD,), Load(s, (index(0),))))
    body = seq(ir.For(k, index(4), seq(inner, Barrier(("shared",)))), ir.For(k, index(4), Store(y, (k,), Const(0.0, dt.float32))))
    text = emitted(body, s, y, dialect=dialect)
    assert text.count("#pragma nounroll") == (dialect.name == "hip") and text.count("for (int k = ") == 2


@BOTH
def test_prefetches(dialect: Dialect) -> None:
    x = floats("x", 256)
    text = emitted(seq(ir.Prefetch(x, (THREAD * 4,)), Store(x, (THREAD,), Const(0.0, dt.float32))), x, dialect=dialect)
    assert "prefetch_l2(x + thread * 4);" in text


@BOTH
def test_names_that_the_language_or_the_headers_have(dialect: Dialect) -> None:
    names = ("class", "template", "threadIdx", "vec", "choose", "fast_exp", "float4", "sqrt", "tilelang", "uint")
    buffers = [floats(name, 32) for name in names]
    text = emitted(seq(*(Store(b, (THREAD,), Call("sqrt", (Load(b, (THREAD,)),))) for b in buffers)), *buffers, dialect=dialect)
    assert all(f"{name}_[thread] = sqrt({name}_[thread]);" in text for name in names)


@BOTH
def test_the_table_of_errors_covers_every_function(dialect: Dialect) -> None:
    assert set(emitter.ulps(dialect)) >= {*FLOAT_FUNCTIONS, *ANY_FUNCTIONS, "pow", "/"} - {"sigmoid"}


@pytest.mark.parametrize(("dialect", "profile"), [("cuda", "ampere"), ("hip", "cdna2")])
def test_targets(dialect: str, profile: str) -> None:
    i = tl.axes(i=64)
    twice = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    kernel = tl.compile(twice, target=tl.target(dialect, profile=profile))
    assert str(kernel.target) == f"{dialect} for {profile}" and 'extern "C" __global__ void __launch_bounds__(' in kernel.source
