"""The process in which an emulated kernel runs: `python worker.py FOLDER`, with the plan, the library and the data in that folder.

Needs nothing but Python. It ends with status 13 and the fault on its standard error where the kernel does what a device would not.
"""

import ctypes
import json
import mmap
import sys
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Runs a plan's launches on its arrays, which are changed in place."""
    plan = json.loads((folder / "plan.json").read_text())
    ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(folder / "kernel.so"))
    library.emulated_array.restype = ctypes.c_void_p
    with open(folder / "data", "r+b") as file:
        data = mmap.mmap(file.fileno(), 0)
        base = ctypes.addressof(ctypes.c_char.from_buffer(data))
        names = [ctypes.create_string_buffer(array["name"].encode()) for array in plan["arrays"]]
        places = {
            array["name"]: library.emulated_array(name, ctypes.c_void_p(base + array["begin"]), ctypes.c_size_t(array["bytes"]))
            for name, array in zip(names, plan["arrays"], strict=True)
        }
        for launch in plan["launches"]:
            _launch(library, launch, places)
        for number, array in enumerate(plan["arrays"]):
            library.emulated_result(number, ctypes.c_void_p(base + array["begin"]))


def _launch(library: Any, launch: dict[str, Any], places: dict[str, int]) -> None:
    values = [_value(argument, places) for argument in launch["arguments"]]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    grid = (ctypes.c_uint32 * 3)(*launch["grid"])
    threads, warp, turns, when = (ctypes.c_uint32(launch[word]) for word in ("threads", "warp", "turns", "when"))
    library.emulated_launch(
        library[launch["symbol"]], pointers, grid, threads, warp, turns, when, ctypes.c_uint64(launch["seed"])
    )


def _value(argument: dict[str, Any], places: dict[str, int]) -> Any:
    """An argument in memory: a pointer to an array, or bytes, of which some may be the address of an array."""
    if "array" in argument:
        return ctypes.c_void_p(places[argument["array"]])
    given = bytes.fromhex(argument["bytes"])
    if "address_of" in argument:
        given = places[argument["address_of"]].to_bytes(8, "little") + given[8:]
    return ctypes.create_string_buffer(given, max(len(given), 128))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
