"""Instructions of a user's own, as `docs/instructions.md` lets anyone define them, and programs for them.

A text can only name an instruction, so here the name says what it is: `user_scale_8_float32_rg_1` is `scale` of 8 elements of float32,
whose operands are read in registers and written to global memory, by one lane. d: in shared memory, named by a descriptor; e behind the
lanes: one lane issues it, whatever threads there are. n: in global memory, and nothing says where; l at the end: completes later, as no
step waits for. `define` makes known what a text names.
"""

import random
import re
from collections.abc import Callable
from typing import Any

import tilelang as tl
from tilelang.instructions.instruction import ALL_LANES, AT_ONCE, BARRIER_BY_BYTES, ONE_LANE, known

PLACES = {"r": "register", "s": "shared", "g": "global", "d": "shared", "n": "global"}
POINTWISE = {
    "scale": "max(X[i, j] * S[i], 0)",
    "add": "X[i, j] + Y[i, j]",
    "narrow": "cast(X[i, j] + 1, {narrow})",
    "rows": "-X[i, j]",
    "copy": "X[i, j]",
    "block": "X[i, j]",
}
UPDATES = {"axpy": "sum[k] S[i, k] * X[k, j]", "dot": "sum[k] X[i, k] * Y[j, k]", "peak": "max[k] X[k, j]"}
NAMED_ONLY = ("padded", "powers")  # what `Programs` does not draw
MOVES = ("copy", "block")
PAIRED = ("rows", "block")  # of two rows
WIDTHS = (1, 2, 4, 4, 8, 16)
TYPES = ("float32", "float32", "float64", "int32")
LEVELS = {1: "thread", 32: "warp", 64: "warp", 128: "warpgroup"}
NAMED = re.compile(r"\buser_([a-z]+)_(\d+)_([a-z]+\d+)_([rsgn])([rsgd])_(\d+)(e?)(l?)\b")


def define(text: str) -> None:
    """Makes the instructions known that a text names. Raises ComputationError where a name says what cannot be."""
    for found in NAMED.finditer(text):
        meaning, width, dtype, read, written, lanes, elected, later = found.groups()
        if meaning in (*POINTWISE, *UPDATES, *NAMED_ONLY) and not any(i.name == found[0] for i in known()):
            _define(found[0], meaning, int(width), getattr(tl, dtype), read, written, int(lanes), bool(elected), bool(later))


