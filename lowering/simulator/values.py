"""Evaluates expressions of kernel IR for the threads of a batch.

An expression becomes a function of the active threads when it is first evaluated. What depends only on the thread and block indices is
computed once. Where the elements of an access depend on nothing else but loop variables, they are found once for each of their values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var, free, index
from tilelang.lowering import ir, printer
from tilelang.lowering.simulator import definedness
from tilelang.lowering.simulator import scalar_semantics as scalar
from tilelang.lowering.simulator.batch import Mask, Touch
from tilelang.lowering.simulator.definedness import Known, Partly
from tilelang.lowering.simulator.findings import Site
from tilelang.lowering.simulator.memory_model import Memory, Place
from tilelang.lowering.simulator.scalar_semantics import Value
from tilelang.lowering.simulator.shadow_memory import Rows

Array = npt.NDArray[Any]
Code = Callable[[Mask], Known]  # the value of an expression in the active threads; unspecified in the others

KEPT_ELEMENTS = 1 << 20  # of masks and accesses that are kept for repetition, in all

_GEOMETRY = frozenset(("thread", *(v.name for v in ir.BLOCK)))


class Values:
    """The values of variables and expressions in the threads of a batch."""

    def __init__(self, memory: Memory, sites: dict[tuple[int, Any], Site]) -> None:
        self.memory, self.batch, self.recorder = memory, memory.batch, memory.recorder
        self._sites = sites
        self._statement: ir.Stmt = memory.batch.kernel.body
        self._vars: dict[str, Known] = {"thread": self.batch.thread}
        for var, number in zip(ir.BLOCK, self.batch.block_index(self.batch.block), strict=True):
            self._vars[var.name] = number
        self._numbers: dict[str, Any] = {}  # the variables that are equal in all threads, as Python's numbers
        self._code: dict[Expr, Code] = {}
        self._room = KEPT_ELEMENTS

    def bind(self, name: str, value: Known) -> None:
        """Gives a variable its value."""
        self._vars[name] = value
        if type(value) is Partly or value.ndim:
            self._numbers.pop(name, None)
        else:
            self._numbers[name] = value.item()

    def evaluate(self, expr: Expr, mask: Mask) -> Known:
        """The value of an expression in the active threads; unspecified in the others."""
        return self.code(expr)(mask)

    def defined(self, expr: Expr, mask: Mask, use: str = "an index") -> Value:
        """An expression that must be defined (a condition, index or count); reports undefined elements, which become 0."""
        value = self.code(expr)(mask)
        return value if type(value) is not Partly else self._reported(value, mask, use)

    def _reported(self, value: Partly, mask: Mask, use: str) -> Value:
        flags = mask.flags if value.value.ndim == 1 else mask.flags[:, None] if mask.lanes is None else mask.lanes
        marks = np.broadcast_to(np.where(flags, value.marks, 0), np.broadcast_shapes(value.value.shape, flags.shape))
        where = np.nonzero(marks)
        site = self._site("use", "", "use")
        self.memory.report_undefined(marks[where], where[0], f"is part of {use} in {site}")
        return np.where(value.marks, np.zeros((), value.value.dtype), value.value)

    def code(self, expr: Expr) -> Code:
        """The function that evaluates an expression."""
        found = self._code.get(expr)
        if found is None:
            found = EVALUATE[type(expr)](self, expr)
            if type(expr) not in (Const, Var) and _depends_on_geometry_alone(expr):
                found = _once(found, self.batch.all)
            self._code[expr] = found
        return found

    def _const(self, expr: Const) -> Code:
        value = scalar.constant(expr)
        return lambda mask: value

    def _var(self, expr: Var) -> Code:
        name, known = expr.name, self._vars
        return lambda mask: known[name]

    def _binary(self, expr: Binary) -> Code:
        left, op = self.code(expr.left), expr.op
        if op in ("and", "or"):
            return self._logical(expr, left)
        right, operation = self.code(expr.right), scalar.BINARY[op]

        def binary(mask: Mask) -> Known:
            a, b = left(mask), right(mask)
            if type(a) is Partly or type(b) is Partly or a.ndim + b.ndim == 3:  # over threads, and over their lanes
                return definedness.binary(op, a, b)
            return operation(a, b)

        return binary

    def _logical(self, expr: Binary, left: Code) -> Code:
        right, op = self.code(expr.right), expr.op

        def logical(mask: Mask) -> Known:
            first = left(mask)
            decided = definedness.plain(first)
            open_ = decided if op == "and" else np.logical_not(decided)
            needed = mask.narrow(open_)
            if not needed.threads.size:
                return first
            both = definedness.binary(op, first, right(needed))
            return both if type(both) is not Partly else definedness.select(open_, both, first)

        return logical

    def _unary(self, expr: Unary) -> Code:
        operand, op = self.code(expr.operand), expr.op
        return lambda mask: definedness.unary(op, operand(mask))

    def _call(self, expr: Call) -> Code:
        argument, name = self.code(expr.args[0]), expr.name
        return lambda mask: definedness.call(name, argument(mask))

    def _cast(self, expr: Cast) -> Code:
        operand, source, target = self.code(expr.operand), expr.operand.dtype, expr.type
        return lambda mask: definedness.cast(operand(mask), source, target)

    def _select(self, expr: Select) -> Code:
        sides, then, otherwise = Sides(self, expr.condition), self.code(expr.then), self.code(expr.otherwise)

        def select(mask: Mask) -> Known:
            condition, yes, no = sides.of(mask)
            if type(condition) is not Partly:
                if not no.threads.size:
                    return then(yes)
                if not yes.threads.size:
                    return otherwise(no)
            return definedness.select(condition, then(yes), otherwise(no))

        return select

    def _load(self, expr: ir.Load) -> Code:
        access = Access(self, expr.buffer, expr.indices, expr.lanes, expr.across)
        counted, memory, zero = expr.count is not None, self.memory, scalar.zero(expr.dtype)
        storage, wide = memory.storage[expr.buffer.name], scalar.compute_numpy(expr.dtype)

        def load(mask: Mask) -> Known:
            if not mask.threads.size:
                return zero
            if counted or mask.lanes is not None:
                return self._load_some(expr, access, mask)
            place, at = access.find(mask)
            site = access.site(expr, "load")
            if type(place) is Rows and place.are_written(storage):
                return place.values(storage, expr.lanes, wide)
            if type(place) is not Touch:
                place = memory.locate(
                    expr.buffer, access.at(mask) if at is None else at, expr.lanes, None, mask, site, expr.across
                )
            return memory.load(expr, place, site)

        return load

    def _load_some(self, expr: ir.Load, access: Access, mask: Mask) -> Known:
        """A load by some lanes, or of a counted number of elements."""
        by_thread = mask.by_thread
        indices = access.at(by_thread)
        count = None if expr.count is None else self.defined(expr.count, by_thread, "a count")
        site = self._site(expr, expr.buffer.name, "load")
        if mask.lanes is not None and expr.lanes > 1:
            # The device makes one access: lanes whose value is not used are loaded too, and must exist.
            unused = by_thread.narrow(~mask.lanes)
            self.memory.locate(expr.buffer, indices, expr.lanes, count, unused, site, expr.across)
        touch = self.memory.locate(expr.buffer, indices, expr.lanes, count, mask, site, expr.across)
        return self.memory.load(expr, touch, site)

    def _ramp(self, expr: ir.Ramp) -> Code:
        start, lanes = self.code(expr.base), expr.lanes

        def ramp(mask: Mask) -> Known:
            base = start(mask.by_thread)
            numbers = definedness.plain(base).reshape(-1, 1)
            ramp = numbers + np.arange(lanes, dtype=numbers.dtype)
            return Partly(ramp, base.marks.reshape(-1, 1)) if type(base) is Partly else ramp

        return ramp

    def _before_line(self, expr: ir.BeforeLine) -> Code:
        """Assumes that every array starts 16 bytes past a cache line, as NumPy's large ones do."""
        value = scalar.constant(index(max(0, expr.line_bytes - 16) // expr.buffer.dtype.bytes))
        return lambda mask: value

    def _pack(self, expr: ir.Pack) -> Code:
        codes = [self.code(item) for item in expr.items]

        def pack(mask: Mask) -> Known:
            items = [code(mask.lane(number)) for number, code in enumerate(codes)]
            return definedness.rearranged(items, lambda each: np.stack(np.broadcast_arrays(*map(np.atleast_1d, each)), axis=1))

        return pack

    def _shuffle(self, expr: ir.Shuffle) -> Code:
        codes, numbers = [self.code(e) for e in (expr.first, expr.second)], list(expr.numbers)

        def chosen(each: Sequence[Any]) -> Any:
            both = np.broadcast_arrays(*map(np.atleast_2d, each))
            return np.concatenate(both, axis=1)[:, numbers]

        return lambda mask: definedness.rearranged([code(mask.by_thread) for code in codes], chosen)

    def _site(self, key: Any, buffer: str, access: str) -> Site:
        """The access that `key` (an expression or a role) makes in the current statement."""
        stmt = self._statement
        site = self._sites.get((id(stmt), key))
        if site is None:
            text = functools.partial(str, key) if isinstance(key, Expr) else functools.partial(printer.headline, stmt)
            span = getattr(stmt, "span", None)
            site = self._sites[id(stmt), key] = self.recorder.site(self.batch.kernel.name, buffer, access, text, span, stmt)
        return site


class Repeated:
    """Results of one access or condition, kept by the active threads and the values of its variables."""

    def __init__(self, values: Values, expressions: Sequence[Expr]) -> None:
        self._values = values
        self._names = tuple({v.name: None for e in expressions for v in free(e) if v.name not in _GEOMETRY})
        self._steady = not any(map(ir.loads, expressions))
        self._kept: dict[Any, Any] = {}

    def key(self, mask: Mask) -> Any:
        """What the result depends on; None if it is not only the threads and variables that are equal in all of them."""
        if not (self._steady and mask.lasting):
            return None
        if not self._names:
            return mask
        numbers = self._values._numbers
        try:
            return (mask, *[numbers[name] for name in self._names])
        except KeyError:
            self._steady = False
            return None

    def keep(self, key: Any, result: Any, elements: int) -> None:
        """Keeps a result, if there is room."""
        self._values._room -= elements
        if self._values._room >= 0:
            self._kept[key] = result


class Access(Repeated):
    """Finds the elements of one access."""

    def __init__(self, values: Values, buffer: ir.Buffer, indices: tuple[Expr, ...], lanes: int, across: bool) -> None:
        super().__init__(values, indices)
        self._buffer, self._lanes, self._across = buffer, lanes, across
        self._memory, self._codes = values.memory, [values.code(i) for i in indices]
        self._site: tuple[ir.Stmt, Site] | None = None  # in the statement that made it last

    def site(self, key: Any, access: str) -> Site:
        """The access, as it is reported."""
        stmt = self._values._statement
        if self._site is None or self._site[0] is not stmt:
            self._site = stmt, self._values._site(key, self._buffer.name, access)
        return self._site[1]

    def at(self, mask: Mask) -> list[Value]:
        """The indices, which must be defined."""
        found = [code(mask) for code in self._codes]
        for number, value in enumerate(found):
            if type(value) is Partly:
                found[number] = self._values._reported(value, mask, "an index")
        return found

    def find(self, mask: Mask) -> tuple[Place, list[Value] | None]:
        """The elements, if all are in bounds; and the indices, if they had to be evaluated."""
        key = self.key(mask)
        if key is not None and (kept := self._kept.get(key)) is not None:
            return kept, None
        at = self.at(mask)
        place = self._memory.place(self._buffer, at, self._lanes, mask, self._across)
        if key is not None and place is not None:
            self.keep(key, place, place.element.size if type(place) is Touch else 1)
        return place, at


class Sides(Repeated):
    """The threads in which a condition holds, and the others."""

    def __init__(self, values: Values, condition: Expr) -> None:
        super().__init__(values, (condition,))
        self._code = values.code(condition)

    def of(self, mask: Mask) -> tuple[Known, Mask, Mask]:
        """The condition, the threads in which it holds, and the others."""
        key = self.key(mask)
        if key is not None and (kept := self._kept.get(key)) is not None:
            found: tuple[Known, Mask, Mask] = kept
            return found
        condition = self._code(mask)
        decided = definedness.plain(condition)
        yes, no = mask.narrow(decided), mask.narrow(np.logical_not(decided))
        if key is not None:
            yes.lasting, no.lasting = yes.lanes is None, no.lanes is None
            self.keep(key, (condition, yes, no), decided.size)
        return condition, yes, no


def _once(code: Code, every: Mask) -> Code:
    """A function that evaluates an expression for all threads, when it is first called."""
    known: list[Known] = []

    def once(mask: Mask) -> Known:
        if not known:
            known.append(code(every))
        return known[0]

    return once


def _depends_on_geometry_alone(expr: Expr) -> bool:
    """Whether a value depends only on the thread and block indices."""
    return not ir.loads(expr) and all(v.name in _GEOMETRY for v in free(expr))


EVALUATE: dict[type, Callable[[Values, Any], Code]] = {
    Const: Values._const, Var: Values._var, Binary: Values._binary, Unary: Values._unary, Call: Values._call,
    Cast: Values._cast, Select: Values._select, ir.Load: Values._load, ir.Ramp: Values._ramp, ir.Pack: Values._pack,
    ir.Shuffle: Values._shuffle,
    ir.BeforeLine: Values._before_line,
}  # fmt: skip
