"""Fills the text templates of an export: header, launcher, main and readme.

The texts do not depend on the machine that writes them: the same program gives the same bytes.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilelang.computations.computation import Tensor
from tilelang.lowering.export.signature import Argument, Launch, Signature

VALUES = 16  # number of distinct values in an example input

_BITS = {
    "float16": "float16: the 16 bits of an IEEE 754 binary16 number, in a uint16_t",
    "bfloat16": "bfloat16: the upper 16 bits of a float32, in a uint16_t",
    "float8_e4m3": "float8_e4m3: the 8 bits of an OCP E4M3 number, in a uint8_t",
    "float8_e5m2": "float8_e5m2: the 8 bits of an OCP E5M2 number, in a uint8_t",
    "bool": "bool: a byte, 0 or 1",
}
_TILES = """\

/* Linux allows a process to use AMX tiles only after a request: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA). */
#if defined(__linux__) && defined(__x86_64__)
extern long syscall(long number, ...);
static void allow_tiles(void) { syscall(158L, 0x1023L, 18L); }
#else
static void allow_tiles(void) { }
#endif
"""
_CONVERSIONS = {
    "float16": """\
static double float16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent ? 1024 + fraction : fraction;
    if (exponent == 31) {
        uint32_t wide = (uint32_t)fraction << 13 | 0x7f800000u;
        float special;
        memcpy(&special, &wide, sizeof special);
        value = special;
    }
    for (exponent = exponent ? exponent : 1; exponent < 25; ++exponent)
        value /= 2;
    for (; exponent > 25 && exponent < 31; --exponent)
        value *= 2;
    return bits >> 15 ? -value : value;
}

""",
    "bfloat16": """\
static double bfloat16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

