"""Changes of programs as text: a number, a type, an operator, an axis, a place, the order of steps; steps of other programs."""

import itertools
import random
import re
from typing import Any

from benchmarks.foreign.program import step_text
from benchmarks.foreign.steps import StepDrawer

Steps = list[Any]  # as in `program.step_text`: a step is its text, or [text, steps in braces]
VERBS = (
    "units",
    "fuse",
    "unfuse",
    "tile",
    "split",
    "load",
    "compute",
    "accumulate",
    "via",
    "inline",
    "vectorize",
    "do",
    "when",
    "...",
)
TYPES: tuple[str, ...] = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "float8_e4m3",
    "float8_e5m2",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "bool",
)
GROUPS: tuple[tuple[str, ...], ...] = (
    ("block", "cluster", "warpgroup", "warp", "thread"),
    ("register", "shared", "shared", "global", "l1", "l2"),
    TYPES,
    ("sum", "max", "min", "prod"),
    ("<", "<=", ">", ">=", "==", "!="),
    ("+", "-", "*"),
    ("exp", "abs", "erf", "relu", "floor", "sqrt", "tanh", "sigmoid"),
)
MODIFIERS = (
    " ahead 1",
    " ahead 2",
    " pad 1",
    " pad 4",
    " swizzle 64",
    " swizzle 128",
    " stream",
    " once",
    " behind 1",
    " on producer",
)
COMBINERS = re.compile(
    r"\bcombiner \w+\([^)]*\) (\{[^}]*\})"
)  # what they do stays: another number, and they may not be associative
NUMBERS = (0, 1, 1, 2, 2, 3, 4, 4, 5, 7, 8, 8, 12, 16, 16, 17, 24, 32, 33, 64, 128)


def parts(text: str) -> tuple[str, Steps]:
    """A program's computation, and the steps of its schedule."""
    found = re.search(r"^schedule\b[^{]*\{", text, re.MULTILINE)
    if found is None:
        return text.strip() + "\n", []
    steps, _ = _steps(text[found.end() :], 0)
    return text[: found.start()].strip() + "\n", steps


def joined(computation: str, steps: Steps) -> str:
    found = re.search(r"^computation (\w+)", computation, re.MULTILINE)
    assert found is not None
    return f"{computation}schedule for {found[1]} {{\n" + "".join(f"  {step_text(s)}\n" for s in steps) + "}\n"


def _steps(text: str, at: int) -> tuple[Steps, int]:
    """The steps up to the brace that closes them, and where that is."""
    steps: Steps = []
    begun, depth = at, 0

    def close(end: int) -> None:
        if words := " ".join(text[begun:end].split()):
            steps.append(words)

    while at < len(text):
        c = text[at]
        depth += (c in "([") - (c in ")]")
        if c == "{":
            inner, end = _steps(text, at + 1)
            steps.append([" ".join(text[begun:at].split()), inner])
            at = begun = end + 1
            continue
        word = re.match(r"\s*(\w+|\.\.\.)", text[at:]) if c in "\n;" and not depth else None
        if c == "}" or c == ";" or (word and word[1] in VERBS):
            close(at)
            if c == "}":
                return steps, at
            begun = at + 1
        at += 1
    return steps, at


