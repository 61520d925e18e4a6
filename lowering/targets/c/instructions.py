"""Prints instructions of the kernel IR from their templates, with their operands filled in."""

from __future__ import annotations

from typing import Any

from tilelang.core.expr import Binary, Expr, index, substitute
from tilelang.core.simplify import simplify
from tilelang.errors import DeviceError
from tilelang.instructions.instruction import Instruction as InstructionRecord
from tilelang.instructions.operand import Queue
from tilelang.instructions.template import OperandText
from tilelang.lowering import ir
from tilelang.lowering.descriptors import BoxMap, box_map, box_maps
from tilelang.lowering.ir import Buffer, Load
from tilelang.lowering.targets.c.dialect import Dialect, memory_bytes
from tilelang.lowering.targets.c.expressions import Expressions
from tilelang.lowering.targets.c.names import Names

CHUNK_BYTES = 16  # the unit of addresses in descriptors


class Instructions:
    """Prints the instructions of one kernel."""

    kernel: ir.Kernel
    dialect: Dialect
    expressions: Expressions
    names: Names
    maps: dict[BoxMap, str]  # the names of the kernel's tensor maps

    def put(self, text: str) -> None:
        raise NotImplementedError

    def map_arguments(self) -> list[str]:
        """The declarations of the tensor map arguments, which follow the buffers."""
        self.maps = {map: self.names.fresh(f"{map.buffer.name}_map") for map in box_maps(self.kernel)}
        return [self.dialect.tensor_map.format(name=name) for name in self.maps.values()]

    def prefetch_maps(self) -> None:
        """One thread prefetches the kernel's tensor maps before their first use."""
        if not self.maps or not self.dialect.prefetch_map:
            return
        thread = self.expressions.names.get(ir.THREAD.name)
        texts = [self.dialect.prefetch_map.format(map=f"&{name}") for name in self.maps.values()]
        self.put(f"if ({thread} < 1) {{ {' '.join(texts)} }}" if thread else " ".join(texts))

    def queue_text(self, name: str, which: str) -> str:
        """A text of a queue. which: the field of Queue."""
        instructions = (s.semantics for s in ir.statements(self.kernel.body) if isinstance(s, ir.Instruction))
        queue: Queue = next(found.queue for found in instructions if found.family == name)
        texts: dict[str, str] = dict(getattr(queue, which))
        return texts.get(self.dialect.name, "")

    def instruction(self, stmt: ir.Instruction, barrier: str) -> None:
        """The instruction's template in this dialect, with its operands filled in. barrier: the barrier that it signals."""
        semantics: InstructionRecord = stmt.semantics
        if self.dialect.name not in semantics.dialects:
            raise DeviceError(
                "no-template",
                f"the instruction {semantics.name} has no template for {self.dialect.name}",
                span=stmt.span,
                help="give it a template, or run the kernel in the simulator",
            )
        texts = {}
        for operand, buffer, indices in stmt.operands:
            region = stmt.region(operand)
            if region is not None:
                texts[operand] = self._described(stmt, region, buffer, indices)
            else:
                held = semantics.fragment(operand)
                texts[operand] = self._held(buffer, indices, held.slots if held is not None else 1)
        self.put(semantics.render(self.dialect.name, texts, barrier, blocks=self.kernel.cluster))

    def _described(self, stmt: ir.Instruction, region: ir.Region, buffer: Buffer, indices: tuple[Expr, ...]) -> OperandText:
        """An operand that is named by its start."""
        x, start = self.expressions, dict.fromkeys(region.variables, index(0))
        first: tuple[Any, ...] = tuple(simplify(substitute(i, start)) for i in indices)
        pointer, swizzle = f"({x.pointer(buffer, first)})", str(region.swizzle_bytes)
        if buffer.memory != "global":
            chunks = x.chunks(buffer, first, CHUNK_BYTES)
            return OperandText(pointer, (), pointer, swizzle, base=x.names[buffer], chunks=chunks)
        map = box_map(stmt)
        assert map is not None
        coordinates = ", ".join(x.index(i) for i in reversed(first))
        return OperandText(pointer, (), pointer, swizzle, f"&{self.maps[map]}", coordinates)

    def _held(self, buffer: Buffer, indices: tuple[Expr, ...], count: int) -> OperandText:
        """An operand with `count` elements per lane."""
        x = self.expressions
        if buffer.vector:
            pieces = x.pieces(buffer, indices, count)
            name, lane, n = pieces[0]
            whole = x.part(name, buffer.vector, lane, n) if len(pieces) == 1 else x.raw(Load(buffer, indices, count))
            slots = tuple(x.part(v, buffer.vector, at + i, 1) for v, at, n in pieces for i in range(n))
            return OperandText(whole, slots, words=self._words(buffer, pieces))
        each = tuple((*indices[:-1], Binary("+", indices[-1], index(i))) for i in range(count)) if indices else (indices,)
        is_vector = count > 1 and count & (count - 1) == 0 and count <= self.dialect.vectors.widest
        whole = x.vector_place(buffer, indices, count, False) if is_vector else x.element(buffer, indices)
        pointer = x.pointer(buffer, indices)
        words = self._words(buffer, [(pointer, 0, count)]) if buffer.memory == "register" else ()
        return OperandText(whole, tuple(x.element(buffer, i) for i in each), f"({pointer})", words=words)

    def _words(self, buffer: Buffer, pieces: list[tuple[str, int, int]]) -> tuple[str, ...]:
        """The 32-bit registers that narrower lanes fill, as parts of variables or of an array; empty if they have no such names."""
        per = 4 // memory_bytes(buffer.dtype) if memory_bytes(buffer.dtype) < 4 else 0
        form = self.dialect.vectors.word
        if not per or not form or any(at % per or n % per for _, at, n in pieces):
            return ()
        return tuple(form.format(vector=v, number=(at + i) // per) for v, at, n in pieces for i in range(0, n, per))
