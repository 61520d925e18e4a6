"""Random programs over everything `docs/computations.md` lists."""

import math
import random
from typing import Any

from benchmarks.foreign.program import COMBINERS, Expression

FLOAT_TYPES = ("float32",) * 6 + ("float64", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
INTEGER_TYPES = ("int32",) * 4 + ("int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64")
TAME = ("exp", "tanh", "sigmoid", "erf", "sin", "cos", "relu", "gelu", "gelu_tanh", "expm1", "exp2")
WILD = ("log", "log2", "log1p", "sqrt", "rsqrt", "floor", "ceil", "round")


class Drawer:
    """One program. `points` bounds how many points a definition has, reduced ones included."""

    def __init__(self, seed: int, points: int = 6000):
        self.random = random.Random(seed)
        self.points = points
        self.axes: dict[str, int] = {}
        self.inputs: list[dict[str, Any]] = []
        self.definitions: list[dict[str, Any]] = []
        self.combiners: dict[str, list[str]] = {}
        self.types: dict[str, str] = {}  # of every tensor; of definitions only the class counts: f, i, b
        self.shapes: dict[str, list[int]] = {}
        r = self.random
        self.floats = [r.choice(FLOAT_TYPES) for _ in range(r.choice((1, 1, 2)))]
        self.integers = [r.choice(INTEGER_TYPES) for _ in range(r.choice((1, 1, 2)))]
        self.share = {"f": r.choice((0.95, 0.8, 0.5, 0.1))}

    def program(self) -> dict[str, Any]:
        r = self.random
        if r.random() < 0.12:
            return self.product()
        for name in r.sample("ijklmnpq", r.randint(2, 5)):
            self.axes[name] = self.extent()
        for _ in range(r.choice((1, 1, 2, 2, 3, 4, 5))):
            self.define()
        made = [n for d in self.definitions for n in d["names"]]
        text = repr([d["values"] for d in self.definitions])
        outputs = [n for n in made if f"'{n}'" not in text or r.random() < 0.3]
        return {
            "axes": self.axes,
            "inputs": self.inputs,
            "combiners": self.combiners,
            "definitions": self.definitions,
            "outputs": outputs,
        }

    def product(self) -> dict[str, Any]:
        """A product of two matrices, in any order of their dimensions, with an epilogue or a batch at times."""
        r = self.random
        m, n, k = names = r.sample("ijklmnpq", 3)
        few = (16, 16, 32, 8, 48, 17, 5, 33, 24)
        self.axes = {name: r.choice(few) if self.points > 1000 else r.choice((16, 16, 8, 5)) for name in names}
        kind = r.choice(("float32", "float32", "float32", "float16", "bfloat16", "int8", "uint8", "int32", "float64"))
        result = {"float16": "float32", "bfloat16": "float32", "int8": "int32", "uint8": "int32"}.get(kind, "")
        factors = []
        for name, axes in (("A0", [m, k]), ("B1", [k, n])):
            if r.random() < 0.4:
                axes.reverse()
            self.inputs.append({"name": name, "dtype": kind, "dims": [[x, self.axes[x]] for x in axes]})
            self.types[name], self.shapes[name] = "i" if "int" in kind else "f", [self.axes[x] for x in axes]
            read: Expression = ["read", name, [["axis", x] for x in axes]]
            factors.append(["cast", read, result] if result and r.random() < 0.9 else read)
        body = ["binary", "*", *factors]
        axes = [m, n] if r.random() < 0.8 else [n, m]
        condition = self.domain([m, n, k]) if r.random() < 0.2 else None
        self.add(["C0"], axes, [["reduce", "sum", [k], condition, [body]]], [self.types["A0"]])
        if r.random() < 0.35:
            self.floats, self.integers = ["float32"], ["int32"]
            own: Expression = ["read", "C0", [["axis", x] for x in axes]]
            self.add(["D1"], axes, [self.pointwise(own, self.types["A0"], axes, 2)], [self.types["A0"]])
        outputs = [d["names"][0] for d in self.definitions]
        return {
            "axes": self.axes,
            "inputs": self.inputs,
            "combiners": {},
            "definitions": self.definitions,
            "outputs": outputs[-1:] if r.random() < 0.8 else outputs,
            "product": [m, n, k, "A0", "B1", kind],
        }

    def extent(self) -> int:
        r = self.random
        return r.choice(
            (1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 13, 16, 16, 17, 20, 24, 32, 33, 40, 64) + ((0, 1) if r.random() < 0.2 else ())
        )

    def kind(self) -> str:
        return "f" if self.random.random() < self.share["f"] else "i"

    # ------------------------------------------------------------ definitions

    def some_axes(self, least: int, most: int, points: int, without: tuple[str, ...] = ()) -> list[str]:
        r = self.random
        free = [a for a in self.axes if a not in without]
        chosen: list[str] = []
        for a in r.sample(free, min(len(free), r.randint(least, most))):
            if math.prod(self.axes[b] for b in [*chosen, a]) <= points:
                chosen.append(a)
        return chosen

    def define(self) -> None:
        r = self.random
        name = f"{r.choice('CDEFGYZ')}{len(self.definitions)}"
        if self.definitions and r.random() < 0.45:  # the same axes as one before, in any order: read element for element
            axes = list(r.choice(self.definitions)["axes"])
            r.shuffle(axes)
        else:
            axes = self.some_axes(0 if r.random() < 0.1 else 1, 3, self.points)
        room = self.points // max(1, math.prod(self.axes[a] for a in axes))
        form = r.random()
        kind = self.kind() if r.random() < 0.93 else "b"
        if form < 0.12 and room > 1 and (over := self.some_axes(1, 2, room, tuple(axes))):
            self.several(name, axes, over)
            return
        if form < 0.5 and room > 1 and (over := self.some_axes(1, 2, room, tuple(axes))):
            value: Expression = self.reduction(kind, axes, over, 2)
        elif form < 0.7 and room > 1 and (over := self.some_axes(1, 2, room, tuple(axes))):
            value = self.pointwise(self.reduction(kind, axes, over, 1), kind, axes, 2)
        else:
            value = self.value(kind, axes, 3, room)
        self.add([name], axes, [value], [kind])

    def add(self, names: list[str], axes: list[str], values: list[Expression], kinds: list[str]) -> None:
        self.definitions.append({"names": names, "axes": axes, "values": values})
        for name, kind in zip(names, kinds, strict=True):
            self.types[name] = kind
            self.shapes[name] = [self.axes[a] for a in axes]

    def several(self, name: str, axes: list[str], over: list[str]) -> None:
        r = self.random
        kind = r.choice(list(COMBINERS))
        members, _, classes = COMBINERS[kind]
        types, bodies = [], []
        for want in classes.split():
            dtype = r.choice(("float32", "float64") if want == "float" else ("int32", "int64"))
            types.append(dtype)
            bodies.append(["cast", self.value(want[0], axes + over, 1, 0), dtype])
        if kind == "turn":  # two types would wrap apart
            types[1] = bodies[1][2] = types[0]
        if kind == "first_best":
            bodies[1] = ["cast", ["axis", over[0]], types[1]]
        own = f"{kind}__{len(self.combiners)}"
        self.combiners[own] = types
        value = ["reduce", own, over, self.domain(axes + over), bodies]
        names = [name + "abc"[n] for n in range(members)] if members > 1 else [name]
        self.add(names, axes, [value], [c[0] for c in classes.split()])

    def reduction(self, kind: str, axes: list[str], over: list[str], depth: int) -> Expression:
        r = self.random
        scope = axes + over
        condition = self.domain(scope)
        if kind == "b":
            return ["reduce", r.choice(("any", "all")), over, condition, [self.condition(scope, depth)]]
        if kind == "i" and len(over) == 1 and r.random() < 0.25:
            return ["reduce", r.choice(("argmax", "argmin")), over, condition, [self.value(self.kind(), scope, depth, 0)]]
        if kind == "i" and r.random() < 0.1:
            return ["reduce", "sum", over, condition, [self.condition(scope, 1)]]
        how = r.choice(("sum", "sum", "sum", "sum", "max", "min", "prod"))
        room = self.points // max(1, math.prod(self.axes[a] for a in scope))
        if how == "sum" and r.random() < 0.3:
            body: Expression = ["binary", "*", self.leaf(kind, scope), self.leaf(kind, scope)]
        else:
            body = self.value(kind, scope, depth if how != "prod" else 0, room if r.random() < 0.3 else 0)
        return ["reduce", how, over, condition, [body]]

    def domain(self, scope: list[str]) -> Expression | None:
        if self.random.random() < 0.75:
            return None
        return self.axis_condition(scope) if self.random.random() < 0.6 else self.condition(scope, 1)

    # ------------------------------------------------------------ values

    def pointwise(self, inner: Expression, kind: str, scope: list[str], depth: int) -> Expression:
        r = self.random
        if kind == "b":
            return (
                ["unary", "~", inner]
                if r.random() < 0.5
                else ["binary", r.choice(("and", "or")), inner, self.condition(scope, 1)]
            )
        if kind == "f" and r.random() < 0.4:
            return ["unary", r.choice((*TAME, "abs", "-")), inner]
        other = self.value(kind, scope, depth - 1, 0)
        pair = [inner, other] if r.random() < 0.7 else [other, inner]
        return ["binary", r.choice(("+", "-", "*", "max", "min")), *pair]

    def leaf(self, kind: str, scope: list[str]) -> Expression:
        r = self.random
        if kind == "b":
            return self.condition(scope, 0)
        chance = r.random()
        if chance < 0.82:
            return self.read(kind, scope)
        if chance < 0.9 and scope:
            return self.axis_value(kind, scope)
        return self.number(kind)

    def axis_value(self, kind: str, scope: list[str]) -> Expression:
        axis: Expression = ["axis", self.random.choice(scope)]
        return ["cast", axis, self.random.choice(self.floats if kind == "f" else self.integers)]

    def number(self, kind: str) -> Expression:
        r = self.random
        return ["number", r.choice((0.0, 1.0, 2.0, 0.5, -1.0, -1.5, 3.0)) if kind == "f" else r.choice((0, 1, 2, 3, 5))]

    def value(self, kind: str, scope: list[str], depth: int, room: int) -> Expression:
        r = self.random
        if kind == "b":
            return self.condition(scope, depth)
        if depth <= 0 or r.random() < 0.15:
            return self.leaf(kind, scope)
        if room > 1 and r.random() < 0.15 and (over := self.some_axes(1, 1, room, tuple(scope))):
            return self.reduction(kind, scope, over, depth - 1)
        chance = r.random()
        if chance < 0.45:
            operators = ("+", "+", "-", "*", "*", "max", "min", "/" if kind == "f" else "&", "+" if kind == "f" else "^")
            return [
                "binary",
                r.choice(operators),
                self.value(kind, scope, depth - 1, room),
                self.value(kind, scope, depth - 1, room),
            ]
        if chance < 0.6:
            return [
                "where",
                self.condition(scope, depth - 1),
                self.value(kind, scope, depth - 1, 0),
                self.value(kind, scope, depth - 1, 0),
            ]
        if chance < 0.72:
            other = r.choice("fi")
            return ["cast", self.value(other, scope, depth - 1, 0), r.choice(self.floats if kind == "f" else self.integers)]
        return self.function(kind, scope, depth)

    def function(self, kind: str, scope: list[str], depth: int) -> Expression:
        r = self.random
        inner = self.value(kind, scope, depth - 1, 0)
        if kind == "i":
            return r.choice(
                (
                    ["unary", "-", inner],
                    ["unary", "abs", inner],
                    ["binary", r.choice(("//", "%")), inner, ["number", r.choice((2, 3, 4, 7))]],
                    ["binary", r.choice(("//", "%")), ["cast", inner, "int32"], ["number", r.choice((-1, -3))]],
                    ["binary", r.choice(("//", "%")), inner, self.read(kind, scope)],
                    ["binary", r.choice(("<<", ">>")), inner, ["number", r.choice((1, 2, 3))]],
                    ["binary", "|", inner, self.leaf(kind, scope)],
                )
            )
        chance = r.random()
        if chance < 0.45:
            return ["unary", r.choice(TAME), inner]
        if chance < 0.6:
            return ["unary", r.choice(("-", "abs")), inner]
        if chance < 0.7:
            return ["binary", "pow", inner, ["number", r.choice((2, 3, 2.0, 0.5))]]
        if chance < 0.8:
            return ["binary", r.choice(("%", "//")), inner, ["number", r.choice((2.0, 3.0, 0.5))]]
        return ["unary", r.choice(WILD), inner]

    def condition(self, scope: list[str], depth: int) -> Expression:
        r = self.random
        chance = r.random()
        if chance < 0.35 and scope:
            return self.axis_condition(scope)
        if chance < 0.5 and depth > 0:
            return ["binary", r.choice(("and", "or")), self.condition(scope, depth - 1), self.condition(scope, depth - 1)]
        if chance < 0.57 and depth > 0:
            return ["unary", "~", self.condition(scope, depth - 1)]
        if chance < 0.65:
            return self.read("b", scope)
        kind = self.kind()
        if chance < 0.7 and kind == "f":
            return ["unary", "isnan", self.leaf("f", scope)]
        other = self.number(kind) if r.random() < 0.6 else self.leaf(kind, scope)
        return ["binary", r.choice(("<", "<=", ">", ">=", "==", "!=")), self.read(kind, scope), other]

    def axis_condition(self, scope: list[str]) -> Expression:
        r = self.random
        a: Expression = ["axis", r.choice(scope)]
        if len(scope) > 1 and r.random() < 0.7:
            b: Expression = ["axis", r.choice([x for x in scope if x != a[1]])]
        else:
            b = ["number", r.randint(0, max(1, self.axes[a[1]]))]
        chance = r.random()
        if chance < 0.2:
            a = ["binary", r.choice(("//", "%")), a, self.divisor(scope)]
        if chance < 0.1:
            b = ["binary", r.choice(("//", "%")), b, self.divisor(scope)]
        elif chance < 0.35:
            b = ["binary", r.choice("+-"), b, ["number", r.randint(1, 4)]]
        elif chance < 0.42:
            b = ["binary", "*", b, ["number", 2]]
        return ["binary", r.choice(("<=", "<", ">=", ">", "==", "!=", "<=", ">=")), a, b]

    def divisor(self, scope: list[str]) -> Expression:
        """A number of either sign, sometimes an axis, which begins at 0."""
        r = self.random
        return ["axis", r.choice(scope)] if r.random() < 0.1 else ["number", r.choice((2, 3, 4, 2, 3, 4, -1, -2, -3))]

    # ------------------------------------------------------------ reads

    def read(self, kind: str, scope: list[str]) -> Expression:
        r = self.random
        classes = {"f": ("f",), "i": ("i",), "b": ("b",)}[kind]
        known = [n for n in self.shapes if self.types[n][0] in classes]
        made = [n for n in known if n[0] not in "ABTM"]
        if made and r.random() < 0.5:
            return self.read_known(r.choice(made), scope)
        if known and r.random() < 0.45:
            return self.read_known(r.choice(known), scope)
        return self.read_new(kind, scope)

    def read_new(self, kind: str, scope: list[str]) -> Expression:
        r = self.random
        name = f"{r.choice('AB') if kind != 'b' else 'M'}{len(self.inputs)}"
        chosen = r.sample(scope, min(len(scope), r.choice((1, 1, 2, 2, 2, 3))))
        indices, extents, padded = [], [], False
        for a in chosen or ([] if r.random() < 0.5 else [""]):
            index, low, high = self.index(a, scope)
            if low < 0 and r.random() < 0.5:
                index, low, high = ["binary", "+", index, ["number", -low]], 0, high - low
            extent = max(high + 1, 0) + (r.choice((0, 0, 0, 1, 3)) if a else 1)
            if low < 0 or (r.random() < 0.1 and extent > 2):
                extent = max(1, extent - r.randint(0, 3))
            padded |= low < 0 or high >= extent
            indices.append(index)
            extents.append(extent)
        if math.prod(extents) > 50000:
            return self.number(kind) if kind != "b" else ["number", True]
        dtype = "bool" if kind == "b" else r.choice(self.floats if kind == "f" else self.integers)
        dims = [[f"d{len(self.inputs)}_{n}", e] for n, e in enumerate(extents)]
        self.inputs.append({"name": name, "dtype": dtype, "dims": dims})
        self.types[name] = kind
        self.shapes[name] = extents
        return self.padded(["read", name, indices], kind) if padded else ["read", name, indices]

    def padded(self, read: Expression, kind: str) -> Expression:
        r = self.random
        fill: Any = {"f": (0.0, 0.0, 1.0, -2.0, float("-inf")), "i": (0, 0, 1, 7), "b": (False, True)}[kind]
        return ["pad", read, r.choice(fill)]

    def index(self, a: str, scope: list[str]) -> tuple[Expression, int, int]:
        """An index along an axis (or none), with the least and the greatest value that it takes."""
        r = self.random
        if not a:
            c = r.randint(0, 3)
            return ["number", c], c, c
        last = self.axes[a] - 1
        axis: Expression = ["axis", a]
        chance = r.random()
        if chance < 0.5 or last < 0:
            return axis, 0, last
        if chance < 0.6:
            c = r.randint(-2, 3)
            return ["binary", "+" if c >= 0 else "-", axis, ["number", abs(c)]], c, last + c
        if chance < 0.7:
            other = r.choice(scope)
            stride, dilation, c = r.randint(1, 3), r.randint(1, 2), r.randint(0, 2)
            window: Expression = [
                "binary",
                "+",
                ["binary", "*", axis, ["number", stride]],
                ["binary", "*", ["axis", other], ["number", dilation]],
            ]
            high = last * stride + max(0, self.axes[other] - 1) * dilation
            return (["binary", "-", window, ["number", c]], -c, high - c) if c else (window, 0, high)
        if chance < 0.76:
            return ["binary", "-", ["number", last], axis], 0, last
        if chance < 0.82:
            c = r.randint(2, 4)
            return ["binary", "//", axis, ["number", c]], 0, last // c
        if chance < 0.87:
            c = r.randint(2, 5)
            return ["binary", "%", axis, ["number", c]], 0, min(last, c - 1)
        if chance < 0.91:
            other = r.choice(scope)
            width = max(1, self.axes[other])
            return ["binary", "+", ["binary", "*", axis, ["number", width]], ["axis", other]], 0, last * width + width - 1
        if chance < 0.95:
            return self.divided(axis, last, scope)
        return self.gathered(a, r.randint(1, 2 * last + 2))

    def divided(self, axis: Expression, last: int, scope: list[str]) -> tuple[Expression, int, int]:
        """A window's quotient or remainder by a number of either sign, or by an axis; or the window, clamped."""
        r = self.random
        other, c = r.choice(scope), r.randint(-3, 3)
        window: Expression = ["binary", "+", axis, ["binary", "+", ["axis", other], ["number", c]]]
        low, high = c, last + max(0, self.axes[other] - 1) + c
        if r.random() < 0.3:
            end = r.randint(0, max(0, high))
            return ["binary", "min", ["binary", "max", window, ["number", 0]], ["number", end]], 0, end
        op = r.choice(("//", "//", "%"))
        if r.random() < 0.3:
            most = max(abs(low), abs(high), self.axes[other])
            return ["binary", op, window, ["axis", other]], -most, most
        by = r.choice((2, 3, 5, -1, -2, -3, -5))
        least, greatest = sorted((low // by, high // by) if op == "//" else (0, by - 1 if by > 0 else by + 1))
        return ["binary", op, window, ["number", by]], least, greatest

    def gathered(self, a: str, extent: int) -> tuple[Expression, int, int]:
        """An index that a tensor of whole numbers gives."""
        r = self.random
        name = f"T{len(self.inputs)}"
        dtype = r.choice(("int32", "int32", "int32", "int64", "int16", "uint8", "uint32", "int8"))
        shift = r.choice((0, 0, 0, 1, -1)) if extent > 2 else 0
        low, high = max(0, -shift), max(1, extent - max(0, shift))
        self.inputs.append(
            {"name": name, "dtype": dtype, "dims": [[f"d{len(self.inputs)}_0", self.axes[a]]], "range": [low, high]}
        )
        self.types[name] = "i"
        self.shapes[name] = [self.axes[a]]
        read: Expression = ["read", name, [["axis", a]]]
        if not shift:
            return read, low, high - 1
        return ["binary", "+" if shift > 0 else "-", read, ["number", abs(shift)]], low + shift, high - 1 + shift

    def read_known(self, name: str, scope: list[str]) -> Expression:
        r = self.random
        indices, leaves, free = [], False, list(scope)
        for extent in self.shapes[name]:
            index, low, high = self.index_within(extent, free, scope)
            leaves |= low < 0 or high >= extent
            indices.append(index)
            if index[0] == "axis" and index[1] in free and r.random() < 0.9:
                free.remove(index[1])
        read: Expression = ["read", name, indices]
        if not leaves and math.prod(self.shapes[name]) > 0:
            return read
        return self.padded(read, self.types[name][0])

    def index_within(self, extent: int, free: list[str], scope: list[str]) -> tuple[Expression, int, int]:
        r = self.random
        exact = [a for a in free if self.axes[a] == extent]
        if exact and r.random() < 0.8:
            return ["axis", r.choice(exact)], 0, extent - 1
        if extent <= 0 or not scope or r.random() < 0.07:
            c = r.randint(0, max(0, extent - 1))
            return ["number", c], c, c
        a = r.choice(scope)
        last = self.axes[a] - 1
        if r.random() < 0.06:
            return self.gathered(a, extent)
        if last < extent and r.random() < 0.7:
            c = r.randint(0, extent - 1 - max(last, 0))
            forms: list[tuple[Expression, int, int]] = [
                (["binary", "+", ["axis", a], ["number", c]], c, last + c),
                (["binary", "-", ["number", extent - 1], ["axis", a]], extent - 1 - last, extent - 1),
                (["binary", "%", ["binary", "+", ["axis", a], ["number", c]], ["number", extent]], 0, extent - 1),
            ]
            if last * 2 < extent:
                forms.append((["binary", "*", ["axis", a], ["number", 2]], 0, last * 2))
            return r.choice(forms)
        forms = [
            (["binary", "%", ["axis", a], ["number", extent]], 0, min(last, extent - 1)),
            (["binary", "-", ["axis", a], ["number", 1]], -1, last - 1),
            (["binary", "+", ["axis", a], ["number", 1]], 1, last + 1),
            (["axis", a], 0, last),
        ]
        if last // max(1, -(-(last + 1) // extent)) < extent:
            forms.append((["binary", "//", ["axis", a], ["number", max(1, -(-(last + 1) // extent))]], 0, extent - 1))
        return r.choice(forms)
