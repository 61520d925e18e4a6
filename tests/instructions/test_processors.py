"""Processors' instructions: in machine code where they are, in plain C where they are not, and right as both and in the simulator."""

from __future__ import annotations

import ctypes
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from benchmarks.processor_products import here, packed, product, tiled, with_instructions
from tests.instructions.kernels import PROCESSORS, SHIPPED
from tilelang.errors import Refusal
from tilelang.instructions.instruction import Instruction, use
from tilelang.instructions.template import in_arrays
from tilelang.lowering import ir
from tilelang.lowering.compilers import native
from tilelang.lowering.drivers import extensions
from tilelang.lowering.passes.scalar_replacement import replace_by_scalars
from tilelang.lowering.pipeline import lower
from tilelang.semantics.reference import compare, integer_arrays, random_arrays

OURS = [i for i in SHIPPED if "cpu" in i.dialects and i.needs]
PLAIN = {"x86_64": "x86-64", "aarch64": "cortex-a72@aarch64-linux"}  # processors of the oldest kinds, which have none of these
SIZES = [(17, 37, 11), (5, 4, 0), (33, 50, 300)]


def schedule(made: Instruction, size: tuple[int, int, int]) -> tl.Schedule:
    """A small product by an instruction."""
    c, shape = product(size, made.name), made.shape
    if in_arrays(made):
        several = 1 if shape["m"] > 16 else 2
        return tiled(c, made.name, m=shape["m"], n=several * shape["n"], k=several * shape["k"])
    return packed(c, made.name, n=4 * shape["n"], k=8 * shape["k"], rows=4, columns=2 * shape["n"])


def target(made: Instruction, device: bool = False) -> tl.Target:
    """One that has the instruction; device: and is the processor here."""
    known = tl.target("cpu") if device else tl.target("cpu", profile="neon" if made.name.startswith("arm") else "avx512")
    return with_instructions(known, *made.needs)