""",
}


def _template(name: str) -> string.Template:
    return string.Template((Path(__file__).parent / name).read_text(encoding="utf-8"))


def _common(made: Signature) -> dict[str, str]:
    """The placeholders common to several texts."""
    return {
        "name": made.name, "macro": made.macro, "guard": f"{made.macro}_H", "title": title(made),
        "source_file": f"{made.name}.c", "launch_file": f"{made.name}_launch.c", "header_file": f"{made.name}.h",
        "workspace_bytes": str(made.workspace_bytes), "scratch_bytes": str(made.scratch_bytes),
        "parameters": ",\n".join(f"    {a.declared}" for a in made.arguments), "names": ", ".join(a.name for a in made.arguments),
    }  # fmt: skip


def title(made: Signature) -> str:
    """The first line of the header and the readme."""
    outputs = [str(t.name) for t in made.computation.outputs]
    return f"{made.name}: the computation of {', '.join(outputs)}, compiled for C"


# ---------------------------------------------------------------- header


def header(made: Signature, system: str) -> str:
    """The header: the functions and their parameters."""
    lines = [f" *   {_comment(line)}".rstrip() for line in made.computation.text.strip().splitlines()]
    types = {a.tensor.dtype.name for a in made.arguments}
    told = [f" * {text}." for name, text in _BITS.items() if name in types]
    fields = {
        "system": system,
        "computation": "\n".join(lines),
        "arguments": "\n".join(f" *   {_argument(a)}" for a in made.arguments),
        "types": "\n".join([*told, " *"]),
    }
    return _template("template.h").substitute(_common(made), **fields)


def _comment(text: str) -> str:
    """A text that cannot end the surrounding comment."""
    return text.replace("*/", "* /").replace("/*", "/ *")


def _argument(a: Argument) -> str:
    t = a.tensor
    shape = " x ".join(str(n) for n in t.shape) or "one element"
    named = f" ({', '.join(d.name for d in t.dims)})" if t.dims else ""
    bytes = a.elements * t.dtype.bytes
    found = f"{a.name}: {'output' if a.written else 'input'}, {t.dtype.name}, {shape}{named}, {bytes} bytes"
    if t.range is not None and not a.written:
        found += f"; each value is at least {t.range[0]} and less than {t.range[1]}, which is not checked"
    return _comment(found)


# ---------------------------------------------------------------- launcher


def launcher(made: Signature) -> str:
    """The C text that runs the kernels, with and without threads."""
    declared = "\n".join(
        f"void {symbol}(void *const *arguments, char *scratch, long long first, long long last);"
        for symbol in dict.fromkeys(launch.symbol for launch in made.launches)
    )
    checks = [f"misplaced({a.name}, {a.elements}u, {a.tensor.dtype.bytes})" for a in made.arguments]
    fields = {
        "declarations": declared,
        "tiles": _TILES if made.tiles else "",
        "allow": "\n    allow_tiles();" if made.tiles else "",
        "launches": "\n".join(_launch(launch) for launch in made.launches),
        "arrays": ", ".join(f"(void *){a.name}" for a in made.arguments),
        "checks": " ||\n        ".join([*checks, "misplaced(memory, 0, ALIGNMENT)"]),
    }
    return _template("template_launch.c").substitute(_common(made), **fields)


def _launch(launch: Launch) -> str:
    places = {"array": "arrays[{}]", "workspace": "memory + {}u"}
    given = ", ".join(places[kind].format(number) for kind, number in launch.arrays) or "NULL"
    lines = ["    {", f"        void *const arguments[] = {{{given}}};"]
    lines += [f"        launch({launch.symbol}, {launch.blocks}LL, arguments, scratch, workers, threads);", "    }"]
    return "\n".join(lines)


# ---------------------------------------------------------------- main


def main(made: Signature) -> str:
    """An example program that calls it."""
    inputs = [a for a in made.arguments if not a.written]
    outputs = [a for a in made.arguments if a.written]
    types = {a.tensor.dtype.name for a in outputs}
    arrays = [
        f"    {a.type} *{a.name} = ({a.type} *)array((size_t){a.elements}u * {a.tensor.dtype.bytes});" for a in made.arguments
    ]
    fills = [
        f"    for (i = 0; i < {a.elements}u; ++i)\n        {a.name}[i] = {a.name}_values[chosen(i + {number * 7919}u)];"
        for number, a in enumerate(inputs)
    ]
    sizes = {a: f"(size_t){a.elements}u * {a.tensor.dtype.bytes}" for a in outputs}
    fields = {
        "values": "".join(_values(a) for a in inputs),
        "conversions": "".join(text for name, text in _CONVERSIONS.items() if name in types),
        "arrays": "\n".join(arrays),
        "fills": "\n".join(fills),
        "prints": "\n".join(_print(a, sizes[a]) for a in outputs),
        "writes": "\n".join(f"        fwrite({a.name}, 1, {sizes[a]}, file);" for a in outputs),
    }
    return _template("template_main.c").substitute(_common(made), **fields)


def _print(a: Argument, bytes: str) -> str:
    type = a.tensor.dtype.name
    if type.startswith("float8"):
        return f'    printf("{a.name}: hash %016llx\\n", hash({a.name}, {bytes}));'
    value = f"{type}_value({a.name}[i])" if type in _CONVERSIONS else f"(double){a.name}[i]"
    lines = ["    {", "        double sum = 0;", f"        for (i = 0; i < {a.elements}u; ++i)", f"            sum += {value};"]
    lines += [f'        printf("{a.name}: sum %.9g, hash %016llx\\n", sum, hash({a.name}, {bytes}));', "    }"]
    return "\n".join(lines)


def sample(tensor: Tensor) -> Any:
    """The 16 values that the example program fills an input with, as its NumPy type: within its range if it has one."""
    import numpy as np  # late: NumPy takes long to import

    found: Any
    if tensor.dtype.kind == "bool":
        found = np.arange(VALUES) % 2
    elif tensor.range is not None:
        low, high = tensor.range
        found = low + (np.arange(VALUES) * max(1, high - low - 1) // (VALUES - 1)) % max(1, high - low)
    elif tensor.dtype.is_float:
        found = (np.arange(VALUES) - 7.5) / 4
    else:
        found = np.arange(VALUES) - (0 if tensor.dtype.kind == "uint" else VALUES // 2)
    return found.astype(tensor.dtype.numpy)


def chosen(elements: int, number: int) -> Any:
    """For each element of the input of that number, which of the 16 values it has; the same as `chosen` in the example program."""
    import numpy as np  # late: NumPy takes long to import

    x = (np.arange(elements, dtype=np.uint32) + np.uint32(number * 7919)) * np.uint32(2654435761)
    x ^= x >> np.uint32(15)
    return (x * np.uint32(2246822519)) >> np.uint32(28)


def _values(a: Argument) -> str:
    import numpy as np  # late: NumPy takes long to import

    values = sample(a.tensor)
    if a.type in ("float", "double"):
        suffix = "f" if a.type == "float" else ""
        texts = [f"{float(v)!r}{suffix}" for v in values]
    elif a.tensor.dtype.is_float or a.tensor.dtype.kind == "bool":
        texts = [f"0x{int(v):0{2 * values.itemsize}x}" for v in values.view(np.dtype(f"u{values.itemsize}"))]
    else:
        texts = [str(int(v)) for v in values]
    return f"static const {a.type} {a.name}_values[{VALUES}] = {{{', '.join(texts)}}};\n"


# ---------------------------------------------------------------- readme


def readme(made: Signature, fields: Mapping[str, str], files: Sequence[tuple[str, str]]) -> str:
    """Build instructions for a program. fields: the command lines, by placeholder. files: each with its description."""
    width = max(len(name) for name, _ in files)
    listed = "\n".join(f"    {name.ljust(width)}  {about}" for name, about in files)
    return _template("template_readme.txt").substitute(_common(made), files=listed, **fields)
