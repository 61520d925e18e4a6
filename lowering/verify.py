"""The verifier of kernel IR, run after every pass in tests and under TILELANG_VERIFY=1.

It finds compiler bugs only, so a violation is an InternalError and not an error of the schedule's author. It always checks that
buffers are declared and used consistently, indices and types fit, lanes agree, names are defined before use and have true ranges,
and barriers are in uniform control flow. After some passes it checks more:

    fission             one thread per block, no barriers
    vectorize           no vector loops; conditions, extents, indices and counts are scalars
    unroll              no unroll loops either
    scalar_replacement  register buffers kept in vectors have constant, in-bounds indices that stay within one vector
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from tilelang.core import dtype as dt
from tilelang.core import expr as ex
from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var, index, to_text
from tilelang.core.simplify import interval
from tilelang.instructions.instruction import BARRIER_BY_BYTES
from tilelang.lowering import ir, printer

CHAIN = ("vectorize", "unroll", "scalar_replacement")  # each of these passes preserves the guarantees of the ones before it
NO_CONDITIONS: frozenset[Expr] = frozenset()
FUNCTIONS = {*ex.FLOAT_FUNCTIONS, *ex.ANY_FUNCTIONS, *ex.PREDICATES}


class InternalError(AssertionError):
    """Illegal kernel IR: a pass has a bug."""


def verify(program: ir.Program, stage: str, *, after: Iterable[str] = ()) -> None:
    """Raises InternalError if the program is not legal after the pass `stage` (and those in `after`; any name is allowed)."""
    done = {stage, *after}
    for number in range(len(CHAIN), 0, -1):
        if CHAIN[number - 1] in done:
            done |= set(CHAIN[:number])
    names = [k.name for k in program.kernels]
    if len(set(names)) != len(names):
        raise InternalError(f"after {stage}: two kernels have one name, of {names}")
    globals_ = _by_name(program.buffers, f"after {stage}: the program")
    for buffer in program.buffers:
        if buffer.memory != "global":
            raise InternalError(f"after {stage}: the program lists {buffer.name}, which is in {buffer.memory} memory")
    for kernel in program.kernels:
        _KernelCheck(kernel, globals_, stage, done).run()


def _by_name(buffers: tuple[ir.Buffer, ...], who: str) -> dict[str, ir.Buffer]:
    found: dict[str, ir.Buffer] = {}
    for b in buffers:
        if b.name in found:
            raise InternalError(f"{who} has two buffers named {b.name}")
        found[b.name] = b
    return found


class _Scope:
    """The names visible at a point, with their types, and which of them differ between the threads of a block.

    checked: expressions that have already been checked in this scope.
    """

    def __init__(self, types: dict[str, dt.DType], divergent: frozenset[str]) -> None:
        self.types, self.divergent, self.checked = types, divergent, set[Expr]()

    def add(self, var: Var, divergent: bool) -> _Scope:
        names = self.divergent | {var.name} if divergent else self.divergent - {var.name}
        return _Scope({**self.types, var.name: var.type}, names)


class _KernelCheck:
    """Checks one kernel; `_where` is the current statement."""

    def __init__(self, kernel: ir.Kernel, globals_: dict[str, ir.Buffer], stage: str, done: set[str]) -> None:
        self.kernel, self.globals, self.stage, self.done = kernel, globals_, stage, done
        self.buffers = _by_name(kernel.buffers, f"after {stage}: kernel {kernel.name}")
        self.threads = kernel.threads  # of the block or the current role
        self._where: ir.Stmt | None = None

    def fail(self, message: str) -> NoReturn:
        place = ""
        if self._where is not None:
            span = getattr(self._where, "span", None)
            place = f"\n  in `{printer.headline(self._where)}`" + (f" from {span}" if span is not None else "")
        raise InternalError(f"after {self.stage}, kernel {self.kernel.name}: {message}{place}")

    def need(self, condition: bool, message: str) -> None:
        if not condition:
            self.fail(message)

    def run(self) -> None:
        kernel = self.kernel
        self.need(kernel.threads >= 1 and all(n >= 0 for n in kernel.grid), "threads and grid must be positive")
        self.need("fission" not in self.done or kernel.threads == 1, f"{kernel.threads} threads after fission")
        whole = kernel.cluster >= 1 and kernel.grid[0] % kernel.cluster == 0
        self.need(whole, f"{kernel.grid[0]} blocks are no whole clusters of {kernel.cluster}")
        self.need(kernel.index_bits in (32, 64), f"index_bits is {kernel.index_bits}")
        for b in kernel.buffers:
            self.buffer(b)
        types = {v.name: v.type for v in (*ir.BLOCK, ir.THREAD)}
        self.statement(kernel.body, _Scope(types, frozenset({ir.THREAD.name})), uniform=True)

    def buffer(self, b: ir.Buffer) -> None:
        """Checks one declaration."""
        self.need(b.memory in ("global", "shared", "register"), f"{b.name} is in {b.memory!r} memory")
        self.need(all(n >= 0 for n in b.shape), f"{b.name} has shape {b.shape}")
        roles = {"global": ("input", "output", "workspace"), "register": ("", "temporary"), "shared": ("", "phases")}.get(
            b.memory, ()
        )
        self.need(b.role in roles, f"{b.name} in {b.memory} memory has role {b.role!r}")
        if b.memory == "global":
            self.need(self.globals.get(b.name) == b, f"{b.name} is not what the program lists: {self.globals.get(b.name)}")
            self.need(
                self.kernel.index_bits == 64 or b.elements < 2**31, f"{b.name} has {b.elements} elements, indices have 32 bits"
            )
        if b.vector:
            self.need(b.memory == "register", f"{b.name} in {b.memory} memory is kept in vectors")
            self.need(
                bool(b.shape) and b.shape[-1] % b.vector == 0,
                f"{b.name}{list(b.shape)} does not divide into vectors of {b.vector}",
            )
        if b.offset is not None:
            self.need(b.memory == "shared", f"{b.name} in {b.memory} memory has an offset")
            self.need(b.offset >= 0 and b.offset % b.dtype.bytes == 0, f"{b.name} of {b.dtype} has offset {b.offset}")
        if b.ring:
            self.need(bool(b.shape) and b.shape[0] == b.ring, f"{b.name}{list(b.shape)} is not a ring of {b.ring}")

    # ------------------------------------------------------------ statements

    def statement(self, stmt: ir.Stmt, scope: _Scope, *, uniform: bool) -> None:
        """Checks a statement and all inside it. uniform: all threads of the block reach it together."""
        self._where = stmt
        match stmt:
            case ir.Seq(body):
                for child in body:
                    self.statement(child, scope, uniform=uniform)
                    if isinstance(child, ir.Let):
                        scope = scope.add(child.var, self.diverges(child.value, scope))
            case ir.For():
                self.loop(stmt, scope, uniform)
            case ir.If(condition, then, otherwise):
                self.scalar(condition, scope, "the condition")
                self.need(condition.dtype.kind == "bool", f"the condition is {condition.dtype}")
                inner = uniform and not self.diverges(condition, scope)
                self.statement(then, scope, uniform=inner)
                if otherwise is not None:
                    self.statement(otherwise, scope, uniform=inner)
            case ir.Let(var, value):
                self.fresh(var, scope)
                self.scalar(value, scope, "the value")
                self.need(value.dtype == var.type, f"{var.name} is {var.type}, its value {value.dtype}")
            case ir.Roles(roles):
                self.roles(stmt, roles, scope, uniform)
            case ir.Barrier(memory):
                known = bool(memory) and set(memory) <= {"shared", "global"}
                self.need(known, f"a barrier orders shared and global, not {memory}")
                self.need("fission" not in self.done, "a barrier after fission")
                self.need(uniform or self.threads == 1, "a barrier where not all threads of the block need come")
            case ir.ClusterBarrier():
                self.need(uniform and bool(self.kernel.roles), "a barrier of a cluster where not all threads come")
            case ir.Await(index=number, parity=parity):
                apart = self.diverges(number, scope) or self.diverges(parity, scope)
                self.need(not apart, "threads await different phases")
                self.simple(stmt, scope)
            case _:
                self.simple(stmt, scope)

    def roles(self, stmt: ir.Roles, roles: tuple[ir.Role, ...], scope: _Scope, uniform: bool) -> None:
        """Checks that the roles of a block cover each of its threads once, and that nothing follows them."""
        self.need(uniform and self.kernel.roles == roles, "roles that are not the last statement of the kernel")
        self.need(len({r.name for r in roles}) == len(roles), f"roles {[r.name for r in roles]}")
        ranges = sorted((r.first, r.first + r.threads) for r in roles)
        ends = [0, *(end for _, end in ranges)]
        self.need([first for first, _ in ranges] == ends[:-1] and ends[-1] == self.kernel.threads, f"roles of threads {ranges}")
        for role in roles:
            self._where, self.threads = role, role.threads
            self.need(role.threads >= 1 and (role.registers is None or role.registers >= 1), "a role of nothing")
            self.statement(role.body, _Scope(scope.types, scope.divergent), uniform=True)  # `thread` has another range here
        self.threads = self.kernel.threads
        between = _between_roles(roles)
        for role in roles:
            self.awaited(role.body, between, False)

    def awaited(
        self, stmt: ir.Stmt, between: set[str], waited: bool, under: frozenset[Expr] = NO_CONDITIONS
    ) -> tuple[bool, frozenset[Expr]]:
        """Whether a phase has been waited for after a statement. Data shared between roles must only be touched after such a wait.

        under: conditions under which a phase has been waited for; an access under the same condition needs no further wait.
        """
        if isinstance(stmt, ir.Await):
            return True, under
        names = {buffer.name for buffer, _ in ir.touched(stmt)} & between
        if names and not waited:
            self._where = stmt
            self.fail(f"{', '.join(sorted(names))} is touched by several roles, and no phase is awaited before")
        if isinstance(stmt, ir.Seq):
            for part in stmt.body:
                waited, under = self.awaited(part, between, waited, under)
            return waited, under
        inside = waited or (isinstance(stmt, ir.If) and stmt.condition in under)
        after = [self.awaited(part, between, inside, under)[0] for part in ir.parts(stmt)]
        if isinstance(stmt, ir.If) and stmt.otherwise is None and all(after):
            under |= {stmt.condition}
        return waited, under

    def phases(self, buffer: ir.Buffer, index: Expr, scope: _Scope) -> None:
        """Checks a phase barrier."""
        self.need(buffer.role == "phases", f"{buffer.name} holds no barriers")
        self.element(buffer, (index,), 1, None, scope)

    def loop(self, loop: ir.For, scope: _Scope, uniform: bool) -> None:
        """Checks a loop and its body."""
        self.need(loop.kind in ("serial", "do", "unroll", "vector", "threads"), f"a loop of kind {loop.kind!r}")
        self.need(loop.kind != "vector" or "vectorize" not in self.done, "a vector loop after vectorize")
        self.need(
            loop.kind != "do" or (interval(loop.extent)[0] or 0) > 0, "a loop that may have no round tests behind the first"
        )
        self.need(loop.kind != "unroll" or "unroll" not in self.done, "an unroll loop after unroll")
        self.need(loop.kind != "threads" or self.threads == 1, "a loop over the threads of a block that has some")
        self.need(
            loop.kind in ("serial", "do") or isinstance(loop.extent, Const), f"a loop of kind {loop.kind} of unknown extent"
        )
        self.fresh(loop.var, scope)
        self.scalar(loop.extent, scope, "the extent")
        self.need(loop.extent.dtype.is_integer and loop.var.type.is_integer, "a loop over numbers that are not whole")
        if isinstance(loop.extent, Const):
            self.range(loop.var, int(loop.extent.value))
        inner = uniform and not self.diverges(loop.extent, scope)
        self.statement(loop.body, scope.add(loop.var, False), uniform=inner)

    def fresh(self, var: Var, scope: _Scope) -> None:
        self.need(var.name not in scope.types, f"{var.name} is defined twice")

    def range(self, var: Var, extent: int) -> None:
        """Checks that a variable that takes 0 .. extent-1 does not claim a smaller range."""
        high, low = var.upper is None or var.upper >= extent - 1, var.lower is None or var.lower <= 0 or extent < 1
        self.need(high and low, f"{var.name} takes 0 .. {extent - 1} and claims {var.lower} .. {var.upper}")

    def simple(self, stmt: ir.Stmt, scope: _Scope) -> None:
        """Checks a statement without children."""
        match stmt:
            case ir.Store(buffer, indices, value, count):
                self.value(value, scope)
                self.need(
                    not (stmt.across and buffer.memory == "register"), f"lanes of {buffer.name} go across rows of registers"
                )
                self.need(value.dtype == buffer.dtype, f"{value.dtype} is stored to {buffer.name} of {buffer.dtype}")
                self.element(buffer, indices, ir.lanes(value), count, scope)
                self.written(buffer)
            case ir.Prefetch(buffer, indices):
                self.element(buffer, indices, 1, None, scope)
                self.need(buffer.memory == "global", f"{buffer.name} in {buffer.memory} memory is prefetched")
            case ir.Copy(target, target_indices, source, source_indices, lanes, count):
                self.element(target, target_indices, lanes, None, scope)
                self.element(source, source_indices, lanes, count, scope)
                self.need(target.dtype == source.dtype, f"{source.dtype} is copied to {target.name} of {target.dtype}")
                self.need("register" not in (target.memory, source.memory), "an asynchronous copy to or from registers")
                self.written(target)
            case ir.Wait(pending):
                self.need(pending >= 0, f"a wait until {pending} groups are unfinished")
            case ir.Instruction(semantics, operands, width):
                names = [name for name, _, _ in operands]
                self.need(len(set(names)) == len(names), f"operands {names}")
                self.need(width >= 1 and self.threads % width == 0, f"{width} threads of {self.threads} issue it")
                for name, buffer, indices in operands:
                    inside = scope
                    for v in region.variables if (region := stmt.region(name)) is not None else ():
                        inside = inside.add(v, False)
                    self.element(buffer, indices, 1, None, inside)
                    if name == getattr(semantics, "writes", ""):
                        self.written(buffer)
                by_bytes = getattr(semantics, "completes", "") == BARRIER_BY_BYTES
                self.need(by_bytes == (stmt.signal is not None), "a signal is of what completes by its bytes")
                if stmt.signal is not None:
                    self.phases(*stmt.signal, scope)
            case ir.InitPhases(phases, arrivals):
                self.phases(phases, index(0), scope)
                self.need(arrivals >= 1, f"a phase of {arrivals} arrivals")
            case ir.Arrive(phases, number, together, bytes):
                self.phases(phases, number, scope)
                self.need(together >= 1 and self.threads % together == 0 and bytes >= 0, f"{together} of {self.threads} threads")
            case ir.Await(phases, number, parity):
                self.phases(phases, number, scope)
                self.scalar(parity, scope, "the parity")
            case ir.Commit() | ir.Fence():
                pass
            case _:
                self.fail(f"{type(stmt).__name__} is not a statement of kernel IR")

    def written(self, buffer: ir.Buffer) -> None:
        self.need(buffer.role != "input", f"the input {buffer.name} is written")

    # ------------------------------------------------------------ expressions

    def element(self, b: ir.Buffer, indices: tuple[Expr, ...], lanes: int, count: Expr | None, scope: _Scope) -> None:
        """Checks an access of `lanes` elements from `indices` on."""
        declared = self.buffers.get(b.name)
        self.need(declared is not None, f"{b.name} is not declared")
        if declared is not b and declared != b:
            self.fail(f"{b.name} is declared as {declared} and used as {b}")
        self.need(len(indices) == len(b.shape), f"{b.name} has {len(b.shape)} dimensions and {len(indices)} indices")
        self.need(lanes >= 1 and (lanes == 1 or bool(b.shape)), f"{lanes} lanes of {b.name}")
        for i in indices if count is None else (*indices, count):
            self.scalar(i, scope, "an index or count")
            if not i.dtype.is_integer:
                self.fail(f"the index or count `{to_text(i)}` is {i.dtype}")
        if b.vector and "scalar_replacement" in self.done:
            self.promoted(b, indices, lanes)

    def promoted(self, b: ir.Buffer, indices: tuple[Expr, ...], lanes: int) -> None:
        """Checks an access to a buffer that is kept in named vectors."""
        text, last = printer.element_text(b, indices, lanes), 0
        for i, extent in zip(indices, b.shape, strict=True):
            if not isinstance(i, Const):
                self.fail(f"{text}: {b.name} is kept in vectors, `{to_text(i)}` is not constant")
            self.need(0 <= int(i.value) < extent, f"{text} lies outside {list(b.shape)}")
            last = int(i.value)
        self.need(last % b.vector + lanes <= b.vector, f"{text} crosses vectors of {b.vector} lanes")

    def scalar(self, expr: Expr, scope: _Scope, what: str) -> None:
        self.value(expr, scope)
        if ir.lanes(expr) != 1:
            self.fail(f"{what} `{to_text(expr)}` has {ir.lanes(expr)} lanes")

    def value(self, expr: Expr, scope: _Scope) -> None:
        """Checks an expression: its names are defined, and the types of all its nodes fit."""
        if expr in scope.checked:
            return
        if isinstance(expr, Var):
            self.variable(expr, scope)
        elif isinstance(expr, ir.Load):
            self.element(expr.buffer, expr.indices, expr.lanes, expr.count, scope)
            fill = expr.fill is not None and expr.fill.type == expr.dtype
            self.need(expr.count is None or fill, f"`{expr.buffer.name}` is loaded in part with fill {expr.fill}")
        else:
            self.node(expr)
        for e in expr.children():
            if isinstance(e, Expr):
                self.value(e, scope)
        scope.checked.add(expr)

    def variable(self, var: Var, scope: _Scope) -> None:
        self.need(var.name in scope.types, f"{var.name} is not defined here")
        found = scope.types[var.name]
        self.need(found == var.type, f"{var.name} is defined as {found} and used as {var.type}")
        if var.name == ir.THREAD.name:
            self.range(var, self.threads)
        for block, extent in zip(ir.BLOCK, self.kernel.grid, strict=True):
            if var.name == block.name:
                self.range(var, extent)

    def node(self, e: Expr) -> None:
        """Checks the types and lanes of one operation."""
        problem = _problem(e)
        if problem is not None:
            self.fail(f"`{to_text(e)}`: {problem}")

    def diverges(self, expr: Expr, scope: _Scope) -> bool:
        """Whether a value may differ between the threads of a block: it depends on the thread index or on registers."""
        return any(
            (isinstance(e, Var) and e.name in scope.divergent) or (isinstance(e, ir.Load) and e.buffer.memory == "register")
            for e in expr.walk()
        )


def _between_roles(roles: tuple[ir.Role, ...]) -> set[str]:
    """The shared buffers that one role writes and another touches, without phase barriers."""
    touched = [{(b.name, w) for s in ir.statements(r.body) for b, w in ir.touched(s) if _is_shared(b)} for r in roles]
    return {
        name
        for mine in touched
        for name, writes in mine
        if writes and any(name == other for theirs in touched if theirs is not mine for other, _ in theirs)
    }


def _is_shared(buffer: ir.Buffer) -> bool:
    return buffer.memory == "shared" and buffer.role != "phases"


def _problem(e: Expr) -> str | None:
    """The fault in the types or lanes of one operation, or None."""
    match e:
        case Const(value, t):
            fits = {"float": float, "bool": bool}.get(t.kind, int)
            return None if isinstance(value, fits) else f"a literal of type {t}"
        case Binary(op, left, right):
            return _binary_problem(op, left.dtype, right.dtype) or _mixed(left, right)
        case Unary(op, operand):
            return None if (op == "not") == (operand.dtype.kind == "bool") else f"{op} of {operand.dtype}"
        case Call(name, args):
            known = name in FUNCTIONS and len(args) == 1 and (name in ex.ANY_FUNCTIONS or args[0].dtype.is_float)
            return None if known else f"no function {name} of {', '.join(str(a.dtype) for a in args)}"
        case Select(condition, then, otherwise):
            if condition.dtype.kind != "bool" or then.dtype != otherwise.dtype:
                return f"on {condition.dtype}, {then.dtype} or {otherwise.dtype}"
            return _mixed(condition, then, otherwise)
        case ir.Ramp(base, lanes):
            return None if ir.lanes(base) == 1 and lanes > 1 else f"{lanes} lanes from {ir.lanes(base)}"
        case ir.BeforeLine(buffer, line_bytes):
            return None if buffer.memory == "global" and line_bytes % buffer.dtype.bytes == 0 else "no lines of its elements"
        case ir.Pack(items):
            alike = len({i.dtype for i in items}) == 1 and all(ir.lanes(i) == 1 for i in items)
            return None if alike else "not scalars of one type"
        case ir.Shuffle(first, second, numbers):
            n = len(numbers)
            alike = first.dtype == second.dtype and ir.lanes(first) == ir.lanes(second) == n > 1
            return None if alike and all(0 <= k < 2 * n for k in numbers) else "not lanes of two vectors with as many"
        case Cast():
            return None
        case _:
            return f"{type(e).__name__} is not an expression of kernel IR"


def _binary_problem(op: str, left: dt.DType, right: dt.DType) -> str | None:
    if left != right and op not in ("<<", ">>", "pow"):
        return f"{left} {op} {right}"
    if op in ex.LOGICAL:
        return None if left.kind == "bool" else f"{op} of {left}"
    if op in ex.COMPARISONS:
        return None
    numbers = left.kind != "bool" or op in ("&", "|", "^", "min", "max")
    whole = not left.is_float or op not in (*ex.BITWISE,)
    return None if numbers and whole and (op != "/" or left.is_float) else f"{op} of {left}"


def _mixed(*operands: Expr) -> str | None:
    lanes = {ir.lanes(o) for o in operands} - {1}
    return f"vectors of {sorted(lanes)} lanes together" if len(lanes) > 1 else None
