"""Warp-specialized roles in the C family: each role in its own branch, and phase barriers as the dialect writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelang.core.expr import Binary, Const, Expr, Var, free, index
from tilelang.errors import DeviceError
from tilelang.lowering import ir
from tilelang.lowering.targets.c.dialect import RoleTexts
from tilelang.lowering.targets.c.expressions import Expressions


class RoleWriter:
    """Writes role statements. put: prints a line. statement: prints another statement. braces: prints one in a block with a head."""

    def __init__(
        self, kernel: ir.Kernel, texts: RoleTexts, expressions: Expressions, put: Callable[[str], None],
        statement: Callable[[ir.Stmt], None], braces: Callable[[str, ir.Stmt], None], bind: Callable[[Any, str], str],
    ) -> None:  # fmt: skip
        self.kernel, self.texts, self.expressions = kernel, texts, expressions
        self._put, self._statement, self._braces, self._bind = put, statement, braces, bind
        self._role: tuple[int, ir.Role] | None = None  # the current role, and its number from 1

    def write(self, stmt: ir.Stmt) -> None:
        """Prints one statement that only kernels with roles have."""
        x = self.expressions
        match stmt:
            case ir.Roles(roles):
                for number, role in enumerate(roles):
                    self._role = number + 1, role
                    last = role.first + role.threads
                    name = x.names[ir.THREAD.name]
                    inside = [f"{role.first} <= {name}"] * (role.first > 0) + [f"{name} < {last}"] * (last < self.kernel.threads)
                    self._braces(f"if ({' && '.join(inside) or '1'})", role)
                self._role = None
            case ir.Role(body=body, registers=registers):
                self._enter(stmt, registers)
                self._statement(body)
            case ir.InitPhases(phases, arrivals):
                for number in range(phases.elements):
                    self._put(self.texts.init.format(barrier=self.barrier_at(phases, index(number)), arrivals=arrivals))
                self._put(self.texts.init_done)
            case ir.Arrive(phases, number, together, bytes):
                self._arrive(self.barrier_at(phases, number), together, bytes, stmt.in_cluster)
            case ir.ClusterBarrier():
                self._put(self.texts.meet_cluster)
            case ir.Await(phases, number, parity):
                self._put(self.texts.wait.format(barrier=self.barrier_at(phases, number), parity=x.index(parity)))
            case _:
                raise AssertionError(f"no statement of roles: {stmt!r}")

    def barrier_at(self, phases: ir.Buffer, number: Expr) -> str:
        """A pointer to a phase barrier."""
        return self.texts.barrier.format(pointer=f"{self.expressions.names[phases]} + {self.expressions.index(number, 5)}")

    def _enter(self, role: ir.Role, registers: int | None) -> None:
        """Makes the threads of a role count from 0 and reallocates their registers."""
        x = self.expressions
        if registers is not None:
            self._put(self.texts.registers.format(registers=registers, threads=self.kernel.threads))
        if role.first:
            old = x.names[ir.THREAD.name]
            new = self._bind(ir.THREAD, x.index_type)
            self._put(f"const {x.index_type} {new} = {old} - {role.first};")

    def _arrive(self, barrier: str, together: int, bytes: int, in_cluster: bool) -> None:
        texts = [(self.texts.arrive_bytes if bytes else self.texts.arrive).format(barrier=barrier, bytes=bytes)]
        if in_cluster:
            texts = [self.texts.arrive_in.format(barrier=barrier, block=block) for block in range(self.kernel.cluster)]
        if together > 1:
            self._put(self.texts.together)
        for lane, text in enumerate(texts):  # each by another lane
            here = f"if ({self.expressions.names[ir.THREAD.name]} % {together} == {lane % together}) "
            self._put(here * (together > 1) + text)

    def elected(self, stmt: ir.If) -> str | None:
        """A condition for code of a role's first thread that never uses the index, so that any one thread could execute it."""
        if self._role is None or stmt.otherwise is not None or not _is_first(stmt.condition):
            return None
        inside = list(ir.statements(stmt.then))
        asking = any(v.name == ir.THREAD.name for s in inside for e in ir.expressions(s) for v in free(e))
        meeting = any(isinstance(s, ir.Barrier) or isinstance(s, ir.Arrive) and s.together > 1 for s in inside)
        return None if asking or meeting else self.texts.elected.format(thread=self.expressions.names[ir.THREAD.name])

    def barrier(self) -> str | None:
        """The barrier of the current role; None outside roles, where the whole block synchronizes."""
        if self._role is None:
            return None
        number, role = self._role
        return self.texts.meet.format(number=number, threads=role.threads)


def _is_first(condition: Expr) -> bool:
    """Whether a condition holds in the first thread only."""
    match condition:
        case Binary("<", Var() as thread, Const(value=1)):
            return thread.name == ir.THREAD.name
        case _:
            return False


def texts_of(roles: RoleTexts | None, dialect: str) -> RoleTexts:
    """The role texts of a dialect. Raises DeviceError if it has none."""
    if roles is None:
        raise DeviceError("no-roles", f"{dialect} has no warp specialization", help="use units without roles, or another target")
    return roles
