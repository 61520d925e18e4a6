"""How long a new user waits: the README's first command, from the tracked files alone, with an empty environment and home.

    python benchmarks/install.py [--home FOLDER]

Installs into a fresh virtual environment and runs the demo, with nothing of this shell's variables but the path, the certificates and
where packages come from. Packages are downloaded once before, into a cache of pip's own that stays in FOLDER where one is given; only
the second run is timed. Prints what the demo prints, then the seconds and the limit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 60.0
KEPT = (
    "PATH",
    "LANG",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "HTTPS_PROXY",
    "NO_PROXY",
    "PIP_INDEX_URL",
    "PIP_CONFIG_FILE",
    "PYTHON",
)


def command() -> str:
    """The README's first command."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.partition("<!-- demo command -->\n```sh\n")[2].partition("\n```")[0]


def copied(place: Path) -> Path:
    """The tracked files, in a folder of their own."""
    place.mkdir()
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place / name, follow_symlinks=False)
    return place


def run(checkout: Path, home: Path) -> tuple[float, str]:
    """Seconds of the command in a checkout, and what it prints. Raises SystemExit with its errors where it fails."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment |= {
        "HOME": str(home),
        "PIP_CACHE_DIR": str(home / "pip"),
        "XDG_CACHE_HOME": str(checkout.parent / f"{checkout.name}-cache"),
    }
    begun = time.perf_counter()
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command()], cwd=checkout, env=environment, capture_output=True, text=True
    )
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}\n{command()} ended with {done.returncode}")
    return seconds, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, help="where pip's downloads stay from one call to the next")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = given.home or Path(folder) / "home"
        home.mkdir(parents=True, exist_ok=True)
        run(copied(Path(folder) / "first"), home)
        seconds, printed = run(copied(Path(folder) / "second"), home)
    print(printed.strip())
    print(f"install and demo: {seconds:.1f} s (at most {LIMIT_S:g})")
    sys.exit(seconds > LIMIT_S)


if __name__ == "__main__":
    main()
