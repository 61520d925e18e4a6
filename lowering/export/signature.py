"""The parameters of an exported program's C function, and the kernels it runs, as data for the text templates.

The arguments are the computation's inputs and outputs in order, under names that do not collide with C or the launcher's headers.
Function names begin with the export's name, so that one program can contain two exports.
"""

from __future__ import annotations

import dataclasses
import itertools
import re

from tilelang.computations.computation import Computation, Tensor
from tilelang.errors import DeviceError
from tilelang.lowering import ir
from tilelang.lowering.drivers.extensions import TILES
from tilelang.lowering.targets.c.dialect import C_KEYWORDS
from tilelang.lowering.targets.c.emitter import kernel_names
from tilelang.lowering.targets.c.names import Names
from tilelang.lowering.targets.cpu import DIALECT

C_TYPES = {
    "float32": "float", "float64": "double", "float16": "uint16_t", "bfloat16": "uint16_t", "float8_e4m3": "uint8_t",
    "float8_e5m2": "uint8_t", "bool": "uint8_t", **{f"{u}int{n}": f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)},
}  # fmt: skip

MOST_LETTERS = 200  # in a name of files, whose length systems limit to 255 with all that is appended

# Names that the texts use, C++ reserves, or <windows.h> and similar headers define as macros.
_TAKEN = """
    memory threads arrays part thread worker share kernel run start finish entry launch allocate release misplaced chosen hash array
    seconds count words code least n i file before took small near far interface IN OUT I ERROR errno stdin stdout stderr
    alignas alignof bool class constexpr decltype delete explicit export friend inline mutable namespace new noexcept nullptr operator
    private protected public template this throw try typeid typename using virtual wchar_t catch and or not xor asm catch const_cast
    main printf fprintf fputs perror fopen fclose fwrite atoi exit malloc calloc free timespec_get pthread_create pthread_join
""".split()


@dataclasses.dataclass(frozen=True, slots=True)
class Argument:
    """One array argument."""

    name: str  # in C
    tensor: Tensor  # the tensor it holds
    written: bool  # whether it is an output

    @property
    def type(self) -> str:
        """The C type of an element."""
        return C_TYPES[self.tensor.dtype.name]

    @property
    def elements(self) -> int:
        """The number of elements of the array."""
        total = 1
        for extent in self.tensor.shape:
            total *= extent
        return total

    @property
    def declared(self) -> str:
        """The parameter of the C function."""
        return f"{'' if self.written else 'const '}{self.type} *{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch."""

    function: str  # its name in the kernels' text
    symbol: str  # its name in the libraries
    blocks: int  # the number of blocks
    # per kernel argument, its index among the function's arguments or its offset in bytes in the workspace
    arrays: tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """A program's C function."""

    name: str
    computation: Computation
    arguments: tuple[Argument, ...]
    launches: tuple[Launch, ...]
    workspace_bytes: int  # for data that kernels leave for later ones
    scratch_bytes: int  # for one block's arrays
    tiles: bool  # the program uses AMX tile instructions

    @property
    def macro(self) -> str:
        """The prefix of its macros."""
        return self.name.upper()


def signature(computation: Computation, program: ir.Program, name: str) -> Signature:
    """The C function of a program. Raises DeviceError `export-name` if the name is not a valid prefix of C functions."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in C_KEYWORDS or len(name) > MOST_LETTERS:
        help = 'use another name: kernel.export(folder, name="product"), or --name product'
        why = f", because it has {len(name)} letters" if len(name) > MOST_LETTERS else ""
        raise DeviceError("export-name", f"`{name[:60]}` cannot name files and functions in C{why}", help=help)
    own = re.compile(rf"({name}|{name.upper()})_\w*|E[A-Z0-9]+|BUFSIZ")  # names of the header, of <errno.h> and of <stdio.h>
    names = Names(dataclasses.replace(DIALECT, reserved=DIALECT.reserved | {*_TAKEN}))
    tensors = [(t, False) for t in computation.inputs] + [(t, True) for t in computation.outputs]
    arguments = tuple(
        Argument(names.fresh(f"{t.name}_" if own.fullmatch(t.name) else t.name), t, written) for t, written in tensors
    )
    places = {t.name: ("array", number) for number, (t, _) in enumerate(tensors)}
    workspace = 0
    for buffer in (b for b in program.buffers if b.role == "workspace"):
        places[buffer.name] = ("workspace", workspace)
        workspace += -(-buffer.bytes // 64) * 64
    functions = kernel_names(program, DIALECT)
    used = {b.name for k in program.kernels for b in k.buffers}
    symbols = {
        f: next(s for n in itertools.count() if (s := f"{name}_kernel_{f}" + "_" * n) not in used) for f in functions.values()
    }
    launches = tuple(
        Launch(functions[k.name], symbols[functions[k.name]], k.grid[0] * k.grid[1] * k.grid[2],
               tuple(places[b.name] for b in k.arguments))
        for k in program.kernels
    )  # fmt: skip
    scratch = max((k.shared_bytes for k in program.kernels), default=0)
    statements = (s for k in program.kernels for s in ir.statements(k.body))
    needs = {need for s in statements if isinstance(s, ir.Instruction) for need in s.semantics.needs}
    tiles = any(need.startswith(TILES) for need in needs)
    return Signature(name, computation, arguments, launches, workspace, scratch, tiles)
