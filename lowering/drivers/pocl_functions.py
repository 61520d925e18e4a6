"""Kernels that PoCL compiled, as functions of this process: a block costs a call then, and a launch none of PoCL's commands.

OpenCL C lets nobody take the address of a kernel. But a kernel of one thread a block is a function of its arguments and of its block's
number: a few macros before the text make it one, and after it come functions that take arguments from an array, and one kernel that
tells where those are. What the text says stays as it is, so that a device that takes no part in this runs the very same.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from tilelang.errors import DeviceError
from tilelang.lowering.drivers import host_threads
from tilelang.lowering.drivers.host_threads import HostThreads

# What a text may not have where its kernels become functions: threads of a block that meet, or that are told apart.
_KERNEL = re.compile(r"\b__kernel\b[^;{}]*?\bvoid\s+(\w+)\s*\(([^{}]*?)\)\s*\{")
_OF_THREADS = re.compile(r"\bget_(?!group_id\b)\w+\s*\(|\bprintf\s*\(|\breqd_work_group_size\s*\(\s*(?!1\s*,)")

_BEFORE = """\
#define __kernel static __attribute__((noinline, min_vector_width(512)))
#define reqd_work_group_size(...)
#define __local
#define barrier(...)
#define get_group_id(dimension) number_of_this_block[dimension]
"""
_AFTER = """
#undef __kernel
#undef __local
#undef barrier
#undef get_group_id
"""
_RENAMED = "#define {name}(...) {name}_block(__VA_ARGS__, const ulong* number_of_this_block)\n"
_FUNCTION = """\
#undef {name}
__attribute__((noinline, used)) void {name}_function(const __global ulong* arguments, const ulong* block) {{
  __asm__ volatile(""); // what does nothing is not linked
  {name}_block({arguments}, block);
}}
"""
_TOLD = """\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void {kernel}(__global ulong* addresses) {{
  ulong here;
{each}
}}
"""
# The branch is never taken: what nobody calls is not linked.
_TOLD_EACH = """\
  __asm__ volatile("lea {function}(%%rip), %0" : "=r"(here));
  addresses[{number}] = here;
  if (here == 0) {call};"""

ADDRESSES = "function_addresses"


def kernels_of(source: str) -> dict[str, int]:
    """How many arguments each kernel of a text has; empty where they cannot be functions: a text of threads, or none of kernels."""
    if _OF_THREADS.search(source) or ADDRESSES in source:
        return {}
    return {name: len(taken.split(",")) for name, taken in _KERNEL.findall(source) if taken.strip()}


def as_functions(source: str, kernels: dict[str, int]) -> str:
    """The text whose functions `NAME_function(arguments, block)` do what one block of each kernel does."""
    renamed = "".join(_RENAMED.format(name=name) for name in kernels)
    made = "".join(
        _FUNCTION.format(name=name, arguments=", ".join(f"(__global void*)arguments[{n}]" for n in range(count)))
        for name, count in kernels.items()
    )
    calls = {f"{name}_function": f"{name}_function(addresses, &here)" for name in kernels}
    return _BEFORE + renamed + source + _AFTER + made + telling(calls)


def telling(calls: dict[str, str]) -> str:
    """A kernel that writes the addresses of functions. calls: how each could be called with nothing at hand but `addresses`."""
    each = "\n".join(_TOLD_EACH.format(function=f, number=n, call=call) for n, (f, call) in enumerate(calls.items()))
    return _TOLD.format(kernel=ADDRESSES, each=each)


class Hosting:
    """Runs kernels as functions of this process. build: PoCL's program of a text and options; waits: whether threads look for the next
    launch before they sleep. Raises DeviceError or OSError where that cannot be."""

    def __init__(self, queue: Any, build: Callable[[str, Sequence[str]], Any], threads: int, waits: bool) -> None:
        self._queue, self._build = queue, build
        self.threads = HostThreads(self.addresses_of_threads(), threads, host_threads.WAIT_S if waits else 0.0)

    def addresses_of_threads(self) -> list[int]:
        """Where the functions of `host_threads` are."""
        calls = host_threads.CALLS
        return self._addresses(host_threads.source() + telling(calls), (), len(calls))

    def functions(self, source: str, options: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Where the functions of a text's kernels are, and how many arguments each has; empty where they cannot be functions."""
        kernels = kernels_of(source)
        if not kernels or max(kernels.values()) > host_threads.MOST_ARGUMENTS:
            return {}
        try:
            addresses = self._addresses(as_functions(source, kernels), options, len(kernels))
        except (DeviceError, OSError):  # what is wrong with the text is said of it as it is
            return {}
        return {name: (address, kernels[name]) for name, address in zip(kernels, addresses, strict=True)}

    def can_run(self, grid: Sequence[int], threads: int, shared_bytes: int) -> bool:
        """Whether blocks can be counted, are one thread's each, and what they share leaves most of a thread's stack."""
        return math.prod(grid) < 1 << 31 and threads == 1 and shared_bytes <= host_threads.STACK_BYTES // 4

    def _addresses(self, source: str, options: Sequence[str], count: int) -> list[int]:
        """Where the functions are that a text tells of. They stay in memory for the rest of the process."""
        import numpy as np
        import pyopencl as cl

        found, flags = np.zeros(count, np.uint64), cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        kernel, told = cl.Kernel(self._build(source, options), ADDRESSES), cl.Buffer(self._queue.context, flags, hostbuf=found)
        kernel.set_args(told)
        try:
            cl.enqueue_nd_range_kernel(self._queue, kernel, (1,), (1,)).wait()
        except cl.Error as error:
            raise DeviceError("launch-failed", f"{ADDRESSES} could not be launched: {error}") from None
        addresses = [int(address) for address in found]
        for path in {_library_of(address) for address in addresses}:
            ctypes.CDLL(path)
        return addresses


class _Found(ctypes.Structure):
    """What dladdr tells."""

    _fields_ = [
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p),
    ]  # fmt: skip


def _library_of(address: int) -> str:
    """The path of the library that a function is in."""
    found = _Found()
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(found)) or not found.file:
        raise OSError(f"no library holds {address:#x}")
    return os.fsdecode(found.file)
