"""Every kind of place of a definition, by every kind of reader, read, tile, output and order of axes, in the simulator.

    python benchmarks/places.py --part 1/4

Goes through the product of tests/lowering/place_product.py, or a part of it, and prints how many are right, how many are refused with
which code, and all that is wrong. Exit status 1 where something is. All 18,480 take some fifteen minutes.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.lowering.place_product import cases, outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="1/1", help="which part of how many, as in 2/4")
    part, parts = map(int, parser.parse_args().part.split("/"))
    found, wrong = Counter[str](), 0
    for case in itertools.islice(cases(), part - 1, None, parts):
        came = outcome(case)
        fault = came.startswith(("found", "wrong"))
        found["wrong" if fault else came] += 1
        if fault:
            wrong += 1
            print(*case, came, sep=" | ", flush=True)
    for came, count in found.most_common():
        print(f"{count:6,} {came}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
