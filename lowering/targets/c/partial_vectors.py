"""Loads and stores of the first elements of a vector: the text of the helpers that touch no element beyond these.

Such a vector moves in pieces of half its lanes, a quarter, and so on, one for each bit of the number of its elements. x86 has masked
accesses as well, whose inactive lanes do not fault: with AVX-512 for every element type; with AVX2 for elements of 4 and 8 bytes, of
which only loads are used, because AMD's processors take tens of cycles for the stores. A dialect whose vectors are structures has a
condition per lane.
"""

from __future__ import annotations

from collections.abc import Callable

from tilelang.lowering.targets.c.dialect import BITS, LANE_DIGITS, SIGNED_OF_BITS, UNSIGNED_OF_BITS, Dialect, vector

LOAD = """
${inline} $T ${name}(const $space$C* p, long count, $T others) {  // touches the first `count` elements only
$masked    if (count >= $N) return *(const $space$P*)p;
$pieces$end}
"""
STORE = """
${inline} void ${name}($space$C* p, $T v, long count) {  // touches the first `count` elements only
$masked    if (count >= $N) {
        *($space$P*)p = v;
        return;
    }
$pieces$end}
"""

# Parts of the names of x86's builtins: by an element's bits and whether it is a float (AVX-512), by its type in masked loads (AVX2).
_MASKED = {
    (32, True): "ups",
    (64, True): "upd",
    (32, False): "dqusi",
    (64, False): "dqudi",
    (16, False): "dquhi",
    (8, False): "dquqi",
}
_MASKED_LOADS = {"float": "ps", "double": "pd", "int": "d", "long": "q"}


def load_fields(dialect: Dialect, scalar: str, lanes: int, space: str, place: Callable[[int], str]) -> dict[str, str]:
    """The fields of LOAD that depend on the vector type. place: the type of a vector of n lanes, aligned like one element."""
    part = dialect.part
    if not dialect.vectors.native:  # a selection between two locations would keep the vector in memory
        lines = [f"{vector(scalar, lanes)} v = others;"]
        lines += [f"if (count > {i}) {part('v', lanes, i, 1)} = p[{i}];" for i in range(lanes)]
        return {**_masked(dialect, scalar, lanes, store=False), "pieces": _text([*lines, "return v;"])}
    pair = dialect.vector_of(vector(scalar, 2), [f"some & 1 ? p[some & -2] : ({scalar})0"])
    lines = ["const int some = count < 0 ? 0 : (int)count;", f"const {vector(scalar, 2)} v2 = {pair};"]
    for n in _powers(4, lanes):
        half, v = n // 2, f"v{n}"
        low, high = part(v, n, 0, half), part(v, n, half, half)
        lines.append(f"{vector(scalar, n)} {v};")
        lines.append(f"{low} = {high} = v{half};")
        lines.append(f"if (some & {half}) {low} = *(const {space}{place(half)}*)(p + (some & -{n}));")
    lines.append(f"return {_first(scalar, lanes)} ? v{lanes} : others;")
    return {**_masked(dialect, scalar, lanes, store=False), "pieces": _text(lines)}


def store_fields(dialect: Dialect, scalar: str, lanes: int, space: str, place: Callable[[int], str]) -> dict[str, str]:
    """The fields of STORE that depend on the vector type. place: the type of a vector of n lanes, aligned like one element."""
    part = dialect.part
    if not dialect.vectors.native:
        lines = [f"if (count > {i}) p[{i}] = {part('v', lanes, i, 1)};" for i in range(lanes)]
        return {**_masked(dialect, scalar, lanes, store=True), "pieces": _text(lines)}
    lines, rest = ["const int some = count < 0 ? 0 : (int)count;"], "v"
    for n in reversed(_powers(4, lanes)):
        half = n // 2
        low, high = part(rest, n, 0, half), part(rest, n, half, half)
        lines.append(f"if (some & {half}) *({space}{place(half)}*)(p + (some & -{n})) = {low};")
        lines.append(f"const {vector(scalar, half)} v{half} = some & {half} ? {high} : {low};")
        rest = f"v{half}"
    lines.append(f"if (some & 1) p[some & -2] = {part(rest, 2, 0, 1)};")
    return {**_masked(dialect, scalar, lanes, store=True), "pieces": _text(lines)}


