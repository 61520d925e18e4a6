"""Programs without the names that they give to things."""

import hashlib
import re

from benchmarks.foreign.devices import Device
from benchmarks.foreign.mutate import GROUPS, VERBS

WORDS = {w for group in GROUPS for w in group} | set(VERBS)
WORDS |= {
    "computation",
    "schedule",
    "input",
    "output",
    "axis",
    "for",
    "in",
    "of",
    "on",
    "as",
    "layout",
    "pad",
    "order",
    "ahead",
    "where",
}


def canonical(device: Device, text: str) -> str:
    """A digest that does not depend on what axes and tensors are called."""
    names: dict[str, str] = {}
    known = WORDS | set(re.findall(r"\bdo (\w+)", text))

    def renamed(found: re.Match[str]) -> str:
        word = found[0]
        return word if word in known else names.setdefault(word, f"n{len(names)}")

    text = re.sub(r"[A-Za-z_]\w*", renamed, text)
    return hashlib.sha256(f"{device}{text}".encode()).hexdigest()[:16]
