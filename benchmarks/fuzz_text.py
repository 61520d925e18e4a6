"""The text form under fire: random bytes, mutated files, deep nesting, large inputs. Never a traceback, never a hang.

    python benchmarks/fuzz_text.py [--seconds 600] [--seed 0] [--round-trips 5000] [--json benchmarks/results/fuzz_text.json]

First random programs are printed and read back: schedules that can be lowered, and steps and definitions of every form that the
language has; text, hash, steps and definitions must be the same. Until the time is over, texts of many kinds are then parsed, laid out,
bound and checked, which lowers them; everything must either work or be errors of ours, in the time for one input. Prints counts by kind
and by what became of them; exit status 1 where something else happened, with the input.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tilelang.computations.computation import Computation
from tilelang.errors import TileLangError
from tilelang.grammar import format_text, parse
from tilelang.grammar.parser import lark
from tilelang.profiles.files import load_profile
from tilelang.schedules.steps import Step
from tilelang.testing.case import draw_case
from tilelang.testing.choice import Seeded
from tilelang.testing.language import draw_program, draw_text, program_text

LIMIT_S = 20  # for one input: parsed, laid out, bound and checked; a hang, not a slow machine
WORD = re.compile(r"`?\w+`?|\s+|.", re.DOTALL)


def corpus() -> list[str]:
    """Valid texts: the files of the examples, printed random ones, and what the grammar derives."""
    root = Path(__file__).resolve().parent.parent
    found = [p.read_text() for p in sorted(root.glob("examples/*.tile"))]
    for seed in range(200):
        try:
            made = draw_case(Seeded(seed)).schedule
        except TileLangError:
            continue
        found.append(made.computation.text + made.text)
        found += [program_text(*draw_program(Seeded(seed))), draw_text(Seeded(seed))]
    return found


def words() -> list[str]:
    """What a text is made of: the grammar's own words, names, numbers, marks."""
    own = [str(t.pattern.value) for t in lark().terminals if t.pattern.type == "str"]
    return [
        *own,
        "m",
        "k",
        "A",
        "X",
        "f",
        "float32",
        "block",
        "thread",
        "shared",
        "0",
        "1",
        "7",
        "2.5",
        "1e308",
        "9" * 40,
        "`in`",
        "#",
        "\n",
        "\\",
    ]


Kind = Callable[[random.Random, list[str], list[str]], str]


def _bytes(r: random.Random, texts: list[str], _: list[str]) -> str:
    return bytes(r.randrange(256) for _ in range(r.randrange(400))).decode(
        "utf-8", r.choice(["replace", "surrogateescape", "ignore"])
    )


def _soup(r: random.Random, texts: list[str], known: list[str]) -> str:
    return " ".join(r.choice(known) for _ in range(r.randrange(60)))


def _mutated(r: random.Random, texts: list[str], known: list[str]) -> str:
    """A valid text with words left out, doubled, exchanged or replaced."""
    parts = WORD.findall(r.choice(texts))
    for _i in range(r.randint(1, 4)):
        k = r.randrange(len(parts))
        match r.randrange(5):
            case 0:
                del parts[k : k + r.randint(1, 3)]
            case 1:
                parts.insert(k, parts[r.randrange(len(parts))])
            case 2:
                other = r.randrange(len(parts))
                parts[k], parts[other] = parts[other], parts[k]
            case 3:
                parts[k] = r.choice(known)
            case _:
                parts[k] = parts[k][: r.randrange(len(parts[k]) + 1)]
        if not parts:
            break
    return "".join(parts)


def _characters(r: random.Random, texts: list[str], _: list[str]) -> str:
    text = [*r.choice(texts)]
    for _i in range(r.randint(1, 6)):
        k = r.randrange(len(text))
        text[k] = chr(r.choice([r.randrange(32, 127), r.randrange(0x3000), 0, 10, 0x2028, 0xD800 + r.randrange(0x400)]))
    return "".join(text)


def _crossed(r: random.Random, texts: list[str], _: list[str]) -> str:
    a, b = r.choice(texts), r.choice(texts)
    return a[: r.randrange(len(a))] + b[r.randrange(len(b)) :]


def _deep(r: random.Random, texts: list[str], _: list[str]) -> str:
    n = r.choice([10, 150, 190, 199, 200, 300, 5000])
    piece, close = r.choice(
        [("(", ")"), ("exp(", ")"), ("-", ""), ("not ", ""), ("X[", "]"), ("1+", ""), ("where(true,", ",1)"), ("~", "")]
    )
    body = piece * n + "1" + close * n
    return r.choice(["computation f { output Y[] = %s }", "schedule s for f { when %s { } }", "computation f(N = %s) { }"]) % body


def _nested(r: random.Random, texts: list[str], _: list[str]) -> str:
    n = r.choice([5, 50, 198, 201, 2000])
    return "schedule s for f { " + "load A in shared { " * n + "} " * n + "}"


