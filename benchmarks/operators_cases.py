"""The 119 operators of ROLLER's evaluation at the sizes of a processor: their computations, and the rule that makes operators_cpu.csv.

roller.csv has them as the paper's artifact does, 128 images each and up to 65536 rows. Here images lie channels first and elements are
float32, as a user of PyTorch has them. `python benchmarks/operators_cases.py` writes operators_cpu.csv anew.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/operators_cases.py` from anywhere

import tilelang as tl
from benchmarks.gpu_cases import ROOT, example, pixels, pointwise, roller

TABLE = ROOT / "benchmarks" / "operators_cpu.csv"
HEADING = ("id", "class", "kind", "extents", "full_extents", "duplicate_of", "why")
CLASSES = {
    "matmul": "product", "convolution": "convolution", "depthwise": "depthwise", "average_pooling": "pooling",
    "row_sum": "reduction", "relu": "pointwise",
}  # fmt: skip

# One call must end in a second even on a slow processor: this many multiply-adds and bytes a second it has at least.
FLOPS_PER_S, BYTES_PER_S = 20e9, 4e9
IMAGES = (4, 2, 1)
ROWS_PART, LEAST_ROWS = 16, 128


@dataclasses.dataclass(frozen=True)
class Operator:
    """An operator at a size. why: what the rule made of its full size; duplicate_of: an operator before it that is the same."""

    id: str
    kind: str
    extents: tuple[int, ...]
    full_extents: tuple[int, ...] = ()
    duplicate_of: str = ""
    why: str = ""

    @property
    def group(self) -> str:
        """The class that tables know it by."""
        return CLASSES[self.kind]

    @property
    def facts(self) -> tuple[int, int, int, int]:
        """Of an operator with windows: window, stride, padding, pixels along a side of the result."""
        h, _, r, stride, padding = self.extents[2:]
        return r, stride, padding, pixels(h, r, stride, padding)

    @property
    def terms(self) -> int:
        """Elements that each element of the result is made of."""
        match self.kind:
            case "matmul":
                return self.extents[2]
            case "convolution":
                return self.extents[1] * self.extents[4] ** 2
            case "depthwise" | "average_pooling":
                return self.extents[4] ** 2
        return self.extents[1] if self.kind == "row_sum" else 1

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors by name, the result last."""
        match self.kind:
            case "matmul":
                m, n, k = self.extents
                return {"A": (m, k), "B": (k, n), "C": (m, n)}
            case "row_sum":
                return {"X": self.extents, "Y": self.extents[:1]}
            case "relu":
                return {"X": self.extents, "Y": self.extents}
        n, c, h, f = self.extents[:4]
        r, _, _, side = self.facts
        image: dict[str, tuple[int, ...]] = {"X": (n, c, h, h)}
        if self.kind == "convolution":
            return {**image, "W": (f, c, r, r), "Z": (n, f, side, side)}
        filters: dict[str, tuple[int, ...]] = {"W": (c, r, r)} if self.kind == "depthwise" else {}
        return {**image, **filters, "Z": (n, c, side, side)}

    @property
    def bytes(self) -> int:
        """Every tensor once."""
        return sum(4 * math.prod(s) for s in self.shapes.values())

    @property
    def flops(self) -> int:
        """Operations on elements: of a multiply-add two."""
        result = math.prod(list(self.shapes.values())[-1])
        return result * self.terms * (2 if "W" in self.shapes or self.kind == "matmul" else 1)

    def computation(self) -> tl.Tensor:
        """What it computes."""
        match self.kind:
            case "matmul":
                product: tl.Tensor = example("01_matmul").matmul(*self.extents, tl.float32)
                return product
            case "row_sum":
                sums: tl.Tensor = example("06_row_sum").row_sum(*self.extents)
                return sums
            case "relu":
                return pointwise("relu", self.extents[0]).make(None)
        return windowed(self)


# What libraries of linear algebra are best at; none of the 119.
SQUARES = tuple(Operator(f"S{side}", "matmul", (side, side, side), why="square") for side in (1024, 2048, 3072))