def _define(
    name: str, meaning: str, width: int, dtype: tl.DType, read: str, written: str, lanes: int, elected: bool, later: bool
) -> None:
    at: Any = tl.axes(m=2, n=width // 2) if meaning in PAIRED else (tl.axes(n=width),)
    slots = width // lanes

    def held(lane: Any, slot: Any) -> Any:
        """Each lane has neighbours."""
        number = lane * slots + slot
        return number if len(at) == 1 else (number // at[1].extent, number % at[1].extent)

    def vector(operand: str, where: str, dtype: tl.DType) -> Any:
        memory = PLACES[where]
        if where == "d":
            return tl.operand(operand, dtype, memory, *at, layouts=(tl.layout(*(a.name for a in at)),))
        map_ = None if memory == "register" and lanes == 1 or where == "n" else tl.fragment(lanes, slots, held)
        return tl.operand(operand, dtype, memory, *at, fragment=map_)

    def scalar(operand: str) -> Any:
        return tl.operand(operand, dtype, tl.register, fragment=tl.fragment(lanes, 1, lambda lane, slot: ()))

    narrow = getattr(tl, _narrow(dtype.name))
    X, Y, D = vector("X", read, dtype), vector("Y", read, dtype), vector("D", written, narrow if meaning == "narrow" else dtype)
    S, C = scalar("S"), scalar("C")
    forms: dict[str, Callable[[], tuple[Any, Any, str]]] = {
        "scale": lambda: (tl.computes(D[at], tl.maximum(X[at] * S[()], 0)), (X, S, D), ""),
        "add": lambda: (tl.computes(D[at], X[at] + Y[at]), (X, Y, D), "{D} = {X} + {Y};"),
        "narrow": lambda: (tl.computes(D[at], tl.cast(X[at] + 1, narrow)), (X, D), ""),
        "rows": lambda: (tl.computes(D[at], -X[at]), (X, D), "{D} = -{X};"),
        "block": lambda: (tl.moves(D[at], X[at]), (X, D), "{D} = {X};"),
        "copy": lambda: (tl.moves(D[at], X[at]), (X, D), "{D} = {X};"),
        "axpy": lambda: (tl.updates(D[at], S[()] * X[at]), (S, X, D), "{D} += {S} * {X};"),
        "dot": lambda: (tl.updates(C[()], X[at] * Y[at]), (X, Y, C), ""),
        "peak": lambda: (tl.updates(D[at], X[at], combiner="max"), (X, D), ""),
        "padded": lambda: (tl.computes(D[at], -tl.pad(X[at], 0)), (X, D), ""),
        "powers": lambda: (tl.updates(C[()], tl.exp(X[at])), (X, C), ""),
    }
    means, operands, text = forms[meaning]()
    template = {"cpu": text} if text and lanes == 1 and read != "n" and not later else None
    issue, completes = ONE_LANE if elected else ALL_LANES, BARRIER_BY_BYTES if later else AT_ONCE
    tl.instruction(
        name,
        means=means,
        operands=operands,
        level=LEVELS[lanes],
        lanes=lanes,
        issue=issue,
        completes=completes,
        template=template,
    )


def _narrow(dtype: str) -> str:
    return "int16" if dtype.startswith("int") else "float16"


class Programs:
    """Draws programs that use such an instruction, as the innermost step or in a move: a computation and its steps."""

    def __init__(self, r: random.Random, profile: str):
        self.random = r
        self.levels = {"zen5": (1,), "cdna3": (1, 64), "ampere": (1, 32)}.get(
            profile, (1, 32, 128)
        )  # threads that issue together

    def draw(self) -> tuple[str, list[Any]]:
        r = self.random
        meaning = r.choice((*POINTWISE, *UPDATES))
        lanes = r.choice((1, 1, *self.levels)) if meaning in POINTWISE else 1
        width, dtype = lanes * r.choice(WIDTHS), r.choice(TYPES if meaning != "narrow" else ("float32", "int32"))
        if meaning in PAIRED:
            width = max(width, 2)
        read, written = ("r", "r") if meaning in UPDATES else (r.choice("rrsg"), r.choice("rsg"))
        name = f"user_{meaning}_{width}_{dtype}_{read}{written}_{lanes}"
        rows, columns = (2, width // 2) if meaning in PAIRED else (1, width)
        computation = self.computation(meaning, dtype, rows, columns, stage=written == "r" and meaning not in MOVES)
        return computation, self.steps(name, meaning, read, written, lanes, rows, columns)

    def computation(self, meaning: str, dtype: str, rows: int, columns: int, stage: bool) -> str:
        """What the instruction does at several rows and columns, at times with a tail, from a stage or into one.

        stage: surely into one.
        """
        r = self.random
        self.extents = {"i": rows * r.choice((1, 2, 3)), "j": columns * r.choice((1, 2, 3)), "k": columns * r.choice((1, 2, 3))}
        for a in self.extents:
            self.extents[a] += r.random() < 0.15
        dims = {"X": "ij", "Y": "ij", "S": "i"}
        if meaning in UPDATES:
            dims = {"axpy": {"S": "ik", "X": "kj"}, "dot": {"X": "ik", "Y": "jk"}, "peak": {"X": "kj"}}[meaning]
        value = (POINTWISE | UPDATES)[meaning].format(narrow=_narrow(dtype))
        self.read = {x: d for x, d in dims.items() if f"{x}[" in value}
        self.before, self.after = (meaning in POINTWISE and r.random() < p for p in (0.2, 1.0 if stage else 0.4))
        self.result = "D" if self.after else "Z"
        left = self.result + ("[j]" if meaning == "peak" else "[i, j]")
        lines = [f"  input {x}: {dtype}[{', '.join(f'{a}: {self.extents[a]}' for a in d)}]" for x, d in self.read.items()]
        if self.before:
            lines.append("  T[i, j] = X[i, j] + 1")
            value = value.replace("X[", "T[")
        lines.append(f"  {'' if self.after else 'output '}{left} = {value}")
        if self.after:
            lines.append("  output Z[i, j] = D[i, j] + 1")
        return "computation drawn {\n" + "\n".join(lines) + "\n}\n"

    def steps(self, name: str, meaning: str, read: str, written: str, lanes: int, rows: int, columns: int) -> list[Any]:
        """A plan that brings what the instruction reads to where it reads it; tried step by step, so some of it may be refused."""
        r = self.random
        kept = {"i": rows * r.choice((1, 2)), "j": 1 if meaning == "dot" else columns * r.choice((1, 2))}
        if meaning == "peak":
            kept.pop("i")
        piece = {"i": rows, "j": columns} if meaning != "dot" else {"i": 1, "j": 1}
        piece = {a: piece[a] for a in kept}
        level, do = LEVELS[lanes], f"do {name}"

        def sizes(of: dict[str, int]) -> str:
            return " ".join(f"{a}={n}" for a, n in of.items())

        plan: list[Any] = [f"units block = 1 {level}"] * (lanes > 1 and r.random() < 0.5)
        plan.append(f"tile {sizes(kept)} -> block")
        if meaning in UPDATES:
            plan += ["accumulate in register"] * (r.random() < 0.8)
            plan.append(f"split k={columns if meaning == 'dot' else r.choice((1, 1, 2))}")
        units = [f"tile {sizes(piece)} -> {level}"]
        if meaning in MOVES and r.random() < 0.6:
            return [*plan, *self.copied(read, written, columns, [*units * (r.random() < 0.8), do], units)]
        whole, parts = self.brought(read, ("k" if meaning == "dot" else "j", columns if lanes == 1 else 1))
        if not self.after:
            vias = [f"via {PLACES[written]}"] * (meaning in POINTWISE and written == "s")
            walk = [f"split {sizes(piece)} unroll"] * (r.random() < 0.3)
            return [*plan, *whole, *vias, *units * (lanes > 1 or r.random() < 0.5), *parts, *walk, do]
        if written == "g":  # a kernel of its own
            return [["compute D in global", [*plan, *whole, *units * (lanes > 1), *parts, do]], *plan]
        stage = [f"compute D in {PLACES[written]}", [*units * (lanes > 1 or r.random() < 0.4), do]]
        return [*plan, *whole, *parts, stage, *[f"tile {sizes(piece)} -> thread"] * (r.random() < 0.4)]

    def brought(self, read: str, vector: tuple[str, int]) -> tuple[list[Any], list[Any]]:
        """The steps that bring what is read: to shared memory, and to registers."""
        r = self.random
        whole, parts = list[Any](), list[Any]()
        for x in self.read:
            name = "compute T" if x == "X" and self.before else f"load {x}"
            if x != "S" and (read == "s" or r.random() < 0.2):
                whole.append(f"{name} in shared{r.choice(('', '', ' ahead 1'))}")
                name = name.replace("compute", "load")
            if x == "S" or read == "r":
                steps = [f"vectorize {vector[0]}={vector[1]}"] * (x != "S" and vector[1] > 1 and r.random() < 0.7)
                parts.append([f"{name} in register", steps] if steps else f"{name} in register")
        return whole, parts

    def copied(self, read: str, written: str, columns: int, move: list[Any], units: list[Any]) -> list[Any]:
        """A copy on the way of a load, of a store, or as the store."""
        r = self.random
        if written == "g":
            return [[f"via {PLACES[read]}", move]] if read != "g" else move
        ahead = " ahead 1" * (written == "s" and r.random() < 0.3)
        before = [f"split j={columns}"] * bool(ahead) + ["load X in shared"] * (read == "s")
        return [
            *before,
            [f"load X in {PLACES[written]}{ahead}", move],
            *[units[0].replace("warpgroup", "warp")] * (r.random() < 0.5),
        ]
