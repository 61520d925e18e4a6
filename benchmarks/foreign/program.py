"""A program as plain lists and dicts (so that it is JSON), and its text in the language."""

from typing import Any

Expression = list[Any]  # [kind, ...]: the kinds are the cases of `text_of`

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float8_e4m3", "float8_e5m2", "float16", "bfloat16", "float32", "float64")

# name: members, body, identity; types of the members are filled in by `{0}`, `{1}`.
COMBINERS: dict[str, tuple[int, str, str]] = {
    "larger": (1, "combiner {n}(a: {0}; b: {0}) {{ max(a, b) identity {low} }}", "float"),
    "exclusive": (1, "combiner {n}(a: {0}; b: {0}) {{ a ^ b identity 0 }}", "integer"),
    "sum_and_least": (
        2,
        "combiner {n}(a: {0}, p: {1}; b: {0}, q: {1}) {{ a + b, min(p, q) identity 0, {high} }}",
        "integer float",
    ),
    "turn": (
        2,
        "combiner {n}(a: {0}, p: {1}; b: {0}, q: {1}) {{ a * b - p * q, a * q + p * b identity 1, 0 }}",
        "integer integer",
    ),
    "first_best": (
        2,
        "combiner {n}(a: {0}, p: {1}; b: {0}, q: {1}) {{ max(a, b),"
        " where((a > b) or (isnan(a) and (~isnan(b))) or (((a == b) or (isnan(a) and isnan(b))) and (p < q)), p, q)"
        " identity {low}, 1000000 }}",
        "float integer",
    ),
}


def number(value: float | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value >= 0 else f"(-{-value})"
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "(-inf)"
    return repr(value) if value >= 0 else f"(-{-value!r})"


def text_of(e: Expression) -> str:
    match e:
        case ["number", value]:
            return number(value)
        case ["axis", name]:
            return str(name)
        case ["read", name, indices]:
            return f"{name}[{', '.join(map(text_of, indices))}]"
        case ["pad", read, value]:
            return f"pad({text_of(read)}, {number(value)})"
        case ["binary", "pow", a, b]:
            return f"pow({text_of(a)}, {text_of(b)})"
        case ["binary", ("max" | "min") as op, a, b]:
            return f"{op}({text_of(a)}, {text_of(b)})"
        case ["binary", op, a, b]:
            return f"({text_of(a)} {op} {text_of(b)})"
        case ["unary", ("-" | "~") as op, a]:
            return f"({op}{text_of(a)})"
        case ["unary", op, a]:
            return f"{op}({text_of(a)})"
        case ["where", c, a, b]:
            return f"where({text_of(c)}, {text_of(a)}, {text_of(b)})"
        case ["cast", a, dtype]:
            return f"cast({text_of(a)}, {dtype})"
        case ["reduce", *_]:
            return f"({reduction(e)})"
        case ["member", a, n]:
            return f"({reduction(a)})[{n}]"
    raise ValueError(e)


def reduction(e: Expression) -> str:
    _, kind, axes, condition, bodies = e
    domain = ", ".join(axes) + (f": {text_of(condition)}" if condition else "")
    body = text_of(bodies[0]) if len(bodies) == 1 else f"({', '.join(map(text_of, bodies))})"
    word = kind if kind in ("sum", "prod", "max", "min", "argmax", "argmin", "any", "all") else f"reduce {kind}"
    return f"{word}[{domain}] {body}"


def children(e: Expression) -> list[Expression]:
    match e:
        case ["read", _, indices]:
            return list(indices)
        case ["pad", a, _] | ["unary", _, a] | ["cast", a, _] | ["member", a, _]:
            return [a]
        case ["binary", _, a, b]:
            return [a, b]
        case ["where", a, b, c]:
            return [a, b, c]
        case ["reduce", _, _, condition, bodies]:
            return ([condition] if condition else []) + list(bodies)
    return []


def walk(e: Expression) -> list[Expression]:
    return [e] + [inner for child in children(e) for inner in walk(child)]


def combiner_text(name: str, types: list[str]) -> str:
    _, form, _ = COMBINERS[name.split("__")[0]]
    return form.format(*types, n=name, low="(-inf)", high="inf")


def program_text(program: dict[str, Any]) -> str:
    """The computation as text; axes that no input names are declared."""
    lines = ["computation drawn {"]
    named = set()
    for i in program["inputs"]:
        dims = ", ".join(f"{name}: {extent}" for name, extent in i["dims"])
        named |= {name for name, _ in i["dims"]}
        within = f" in {i['range'][0]} .. {i['range'][1]}" if i.get("range") else ""
        lines.append(f"  input {i['name']}: {i['dtype']}[{dims}]{within}")
    used = set()
    for d in program["definitions"]:
        used |= set(d["axes"])
        for e in d["values"]:
            used |= {a for x in walk(e) if x[0] == "reduce" for a in x[2]}
    lines += [f"  axis {name}: {extent}" for name, extent in program["axes"].items() if name in used - named]
    lines += ["  " + combiner_text(name, types) for name, types in program["combiners"].items()]
    for d in program["definitions"]:
        outputs = [n for n in d["names"] if n in program["outputs"]]
        left = ", ".join(n + (f"[{', '.join(d['axes'])}]" if d["axes"] else "") for n in d["names"])
        right = ", ".join(reduction(e) if e[0] == "reduce" else text_of(e) for e in d["values"])
        only = f" only {', '.join(outputs)}" if outputs and len(outputs) < len(d["names"]) else ""
        lines.append(f"  {'output ' if outputs else ''}{left} = {right}{only}")
    return "\n".join(lines) + "\n}\n"


def schedule_text(steps: list[Any]) -> str:
    return "schedule drawn_so for drawn {\n" + "".join(f"  {s}\n" for s in map(step_text, steps)) + "}\n"


def step_text(step: Any) -> str:
    """A step is its text, or [text, steps in braces]."""
    if isinstance(step, str):
        return step
    return f"{step[0]} {{ {'; '.join(map(step_text, step[1]))} }}"
