"""Prints stores and asynchronous copies of the kernel IR as C statements.

A store to a promoted register buffer assigns its named variables, in pieces if it covers several. A store to memory is one vector
where the dialect allows it. An asynchronous copy that the dialect or the alignment does not support becomes a store, which is its
earliest legal completion.
"""

from __future__ import annotations

from tilelang.core import dtype as dt
from tilelang.core.expr import Binary, Expr, Select, index
from tilelang.instructions.template import OperandText
from tilelang.lowering import ir
from tilelang.lowering.ir import Buffer, Copy, Load, Ramp, Store
from tilelang.lowering.targets.c.dialect import STREAMED_BYTES, Dialect, memory_bytes, memory_type, vector
from tilelang.lowering.targets.c.expressions import Expressions
from tilelang.lowering.targets.c.library import Library
from tilelang.lowering.targets.c.names import Names

INDENT = "    "


class Stores:
    """Prints the stores of one kernel, line by line."""

    dialect: Dialect
    expressions: Expressions
    library: Library
    names: Names
    lines: list[str]
    depth: int

    def put(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text)

    def put_if(self, text: str) -> None:
        """Prints a statement that the dialect may not have."""
        if text:
            self.put(text)

    def store(self, store: Store, declared: tuple[str, ...]) -> None:
        x, buffer, value = self.expressions, store.buffer, store.value
        n, scalar = ir.lanes(value), memory_type(buffer.dtype)
        if buffer.vector:
            self._register_store(store, n, declared)
            return
        text = self._stored(value, buffer, n)
        if store.kept_from is not None:
            if n == 1:
                inside = x.condition(Binary("<", index(0), store.kept_from))
                self.put(f"if ({inside}) {x.element(buffer, store.indices)} = {text};")
            else:
                place = x.place_of_first(buffer, store.indices, store.kept_from)
                helper = self.library.store_first(scalar, n, buffer.memory, x.known_alignment(buffer, store.indices))
                self.put(f"{helper}({place}, {text}, {x.amount(store.kept_from)});")
        elif store.streaming and buffer.memory == "global" and n > 1 and n * memory_bytes(buffer.dtype) >= STREAMED_BYTES:
            self._store_streaming(store, text)
        elif n == 1:
            self.put(f"{x.element(buffer, store.indices)} = {text};")
        else:
            self.put(f"{x.vector_place(buffer, store.indices, n, False)} = {text};")

    def _stored(self, value: Expr, buffer: Buffer, n: int) -> str:
        """A value in the form in which a buffer holds it."""
        text = self.expressions.stored(value, buffer.dtype, n)
        match value:
            case Binary("+", Load(first, _, 4), Load(second, _, 4)) if (
                self.dialect.halved and first is second and first.memory == "register" and value.dtype in (dt.int32, dt.uint32)
            ):
                return f"{self.dialect.halved.format(type=vector(memory_type(value.dtype), n))}({text})"
        return text

    def _store_streaming(self, store: Store, text: str) -> None:
        """A streaming store, by the dialect's function if the location is aligned, else by a helper that checks."""
        x, buffer, n = self.expressions, store.buffer, ir.lanes(store.value)
        scalar, known = memory_type(buffer.dtype), x.known_alignment(buffer, store.indices)
        own = self.dialect.functions.get("store_streaming")
        if own is None:
            self.put(f"{self.library.store_streaming(scalar, n, buffer.memory)}({x.pointer(buffer, store.indices)}, {text});")
        elif known % STREAMED_BYTES == 0:
            self.put(f"{own}({x.pointer(buffer, store.indices)}, {text});")
        else:
            self.put(f"{x.vector_place(buffer, store.indices, n, False)} = {text};")

    def copy(self, copy: Copy, declared: tuple[str, ...]) -> None:
        """An asynchronous copy, or a store if the dialect cannot copy from there asynchronously."""
        x, of = self.expressions, memory_bytes(copy.source.dtype)
        ends = (copy.source, copy.source_indices), (copy.target, copy.target_indices)
        bytes = of * copy.lanes
        if copied_by_instruction(copy, self.dialect):
            self._copy_by_instruction(copy)
            return
        if not self.dialect.copy or any(x.known_alignment(buffer, indices) % bytes for buffer, indices in ends):
            self.store(ir.at_once(copy), declared)
            return
        source, target = (x.pointer(buffer, indices) for buffer, indices in ends)
        if copy.count is None:
            self.put(self.dialect.copy.format(bytes=bytes, target=target, source=source))
            return
        existing = x.index(copy.count) if of == 1 else f"{x.index(copy.count, 11)} * {of}"
        self.put(self.dialect.copy_first.format(bytes=bytes, target=target, source=source, existing=existing))

    def _copy_by_instruction(self, copy: Copy) -> None:
        """The text of the instruction that a schedule names."""
        x, of, made = self.expressions, memory_bytes(copy.source.dtype), copy.by
        ends = {made.writes: (copy.target, copy.target_indices), made.reads[0]: (copy.source, copy.source_indices)}
        texts = {name: OperandText(x.element(*end), address=f"({x.pointer(*end)})") for name, end in ends.items()}
        existing = str(of * copy.lanes) if copy.count is None else x.index(copy.count * of)
        self.put(made.render(self.dialect.name, texts, existing=existing))

    def _register_store(self, store: Store, n: int, declared: tuple[str, ...]) -> None:
        x, buffer, value = self.expressions, store.buffer, store.value
        if store.kept_from is not None:  # keep the lanes that are not written
            inside = Binary("<", Ramp(index(0), n) if n > 1 else index(0), store.kept_from)
            value = Select(inside, value, Load(buffer, store.indices, n))
        pieces = x.pieces(buffer, store.indices, n)
        scalar = memory_type(buffer.dtype)
        text = self._stored(value, buffer, n)
        if len(pieces) == 1:
            name, lane, count = pieces[0]
            type = f"{vector(scalar, buffer.vector)} " if name in declared else ""
            self.put(type + self.dialect.set_part(name, buffer.vector, lane, count, text))
            return
        for name in declared:
            self.put(f"{vector(scalar, buffer.vector)} {name};")
        whole = self.names.fresh("whole")
        self.put(f"const {vector(scalar, n)} {whole} = {text};")
        taken = 0
        for name, lane, count in pieces:
            source = self.dialect.part(whole, n, taken, count)
            self.put(self.dialect.set_part(name, buffer.vector, lane, count, source))
            taken += count


def copied_by_instruction(copy: Copy, dialect: Dialect) -> bool:
    """Whether a copy is printed as the instruction that a schedule names, in a dialect without copies of its own."""
    return not dialect.copy and copy.by is not None and dialect.name in copy.by.dialects
