"""The helper functions of a source text, collected while it is printed: memory access, conversions, arithmetic, functions.

A helper is generated once per type, after the helpers it calls, and only on demand. Its name ends in its type (`maximum_float16`), and
the emitter keeps a program's own names from colliding with it. A memory helper accesses exactly the elements it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from string import Template

from tilelang.core import dtype as dt
from tilelang.lowering.targets.c import partial_vectors
from tilelang.lowering.targets.c.dialect import (
    BITS,
    LANE_DIGITS,
    SIGNED_OF_BITS,
    STREAMED_BYTES,
    Dialect,
    memory_type,
    vector,
)
from tilelang.lowering.targets.c.float8 import NAMES, conversion
from tilelang.lowering.targets.c.functions import FUNCTIONS

_MAXIMUM = """
${inline} $T ${name}($T a, $T b) {  // NaN if either is NaN, as in NumPy
$both    const $T r = a $op b ? a : b;
    return a == a ? r : a;
$end}
"""

# Without a mask, which would lengthen the dependency chain of a row of maxima: the instruction returns its second operand if one
# is NaN or both are zeros, so one of the two orders yields NaN. Without NaN both results are bitwise equal except for the sign of
# zero.
_MAXIMUM_X86 = """\
#if defined(__AVX512F__) && defined(__AVX512VL__)
    const $T r = $builtin(a, b$rounding), s = $builtin(b, a$rounding);
    return as_$T(as_$I(r) | (as_$I(s) & $magnitude));