class Mutator:
    """Draws changes. known: the texts of other programs, whose steps are taken over."""

    def __init__(self, r: random.Random, known: list[str]):
        self.random, self.known = r, known

    def changed(self, text: str) -> str:
        """A text with one change; what it means is not looked at."""
        computation, steps = parts(text)
        if self.random.random() < 0.2:
            return joined(self.in_computation(computation), steps)
        return joined(computation, self.in_steps(steps, computation))

    def in_computation(self, text: str) -> str:
        r = self.random
        words = re.split(r"(\w+|[<>=!]=|[-+*<>])", text)
        begins = itertools.accumulate(map(len, words), initial=0)
        laws = [found.span(1) for found in COMBINERS.finditer(text)]
        at = [
            n
            for n, (w, begin) in enumerate(zip(words, begins, strict=False))
            if (w.isdigit() or any(w in g for g in GROUPS)) and not any(a <= begin < b for a, b in laws)
        ]
        if not at:
            return text
        n = r.choice(at)
        if words[n] == "-" and words[n - 1].endswith("("):
            return text
        words[n] = self.word(words[n])
        if r.random() < 0.3 and words[n].isdigit():  # an extent occurs in several places
            old = words[n]
            words = [words[n] if w == old else w for w in words]
        return "".join(words)

    def word(self, word: str) -> str:
        """Another word of its kind."""
        r = self.random
        if word.isdigit():
            n = int(word)
            return str(r.choice((*NUMBERS, n + 1, max(0, n - 1), 2 * n, n // 2)))
        for group in GROUPS:
            if word in group:
                return r.choice(group)
        return word

    def in_steps(self, steps: Steps, computation: str) -> Steps:
        r = self.random
        chance = r.random()
        steps = list(steps)
        nested = [n for n, s in enumerate(steps) if not isinstance(s, str)]
        if nested and chance < 0.2:
            n = r.choice(nested)
            steps[n] = [steps[n][0], self.in_steps(steps[n][1], computation)]
            return steps if steps[n][1] else [*steps[:n], steps[n][0], *steps[n + 1 :]]
        if not steps or chance < 0.4:
            steps.insert(r.randint(0, len(steps)), self.step(computation))
            return steps
        n = r.randrange(len(steps))
        if chance < 0.52:
            steps.pop(n)
        elif chance < 0.6 and len(steps) > 1:
            m = r.randrange(len(steps))
            steps[n], steps[m] = steps[m], steps[n]
        elif chance < 0.66:
            steps.insert(r.randint(0, len(steps)), steps[n])
        else:
            text, inner = (steps[n], None) if isinstance(steps[n], str) else steps[n]
            text = self.in_text(text, computation)
            steps[n] = text if inner is None else [text, inner]
        return steps

    def in_text(self, text: str, computation: str) -> str:
        """A step with another number, word or axis, or with a modifier more or less."""
        r = self.random
        verb = text.split()[0]
        chance = r.random()
        if chance < 0.2 and verb in ("load", "compute", "accumulate", "via"):
            return text + r.choice(MODIFIERS)
        if chance < 0.3:
            without = re.sub(
                r" (ahead|pad|swizzle|behind) \d+| (stream|once|unroll|peel)\b| layout \(.*?\)| order \(.*?\)", "", text
            )
            more = (" unroll", " peel", " 2", f" of {r.choice(tensors_of(computation) or ['C'])}")
            return without if without != text else text + r.choice(more)
        if chance < 0.4 and verb in ("tile", "split"):
            return re.sub(r"^(\w+)", rf"\1 {r.choice(axes_of(computation) or ['i'])}={r.choice(NUMBERS[1:])}", text)
        words = re.split(r"(\w+)", text)
        names = axes_of(computation)
        at = [n for n, w in enumerate(words) if w.isdigit() or w in names or any(w in g for g in GROUPS[:2])]
        if at:
            n = r.choice(at)
            words[n] = r.choice(names) if words[n] in names else self.word(words[n])
        return "".join(words)

    def step(self, computation: str) -> Any:
        """A new step: drawn, or one of another program with axes and tensors of this one."""
        r = self.random
        if self.known and r.random() < 0.4:
            _, steps = parts(r.choice(self.known))
            if steps:
                return self.renamed(r.choice(steps), axes_of(computation), tensors_of(computation))
        return StepDrawer(shape_of(computation), r, r.choice(("", "", "roles"))).step()

    def renamed(self, step: Any, axes: list[str], tensors: list[str]) -> Any:
        if not isinstance(step, str):
            return [self.renamed(step[0], axes, tensors), [self.renamed(s, axes, tensors) for s in step[1]]]
        r = self.random
        chosen: dict[str, str] = {}

        def axis(found: re.Match[str]) -> str:
            name = found[0]
            if name not in axes and axes:
                return chosen.setdefault(name, r.choice(axes))
            return name

        verb = step.split()[0]
        if verb in ("load", "compute", "inline") and tensors:
            step = re.sub(r"^(\w+) \w+", lambda m: f"{m[1]} {r.choice(tensors)}", step)
        if verb in ("tile", "split", "vectorize"):
            return re.sub(r"\w+(?==)", axis, step)
        if verb == "do":
            return re.sub(r"(?<==)\w+", axis, step)
        return step


def axes_of(computation: str) -> list[str]:
    """The axes of a computation, and the dimensions of its inputs."""
    found = re.findall(r"(\w+)\s*:\s*\d+", computation) + re.findall(r"\b(?:sum|max|min|prod|any|all)\[(\w+)", computation)
    return list(dict.fromkeys(found))


def tensors_of(computation: str) -> list[str]:
    found = re.findall(r"input (\w+)", computation) + re.findall(
        r"^\s*(?:output )?(\w+)(?:\[[\w, ]*\])? =", computation, re.MULTILINE
    )
    return list(dict.fromkeys(found))


def shape_of(computation: str) -> dict[str, Any]:
    """As much of a program as `StepDrawer` looks at."""
    axes = {name: int(n) for name, n in re.findall(r"(\w+)\s*:\s*(\d+)", computation)}
    inputs = []
    for name, dims in re.findall(r"input (\w+): \w+\[([^\]]*)\]", computation):
        inputs.append({"name": name, "dims": [[d, int(n)] for d, n in re.findall(r"(\w+): (\d+)", dims)]})
    definitions = []
    for line in computation.splitlines():
        if found := re.match(r"\s*(?:output )?(\w+[\w, \[\]]*) =(.*)", line):
            left = re.findall(r"(\w+)(?:\[([\w, ]*)\])?", found[1])
            over = [a.strip() for names in re.findall(r"\b\w+\[([\w, ]+?)(?::[^\]]*)?\] ", found[2]) for a in names.split(",")]
            over = [a for a in over if a in axes]
            own = [a.strip() for a in left[0][1].split(",") if a.strip()]
            values = [["reduce", "sum", over, None, [["number", 1]]]]
            definitions.append({"names": [n for n, _ in left], "axes": own, "values": values})
    return {"axes": axes, "inputs": inputs, "definitions": definitions}
