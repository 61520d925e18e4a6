"""Exports: C programs are built from them and run without Python, and what cannot be exported is refused with the reason."""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from benchmarks.processor_products import product as tile_product
from benchmarks.processor_products import tiled, with_instructions
from tests.export.programs import STRICT, built, compiler, inputs_of, outputs_of
from tests.machines.running import starter
from tests.test_examples import load
from tilelang.computations.computation import computation
from tilelang.errors import DeviceError
from tilelang.instructions.instruction import use
from tilelang.lowering.compilers import native
from tilelang.semantics.reference import compare

ARM = "neoverse-v2@aarch64-linux"


def product(M: int = 37, N: int = 45, K: int = 29) -> tl.Kernel:
    """Packed panels in a block's scratch, several blocks, tails everywhere."""
    example = load("01_matmul")
    return tl.compile(example.gemm_cpu(example.matmul(M, N, K), 16, 32, 8, 4, 16), target="cpu")


def split_sum() -> tl.Kernel:
    """Two kernels with a workspace between them."""
    kernel: tl.Kernel = tl.compile(load("07_split_reduction").schedules(3, 70_001)["cpu"], target="cpu")
    assert len(kernel.program.kernels) == 2 and any(b.role == "workspace" for b in kernel.program.buffers)
    return kernel


def threads_of_blocks() -> tl.Kernel:
    """Blocks of many threads with barriers."""
    return tl.compile(load("08_softmax").schedules(19, 301)["softmax_rows"], target="cpu")


def several_types() -> tl.Kernel:
    """Several outputs of several types, names that C and its headers have, and an index with a range."""
    i, j = tl.axes(i=23, j=7)
    x = tl.input("errno", tl.float16, i, j)
    rows = tl.input("template", tl.int32, i, range=(0, 11))
    table = tl.input("table", tl.bfloat16, *tl.axes(r=11, j=7))
    keep = tl.input("keep", tl.bool, i)
    a = tl.define("half", tl.cast(tl.cast(x[i, j], tl.float32) * 0.5, tl.float16), i, j)
    b = tl.define("printf", tl.where(keep[i], tl.cast(table[rows[i], j], tl.float32), 0.0), i, j)
    c = tl.define("positive", x[i, j] > 0, i, j)
    d = tl.define("wide", tl.minimum(tl.cast(rows[i], tl.int64) * 3, tl.cast(5, tl.int64)), i)
    e = tl.define("byte", tl.cast(tl.cast(x[i, j], tl.float32), tl.float8_e4m3), i, j)
    return tl.compile(computation("types", (a, b, c, d, e)), target="cpu")


KERNELS = {"product": product, "split_sum": split_sum, "softmax": threads_of_blocks, "types": several_types}


@pytest.mark.parametrize("name", KERNELS)
def test_a_program_in_c_gives_what_the_reference_gives(name: str, tmp_path: Path) -> None:
    """With each library, and with the launcher's text without threads; all of it passes the compiler's warnings."""
    kernel = KERNELS[name]()
    kernel.export(tmp_path, name)
    ways = (
        ["main.c", f"lib{name}.a"],
        ["main.c", "-L.", f"-l{name}", "-Wl,-rpath,$ORIGIN"],
        ["main.c", f"{name}_launch.c", f"lib{name}.a", f"-D{name.upper()}_NO_THREADS"],
    )
    sums = set()
    for linked in ways:
        program = built(tmp_path, *linked)
        for threads in (1, 3):
            printed, outputs = outputs_of(program, kernel, threads)
            report = compare(kernel.computation, inputs_of(kernel), outputs)
            assert report, report
            sums.add(printed[: printed.index(f"{threads} threads")])
    assert len(sums) == 1
    for output in kernel.computation.outputs:
        assert re.search(rf"^{output.name}_?: (sum [-.\d]+, )?hash \w{{16}}$", min(sums), re.M)