#else
"""

_FLOOR_DIVIDE_SIGNED = """
${inline} $T ${name}($T a, $T b) {  // towards minus infinity; 0 for a divisor of 0
    const $T d = ((b == ($T)(0)) | (b == ($T)(-1))) ? ($T)(1) : b;
    const $T q = a / d;
    const $T r = a - q * d;
    const $T lower = ((r != ($T)(0)) & ((r ^ d) < ($T)(0))) ? q - ($T)(1) : q;
    return (b == ($T)(0)) ? ($T)(0) : ((b == ($T)(-1)) ? -a : lower);
}
"""
_FLOOR_MODULO_SIGNED = """
${inline} $T ${name}($T a, $T b) {  // with the divisor's sign; 0 for a divisor of 0
    const $T d = ((b == ($T)(0)) | (b == ($T)(-1))) ? ($T)(1) : b;
    const $T r = a % d;
    return ((r != ($T)(0)) & ((r ^ d) < ($T)(0))) ? r + d : r;
}
"""
_FLOOR_DIVIDE_UNSIGNED = """
${inline} $T ${name}($T a, $T b) {  // 0 for a divisor of 0
    const $T d = (b == ($T)(0)) ? ($T)(1) : b;
    return (b == ($T)(0)) ? ($T)(0) : a / d;
}
"""
_FLOOR_MODULO_UNSIGNED = """
${inline} $T ${name}($T a, $T b) {  // 0 for a divisor of 0
    const $T d = (b == ($T)(0)) ? ($T)(1) : b;
    return (b == ($T)(0)) ? ($T)(0) : a % d;
}
"""
_FLOOR_MODULO_FLOAT = """
${inline} $T ${name}($T a, $T b) {  // with the divisor's sign
    const $T r = $fmod;
    const $T moved = ((r != 0) & ((b < 0) != (r < 0))) ? r + b : r;
    return (moved == 0) ? copysign(moved, b) : moved;
}
"""
_FLOOR_DIVIDE_FLOAT = """
${inline} $T ${name}($T a, $T b) {  // the quotient that belongs to the floored remainder
    const $T r = $fmod;
    const $T q = (a - r) / b;
    const $T lower = ((r != 0) & ((b < 0) != (r < 0))) ? q - ($T)(1) : q;
    const $T whole = floor(lower);
    const $T nearest = (lower - whole > ($T)(0.5f)) ? whole + ($T)(1) : whole;
    return (b == 0) ? a / b : ((lower == 0) ? copysign(($T)(0), a / b) : nearest);
}
"""
_INTEGER_POWER = """
${inline} $T ${name}($T base, $T exponent) {  // wraps; a negative exponent gives the truncated quotient
    ${negative}ulong result = 1, factor = (ulong)base;
    for (ulong rest = (ulong)exponent; rest != 0; rest >>= 1) {
        if (rest & 1) result *= factor;
        factor *= factor;
    }
    return ($T)result;
}
"""

_ENDING_FLOAT = """
${inline} $T ${name}($F x) {  // saturates; NaN gives 0
    const $F above = x > ($F)($low) ? x : ($F)($low);
    const $F whole = above < ($F)($high) ? above : ($F)($high);
    return $convert(x == x ? whole : ($F)(0));
}
"""
_ENDING_INTEGER = """
${inline} $T ${name}($F x) {  // saturates; NaN gives 0
    const $F above = x > ($F)($low) ? x : ($F)($low);
    const $T whole = $convert(above < ($F)($beyond) ? above : ($F)(0));
    const $T ended = above < ($F)($beyond) ? whole : ($T)($highest);
    return x == x ? ended : ($T)(0);
}
"""

_FROM_BFLOAT16 = """
${inline} $F ${name}($H bits) {
    return as_$F(convert_$U(bits) << 16);
}
"""
_TO_BFLOAT16 = """
${inline} $H ${name}($F x) {  // to nearest, ties to even; NaN stays NaN
    const $U bits = as_$U(x);
    const $U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return convert_$H(x != x ? (bits >> 16) | 0x40u : rounded);
}
"""
_FROM_FLOAT16 = """
${inline} $F ${name}($H bits) {  // exact: the exponent moved to its new bias, denormals by subtraction
$from_half    const $U h = convert_$U(bits);
    const $U exponent = h & 0x7c00u;
    const $U wide = ((h & 0x7fffu) << 13) + 0x38000000u;
    const $U special = wide + 0x38000000u;
    const $U denormal = as_$U(as_$F(wide + 0x00800000u) - 6.103515625e-5f);
    const $U magnitude = exponent == 0x7c00u ? special : (exponent == 0u ? denormal : wide);
    return as_$F(magnitude | ((h & 0x8000u) << 16));
$end}
"""
_TO_FLOAT16 = """
${inline} $H ${name}($F x) {  // to nearest, ties to even; NaN stays NaN
$to_half    const $U bits = as_$U(x);
    const $U a = bits & 0x7fffffffu;
    const $U special = a > 0x7f800000u ? ($U)(0x7e00u) : ($U)(0x7c00u);
    const $U denormal = as_$U(as_$F(a) + 0.5f) - 0x3f000000u;
    const $U normal = (a + 0xc8000fffu + ((a >> 13) & 1u)) >> 13;
    const $U magnitude = a >= 0x47800000u ? special : (a < 0x38800000u ? denormal : normal);
    return convert_$H(magnitude | ((bits >> 16) & 0x8000u));
$end}
"""

_STORE_STREAMING = """
${inline} void ${name}($space$C* p, $T v) {  // non-temporal if the address is aligned
#if __has_builtin(__builtin_nontemporal_store)
    if (((size_t)p & $mask) == 0) {
        __builtin_nontemporal_store(v, ($space$T*)p);
        return;
    }
$pieces#endif
    *($space$P*)p = v;
}
"""

_PLAIN = {"both": "", "end": ""}


def _converted(type: str, lanes: int) -> str:
    """A scalar or vector conversion that is spelled alike in every dialect."""
    return f"convert_{type}" if lanes > 1 else f"({type})"


def _by_instruction(condition: str, bits: str, lanes: int) -> dict[str, str]:
    """The branches of the float16 conversions that use an instruction, under a preprocessor condition."""
    if not condition:
        return {"from_half": "", "to_half": "", "end": ""}
    half = "_Float16" if lanes == 1 else "halves"
    typedef = "" if lanes == 1 else f"    typedef _Float16 halves __attribute__((ext_vector_type({lanes})));\n"
    up = f"__builtin_bit_cast({half}, bits)"
    up, down = (
        (f"(float){up}", f"({half})x") if lanes == 1 else (f"convert_float{lanes}({up})", f"__builtin_convertvector(x, {half})")
    )
    head = f"#if {condition}\n{typedef}"
    return {
        "from_half": f"{head}    return {up};\n#else\n",
        "to_half": f"{head}    return __builtin_bit_cast({bits}, {down});\n#else\n",
        "end": "#endif\n",
    }


def _without_branches_of_0(text: str) -> str:
    """Removes text inside `#if 0`: a template has branches for widths that its type does not have."""
    kept, inside = list[str](), list[str]()  # enclosing directives: "" for one that stays, else whether its lines are kept
    for line in text.splitlines(keepends=True):
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        if word.startswith("#if"):
            inside.append("no" if line.split()[:2] == ["#if", "0"] else "")
            stays = inside[-1] == ""
        elif word in ("#else", "#endif") and inside[-1]:
            stays, inside[-1] = False, "yes"
        else:
            stays = True
        if stays and "no" not in inside:
            kept.append(line)
        if word == "#endif":
            inside.pop()
    return "".join(kept)


class Library:
    """The helpers of one source text, in an order that satisfies their dependencies."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._texts: dict[str, str] = {}

    @property
    def text(self) -> str:
        """All helpers requested so far."""
        return "".join(self._texts.values())

    def _add(self, name: str, template: str, **fields: str) -> str:
        if name not in self._texts:
            self._texts[name] = _without_branches_of_0(
                Template(template).substitute(name=name, inline=self.dialect.inline, **fields)
            )
        return name

    def define(self, text: str) -> None:
        """Adds a definition that an instruction needs."""
        self._texts[text] = text.rstrip("\n") + "\n"

    def place(self, scalar: str, lanes: int, known: int) -> str:
        """A vector type for memory that is known to be aligned to `known` bytes."""
        full, size = vector(scalar, lanes), BITS[scalar] // 8
        if known % (size * lanes) == 0:
            return full
        bytes = size if self.dialect.vectors.native else known & -known
        name = f"{full}_u" if bytes == size else f"{full}_u{bytes}"
        if name not in self._texts:
            self._texts[name] = self.dialect.vectors.unaligned.format(name=name, scalar=scalar, lanes=lanes, bytes=bytes)
        return name

    def lanewise(self, function: str, scalar: str, lanes: int, arguments: int) -> str:
        """A scalar function applied to each lane of vectors."""
        type, letters = vector(scalar, lanes), "abc"[:arguments]
        calls = [f"{function}({', '.join(f'{x}[{i}]' for x in letters)})" for i in range(lanes)]
        text = "\n${inline} $T ${name}($arguments) {\n    return $T($calls);\n}\n"
        return self._add(f"{function.removesuffix('_' + scalar)}_{type}", text, T=type, calls=", ".join(calls),
                         arguments=", ".join(f"$T {x}".replace("$T", type) for x in letters))  # fmt: skip

    def _of_scalars(self, type: str) -> tuple[str, int] | None:
        """The scalar and the lanes of a vector type that helpers handle lane by lane; None for a type that they accept whole."""
        scalar = type.rstrip("0123456789")
        return None if scalar == type or self.dialect.vectors.native else (scalar, int(type.removeprefix(scalar)))

    def function(self, name: str, type: str, fast: bool = False) -> str:
        """One of the dialect's own functions for a value type. fast: its less exact form, if it exists."""
        apart = self._of_scalars(type)
        if apart is not None:
            return self.lanewise(self.function(name, apart[0], fast), *apart, 1)
        scalar = type.rstrip("0123456789")
        quick = self.dialect.fast.get(scalar, {}).get(name) if fast else None
        definition = quick or self.dialect.own[scalar].get(name) or FUNCTIONS[name]  # the last case: a helper of another function
        for needed in definition.needs:
            self.function(needed, type)
        text = definition.text if type != scalar else definition.text.replace("any(", "any_of_one(")  # of masks, i.e. vectors
        return self._add(f"fast_{name}_{type}" if quick else f"{name}_{type}", text, **self._function_fields(type))

    def _function_fields(self, type: str) -> dict[str, str]:
        scalar = type.rstrip("0123456789")
        integer = type.replace(scalar, SIGNED_OF_BITS[BITS[scalar]])
        return {"T": type, "I": integer, "U": f"u{integer}", **self.dialect.function_fields(type)}

    def quotients(self, type: str) -> str:
        """Division of a vector by one number; requires the dialect's `quotients` for the scalar type."""
        text = self.dialect.quotients[type.rstrip("0123456789")].text
        return self._add(f"quotients_{type}", text, **self._function_fields(type))

    def extreme(self, op: str, type: str) -> str:
        """min or max of floats that propagates NaN."""
        word, sign = ("minimum", "<") if op == "min" else ("maximum", ">")
        apart = self._of_scalars(type)
        if apart is not None:
            return self.lanewise(self.extreme(op, apart[0]), *apart, 2)
        if word in self.dialect.functions:
            return self.dialect.functions[word]
        both = _both_orders(op, scalar := type.rstrip("0123456789"), int(type.removeprefix(scalar) or "1"))
        return self._add(f"{word}_{type}", _MAXIMUM, T=type, op=sign, **(both if self.dialect.x86_builtins else _PLAIN))

    def floored(self, op: str, scalar: str, lanes: int) -> str:
        """`//` or `%` with the semantics of Python and NumPy."""
        kind = "FLOAT" if scalar in ("float", "double") else "UNSIGNED" if scalar.startswith("u") else "SIGNED"
        table = {
            ("//", "FLOAT"): _FLOOR_DIVIDE_FLOAT, ("//", "SIGNED"): _FLOOR_DIVIDE_SIGNED, ("//", "UNSIGNED"): _FLOOR_DIVIDE_UNSIGNED,
            ("%", "FLOAT"): _FLOOR_MODULO_FLOAT, ("%", "SIGNED"): _FLOOR_MODULO_SIGNED, ("%", "UNSIGNED"): _FLOOR_MODULO_UNSIGNED,
        }  # fmt: skip
        word = "floor_divide" if op == "//" else "floor_modulo"
        type = vector(scalar, lanes)
        if lanes > 1 and not self.dialect.vectors.native:
            return self.lanewise(self.floored(op, scalar, 1), scalar, lanes, 2)
        each = ", ".join(f"fmod(a.s{d}, b.s{d})" for d in LANE_DIGITS[:lanes])  # PoCL's fmod of a vector of doubles is wrong
        fmod = f"({type})({each})" if scalar == "double" and lanes > 1 else "fmod(a, b)"
        if "fmod" in self.dialect.own.get(scalar, ()):
            fmod = f"{self.function('fmod', type)}(a, b)"
        return self._add(f"{word}_{type}", table[op, kind], T=type, fmod=fmod)

    def saturated(self, source: str, target: str, lanes: int) -> str:
        """From float or double to integers: truncates and saturates; NaN gives 0."""
        name, bits, unsigned = f"{source}_to_{target}", BITS[target], target.startswith("u")
        type, floats = vector(target, lanes), vector(source, lanes)
        if lanes > 1 and not self.dialect.vectors.native:
            each = ", ".join(f"{self.saturated(source, target, 1)}(x[{i}])" for i in range(lanes))
            text = "\n${inline} $T ${name}($F x) {\n    return $T($each);\n}\n"
            return self._add(f"{name}{lanes}", text, T=type, F=floats, each=each)
        if bits > BITS[source]:  # a wider float is as wide as the integers, so a comparison yields a mask for them
            wide = f"{self.saturated('double', target, lanes)}({_converted(vector('double', lanes), lanes)}(x))"
            text = "\n${inline} $T ${name}($F x) {\n    return $wide;\n}\n"
            return self._add(f"{floats}_to_{type}", text, T=type, F=floats, wide=wide)
        power, suffix = bits - (not unsigned), "" if source == "double" else "f"
        low = "0.0" if unsigned else f"-{float(1 << power)}"
        beyond = f"{float(1 << power)}{suffix}"
        fields = {"T": type, "F": floats, "convert": _converted(type, lanes), "low": low + suffix, "beyond": beyond}
        if bits < BITS[source]:  # both limits are exact in the float's type
            return self._add(f"{floats}_to_{type}", _ENDING_FLOAT, high=f"{float((1 << power) - 1)}{suffix}", **fields)
        highest = hex((1 << power) - 1) + ("u" if unsigned else "") + ("l" if bits == 64 else "")
        return self._add(f"{floats}_to_{type}", _ENDING_INTEGER, highest=highest, **fields)

    def integer_power(self, scalar: str) -> str:
        """A scalar integer power."""
        negative = "if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) ? -1 : 1) : 0;\n    "
        return self._add(f"power_{scalar}", _INTEGER_POWER, T=scalar, negative="" if scalar[0] == "u" else negative)

    def convert_bits(self, dtype_name: str, to_float: bool, lanes: int) -> str:
        """Converts between float and the bits of a float of 8 or 16 bits."""
        own = f"{dtype_name}_to_float" if to_float else f"float_to_{dtype_name}"
        if own in self.dialect.functions:
            return self.dialect.functions[own]
        wide, narrow, bits = (vector(scalar, lanes) for scalar in ("float", memory_type(dt.dtype(dtype_name)), "uint"))
        table = {
            **{(each, way): conversion(each, way) for each in NAMES for way in (True, False)},
            ("bfloat16", True): _FROM_BFLOAT16, ("bfloat16", False): _TO_BFLOAT16,
            ("float16", True): _FROM_FLOAT16, ("float16", False): _TO_FLOAT16,
        }  # fmt: skip
        name = f"{dtype_name}_to_{wide}" if to_float else f"{wide}_to_{dtype_name}_{narrow}"
        functions = {"as_F": f"as_{wide}", "as_U": f"as_{bits}", "wide": f"convert_{bits}", "narrow": f"convert_{narrow}"}
        functions |= _by_instruction(self.dialect.converts_halves, narrow, lanes)
        return self._add(name, table[dtype_name, to_float], F=wide, H=narrow, U=bits, **functions)

    def load_first(self, scalar: str, lanes: int, memory: str, known: int) -> str:
        """A load of the first elements of a vector, from a location aligned to at least `known` bytes."""
        return self._first("load", scalar, lanes, memory, known)

    def store_first(self, scalar: str, lanes: int, memory: str, known: int) -> str:
        """A store of the first elements of a vector, to a location aligned to at least `known` bytes."""
        return self._first("store", scalar, lanes, memory, known)

    def _first(self, word: str, scalar: str, lanes: int, memory: str, known: int) -> str:
        template, fields = {
            "load": (partial_vectors.LOAD, partial_vectors.load_fields),
            "store": (partial_vectors.STORE, partial_vectors.store_fields),
        }[word]
        place = self._place(scalar, lanes, memory, BITS[scalar] // 8 if self.dialect.vectors.native else known)
        name = f"{word}_first_{memory}_{place['T'] if self.dialect.vectors.native else place['P']}"
        return self._add(name, template, **fields(self.dialect, scalar, lanes, place["space"], self._anywhere(scalar)), **place)

    def _anywhere(self, scalar: str) -> Callable[[int], str]:
        """The vector types, by lanes, for memory that is aligned like one element."""
        return lambda lanes: self.place(scalar, lanes, BITS[scalar] // 8)

    def store_streaming(self, scalar: str, lanes: int, memory: str) -> str:
        """A streaming store of a vector."""
        fields = {"mask": str(BITS[scalar] // 8 * lanes - 1), "pieces": _streamed_pieces(scalar, lanes, self._space(memory))}
        place = self._place(scalar, lanes, memory, BITS[scalar] // 8)
        return self._add(f"store_streaming_{vector(scalar, lanes)}", _STORE_STREAMING, **fields, **place)

    def _space(self, memory: str) -> str:
        space = self.dialect.spaces[memory]
        return f"{space} " if space else ""

    def _place(self, scalar: str, lanes: int, memory: str, known: int) -> dict[str, str]:
        wide = self.place(scalar, lanes, known)
        return {"T": vector(scalar, lanes), "C": scalar, "P": wide, "N": str(lanes), "space": self._space(memory)}


def _streamed_pieces(scalar: str, lanes: int, space: str) -> str:
    """The streaming store in pieces of 16 bytes, for addresses aligned to these, as NumPy's arrays are. Empty for a single piece."""
    width = STREAMED_BYTES * 8 // BITS[scalar]
    if lanes <= width or width < 2:
        return ""
    piece = vector(scalar, width)
    stores = [
        f"        __builtin_nontemporal_store(v.s{LANE_DIGITS[first : first + width]}, ({space}{piece}*)(p + {first}));\n"
        for first in range(0, lanes, width)
    ]
    return f"    if (((size_t)p & {STREAMED_BYTES - 1}) == 0) {{\n{''.join(stores)}        return;\n    }}\n"


def _both_orders(op: str, scalar: str, lanes: int) -> dict[str, str]:
    """min or max by two x86 instructions, inside a preprocessor test for the instruction that combines them."""
    bits = BITS[scalar]
    if bits * lanes not in (128, 256, 512):
        return _PLAIN
    suffix = {128: "", 256: "256", 512: "512"}[bits * lanes]
    fields = {
        "T": vector(scalar, lanes), "I": vector(SIGNED_OF_BITS[bits], lanes), "magnitude": hex((1 << bits - 1) - 1),
        "builtin": f"__builtin_ia32_{op}p{'s' if scalar == 'float' else 'd'}{suffix}", "rounding": ", 4" if suffix == "512" else "",
    }  # fmt: skip
    return {"both": Template(_MAXIMUM_X86).substitute(fields), "end": "#endif\n"}