def _powers(first: int, last: int) -> list[int]:
    return [first << i for i in range((last // first).bit_length())]


def _text(lines: list[str]) -> str:
    return "".join(f"    {line}\n" for line in lines)


def _first(scalar: str, lanes: int) -> str:
    """The lanes below `some`, as a condition of a selection."""
    element = SIGNED_OF_BITS[BITS[scalar]]
    mask, some = vector(element, lanes), "some" if element == "int" else f"({element})some"
    return f"({mask}){{{', '.join(map(str, range(lanes)))}}} < ({mask})({some})"


def _masked(dialect: Dialect, scalar: str, lanes: int, *, store: bool) -> dict[str, str]:
    """The masked forms of an access, inside preprocessor tests for them; empty if there are none."""
    if not dialect.x86_builtins or BITS[scalar] * lanes not in (128, 256, 512):
        return {"masked": "", "end": ""}
    test = "#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)"
    texts = [test, _text(_with_mask_registers(scalar, lanes, store)).rstrip("\n")]
    if not store and BITS[scalar] >= 32:
        texts += ["#elif defined(__AVX2__)", _text(_masked_load(scalar, lanes)).rstrip("\n")]
    return {"masked": "\n".join([*texts, "#else\n"]), "end": "#endif\n"}


def _with_mask_registers(scalar: str, lanes: int, store: bool) -> list[str]:
    """The statements with AVX-512's registers that hold a bit per lane."""
    bits, is_float = BITS[scalar], scalar in ("float", "double")
    kind = vector(scalar if is_float else SIGNED_OF_BITS[bits], lanes)
    mask = UNSIGNED_OF_BITS[max(8, lanes)]
    builtin = f"__builtin_ia32_{'store' if store else 'load'}{_MASKED[bits, is_float]}{bits * lanes}_mask"
    one = "1u" if lanes < 32 else "1ull"
    exists = f"({mask})(({one} << (count < 0 ? 0 : count > {lanes} ? {lanes} : (int)count)) - {one})"
    if not store:
        return [f"return as_{vector(scalar, lanes)}({builtin}((const void*)(size_t)p, as_{kind}(others), {exists}));"]
    if is_float:
        return [f"{builtin}((void*)(size_t)p, as_{kind}(v), {exists});", "return;"]
    # If clang 22 knows that the mask has one lane, it stores that lane of a narrowed vector with the former width.
    hidden = [f"{mask} first = {exists};", '__asm__("" : "+r"(first));']
    return [*hidden, f"{builtin}((void*)(size_t)p, as_{kind}(v), first);", "return;"]


def _masked_load(scalar: str, lanes: int) -> list[str]:
    """The statements with AVX2's loads under a vector of conditions, each of at most 32 bytes."""
    bits = BITS[scalar]
    kind = scalar if scalar in ("float", "double") else SIGNED_OF_BITS[bits]
    mask, loaded = vector(SIGNED_OF_BITS[bits], lanes), vector(kind, lanes)
    step = min(lanes, 256 // bits)
    builtin = f"__builtin_ia32_maskload{_MASKED_LOADS[kind]}{'256' if step * bits == 256 else ''}"
    lines = [
        f"int some = count < 0 ? 0 : count > {lanes} ? {lanes} : (int)count;",
        # a mask that is computed before a loop would take a register from its accumulators
        'if (!__builtin_constant_p(some)) __asm__ volatile("" : "+r"(some));',
        f"const {mask} exists = as_{mask}({_first(scalar, lanes)});",
        f"{loaded} v;",
    ]
    for i in range(0, lanes, step):
        part = "" if step == lanes else f".s{LANE_DIGITS[i : i + step]}"
        lines.append(f"v{part} = {builtin}((const void*)(size_t)(p + {i}), exists{part});")
    return [*lines, f"return exists ? as_{vector(scalar, lanes)}(v) : others;"]
