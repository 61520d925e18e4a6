"""Kernels of two roles by hand: a producer fills a ring, a consumer empties it; every part of the protocol may be got wrong."""

from __future__ import annotations

import dataclasses

from tests.lowering.small_kernels import THREAD, array, program, shared
from tilelang.core import dtype as dt
from tilelang.core.expr import Axis, Var, const, index
from tilelang.instructions.instruction import BARRIER_BY_BYTES, ONE_LANE, Instruction, instruction, moves
from tilelang.instructions.operand import operand
from tilelang.lowering import ir

LANES = 32


def row_copy(count: int = LANES) -> Instruction:
    """A row, by the device; 0 outside."""
    c = Axis("c", count)
    D, S = (operand(name, dt.float32, memory, c) for name, memory in (("D", "shared"), ("S", "global")))
    return instruction(
        "row_copy", means=moves(D[c], S[c]), operands=(D, S), level="block", issue=ONE_LANE, completes=BARRIER_BY_BYTES, outside=0.0,
        needs=("row_copy",), proxy="asynchronous", replace=True,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """A program of `rounds` rounds over a ring of `slots`; the other fields are parts that may be wrong."""

    slots: int = 2
    rounds: int = 5
    copies: bool = True
    awaits_empty: bool = True
    awaits_full: bool = True
    empty_parity: int = 1
    arrives_after: bool = True
    arrivals: int = 1
    bytes: int = 4 * LANES
    together: int = LANES
    barrier: bool = True
    clears: bool = False
    fence: bool = True

    @property
    def program(self) -> ir.Program:
        x, out = array("x", self.rounds, LANES), array("out", self.rounds, LANES, role="output")
        ring = shared("ring", self.slots, LANES).replace(ring=self.slots)
        full, empty = (ir.Buffer(name, dt.uint64, (self.slots,), "shared", "phases") for name in ("full", "empty"))
        held = ir.Buffer("held", dt.float32, (1,), "register")
        init = ir.If(THREAD < 1, ir.seq(ir.InitPhases(full, 1), ir.InitPhases(empty, self.arrivals)))
        roles = ir.Roles((
            ir.Role("producer", LANES, LANES, self.producer(x, ring, full, empty), 40),
            ir.Role("consumer", 0, LANES, self.consumer(out, ring, held, full, empty)),
        ))  # fmt: skip
        body = ir.seq(init, ir.Barrier(("shared",)) if self.barrier else None, roles)
        return program(body, x, out, ring, full, empty, held, threads=2 * LANES)

    def producer(self, x: ir.Buffer, ring: ir.Buffer, full: ir.Buffer, empty: ir.Buffer) -> ir.Stmt:
        r = Var("r", dt.int64, 0, self.rounds - 1)
        slot, use = r % self.slots, r // self.slots % 2
        lane = THREAD.replace(upper=LANES - 1)
        wait = ir.Await(empty, slot, (use + self.empty_parity) % 2) if self.awaits_empty else None
        c = Var("c", dt.int64, 0, LANES - 1)
        operands = (("D", ring, (slot, c)), ("S", x, (r, c)))
        copy = ir.Instruction(row_copy(), operands, regions=(ir.Region("D", (c,)), ir.Region("S", (c,))), signal=(full, slot))
        fence = ir.Fence("rows", "shared") if self.fence else None
        zero = ir.seq(ir.Store(ring, (slot, lane), const(0, dt.float32)), fence, ir.Barrier(("shared",))) if self.clears else None
        by_device = ir.If(lane < 1, ir.seq(ir.Arrive(full, slot, bytes=self.bytes), copy))
        by_hand = ir.seq(ir.Store(ring, (slot, lane), ir.Load(x, (r, lane))), ir.Arrive(full, slot, LANES))
        return ir.For(r, index(self.rounds), ir.seq(wait, zero, by_device if self.copies else by_hand))

    def consumer(self, out: ir.Buffer, ring: ir.Buffer, held: ir.Buffer, full: ir.Buffer, empty: ir.Buffer) -> ir.Stmt:
        q = Var("q", dt.int64, 0, self.rounds - 1)
        slot, use = q % self.slots, q // self.slots % 2
        lane = THREAD.replace(upper=LANES - 1)
        wait = ir.Await(full, slot, use) if self.awaits_full else None
        read = ir.Store(held, (index(0),), ir.Load(ring, (slot, LANES - 1 - lane)))
        arrive = ir.Arrive(empty, slot, self.together) if self.together else ir.If(lane < 1, ir.Arrive(empty, slot))
        both = (read, arrive) if self.arrives_after else (arrive, read)
        return ir.For(q, index(self.rounds), ir.seq(wait, *both, ir.Store(out, (q, lane), ir.Load(held, (index(0),)))))