@pytest.mark.slow
def test_programs_for_arm_run_under_an_emulator(tmp_path: Path) -> None:
    """The same main, the static library and the launcher with threads, linked with the C library that comes with zig."""
    emulator = starter(ARM)
    if not native.toolchain().zig:
        pytest.skip("TILELANG_CLANG names a compiler without a C library for arm64")
    zig = [*native.toolchain().linker, "cc", "-target", "aarch64-linux-musl", "-static"]
    for name, make in KERNELS.items():  # in one test, for zig builds its C library once
        kernel = make()
        kernel.export(tmp_path, name, ARM)
        program = built(tmp_path, "main.c", f"lib{name}.a", by=zig)
        for threads in (1, 4):
            _, outputs = outputs_of(program, kernel, threads, emulator)
            report = compare(kernel.computation, inputs_of(kernel), outputs)
            assert report, f"{name}, {threads} threads: {report}"


def test_a_program_with_tiles_asks_the_system_for_them(tmp_path: Path) -> None:
    """Before that, the first instruction over them ends it."""
    made = use("x86_tdpbf16ps_m32n32k128")
    target = with_instructions(tl.target("cpu"), *made.needs)
    kernel = tl.compile(tiled(tile_product((40, 70, 130), made.name), made.name, m=32, n=64, k=128), target)
    kernel.export(tmp_path / "tiles")
    product().export(tmp_path / "plain")
    texts = {path.parent.name: path.read_text() for path in tmp_path.glob("*/*_launch.c")}
    assert "0x1023L" in texts["tiles"] and "0x1023L" not in texts["plain"]
    (library,) = (tmp_path / "tiles").glob("*.a")
    _, outputs = outputs_of(built(tmp_path / "tiles", "main.c", library.name), kernel, 2)
    report = compare(kernel.computation, inputs_of(kernel), outputs)
    assert report, report


def test_what_is_exported_is_what_runs(tmp_path: Path) -> None:
    kernel = product()
    files = kernel.export(tmp_path / "new" / "folder", "product")
    assert (tmp_path / "new" / "folder" / "product.c").read_text() == kernel.source
    assert [path.name for path in files][:4] == ["product.c", "product.h", "product_launch.c", "main.c"]
    again = {path.name: path.read_bytes() for path in product().export(tmp_path / "again", "product")}
    assert again == {path.name: path.read_bytes() for path in files}
    for line in (tmp_path / "again" / "export.sha256").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(again[name]).hexdigest() == digest


def test_two_exports_stand_in_one_program(tmp_path: Path) -> None:
    """Kernels of both are called C; the caller gives the memory, which must be aligned; the header is one of C++ too."""
    for name, size in (("small", 17), ("large", 61)):
        product(size, size, size).export(tmp_path / name, name)
    (tmp_path / "two.c").write_text("""
#include <stdio.h>
#include <stdlib.h>
#include "small/small.h"
#include "large/large.h"
static float a[61 * 61], b[61 * 61], c[61 * 61];
int main(void)
{
    size_t bytes = small_memory_bytes(2) > large_memory_bytes(2) ? small_memory_bytes(2) : large_memory_bytes(2);
    char *memory = aligned_alloc(64, bytes);
    for (int i = 0; i < 61 * 61; ++i)
        a[i] = b[i] = 1;
    printf("%d ", small_run_threads(a, b, c, memory, 2));
    printf("%g ", c[17 * 17 - 1]);
    printf("%d ", large_run(a, b, c, memory));
    printf("%g ", c[61 * 61 - 1]);
    printf("%d ", large_run(a, b, c, memory + 4) == LARGE_MISPLACED);
    printf("%d ", large_run(a, b, NULL, memory) == LARGE_MISPLACED);
    printf("%d\\n", large_run((const float *)((const char *)a + 1), b, c, memory) == LARGE_MISPLACED);
    free(memory);
    return 0;
}
""")
    program = built(tmp_path, "two.c", "small/libsmall.a", "large/liblarge.a")
    assert subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout == "0 17 0 61 1 1 1\n"
    for language in ("-xc", "-xc++"):
        given = [compiler(), language, *STRICT[2:], "-fsyntax-only", "small/small.h"]
        assert subprocess.run(given, cwd=tmp_path, capture_output=True, text=True).stderr in ("", NO_CPLUSPLUS)


NO_CPLUSPLUS = "gcc: fatal error: cannot execute 'cc1plus': execvp: No such file or directory\ncompilation terminated.\n"


