"""The C emitter: turns a program of the final kernel IR into one source text of a dialect.

It prints what the passes decided and makes no performance decisions itself, except for forms that compilers need: promoted
register buffers are named vector variables, declared at their first store if that store is first in their scope; vectors in
memory are accessed through pointers to unaligned vector types; offsets are linear forms with their constants combined.

The final IR has no vector loops, and every index into a promoted buffer is a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tilelang.core.expr import Expr, Var, free
from tilelang.errors import DeviceError, Span, not_too_deep
from tilelang.instructions.template import functions_defined
from tilelang.lowering import ir
from tilelang.lowering.descriptors import ALIGNMENT_BYTES, described
from tilelang.lowering.equal_kernels import first_equal
from tilelang.lowering.ir import (
    Barrier,
    Buffer,
    Commit,
    Copy,
    For,
    If,
    Instruction,
    Kernel,
    Let,
    Prefetch,
    Seq,
    Stmt,
    Store,
    Wait,
)
from tilelang.lowering.passes.divergence import diverges
from tilelang.lowering.targets.c.dialect import Dialect, memory_bytes, memory_type, value_type, vector
from tilelang.lowering.targets.c.expressions import Expressions
from tilelang.lowering.targets.c.headers import with_headers
from tilelang.lowering.targets.c.instructions import Instructions
from tilelang.lowering.targets.c.library import Library
from tilelang.lowering.targets.c.loops import pragma
from tilelang.lowering.targets.c.names import Names
from tilelang.lowering.targets.c.registers import declaration_places, opens_scope, registers
from tilelang.lowering.targets.c.roles import RoleWriter, texts_of
from tilelang.lowering.targets.c.stores import INDENT, Stores, copied_by_instruction
from tilelang.semantics.error_bound import ULPS

__all__ = ["Dialect", "definitions", "dynamic_shared_bytes", "emit", "kernel_names", "ulps"]

ARRAY_ALIGNMENT = 64  # bytes; of arrays that the emitter declares


@not_too_deep
def emit(program: ir.Program, dialect: Dialect, lines: bool = False) -> str:
    """The source text of all kernels of a program.

    lines: `#line` directives map the text to the schedule's steps. Raises DeviceError if the program uses a feature that the
    dialect lacks.
    """
    return emit_placed(program, dialect, lines)[0]


def emit_placed(program: ir.Program, dialect: Dialect, lines: bool = False) -> tuple[str, tuple[tuple[range, ...], ...]]:
    """Like `emit`, and for each kernel the line ranges (from 0) of its statements in the order of `ir.statements`; a statement
    that prints nothing has an empty range."""
    library = Library(dialect)
    for definition in definitions(program, dialect):
        library.define(definition)
    names, written = kernel_names(program, dialect), dict[str, ir.Kernel]()
    for kernel in program.kernels:
        written.setdefault(names[kernel.name], kernel)  # equal kernels share a name
    emitters = [_KernelEmitter(kernel, name, dialect, library, lines) for name, kernel in written.items()]
    bodies = [emitter.text() for emitter in emitters]
    text = "\n".join(part for part in (library.text, *bodies) if part)
    text = with_headers(text, dialect)
    places, end = {}, len(text)
    for emitter, body in zip(reversed(emitters), reversed(bodies), strict=True):
        places[names[emitter.kernel.name]] = emitter.places_in_text(text.count("\n", 0, end - len(body)))
        end -= len(body) + 1
    return text + dialect.closing, tuple(places[names[kernel.name]] for kernel in program.kernels)


def kernel_names(program: ir.Program, dialect: Dialect) -> Mapping[str, str]:
    """The name of each kernel of a program in its source text; kernels that differ only in names share one."""
    names, firsts = Names(dialect), first_equal(program)
    names.claim(_wrappers(program.kernels, dialect))
    found: dict[str, str] = {}
    for kernel in program.kernels:
        first = firsts[kernel.name]
        found[kernel.name] = names.fresh(kernel.name) if first is kernel else found[first.name]
    return found


def definitions(program: ir.Program, dialect: Dialect) -> tuple[str, ...]:
    """The definitions that the program's instructions need in a dialect, without duplicates, in order of use.

    Raises DeviceError if two of them define one function differently.
    """
    found: dict[str, str] = {}
    texts = dict.fromkeys(text for kernel in program.kernels for text in _definitions(kernel, dialect))
    for text in texts:
        for name in functions_defined(text):
            if found.setdefault(name, text) != text:
                raise DeviceError(
                    "two-definitions",
                    f"two instructions define the function {name} of {dialect.name} differently",
                    help="give one of the functions another name",
                )
    return tuple(texts)


def _definitions(kernel: Kernel, dialect: Dialect) -> Iterator[str]:
    if kernel.roles and dialect.roles is not None:
        yield from dialect.roles.definitions
        if any(isinstance(s, ir.ClusterBarrier) for s in ir.statements(kernel.body)):
            yield from dialect.roles.cluster_definitions
    for s in ir.statements(kernel.body):
        if isinstance(s, Instruction):
            yield from s.semantics.definitions_in(dialect.name)
        if isinstance(s, Copy) and copied_by_instruction(s, dialect):
            yield from s.by.definitions_in(dialect.name)


def _wrappers(kernels: Iterable[Kernel], dialect: Dialect) -> set[str]:
    """The functions that the kernels' instructions define."""
    return {name for kernel in kernels for text in _definitions(kernel, dialect) for name in functions_defined(text)}


