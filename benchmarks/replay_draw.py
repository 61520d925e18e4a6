"""Writes the texts of `make replay`: random schedules, and the schedules that are constructed for random computations.

    python benchmarks/replay_draw.py                 # takes ten minutes; folders that exist are left alone

The folders are in benchmarks/replay/. `steered/`, a file for each device: texts of the campaigns (python -m benchmarks.foreign), begun
in any of their ways and changed a few times, accepted and refused ones. `constructed/`, a file for each shipped profile: random
computations with the schedule that construction gives them. The programs never change afterwards: what the compiler makes of them is
compared for years.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/replay_draw.py` from anywhere

import tilelang as tl
from benchmarks.foreign import corpus
from benchmarks.foreign.devices import DEVICES, Device
from benchmarks.foreign.draw import Drawer
from benchmarks.foreign.mutate import Mutator
from benchmarks.foreign.program import program_text
from benchmarks.foreign.steer import Campaign, text_of
from benchmarks.replay import SEPARATOR, TEXTS

MORE = (
    ("cpu", "avx2"), ("cpu", "neon"), ("opencl", "simulated"), ("hip", "rdna3"), ("cuda", "volta"), ("cuda", "blackwell"),
    ("opencl", "mali_g76"), ("opencl", "adreno640"),
)  # fmt: skip
ACCEPTED, REFUSED, CONSTRUCTED = 115, 40, 50  # for each device, and for each profile
CHANGES = 8  # of one text
POINTS = 500  # of a definition
LONGEST = 4_000  # characters of a text
MOST_SECONDS = 0.5  # of a lowering
SEED = 20261127


class Texts(Campaign):
    """The texts with which the cases of a campaign begin; nothing is measured or simulated."""

    def load(self) -> None:
        self.kept = {entry: set() for entry in corpus.entries(self.folder) if entry.device in self.devices}

    def of(self, seed: int, device: Device) -> Iterator[str]:
        """A text, changed again and again."""
        r = random.Random(seed)
        mutator = Mutator(r, [entry.text for entry in self.kept if not entry.refused])
        text = ""
        for text in self.begun(r, device, self.report(seed, device)):
            yield text
        for _ in range(r.randrange(CHANGES) if text else 0):
            changed = mutator.changed(text)
            yield changed
            text = changed if outcome(device, changed) == "accepted" else text


def outcome(device: Device, text: str) -> str:
    """accepted, refused, or nothing where a text takes long or raises what is not an error of ours."""
    begun = time.process_time()
    try:
        corpus.lowered(corpus.Entry(device, text), verify=False)
    except tl.TileLangError:
        return "refused"
    except Exception:
        return ""
    return "accepted" if time.process_time() - begun < MOST_SECONDS else ""


def steered(device: Device, log: Path) -> list[str]:
    """Texts for a device, no more than one accepted and one refused of each seed."""
    left, found = {"accepted": ACCEPTED, "refused": REFUSED}, dict[str, None]()
    source, seed = Texts((device,), log=log), SEED
    while any(left.values()):
        seed += 1
        last = dict[str, str]()
        for text in source.of(seed, device):
            if len(text) < LONGEST:
                last[outcome(device, text)] = text.strip()
        for what, text in last.items():
            if left.get(what, 0) and text not in found:
                found[text] = None
                left[what] -= 1
    return list(found)


def constructed(profile: str, n: int) -> list[str]:
    """Random computations with the schedules that are constructed for a profile."""
    target, found, seed = tl.target(tl.load_profile(profile).dialects[0], profile=profile), list[str](), SEED + 1_000_000 * n
    while len(found) < CONSTRUCTED:
        seed += 1
        try:
            schedule = tl.compile(tl.parse(program_text(Drawer(seed, POINTS).program())).computation(), target).schedule
        except tl.TileLangError:
            continue
        text = text_of(schedule).strip()
        if len(text) < LONGEST and outcome((target.dialect, profile), text) == "accepted":
            found.append(text)
    return found


def write(folder: str, file: str, programs: list[str]) -> None:
    path = TEXTS / folder / f"{file}.tile"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(f"{SEPARATOR}{n:03}\n{text}\n" for n, text in enumerate(programs)), encoding="utf-8")


def main() -> int:
    with tempfile.TemporaryDirectory() as log:
        for device in (*DEVICES, *MORE):
            if not (TEXTS / "steered" / f"{device[1]}.tile").exists():
                write("steered", device[1], steered(device, Path(log)))
                print(f"steered {device[1]}", flush=True)
        for n, profile in enumerate(tl.profiles.files.shipped_profiles()):
            if not (TEXTS / "constructed" / f"{profile}.tile").exists():
                write("constructed", profile, constructed(profile, n))
                print(f"constructed {profile}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