def test_the_header_tells_shapes_types_and_ranges(tmp_path: Path) -> None:
    several_types().export(tmp_path, "types")
    header = (tmp_path / "types.h").read_text()
    for line in (
        "errno_: input, float16, 23 x 7 (i, j), 322 bytes", "int32, 23 (i), 92 bytes; each value is at least 0 and less than 11",
        "const uint16_t *errno_,", "const uint8_t *keep,", "int64_t *wide,", "float16: the 16 bits of an IEEE 754 binary16 number",
        "bool: a byte, 0 or 1", "float8_e4m3: the 8 bits of an OCP E4M3 number", "bfloat16: the upper 16 bits",
    ):  # fmt: skip
        assert line in header, line
    assert all(len(line) < 160 for line in header.splitlines())


# ---------------------------------------------------------------- what is refused


def refused(code: str, kernel: tl.Kernel, folder: Path, name: str | None = None, architecture: str | None = None) -> str:
    with pytest.raises(DeviceError) as caught:
        kernel.export(folder, name, architecture)
    assert caught.value.code == code and caught.value.help
    return caught.value.message


def test_only_kernels_of_the_processor_are_exported(tmp_path: Path) -> None:
    i = tl.axes(i=4)
    kernel = tl.compile(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i), tl.target("cuda", profile="ampere"))
    assert (
        refused("export-target", kernel, tmp_path) == "export needs the target cpu, this kernel is compiled for cuda for ampere"
    )
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "a b", "2d", "größe", "int", "../up", "_Reserved"])
def test_names_that_are_none_in_c(name: str, tmp_path: Path) -> None:
    if name:
        assert name in refused("export-name", product(), tmp_path, name)
    else:
        assert product().export(tmp_path, name)[0].name == "C.c"  # the computation's


def test_a_name_that_is_too_long_for_a_file(tmp_path: Path) -> None:
    assert "300 letters" in refused("export-name", product(), tmp_path, "n" * 300)
    assert not any(tmp_path.iterdir())


def test_tensors_may_have_the_names_of_the_header_and_of_standard_headers(tmp_path: Path) -> None:
    i = tl.axes(i=9)
    names = ("P_H", "P_NO_MEMORY", "p_threads", "p_kernel_P_MISPLACED", "EOF", "EDOM", "BUFSIZ")
    total = functools.reduce(lambda x, y: x + y, (tl.input(name, tl.float32, i)[i] for name in names))
    kernel = tl.compile(tl.define("P_MISPLACED", total, i), "cpu")
    kernel.export(tmp_path, "p")
    folder = built(tmp_path, "main.c", "libp.a")
    _, found = outputs_of(folder, kernel, 1)
    np.testing.assert_array_equal(found["P_MISPLACED"], kernel(**inputs_of(kernel)))


def test_an_earlier_export_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    product().export(tmp_path, "product")
    before = (tmp_path / "product.h").read_text()
    product(20).export(tmp_path, "product")
    assert (tmp_path / "product.h").read_text() != before
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    assert "main.c" in refused("export-exists", product(), tmp_path, "product")
    (tmp_path / "main.c").unlink()
    (tmp_path / "export.sha256").unlink()
    assert "product.c" in refused("export-exists", product(), tmp_path, "product")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused("export-folder", product(), tmp_path / "file", "product")
    (tmp_path / "taken" / "main.c").mkdir(parents=True)
    assert "cannot be written" in refused("export-folder", product(), tmp_path / "taken", "product")


def test_architectures_that_are_unknown(tmp_path: Path) -> None:
    for architecture in ("neoverse-v2@plan9", "cray@x86_64-linux", "no such"):
        refused("unknown-architecture", product(), tmp_path, "product", architecture)


def test_another_system_needs_the_headers_of_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from tilelang.lowering.compilers import native

    bare = dataclasses.replace(native.toolchain(), zig=False)
    monkeypatch.setattr(native, "toolchain", lambda: bare)
    message = refused("export-toolchain", product(), tmp_path, "product", "apple-m1@aarch64-macos")
    assert "macos on aarch64" in message


def test_values_of_inputs_are_of_their_type_and_range() -> None:
    kernel = several_types()
    given = inputs_of(kernel)
    assert 0 <= given["template"].min() and given["template"].max() <= 10 and len(np.unique(given["template"])) > 5
    assert set(np.unique(given["keep"])) == {False, True}
