"""Prints expressions of the kernel IR as C.

There are three forms. `value` computes in an expression's own type. `index` computes in the kernel's index type, from the linear
form of its argument, so that constants are combined. `condition` yields an int that is 0 or 1. Conditions of several lanes are
masks of 0 and -1, as wide as the values that they select (`mask`).

Values of 8- and 16-bit floats are floats; `stored` gives their bits in memory. Every method takes the precedence level of its
context and adds parentheses where C needs them.
"""

from __future__ import annotations

import math

from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var, index
from tilelang.lowering.ir import BeforeLine, Load, Pack, Ramp, Shuffle, lanes
from tilelang.lowering.targets.c.dialect import (
    SIGNED_OF_BITS,
    VECTOR_LANES,
    is_bits,
    memory_bytes,
    memory_type,
    value_type,
    vector,
)
from tilelang.lowering.targets.c.lanes import lane, readable
from tilelang.lowering.targets.c.literals import literal
from tilelang.lowering.targets.c.places import ANY, COMPARISONS, POSTFIX, PRECEDENCE, SPELLED, TERNARY, UNARY, Places, bracket


class Expressions(Places):
    """Prints the expressions of one kernel."""

    def raw(self, load: Load) -> str:
        """The stored bits of a load, not unpacked; a primary expression or an lvalue."""
        found = self._texts.get(load)
        if found is None:
            found = self._texts[load] = self._raw(load)
        return found

    def _raw(self, load: Load) -> str:
        buffer, n = load.buffer, load.lanes
        scalar = memory_type(buffer.dtype)
        if buffer.vector:
            pieces = self.pieces(buffer, load.indices, n)
            alike = {(lane, k) for _, lane, k in pieces} == {(0, buffer.vector)} and buffer.vector > 1
            if len(pieces) > 1 and alike and self.dialect.vectors.join:
                return self.dialect.vectors.joined([name for name, _, _ in pieces], n)
            if len(pieces) > 1 and not self.dialect.vectors.joins:  # this dialect cannot join vectors
                pieces = [(name, lane + i, 1) for name, lane, k in pieces for i in range(k)]
            parts = [self.part(name, buffer.vector, lane, k) for name, lane, k in pieces]
            text = parts[0] if len(parts) == 1 else self.dialect.vector_of(vector(scalar, n), parts)
            assert load.count is None, "promoted registers exist whole"
            return text
        if load.count is not None:
            assert load.fill is not None, "a partial load needs a fill"
            fill = self.stored(load.fill, buffer.dtype, n)
            if n == 1:
                return f"({self.condition(Binary('<', index(0), load.count), 2)} ? {self.element(buffer, load.indices)} : {fill})"
            helper = self.library.load_first(scalar, n, buffer.memory, self.known_alignment(buffer, load.indices))
            place = self.place_of_first(buffer, load.indices, load.count)
            return f"{helper}({place}, {self.amount(load.count)}, {fill})"
        return self.element(buffer, load.indices) if n == 1 else self.vector_place(buffer, load.indices, n, True)

    def _literal(self, e: Const, bits: bool = False) -> str:
        return literal(e, bits, self.dialect.long_suffix)

    def stored(self, e: Expr, dtype: DType, n: int) -> str:
        """A value of n lanes in the form that memory of the given type holds."""
        if isinstance(e, Pack) and len(set(e.items)) == 1:
            e = e.items[0]  # the same item in every lane
        if is_bits(dtype):
            type = memory_type(dtype)
            match e:
                case Const():
                    return self._spread(self._literal(e, bits=True), type, 1, n)
                case Load() if e.buffer.dtype == dtype and lanes(e) == n:
                    return self.raw(e)
                case Pack(items) if n > 1 and _is_moved(e, dtype):
                    return self.dialect.vector_of(vector(type, n), [self.stored(i, dtype, 1) for i in items])
                case Shuffle(first, second, _) if self.dialect.vectors.shuffle and _is_moved(e, dtype):
                    return self._shuffled(e, self.stored(first, dtype, n), self.stored(second, dtype, n))
                case Select(condition, then, otherwise) if _is_moved(e, dtype):
                    kept, other = (f"({self.stored(branch, dtype, n)})" for branch in (then, otherwise))
                    value = self.dialect.vector_of(vector(type, n), [kept]) if n > 1 else f"({type}){kept}"
                    return f"({self.condition(condition, 2)} ? {value} : {other})"
                case Cast(operand, target) if target == dtype and operand.dtype == dt.float32:
                    e = operand
            helper = self.library.convert_bits(dtype.name, False, n)
            return f"{helper}({self.broadcast(e, n)})"
        if dtype.kind == "bool":
            if n == 1:
                return self.condition(e, 2)
            return f"convert_uchar{n}({self.mask(e, n, 8, UNARY)} & {self.dialect.vector_of(f'char{n}', ['1'])})"
        return self.broadcast(e, n, ANY)

    # ------------------------------------------------------------ values

    def _spread(self, text: str, scalar: str, have: int, want: int) -> str:
        return text if have == want else self.dialect.vector_of(vector(scalar, want), [text])

    def broadcast(self, e: Expr, n: int, level: int = ANY) -> str:
        """A value of n lanes; a scalar is repeated."""
        if e.dtype.kind == "bool" and n > 1:
            return self.mask(e, n, 32, level)
        have = lanes(e)
        assert have in (1, n), f"{have} lanes where {n} are needed: {e}"
        return self.value(e, level) if have == n else self._spread(self.value(e), value_type(e.dtype), have, n)

    def value(self, e: Expr, level: int = ANY) -> str:
        """An expression in its own type."""
        n = lanes(e)
        assert n == 1 or n in VECTOR_LANES, f"no vector has {n} lanes: {e}"
        if e.dtype.kind == "bool":
            return self.condition(e, level) if n == 1 else self.mask(e, n, self._mask_bits(e), level)
        match e:
            case Const():
                text = self._literal(e)
                return bracket(text, UNARY if text[0] in "-(" else POSTFIX, level)
            case Var(type=t):
                same = self._variable_type(e) == value_type(t)
                return bracket(
                    self.variable(e) if same else f"({value_type(t)}){self.variable(e)}", POSTFIX if same else UNARY, level
                )
            case Load():
                text = self.raw(e)
                if is_bits(e.dtype):
                    return f"{self.library.convert_bits(e.dtype.name, True, n)}({text})"
                return bracket(text, UNARY if text[0] in "*(" else POSTFIX, level)
            case Ramp(base, n):
                return bracket(self._ramp(value_type(e.dtype, n), self.value(base), n), 10, level)
            case BeforeLine(buffer, line_bytes):
                bytes_before = f"({value_type(e.dtype)})(-(size_t){self.names[buffer]} & {line_bytes - 1})"
                return bracket(f"{bytes_before} / {buffer.dtype.bytes}", 11, level)
            case Pack(items):
                unique = dict.fromkeys(items)
                if n == 1:
                    return self.value(items[0], level)
                texts = [self.value(items[0])] if len(unique) == 1 else [self.value(i, TERNARY) for i in items]
                return bracket(self.dialect.vector_of(value_type(e.dtype, n), texts), UNARY, level)
            case Shuffle(first, second, _):
                if not self.dialect.vectors.shuffle or e.dtype.kind == "bool":
                    return self.value(Pack(tuple(lane(e, i) for i in range(n))), level)
                return bracket(self._shuffled(e, self.value(first), self.value(second)), POSTFIX, level)
            case Binary():
                return self._binary(e, n, level)
            case Unary("-", operand) if n == 1 and e.dtype.kind == "int" and e.dtype.bits >= 32:
                return self._binary(Binary("-", Const(0, e.dtype), operand), n, level)  # the minimum is its own negative
            case Unary(op, operand):
                text = f"{op}{self.value(operand, POSTFIX)}"
                return self._narrow(text, UNARY, e.dtype, n, level)
            case Call():
                return self._call(e, n, level)
            case Select():
                return self._select(e, n, level)
            case Cast(operand, type):
                return self._cast(operand, type, n, level)
        raise AssertionError(f"no expression of the kernel IR: {e!r}")

    def _ramp(self, type: str, base: str, n: int) -> str:
        steps = self.dialect.vector_of(type, [str(i) for i in range(n)])
        return f"{self.dialect.vector_of(type, [base])} + {steps}"

    def _apply(self, function: str, t: DType, n: int, *arguments: str) -> str:
        """Applies a scalar function to values of a type, lane by lane."""
        if n > 1 and not self.dialect.vectors.native:
            function = self.library.lanewise(function, value_type(t), n, len(arguments))
        return f"{function}({', '.join(arguments)})"

    def _narrow(self, text: str, own: int, dtype: DType, n: int, level: int) -> str:
        """Converts a scalar of a type narrower than int, which C computed in int, back to its type."""
        if n == 1 and dtype.is_integer and dtype.bits < 32:
            return bracket(f"({value_type(dtype)})({text})", UNARY, level)
        return bracket(text, own, level)

    def _binary(self, e: Binary, n: int, level: int) -> str:
        op, left, right, t = e.op, e.left, e.right, e.dtype
        type = value_type(t, n)
        if op in ("min", "max"):
            if t.is_float:
                return f"{self.library.extreme(op, type)}({self.broadcast(left, n)}, {self.broadcast(right, n)})"
            return self._apply(op, t, n, self.broadcast(left, n), self.broadcast(right, n))
        if op == "pow":
            return self._power(left, right, n, level)
        if op in ("//", "%"):
            helper = self.library.floored(op, value_type(t), n)
            return f"{helper}({self.broadcast(left, n)}, {self.broadcast(right, n)})"
        if op in ("<<", ">>") and not _shift_is_defined(right, t.bits):
            return self._shift(e, level)
        if op == "*" and t.is_float and not self.contract and self.dialect.rounded_product:
            return self._apply(self.dialect.rounded_product, t, n, self.broadcast(left, n), self.broadcast(right, n))
        if op == "/" and lanes(right) == 1 < n and value_type(t) in self.dialect.quotients and not _is_power_of_two(right):
            return f"{self.library.quotients(type)}({self.value(left)}, {self.value(right)})"
        own = PRECEDENCE[op]
        if n == 1 and t.kind == "int" and t.bits >= 32 and op in ("+", "-", "*"):  # signed overflow is undefined in C
            unsigned = "u" + type
            text = f"({unsigned}){self.value(left, UNARY)} {op} ({unsigned}){self.value(right, UNARY)}"
            return bracket(f"({type})({text})", UNARY, level)
        text = f"{self.value(left, own)} {op} {self.value(right, own + 1)}"
        return self._narrow(text, own, t, n, level)

    def _shift(self, e: Binary, level: int) -> str:
        """A shift whose amount may be the type's width or more: undefined in C, 0 (or the sign) in NumPy."""
        t = e.right.dtype
        most = Const(e.dtype.bits - 1, t)
        inside = Binary("and", Binary("<=", Const(0, t), e.right), Binary("<=", e.right, most))
        sure = Binary(e.op, e.left, Binary("&", e.right, most))
        beyond = Binary(">>", e.left, most) if e.op == ">>" and e.dtype.kind == "int" else Const(0, e.dtype)
        return self.value(Select(inside, sure, beyond), level)

    def _power(self, base: Expr, exponent: Expr, n: int, level: int) -> str:
        t = base.dtype
        if n > 1 and "pow" not in self.dialect.own.get(value_type(t), ("pow",) if value_type(t) == "float" else ()):
            # there is none for vectors of integers, and PoCL's for doubles is wrong next to certain lanes
            return self.value(Pack(tuple(lane(Binary("pow", base, exponent), i) for i in range(n))), level)
        if not t.is_float:
            return f"{self.library.integer_power(value_type(t))}({self.value(base)}, {self.value(exponent)})"
        if isinstance(exponent, Const) and exponent.value == 2 and isinstance(base, (Var, Load)):
            return bracket(f"{self.value(base, 11)} * {self.value(base, 12)}", 11, level)
        arguments = self.broadcast(base, n), self.broadcast(exponent, n)
        if "pow" in self.dialect.own.get(value_type(t), ()):
            return f"{self.library.function('pow', value_type(t, n))}({', '.join(arguments)})"
        return self._apply(self.dialect.functions.get("pow", "pow"), t, n, *arguments)

    def _call(self, e: Call, n: int, level: int) -> str:
        argument, t = e.args[0], e.args[0].dtype
        type = value_type(t, n)
        if e.name == "abs" and not t.is_float:
            if t.kind == "uint":
                return self.value(argument, level)
            return self.value(Select(Binary("<", argument, Const(0, t)), Unary("-", argument), argument), level)
        if e.name in self.dialect.own.get(value_type(t), ()):
            return f"{self.library.function(e.name, type, e.name in self.fast_math)}({self.value(argument)})"
        if e.name == "sigmoid":
            one, small = Const(1.0, t), Call("exp", (Unary("-", Call("abs", (argument,))),))
            right = Binary("/", one, Binary("+", one, small))
            return self.value(Select(Binary("<=", Const(0.0, t), argument), right, Binary("*", small, right)), level)
        fast = self.dialect.fast_functions.get(e.name) if e.name in self.fast_math and value_type(t) == "float" else None
        return self._apply(fast or self.dialect.functions.get(e.name, e.name), t, n, self.value(argument))

    def _choice(self, mask: str, then: str, otherwise: str, level: int) -> str:
        """A selection between lanes."""
        text = self.dialect.vectors.choice.format(mask=mask, then=then, otherwise=otherwise)
        return bracket(text, TERNARY if self.dialect.vectors.native else POSTFIX, level)

    def _select(self, e: Select, n: int, level: int) -> str:
        c = e.condition
        if lanes(c) == 1:
            then = self.broadcast(e.then, n, 2)
            if not self.dialect.vectors.native and isinstance(e.then, Load) and isinstance(e.otherwise, Load):
                type = value_type(e.dtype, n)  # a value: C++ would select between the two locations, and keep both in memory
                then = f"({type}){self.broadcast(e.then, n, UNARY)}" if n == 1 else self.dialect.vector_of(type, [then])
            text = f"{self.condition(c, 2)} ? {then} : {self.broadcast(e.otherwise, n, TERNARY)}"
            return bracket(text, TERNARY, level)
        if any(not readable(branch) for branch in (e.then, e.otherwise)):  # a lane that is not selected must not be read
            return self.value(Pack(tuple(lane(e, i) for i in range(n))), level)
        bits = 8 * memory_bytes(dt.compute_type(e.dtype))
        return self._choice(
            self.mask(c, n, bits, 2), self.broadcast(e.then, n, 2), self.broadcast(e.otherwise, n, TERNARY), level
        )

    def _cast(self, operand: Expr, type: DType, n: int, level: int) -> str:
        source, target = operand.dtype, value_type(type, n)
        if is_bits(type) and source != type and source.kind != "bool":
            bits = self.library.convert_bits(type.name, False, n)
            back = self.library.convert_bits(type.name, True, n)
            return f"{back}({bits}({self._cast(operand, dt.float32, n, ANY)}))"
        if source.kind == "bool":
            if n == 1:
                return bracket(f"({target}){self.condition(operand, UNARY)}", UNARY, level)
            bits_ = 8 * memory_bytes(dt.compute_type(type))
            return f"convert_{target}(-{self.mask(operand, n, bits_, POSTFIX)})"
        if n == 1 and self.pure(operand) and self.small(operand):
            return bracket(f"({target}){self.index(operand, UNARY)}", UNARY, level)
        if value_type(source, n) == target:
            return self.value(operand, level)
        if source.is_float and type.is_integer:
            return f"{self.library.saturated(value_type(source), value_type(type), n)}({self.value(operand)})"
        if n == 1:
            return bracket(f"({target}){self.value(operand, UNARY)}", UNARY, level)
        if isinstance(operand, Ramp) and self.pure(operand) and self.small(operand.base) and self.small(operand.base + (n - 1)):
            same = vector(self.index_type, n) == target
            return self._index_vector(operand, n, level) if same else f"convert_{target}({self._index_vector(operand, n, ANY)})"
        return f"convert_{target}({self.value(operand)})"

    # ------------------------------------------------------------ conditions

    def condition(self, e: Expr, level: int = ANY) -> str:
        """A scalar condition, 0 or 1."""
        assert lanes(e) == 1, f"a condition of one lane is needed: {e}"
        match e:
            case Const(value=value):
                return "1" if value else "0"
            case Binary(op, left, right) if op in COMPARISONS:
                own = PRECEDENCE[op]
                if self.index_compared(left, right):
                    return bracket(f"{self.index(left, own + 1)} {op} {self.index(right, own + 1)}", own, level)
                return bracket(f"{self.value(left, own + 1)} {op} {self.value(right, own + 1)}", own, level)
            case Binary("and" | "or" as op, left, right):
                own = PRECEDENCE[op]
                inner = 4 if op == "or" else own  # `a && b || c` is correct, but compilers warn
                return bracket(f"{self.condition(left, inner)} {SPELLED[op]} {self.condition(right, inner)}", own, level)
            case Binary("^" | "&" | "|" as op, left, right):
                own = PRECEDENCE[op]
                return bracket(f"{self.condition(left, 9)} {op} {self.condition(right, 9)}", own, level)
            case Unary("not" | "~", operand):
                return bracket(f"!{self.condition(operand, POSTFIX)}", UNARY, level)
            case Call("isnan", (operand,)):
                x = self.value(operand, 8)
                return bracket(f"{x} != {x}", 7, level)
            case Select(c, then, otherwise):
                text = f"{self.condition(c, 2)} ? {self.condition(then, 2)} : {self.condition(otherwise, TERNARY)}"
                return bracket(text, TERNARY, level)
            case Cast(operand, _):
                if operand.dtype.kind == "bool":
                    return self.condition(operand, level)
                return bracket(f"{self.value(operand, 8)} != 0", 7, level)
            case Var():
                return self.variable(e)
            case Load():
                return bracket(self.raw(e), POSTFIX if e.count is None else UNARY, level)
            case Pack((item,)):
                return self.condition(item, level)
        raise AssertionError(f"no condition: {e!r}")

    def _mask_bits(self, e: Expr) -> int:
        """The natural mask width of a condition of several lanes."""
        match e:
            case Binary(op, left, right) if op in COMPARISONS:
                if self.index_compared(left, right):
                    return self.index_bits
                return 32 if left.dtype.kind == "bool" else 8 * memory_bytes(dt.compute_type(left.dtype))
            case Binary(_, left, right):
                return max(self._mask_bits(side) for side in (left, right) if lanes(side) > 1)
            case Unary(_, operand):
                return self._mask_bits(operand)
            case Cast(operand, _) if operand.dtype.kind == "bool":
                return self._mask_bits(operand)
            case Call(_, (operand,)) | Cast(operand, _) if operand.dtype.kind != "bool":
                return 8 * memory_bytes(dt.compute_type(operand.dtype))
            case Load():
                return 8
            case _:
                return 32

    def mask(self, e: Expr, n: int, bits: int, level: int = ANY) -> str:
        """A condition as a mask of n lanes, each of `bits` bits."""
        type = vector(SIGNED_OF_BITS[bits], n)
        if isinstance(e, Shuffle):
            e = Pack(tuple(lane(e, i) for i in range(n)))
        if lanes(e) == 1:
            return bracket(self.dialect.vector_of(type, [f"-({self.condition(e)})"]), UNARY, level)
        own = self._mask_bits(e)
        if own != bits:
            return f"convert_{type}({self.mask(e, n, own)})"
        match e:
            case Binary(op, left, right) if op in COMPARISONS:
                p = PRECEDENCE[op]
                if left.dtype.kind == "bool" and op in ("<", "<="):  # true is -1, so the comparison is reversed
                    left, right = right, left
                return bracket(f"{self._compared(left, e, n, p + 1)} {op} {self._compared(right, e, n, p + 1)}", p, level)
            case Binary(op, left, right):
                sign = {"and": "&", "or": "|"}.get(op, op)
                return bracket(
                    f"{self.mask(left, n, bits, UNARY)} {sign} {self.mask(right, n, bits, UNARY)}", PRECEDENCE[sign], level
                )
            case Unary(_, operand):
                return bracket(f"~{self.mask(operand, n, bits, POSTFIX)}", UNARY, level)
            case Call("isnan", (operand,)):
                x = self.value(operand, 8)
                return bracket(f"{x} != {x}", 7, level)
            case Select(c, then, otherwise):
                if not (readable(then) and readable(otherwise)) and lanes(c) > 1:
                    return self.mask(Pack(tuple(lane(e, i) for i in range(n))), n, bits, level)
                a, b = self.mask(then, n, bits, 2), self.mask(otherwise, n, bits, 2)
                if lanes(c) > 1:
                    return self._choice(self.mask(c, n, bits, 2), a, b, level)
                return bracket(f"{self.condition(c, 2)} ? {a} : {b}", TERNARY, level)
            case Cast(operand, _):
                if operand.dtype.kind == "bool":
                    return self.mask(operand, n, bits, level)
                zero = self._spread(self._literal(Const(0, operand.dtype)), value_type(operand.dtype), 1, n)
                return bracket(f"{self.value(operand, 8)} != {zero}", 7, level)
            case Load():
                return bracket(f"{self.raw(e)} != {self.dialect.vector_of(f'uchar{n}', ['0'])}", 7, level)
            case Pack(items):
                return bracket(self.dialect.vector_of(type, [f"-({self.condition(i)})" for i in items]), UNARY, level)
        raise AssertionError(f"no condition: {e!r}")

    def _shuffled(self, e: Shuffle, first: str, second: str) -> str:
        """A shuffle of two vectors in the dialect's spelling."""
        return self.dialect.vectors.shuffle.format(first=first, second=second, lanes=", ".join(map(str, e.numbers)))

    def _compared(self, side: Expr, comparison: Binary, n: int, level: int) -> str:
        """One side of a comparison of several lanes."""
        if side.dtype.kind == "bool":
            return self.mask(side, n, 32, level)
        if self.index_compared(comparison.left, comparison.right):
            return self._index_vector(side, n, level)
        return self.broadcast(side, n, level)

    def _index_vector(self, e: Expr, n: int, level: int) -> str:
        """Index arithmetic of n lanes in the index type: a scalar base plus constant steps, if it has that form."""
        type = vector(self.index_type, n)
        if lanes(e) == 1:
            return bracket(self.dialect.vector_of(type, [self.index(e)]), UNARY, level)
        if isinstance(e, Ramp) and (base := self.index(e.base)) != "0":
            return bracket(self._ramp(type, base, n), 10, level)
        return bracket(self.dialect.vector_of(type, [self.index(lane(e, i)) for i in range(n)]), UNARY, level)


def _is_moved(e: Expr, dtype: DType) -> bool:
    """Whether a value of a 16-bit float type consists of loads and constants only, so that its bits need no conversion."""
    match e:
        case Const():
            return True
        case Load():
            return e.buffer.dtype == dtype
        case Pack(items):
            return all(_is_moved(item, dtype) for item in items)
        case Shuffle(first, second, _):
            return _is_moved(first, dtype) and _is_moved(second, dtype)
        case Select(condition, then, otherwise):
            return lanes(condition) == 1 and _is_moved(then, dtype) and _is_moved(otherwise, dtype)
        case _:
            return False


def _is_power_of_two(e: Expr) -> bool:
    """Whether division by this number equals multiplication by its reciprocal, which compilers detect."""
    return isinstance(e, Const) and math.isfinite(e.value) and abs(math.frexp(e.value)[0]) == 0.5


def _shift_is_defined(amount: Expr, bits: int) -> bool:
    match amount:
        case Const(value=value):
            return 0 <= value < bits
        case Binary("&", _, Const(value=value)):
            return 0 <= value < bits
    return False
