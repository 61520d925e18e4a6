"""The text of a kernel source: what stands at its top level, and which of its functions only the device understands.

A function whose body is assembly, or calls a builtin of the device's compiler, is emulated: its definition is cut out of the source,
and a function of the same name in the headers beside this file takes its place. Everything else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SKIPPED = re.compile(
    r""" "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+' | //[^\n]* | /\*(?:.|\n)*?\*/ | ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]* """,
    re.MULTILINE | re.VERBOSE,
)
_DEVICE_ONLY = re.compile(r"\basm\b|\b__asm__\b|\b__builtin_amdgcn_\w+|\b__builtin_nvvm_\w+")
_NAME = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_NO_FUNCTION = frozenset("__attribute__ __declspec __launch_bounds__ __align__ alignas asm decltype sizeof".split())
_DYNAMIC_SHARED = re.compile(r"\bextern\s+__shared__\s+([^;\[]*?)\b(\w+)\s*\[\s*\]([^;]*);")


def blanked(text: str) -> str:
    """The text with strings, comments and preprocessor lines replaced by spaces, so that what is left can be scanned."""
    return _SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def definitions(text: str) -> Iterator[tuple[str, int, int]]:
    """The functions defined at the top level of a text: name, begin and end of each definition.

    >>> text = "int a; static void f(int x) { g(x); }"
    >>> [(name, text[begin:end]) for name, begin, end in definitions(text)]
    [('f', 'static void f(int x) { g(x); }')]
    """
    bare = blanked(text)
    depth = start = 0
    for place, character in enumerate(bare):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        if depth or character not in "};":
            continue
        if character == "}":
            head = bare[start : bare.index("{", start)]
            names = [name for name in _NAME.findall(head) if name not in _NO_FUNCTION]
            if names:
                yield names[0], start + len(head) - len(head.lstrip()), place + 1
        start = place + 1


def emulated_names(text: str) -> tuple[str, ...]:
    """The functions of a source that only the device understands, in its order."""
    bare = blanked(text)
    return tuple(name for name, begin, end in definitions(text) if _DEVICE_ONLY.search(bare[begin:end]))


def without_definitions(text: str, names: frozenset[str]) -> str:
    """The source without the definitions of some functions; lines keep their numbers."""
    cut = list(text)
    for name, begin, end in definitions(text):
        if name in names:
            cut[begin:end] = [c if c == "\n" else " " for c in text[begin:end]]
    return "".join(cut)


def with_sized_arrays(text: str, size_bytes: int) -> str:
    """The source with arrays in shared memory whose size the launch gives declared with that size, in bytes."""
    return _DYNAMIC_SHARED.sub(rf"__shared__ \1\2[{max(1, size_bytes)}]\3;", text)
