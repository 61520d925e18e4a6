"""The process that runs an emulated kernel: `python worker.py FOLDER`, with the plan, the library and the data in the folder.

Needs only Python. If the kernel does something that a device would not, the process exits with status 13 and the fault on stderr.
"""

import ctypes
import json
import mmap
import sys
from pathlib import Path
from typing import Any

_ARGUMENT_BYTES = 128  # of one argument, and its alignment


def main(folder: Path) -> None:
    """Runs a plan's launches on its arrays, which they change in place."""
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
    values = [_bytes(argument, places) for argument in launch["arguments"]]
    space = ctypes.create_string_buffer(_ARGUMENT_BYTES * (len(values) + 1))
    first = -(-ctypes.addressof(space) // _ARGUMENT_BYTES) * _ARGUMENT_BYTES
    pointers = (ctypes.c_void_p * len(values))(*(first + _ARGUMENT_BYTES * i for i in range(len(values))))
    for pointer, value in zip(pointers, values, strict=True):
        ctypes.memmove(pointer, value, len(value))
    grid = (ctypes.c_uint32 * 3)(*launch["grid"])
    numbers = (ctypes.c_uint32(launch[word]) for word in ("threads", "cluster", "warp", "turns", "when"))
    library.emulated_launch(library[launch["symbol"]], pointers, grid, *numbers, ctypes.c_uint64(launch["seed"]))


def _bytes(argument: dict[str, Any], places: dict[str, int]) -> bytes:
    """An argument in memory: a pointer to an array, or bytes, which may begin with the address of an array."""
    if "array" in argument:
        return places[argument["array"]].to_bytes(8, "little")
    given = bytes.fromhex(argument["bytes"])
    return places[argument["address_of"]].to_bytes(8, "little") + given[8:] if "address_of" in argument else given


if __name__ == "__main__":
    main(Path(sys.argv[1]))