def run(kernel: tl.Kernel, architecture: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """What the kernel's text gives as machine code for a processor of which this is one."""
    code = native.compile_source(kernel.source, architecture).code
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.so"
        path.write_bytes(code)
        library = ctypes.CDLL(str(path))
    (made,) = kernel.program.kernels
    given = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    outputs = {t.name: np.full(t.shape, 77, t.dtype.numpy) for t in kernel.computation.outputs}
    buffers = [{**given, **outputs}[b.name] for b in made.arguments]
    addresses = (ctypes.c_void_p * len(buffers))(*(b.ctypes.data for b in buffers))
    scratch = np.zeros(made.shared_bytes + 64, np.uint8)
    begin = -scratch.ctypes.data % 64 + scratch.ctypes.data
    count = int(np.prod(made.grid))
    getattr(library, made.name)(addresses, ctypes.c_void_p(begin), ctypes.c_longlong(0), ctypes.c_longlong(count))
    return outputs


@pytest.mark.parametrize("made", OURS, ids=lambda i: i.name)
def test_it_is_in_machine_code_where_it_is(made: Instruction) -> None:
    has, lacks, mnemonic = PROCESSORS[made.needs[0]]
    source = tl.compile(schedule(made, (32, 64, 512)), target=target(made)).source
    name = next(part for part in made.name.split("_")[1:] if mnemonic in part)
    assert f"\t{name}\t" in native.assembly(source, has)
    assert lacks is not None and f"\t{name}\t" not in native.assembly(source, lacks)


@pytest.mark.parametrize("architecture", ["znver4", "sapphirerapids"])
@pytest.mark.parametrize("name", ["x86_vdpbf16ps", "x86_vpdpbusd"])
def test_factors_come_from_memory_and_sums_stay_in_registers(name: str, architecture: str) -> None:
    """In the innermost loop of 6 x 64 sums: four rounds of 24 instructions, and nothing on the stack."""
    made = tl.compile(packed(product((60, 128, 256), name), name, 128, 256), target=target(use(name)))
    mnemonic = f"\t{name.removeprefix('x86_')}\t"
    (inner,) = (part for part in native.assembly(made.source, architecture).split("\n.LBB") if mnemonic in part)
    first, last = inner.index(mnemonic), inner.rindex(mnemonic)
    assert inner.count(mnemonic) == 96 and "(%rsp)" not in inner[first:last] and "vpinsr" not in inner


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("made", OURS, ids=lambda i: i.name)
def test_products_in_plain_c(made: Instruction, size: tuple[int, int, int]) -> None:
    """The text as this kind of processor of the oldest sort runs it, within the bound, and to the bit on small integers."""
    kernel = tl.compile(schedule(made, size), target=target(made))
    for arrays, exactly in ((random_arrays(kernel.computation, 3), False), (integer_arrays(kernel.computation, 4), True)):
        results = run(kernel, PLAIN[platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")], arrays)
        ulps = kernel.schedule.error_ulps
        assert compare(kernel.computation, arrays, results, exactly=exactly, error_ulps=ulps)


@pytest.mark.parametrize("made", [i for i in OURS if i.shape.get("m", 1) <= 16], ids=lambda i: i.name)
def test_products_in_the_simulator(made: Instruction) -> None:
    kernel = tl.compile(schedule(made, (5, 20, 11)), target=target(made))
    assert tl.simulate(kernel).findings == ()
    assert kernel.computation.check(lambda arrays: tl.simulate(kernel, **arrays).outputs)


@pytest.mark.parametrize("made", [i for i in OURS if i.unavailable(here().profile) is None], ids=lambda i: i.name)
def test_products_by_the_instruction_itself(made: Instruction) -> None:
    """On the processor here, which has it: right, and in float32 the same bits as in plain C."""
    kernel = tl.compile(schedule(made, (33, 50, 300)), target=target(made, device=True))
    assert kernel.check()
    arrays = random_arrays(kernel.computation, 5)
    plain = run(kernel, PLAIN["x86_64" if made.name.startswith("x86") else "aarch64"], arrays)["C"]
    if made.name != "arm_bfmmla" and "tdpbf16ps" not in made.name:  # these round otherwise
        assert np.array_equal(kernel(**arrays).view(np.uint32), plain.view(np.uint32))


def test_bytes_are_not_saturated() -> None:
    """255 * 127 four times is beyond 16 bits, and sums beyond 32 bits wrap as the language's do."""
    kernel = tl.compile(schedule(use("x86_vpdpbusd"), (4, 32, 128)), target=target(use("x86_vpdpbusd")))
    arrays: dict[str, Any] = {"A": np.full((4, 128), 255, np.uint8), "B": np.full((128, 32), -128, np.int8)}
    for architecture in [PLAIN["x86_64"]] if platform.machine() == "x86_64" else []:
        assert (run(kernel, architecture, arrays)["C"] == -255 * 128 * 128).all()
    assert (tl.simulate(kernel, arrays["A"], arrays["B"]).outputs["C"] == -255 * 128 * 128).all()


def test_a_processor_without_it_refuses() -> None:
    with pytest.raises(Refusal) as caught:
        tl.compile(schedule(use("x86_vdpbf16ps"), (16, 48, 64)), target=tl.target("cpu", profile="avx2"))
    assert caught.value.code == "instruction-not-here" and "avx512_bf16" in caught.value.message


def test_vectors_wider_than_a_vector_of_the_language_are_joined() -> None:
    kernel = tl.compile(schedule(use("x86_vpdpbusd"), (16, 48, 64)), target=target(use("x86_vpdpbusd")))
    assert "joined64(joined32(B_register_0_0, B_register_0_1), joined32(B_register_0_2, B_register_0_3))" in kernel.source


def test_sums_whose_address_is_taken_stay_an_array() -> None:
    made = use("x86_tdpbf16ps")
    plan = schedule(made, (16, 16, 32))
    (kernel,) = lower(plan.computation, plan.steps, target(made).profile).kernels
    (state,) = (b for b in kernel.registers if b.name.startswith("C"))
    assert in_arrays(made) == {"C"} and state.vector == 0
    assert all(b.vector == 0 for b in replace_by_scalars(kernel).registers if b is state)
    assert any(isinstance(s, ir.Instruction) for s in ir.statements(kernel.body))


@pytest.mark.parametrize(
    ("flags", "tiles", "found"),
    [
        ("sse2 avx512f avx512vl avx512_bf16 avx512_vnni", False, ("avx512_bf16", "avx512_vnni")),
        ("avx512f avx512_vnni", False, ()),
        ("amx_tile amx_int8 amx_bf16", True, ("amx_bf16", "amx_int8")),
        ("amx_tile amx_int8 amx_bf16", False, ()),
        ("fp asimd asimddp bf16", False, ("arm_bf16", "arm_dotprod")),
        ("", True, ()),
    ],
)
def test_flags_of_a_processor_are_capabilities(flags: str, tiles: bool, found: tuple[str, ...]) -> None:
    assert extensions.capabilities(flags.split(), tiles) == found


def test_every_capability_is_some_instruction_s_need() -> None:
    assert {name for _, name in extensions.CAPABILITIES} == {need for made in OURS for need in made.needs} == set(PROCESSORS)


def test_asking_for_tiles_harms_nobody() -> None:
    """Where the processor has none, or the system is another, it says no."""
    assert extensions.allow_tiles() in (True, False)
    if not any(need.startswith("amx") for need in here().profile.capabilities):
        assert not extensions.allow_tiles()