def windowed(operator: Operator) -> tl.Tensor:
    """A convolution, a depthwise one or a mean over windows; 0 outside the images, channels before pixels."""
    n, c, h, f = operator.extents[:4]
    r, stride, padding, side = operator.facts
    b, o, d, p, q, i, j = tl.axes(n=n, f=f, c=c, p=side, q=side, r=r, s=r)
    X = tl.input("X", tl.float32, n=n, c=c, h=h, w=h)
    at = X[b, d, stride * p + i - padding, stride * q + j - padding]
    pixel = tl.pad(at, 0) if padding else at
    match operator.kind:
        case "convolution":
            W = tl.input("W", tl.float32, o, d, i, j)
            return tl.define("Z", tl.sum(pixel * W[o, d, i, j], over=(d, i, j)), b, o, p, q)
        case "depthwise":
            W = tl.input("W", tl.float32, d, i, j)
            return tl.define("Z", tl.sum(pixel * W[d, i, j], over=(i, j)), b, d, p, q)
    return tl.define("Z", tl.sum(pixel, over=(i, j)) * (1.0 / (r * r)), b, d, p, q)


# ---------------------------------------------------------------- the sizes of a processor


def seconds(operator: Operator) -> float:
    """How long a slow processor may take."""
    return max(operator.flops / FLOPS_PER_S, operator.bytes / BYTES_PER_S)


def scaled(operator: Operator) -> tuple[tuple[int, ...], str]:
    """The extents of an operator that takes less than a second, and in words what became of them."""
    full = operator.extents
    if operator.kind in ("matmul", "row_sum"):
        rows, halvings = max(min(full[0], LEAST_ROWS), full[0] // ROWS_PART), 0
        while seconds(dataclasses.replace(operator, extents=(rows, *full[1:]))) >= 1 and rows > LEAST_ROWS:
            rows, halvings = rows // 2, halvings + 1
        why = f"rows / {full[0] // rows}" if rows < full[0] else f"no more than {LEAST_ROWS} rows: all"
        return (rows, *full[1:]), why + (f": {ROWS_PART} and {halvings} halvings, to end in 1 s" if halvings else "")
    if operator.kind == "relu":
        return (full[0] * IMAGES[0] // 128,), f"elements of {IMAGES[0]} of 128 images"
    for images in IMAGES:
        if seconds(dataclasses.replace(operator, extents=(images, *full[1:]))) < 1:
            break
    return (images, *full[1:]), f"{images} of 128 images"


def from_roller() -> Iterator[Operator]:
    """The operators of roller.csv at the sizes of a processor, all of them; what was there before is said to be a duplicate."""
    first: dict[tuple[str, tuple[int, ...]], str] = {}
    for name, kind, full in roller():
        extents, why = scaled(Operator(name, kind, full))
        same = first.setdefault((kind, full), name)
        yield Operator(name, kind, extents, full, "" if same == name else same, why)


def text(operators: Iterator[Operator]) -> str:
    """operators_cpu.csv."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADING)
    for o in operators:
        writer.writerow(
            [o.id, o.group, o.kind, " ".join(map(str, o.extents)), " ".join(map(str, o.full_extents)), o.duplicate_of, o.why]
        )
    return file.getvalue()


def read(path: Path = TABLE) -> tuple[Operator, ...]:
    """The operators of a table."""
    with path.open(encoding="utf-8") as file:
        return tuple(
            Operator(
                row["id"], row["kind"], tuple(map(int, row["extents"].split())), tuple(map(int, row["full_extents"].split())),
                row["duplicate_of"], row["why"],
            )
            for row in csv.DictReader(file)
        )  # fmt: skip


def tiny(operator: Operator) -> Operator:
    """The same operator, of a few rows, channels and pixels: window, stride, padding and the remainder of its side stay."""
    if operator.kind in ("matmul", "row_sum", "relu"):
        return dataclasses.replace(operator, extents=tuple(min(e, 5 + e % 7) for e in operator.extents))
    _, c, h, f, r, stride, padding = operator.extents
    channels, filters = 2 + c % 3, 2 + f % 3
    return dataclasses.replace(
        operator, extents=(2, channels, r + stride + h % 4, filters if f != c else channels, r, stride, padding)
    )


if __name__ == "__main__":
    TABLE.write_text(text(from_roller()), encoding="utf-8")