def dynamic_shared_bytes(kernel: Kernel, dialect: Dialect) -> int:
    """The bytes of shared memory that a kernel's launch must allocate; 0: the kernel declares its shared memory itself."""
    most = dialect.static_shared_bytes
    return kernel.shared_bytes if most is not None and kernel.shared_bytes > most else 0


def ulps(dialect: Dialect, type: str = "float") -> dict[str, float]:
    """The maximum error in ulps of each function of a C float type on a dialect: what the dialect's own text states, else its
    builtin, else the maximum over all targets. Builtins for doubles state none."""
    builtins = dialect.ulps if type == "float" else {}
    return {**ULPS, **builtins, **{name: function.ulps for name, function in dialect.own.get(type, {}).items()}}


def error_bounds(dialect: Dialect) -> dict[str, float]:
    """The maximum error in ulps of each function on a dialect, over all float types."""
    tables = [ulps(dialect, type) for type in ("float", "double")]
    return {name: max(table.get(name, most) for table in tables) for name, most in ULPS.items()}


class _KernelEmitter(Stores, Instructions):
    """Prints one kernel, line by line."""

    def __init__(self, kernel: Kernel, name: str, dialect: Dialect, library: Library, lines: bool) -> None:
        self.kernel, self.name, self.dialect, self.library, self.with_lines = kernel, name, dialect, library, lines
        self.expressions = Expressions(kernel, dialect, library)
        self.names = Names(dialect)
        self.names.claim(_wrappers([kernel], dialect))
        later = any(isinstance(s, Copy) and copied_by_instruction(s, dialect) for s in ir.statements(kernel.body))
        self.wait = dialect.wait if dialect.copy or later else ""  # synchronous copies need none
        self.lines: list[str] = []
        self.depth = 1
        self.number = 0  # pre-order number of the statement being printed
        self.last_span: Span | None = None
        self.printed: dict[int, tuple[int, int]] = {}  # statement -> the entries of `lines` that it printed
        self.head = ""  # the text before `lines`
        self.role_writer: RoleWriter | None = None
        self.differing: set[Var] = set()  # names whose values may differ between threads
        self.bound: list[tuple[dict[Any, str], Any, str | None]] = []  # what bindings changed, and what was there before
        self.apart = 0  # number of enclosing conditions and loops that only some threads execute

    # ------------------------------------------------------------ the function

    def text(self) -> str:
        kernel = self.kernel
        for buffer in kernel.buffers:
            self._name_buffer(buffer)
        cluster = self.dialect.cluster.format(blocks=kernel.cluster) if kernel.cluster > 1 else ""
        head = self.dialect.kernel.format(threads=kernel.threads, name=self.name, cluster=cluster)
        written: set[ir.Buffer] = set()
        for s in ir.statements(kernel.body):
            match s:
                case Store(buffer=buffer) | Copy(target=buffer):
                    written.add(buffer)
                case Instruction():
                    written |= {b for name, b, _ in s.operands if name == s.semantics.writes}
        declared = [*(self._argument(b, b in written) for b in kernel.arguments), *self.map_arguments()]
        if self.dialect.blocks:
            declared += [*map(self._shared_argument, kernel.shared), self.dialect.block_arguments]
        arguments = ",\n".join(INDENT + argument for argument in declared)
        if not kernel.contract and self.dialect.no_contraction:
            self.put(self.dialect.no_contraction)
        if not self.dialect.blocks:
            self._shared_arrays()
        self._grid_variables()
        self.prefetch_maps()
        self.places = declaration_places(kernel.body, self.expressions)
        self._registers()
        self.block(kernel.body)
        grid = " x ".join(str(n) for n in kernel.grid)
        grid += f" blocks in clusters of {kernel.cluster}, each" if kernel.cluster > 1 else " blocks"
        about = f"// {grid} of {kernel.threads} thread{'s' * (kernel.threads > 1)}, {kernel.shared_bytes} bytes of shared memory"
        self.head = f"{about}\n{head}(\n{arguments})\n{{\n"
        body = "\n".join([self.head + "\n".join(self.lines), "}\n"]) if self.lines else self.head + "}\n"
        return f"{body}\n{self._over_blocks()}" if self.dialect.blocks else body

    def places_in_text(self, first: int) -> tuple[range, ...]:
        """The lines of each statement in a text where the kernel begins at line `first`; call `text` before."""
        starts = [first + self.head.count("\n")]
        for entry in self.lines:  # an instruction's template may have several lines
            starts.append(starts[-1] + entry.count("\n") + 1)
        return tuple(range(starts[a], starts[b]) for a, b in (self.printed[n] for n in range(self.number)))

    def _name_buffer(self, buffer: Buffer) -> None:
        x = self.expressions
        x.names[buffer] = self.names.fresh(buffer.name)
        while buffer.vector and not self.names.claim(n for n in registers(buffer, x) if n != x.names[buffer]):
            x.names[buffer] = self.names.fresh(buffer.name)
        given = max(memory_bytes(buffer.dtype), self.dialect.argument_alignment)
        x.alignment[buffer] = given if buffer.memory == "global" else ARRAY_ALIGNMENT

    def _argument(self, buffer: Buffer, written: bool) -> str:
        const = "" if written else "const "
        restrict = f"{self.dialect.restrict} " if self.dialect.restrict_written or not written else ""
        space = self.dialect.spaces["global"]
        return f"{space} {const}{memory_type(buffer.dtype)}* {restrict}{self.expressions.names[buffer]}".lstrip()

    def _shared_arrays(self) -> None:
        """One array per buffer. Buffers that overlap, or dynamic shared memory, become pointers into one array."""
        shared, name = self.kernel.shared, self.expressions.names
        placed = sorted((b for b in shared if b.offset is not None), key=lambda b: b.offset or 0)
        overlap = any((a.offset or 0) + a.bytes > (b.offset or 0) for a, b in zip(placed, placed[1:], strict=False))
        aligned = f"__attribute__((aligned({ARRAY_ALIGNMENT})))"
        dynamic = dynamic_shared_bytes(self.kernel, self.dialect) > 0
        if not overlap and not dynamic:
            named = described(self.kernel.body)
            for b in shared:
                attribute = f"__attribute__((aligned({ALIGNMENT_BYTES})))" if b.name in named else aligned
                self.put(f"{self.dialect.shared} {memory_type(b.dtype)} {name[b]}[{max(1, b.elements)}] {attribute};")
            return
        arena = self.names.fresh("arena")
        if dynamic:
            self.put(self.dialect.dynamic_shared.format(name=arena))
        else:
            self.put(f"{self.dialect.shared} uchar {arena}[{self.kernel.shared_bytes}] {aligned};")
        for b in shared:
            type = f"{self.dialect.spaces['shared']} {memory_type(b.dtype)}*".lstrip()
            self.put(f"{type} const {name[b]} = ({type})({arena} + {b.offset});")
            self.expressions.alignment[b] = _alignment_at(b.offset or 0)

    def _shared_argument(self, buffer: Buffer) -> str:
        """A shared array as a parameter; arrays that overlap others at different times may alias them."""
        end = (buffer.offset or 0) + buffer.bytes
        apart = all((b.offset or 0) >= end or (b.offset or 0) + b.bytes <= (buffer.offset or 0)
                    for b in self.kernel.shared if b is not buffer)  # fmt: skip
        self.expressions.alignment[buffer] = _alignment_at(buffer.offset or 0)
        return f"{memory_type(buffer.dtype)}* {self.dialect.restrict if apart else ''} {self.expressions.names[buffer]}".replace(
            "  ", " "
        )

    def _over_blocks(self) -> str:
        """The function that runs the kernel over a range of blocks."""
        kernel, (x, y, _) = self.kernel, self.kernel.grid
        given = [f"arguments[{number}]" for number, _ in enumerate(kernel.arguments)]
        given += [f"(void*)(scratch + {b.offset or 0})" for b in kernel.shared]
        arguments = ", ".join([*given, "block"])
        return self.dialect.blocks.format(name=self.name, arguments=arguments, x=max(1, x), y=max(1, y), xy=max(1, x * y))

    def _grid_variables(self) -> None:
        """The block's and the thread's index, if the kernel uses them."""
        x = self.expressions
        spelled = dict(zip((v.name for v in ir.BLOCK), self.dialect.block_number, strict=True))
        spelled[ir.THREAD.name] = self.dialect.thread_number
        read = {free(e) for s in ir.statements(self.kernel.body) for e in ir.expressions(s)}
        used = {v.name for variables in read for v in variables}
        used |= {ir.THREAD.name} if self.kernel.roles else set()
        for wanted, text in spelled.items():
            if wanted in used:
                x.names[wanted] = self.names.fresh(wanted)
                self.put(f"const {x.index_type} {x.names[wanted]} = ({x.index_type}){text};")

    def _registers(self) -> None:
        """Declarations at the top: private arrays, and named variables that are not declared at their first store."""
        for b in self.kernel.registers:
            if not b.vector:
                wide = b.bytes >= ARRAY_ALIGNMENT or not self.dialect.vectors.native
                aligned = f" __attribute__((aligned({ARRAY_ALIGNMENT})))" if wide else ""
                self.put(f"{memory_type(b.dtype)} {self.expressions.names[b]}[{max(1, b.elements)}]{aligned};")
                self.expressions.alignment[b] = ARRAY_ALIGNMENT if aligned else memory_bytes(b.dtype)
        by_type: dict[str, list[str]] = {}
        for name, b in self.places.top:
            by_type.setdefault(vector(memory_type(b.dtype), b.vector), []).append(name)
        for type, names in by_type.items():
            for first in range(0, len(names), 8):
                self.put(f"{type} {', '.join(names[first : first + 8])};")

    # ------------------------------------------------------------ statements

    def block(self, stmt: Stmt) -> None:
        """A statement in its own block, which ends the scope of its names."""
        before, mark = len(self.bound), self.names.mark
        self.statement(stmt, nested=False)
        self._unbind(before)
        self.names.release_since(mark)

    def braces(self, head: str, stmt: Stmt, tail: str = "") -> None:
        self.put(f"{head} {{" if head else "{")
        self.depth += 1
        self.block(stmt)
        self.depth -= 1
        self.put("}" + tail)

    def statement(self, stmt: Stmt, nested: bool = True) -> None:
        """Prints one statement and records its lines."""
        number, first = self.number, len(self.lines)
        self._statement(stmt, nested)
        self.printed[number] = first, len(self.lines)

    def _unbraced(self, stmt: Stmt) -> None:
        self.statement(stmt, nested=False)

    def _statement(self, stmt: Stmt, nested: bool) -> None:
        declared = self.places.at.get(self.number, ())
        self.number += 1
        self._line(getattr(stmt, "span", None))
        match stmt:
            case Seq(body):
                if nested and opens_scope(stmt):
                    self.number -= 1
                    self.braces("", stmt)
                else:
                    for s in body:
                        self.statement(s)
            case For():
                self._loop(stmt)
            case If():
                self._branches(stmt)
            case Let(var, value, alike=alike):
                if self._differs(value) and not alike:
                    self.differing.add(var)
                text = self.expressions.index(value) if self._is_index(var, value) else self.expressions.broadcast(value, 1)
                text = self.dialect.alike.format(value=text) if alike else text
                type = self.expressions.index_type if self._is_index(var, value) else value_type(var.type)
                self.put(f"const {type} {self.bind(var, type)} = {text};")
            case Store():
                self.store(stmt, declared)
            case Barrier(memory, reasons):
                self._barrier(memory, reasons)
            case Prefetch(buffer, indices):
                self.put(self.dialect.prefetch.format(pointer=self.expressions.pointer(buffer, indices)))
            case Copy():
                self.copy(stmt, declared)
            case Commit(queue=queue):
                self.put_if(self.queue_text(queue, "commit") if queue else self.dialect.commit)
            case Wait(pending, queue=queue):
                self.put_if((self.queue_text(queue, "wait") if queue else self.wait).format(pending=pending))
            case ir.Fence(queue, memory):
                self.put_if(self.queue_text(queue, "begin" if memory == "register" else "publish"))
            case Instruction():
                self.instruction(stmt, self._roles().barrier_at(*stmt.signal) if stmt.signal is not None else "")
            case ir.Roles() | ir.Role() | ir.InitPhases() | ir.Arrive() | ir.Await() | ir.ClusterBarrier():
                self._roles().write(stmt)
            case _:
                raise AssertionError(f"no statement of the final kernel IR: {stmt!r}")

    def _branches(self, stmt: If) -> None:
        """Prints an `if` and its branches."""
        elected = self.role_writer.elected(stmt) if self.role_writer is not None and not self.apart else None
        differs = self._differs(stmt.condition)
        self.apart += differs
        self.braces(f"if ({elected or self.expressions.condition(stmt.condition)})", stmt.then)
        if stmt.otherwise is not None:
            self.lines[-1] += " else {"
            self.depth += 1
            self.block(stmt.otherwise)
            self.depth -= 1
            self.put("}")
        self.apart -= differs

    def _differs(self, e: Expr) -> bool:
        """Whether a value may differ between threads."""
        return diverges(e) or not self.differing.isdisjoint(free(e))

    def bind(self, var: Var, type: str) -> str:
        """Chooses a C name for a variable, valid until its block ends."""
        x, name = self.expressions, self.names.fresh(var.name)
        changes: list[tuple[dict[Any, str], Any, str]] = [(x.names, var, name), (x.names, var.name, name), (x.types, var, type)]
        for table, key, text in changes:
            self.bound.append((table, key, table.get(key)))
            table[key] = text
        x.forget()
        return name

    def _unbind(self, before: int) -> None:
        """Ends the scope of all but the first bindings."""
        if len(self.bound) > before:
            while len(self.bound) > before:
                _restore(*self.bound.pop())
            self.expressions.forget()

    def _is_index(self, var: Var, value: Expr) -> bool:
        """Whether a named value may have the index type: it is index arithmetic, or its range fits."""
        if not (var.type.is_integer and var.type.bits == 64):
            return False
        limit = 2 ** (self.expressions.index_bits - 1)
        known = var.lower is not None and var.upper is not None and -limit <= var.lower and var.upper < limit
        return known or self.expressions.pure(value)

    def _line(self, span: Span | None) -> None:
        if (
            self.with_lines
            and span is not None
            and (span.file, span.line) != (self.last_span and (self.last_span.file, self.last_span.line))
        ):
            file = printable(span.file).replace("\\", "\\\\").replace('"', '\\"')
            self.lines.append(f'#line {span.line} "{file}"')
            self.last_span = span

    def _loop(self, loop: For) -> None:
        x = self.expressions
        assert loop.kind in ("serial", "do", "unroll", "threads"), f"a {loop.kind} loop over {loop.var.name} reached the emitter"
        extent = x.amount(loop.extent, 9)
        before = len(self.bound)
        name = self.bind(loop.var, x.index_type)
        differs = self._differs(loop.extent)
        self.apart += differs
        if loop.kind == "do":
            self.put(f"{x.index_type} {name} = 0;")  # its name stays taken, because it is declared outside the braces
            self.put_if(pragma(loop, self.dialect))
            self.braces("do", loop.body, f" while (++{name} < {extent});")
        else:
            self.put_if(pragma(loop, self.dialect))
            self.braces(f"for ({x.index_type} {name} = 0; {name} < {extent}; ++{name})", loop.body)
            self.names.release([name])
        self.apart -= differs
        self._unbind(before)

    def _barrier(self, memory: tuple[str, ...], reasons: tuple[str, ...]) -> None:
        if self.kernel.threads == 1:  # a single thread sees its own writes
            return
        if self.role_writer is not None and (text := self.role_writer.barrier()):
            self.put(text)
            return
        flags = " | ".join(self.dialect.fences[m] for m in memory if m in self.dialect.fences)
        note = (
            f"  // {printable(reasons[0])}".rstrip("\\/?") if reasons else ""
        )  # a line that ends in a backslash continues in the next one
        alone = self.dialect.shared_barrier if memory == ("shared",) else ""
        self.put((alone or self.dialect.barrier.format(flags=flags)) + note)

    def _roles(self) -> RoleWriter:
        """The writer of role statements. Raises DeviceError if the dialect has no roles."""
        if self.role_writer is None:
            texts = texts_of(self.dialect.roles, self.dialect.name)
            self.role_writer = RoleWriter(self.kernel, texts, self.expressions, self.put, self._unbraced, self.braces, self.bind)
        return self.role_writer


def _alignment_at(offset: int) -> int:
    """The known alignment in bytes of an array at this offset in an aligned one."""
    return min(ARRAY_ALIGNMENT, offset & -offset) if offset else ARRAY_ALIGNMENT


def type_name(stmt: Stmt) -> str:
    return type(stmt).__name__


def _restore(table: dict[Any, str], key: Any, old: str | None) -> None:
    if old is None:
        table.pop(key, None)
    else:
        table[key] = old


def printable(text: str) -> str:
    """Foreign text, such as a file name, made safe for one line of a source: characters that would end the line are removed."""
    return "".join(c if c.isprintable() else " " for c in text)
