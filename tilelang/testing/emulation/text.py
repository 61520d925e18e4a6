"""Parses a kernel's source: the functions that it defines, and which of them only a device compiler accepts.

A function that contains assembly or calls a builtin of the device's compiler is emulated: its definition is cut out of the source, and
the function of the same name in wrappers/ replaces it. Everything else stays as it is.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping

_SKIPPED = re.compile(
    r""" "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+' | //[^\n]* | /\*(?:.|\n)*?\*/ | ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]* """,
    re.MULTILINE | re.VERBOSE,
)
_COMMENT = re.compile(r"//[^\n]*")
_DEVICE_ONLY = re.compile(r"\basm\b|\b__asm__\b|\b__builtin_amdgcn_\w+|\b__builtin_nvvm_\w+")
_NAMESPACE = re.compile(r"\bnamespace\s+(\w+)\s*$")
_NAME = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_NO_FUNCTION = frozenset(
    "__attribute__ __declspec __launch_bounds__ __cluster_dims__ __align__ alignas asm decltype sizeof".split()
)
_DYNAMIC_SHARED = re.compile(r"\bextern\s+__shared__\s+([^;\[]*?)\b(\w+)\s*\[\s*\]([^;]*);")


@dataclasses.dataclass(frozen=True, slots=True)
class Definition:
    """A function in a source. scope: the enclosing namespaces, each followed by `::`, or "". device_only: see above."""

    scope: str
    name: str
    begin: int
    end: int
    device_only: bool


def blanked(text: str) -> str:
    """The text with strings, comments and preprocessor lines replaced by spaces, for scanning."""
    return _SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def definitions(text: str) -> Iterator[Definition]:
    """The functions that a text defines, including those in namespaces, in order.

    >>> [(d.scope, d.name, d.device_only) for d in definitions('namespace a { void f() {} } void g(int x) { asm("g"); }')]
    [('a::', 'f', False), ('', 'g', True)]
    """
    bare = blanked(text)
    namespaces: list[str] = []
    depth = start = opening = 0
    for found in re.finditer(r"[{};]", bare):
        place, character = found.start(), found[0]
        head = bare[start:place]
        if character == "{" and not depth and (named := _NAMESPACE.search(head)):
            namespaces.append(f"{named[1]}::")
        elif character == "{":
            opening = opening if depth else place
            depth += 1
            continue
        elif depth:
            depth -= character == "}"
            if depth or character == ";":
                continue
            names = [name for name in _NAME.findall(bare[start:opening]) if name not in _NO_FUNCTION]
            if names:
                begin = start + len(head) - len(head.lstrip())
                device_only = _DEVICE_ONLY.search(bare, begin, place) is not None
                yield Definition("".join(namespaces), names[0], begin, place + 1, device_only)
        elif character == "}" and namespaces:
            namespaces.pop()
        start = place + 1


def replaced(text: str, emulations: Mapping[str, str]) -> str:
    """The source with device-only functions replaced by their emulations, each in one line so that line numbers stay the same."""
    done = set()
    pieces, end = [], 0
    for found in definitions(text):
        if not found.device_only:
            continue
        first = (found.scope, found.name) not in done
        done.add((found.scope, found.name))
        lines = "\n" * text.count("\n", found.begin, found.end)
        pieces += [text[end : found.begin], " ".join(emulations[found.name].split("\n")) if first else "", lines]
        end = found.end
    return "".join([*pieces, text[end:]])


def definitions_by_name(text: str) -> dict[str, str]:
    """The definitions of each function of a text, without comments."""
    bare, found = _COMMENT.sub("", text), dict[str, str]()
    for d in definitions(bare):
        found[d.name] = f"{found.get(d.name, '')} {bare[d.begin : d.end]}".lstrip()
    return found


def cluster_of(text: str, kernel: str) -> int:
    """The number of blocks in a cluster, from a kernel's attributes; 1 by default.

    >>> cluster_of("void __cluster_dims__(2, 1, 1) __launch_bounds__(32) k(int* x) {}", "k")
    2
    """
    found = re.search(rf"__cluster_dims__\(\s*(\d+)[^)]*\)\s*(?:__\w+__\([^)]*\)\s*)*{re.escape(kernel)}\s*\(", text)
    return int(found[1]) if found else 1


def with_sized_arrays(text: str, size_bytes: int) -> str:
    """The source in which shared arrays whose size is set by the launch are declared with that size, in bytes."""
    return _DYNAMIC_SHARED.sub(rf"__shared__ \1\2[{max(1, size_bytes)}]\3;", text)