def _large(r: random.Random, texts: list[str], known: list[str]) -> str:
    piece = r.choice(
        [r.choice(known) + " ", "tile m=4 -> block\n", "# comment\n", "output Y[i] = X[i] + 1.0\n", "(", "1+", "A[i],"]
    )
    text = piece * (r.choice([20_000, 200_000, 262_144]) // len(piece.encode()))
    return r.choice(["%s", "computation f { %s }", "schedule s for f { %s }"]) % text


KINDS: dict[str, Kind] = {
    "bytes": _bytes, "word soup": _soup, "mutated words": _mutated, "mutated characters": _characters, "two texts crossed": _crossed,
    "deep expressions": _deep, "deep braces": _nested, "large": _large,
}  # fmt: skip
WEIGHTS = [3, 3, 8, 4, 3, 1, 1, 0.2]


def outcome(text: str) -> str:
    """What became of a text: laid out where it is a program, and all of it that its defaults bind checked. Raises what is not an error
    of ours."""
    try:
        document = parse(text, "fuzz.tile", faulty=True)
        if not document.faults:
            format_text(text, "fuzz.tile")
        found = document.findings({}, load_profile("sapphire_rapids"))
    except TileLangError as error:
        str(error)
        return f"refused: {error.code}"
    for each in found:
        str(each)
    if document.faults:
        return f"refused: {document.faults[0].code}"
    return f"refused when bound: {found[0].code}" if found else "accepted"


def round_trips(number: int) -> int:
    """Prints and reads back so many random schedules, and so many programs of every form; how many were the same."""
    done, seed = 0, 0
    while done < 2 * number:
        seed += 1
        read_back(*draw_program(Seeded(seed)))
        try:
            made = draw_case(Seeded(seed)).schedule
        except TileLangError:
            done += 1
            continue
        read_back(made.computation, made.steps)
        assert parse(made.computation.text + made.text).schedule().hash == made.hash, made.text
        done += 2
    return done


def read_back(made: Computation, steps: tuple[Step, ...]) -> None:
    """Prints a program and reads it. Raises AssertionError where it is another one."""
    text = program_text(made, steps)
    again, read = parse(text).steps()
    assert again.text == made.text and again.hash == made.hash, text
    assert [repr(s) for s in read] == [repr(s) for s in steps], text
    assert [str(d.values) for d in again.definitions] == [str(d.values) for d in made.definitions], text


def fuzzed(seconds: float, inputs: float, seed: int) -> dict[str, Any]:
    """What became of random texts, until the time is over or there were so many of them."""
    r, texts, known = random.Random(seed), corpus(), words()
    counts, kinds, slowest, failures = Counter[str](), Counter[str](), (0.0, ""), 0
    signal.signal(signal.SIGALRM, _too_long)
    start = time.perf_counter()
    while time.perf_counter() - start < seconds and failures < 10 and kinds.total() < inputs:
        kind = r.choices(list(KINDS), WEIGHTS)[0]
        text = KINDS[kind](r, texts, known)
        begin = time.perf_counter()
        signal.alarm(LIMIT_S)
        try:
            found = outcome(text)
        except Exception as error:
            failures += 1
            found = f"FAILED: {type(error).__name__}"
            print(f"# {kind}: {type(error).__name__}: {str(error)[:200]}\n{text[:2000]!r}\n")
        finally:
            signal.alarm(0)
        counts[found.partition(":")[0]] += 1
        kinds[kind] += 1
        slowest = max(slowest, (time.perf_counter() - begin, kind))
    return {
        "seconds": round(time.perf_counter() - start), "inputs": kinds.total(), "failures": failures,
        "slowest_s": round(slowest[0], 2), "slowest": slowest[1], "kinds": dict(kinds), "outcomes": dict(counts),
    }  # fmt: skip


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {LIMIT_S} s")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--inputs", type=float, default=float("inf"), help="no more than so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round-trips", type=int, default=5000)
    parser.add_argument("--json", type=Path, help="write counts here")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    done = round_trips(options.round_trips)
    print(f"{done} random programs read back as they were, {time.perf_counter() - start:.0f} s")
    found = fuzzed(options.seconds, options.inputs, options.seed)
    slowest = f"{found['slowest_s']:.2f} s ({found['slowest']})"
    print(f"{found['inputs']} inputs in {found['seconds']} s, {found['failures']} failures; slowest {slowest}")
    for name in ("kinds", "outcomes"):
        print(name, *(f"  {n:7} {what}" for what, n in Counter(found[name]).most_common()), sep="\n")
    if options.json:
        head = {"schema": 1, "seed": options.seed, "round_trips": done}
        options.json.write_text(json.dumps({**head, **found}, indent=1) + "\n")
    return int(found["failures"] > 0)


if __name__ == "__main__":
    sys.exit(main())
