"""PoCL's threads wait for the next launch for a short while before they sleep, as those of OpenMP's runtimes do.

PoCL's threads sleep whenever there is no work. Waking one on another core takes an interrupt between cores: 20 to 60 us on a virtual
machine, at the beginning of each launch, and between two that follow one another. So a command of ours is enqueued with each launch, on
a queue of its own: a kernel with a block for each thread, which a thread takes when there is nothing left for it in the launch. The
last one to come leaves at once: it ends the launch, and the host needs a core and other commands a thread. The others wait until all
have come and the next launch was made, or the time is over; they give way to whoever wants their core, and where that was another
program there is no waiting for a while. No result depends on it: the kernel reads and writes its own counters alone.

Which blocks of a launch a thread gets follows from the order in which threads come to it, and data in its core's own cache are read
again at twice the speed. So the order is kept the same where that costs next to nothing: one thread, always the same, goes last.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WAIT_S = 100e-6  # about what sleeping and waking cost: waiting never costs more than twice the better of the two
OFTEN_S = 10e-3  # launches that follow one another more slowly gain too little
REST_S = 100e-3  # for which there is no waiting after a thread lost its core while it waited
TAKEN_S = 3e-6  # how long the host lets waiting threads take a launch before it goes on
CALIBRATION_CYCLES = 50_000
RELEASED, ARRIVED, LEFT, HIGHEST, LOST, COUNTERS = 16, 32, 48, 64, 80, 96  # apart from one another by the lines of caches
RUNNING = 1  # CL_RUNNING; smaller numbers come later

NAME = "wait_for_launch"
SOURCE = f"""\
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define PAUSE() __builtin_ia32_pause()
static long cycles_now(void) {{
  uint low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (long)high << 32 | low;
}}
static void give_way(void) {{
  long number = 24; // sched_yield
  __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
}}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void {NAME}(volatile __global long* counters, long threads, long cycles) {{
  volatile long here; // on the thread's stack, by which threads are told apart
  const long arrived = atom_inc(&counters[{ARRIVED}]), number = arrived / threads, all = (number + 1) * threads;
  const long before = counters[{RELEASED}];
  if ((long)&here > counters[{HIGHEST}]) counters[{HIGHEST}] = (long)&here;
  if (arrived % threads < threads - 1) {{
    const long start = cycles_now();
    long waited = 0;
    for (; waited < cycles; waited = cycles_now() - start) {{
      const long released = counters[{RELEASED}];
      // A host that goes on launching has a core, and one of the threads none: it is not waited for.
      if (released > number && counters[{ARRIVED}] >= all - (released > before)) break;
      give_way();
    }}
    // Not by the host, which launches while it has the core.
    if (waited > 2 * cycles && counters[{RELEASED}] <= before + 1) atom_inc(&counters[{LOST}]);
  }}
  if (before > number && counters[{HIGHEST}] - (long)&here < 65536)
    for (int round = 0; round < 64; round++) PAUSE(); // the others go first
  atom_inc(&counters[{LEFT}]);
}}
"""


class Waiting:
    """What has the threads of a connection's device wait. enqueue: pyopencl's; begun: how many such commands were enqueued.

    counters: how many of them are released; how many of their blocks have begun, have ended, and lost their core; the highest stack
    of a thread.
    """

    def __init__(self, connection: Any, enqueue: Callable[..., Any]) -> None:
        self._connection, self._enqueue = connection, enqueue
        self.threads = connection.device.compute_units
        self.begun = 0
        self.counters: Any = None  # until launches follow one another quickly
        self._last, self._rest, self._lost = float("-inf"), float("-inf"), 0
        self._lock = threading.Lock()

    def launch(self, queue: Any, *kernel_and_sizes: Any) -> Any:
        """Enqueues a kernel, its event: whoever waits for it is released, and whoever is done with it waits for the next one.

        On another queue than the connection's, a launch may have to wait for what it would then be in the way of.
        """
        with self._lock:
            now = time.perf_counter()
            often, self._last = now - self._last < OFTEN_S, now
            if self.counters is None and often:
                self._prepare()
            if self.counters is None:
                return self._enqueue(queue, *kernel_and_sizes)
            if self._lost != self.counters[LOST]:
                self._lost, self._rest = self.counters[LOST], now + REST_S
            again = often and now > self._rest and queue is self._connection.queue
            return self._between(again, queue, *kernel_and_sizes)

    def _between(self, again: bool, *launch: Any) -> Any:
        """A launch between two waits. again: whether there is to be another one.

        What the host enqueues while threads enqueue or end something may cost it its core, for it sleeps at PoCL's locks. So it does
        so before it lets them go, where they wait; and gives them time to take the launch, before the thread that shares its core.
        """
        before, come, left = self.begun, self.counters[ARRIVED], self.counters[LEFT]
        waits = left < before * self.threads
        if again and waits:
            self._wait()
        event = self._enqueue(*launch)
        self.counters[RELEASED] = before
        if waits and come == before * self.threads:
            end = time.perf_counter() + TAKEN_S
            while event.command_execution_status > RUNNING and time.perf_counter() < end:
                pass
        if again and not waits:
            self._wait()
        return event

    def _wait(self) -> None:
        """Enqueues the kernel; where the one before still runs, it comes after it and what was enqueued in between."""
        self._enqueue(self.queue, self._kernel, (self.threads,), (1,))
        self.begun += 1

    def _prepare(self) -> None:
        """Compiles the kernel and finds out how many cycles it may wait."""
        import numpy as np
        import pyopencl as cl

        connection, flags = self._connection, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        counters = np.zeros(COUNTERS, np.int64)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(counters))  # threads may wait while the interpreter ends
        self._buffer = cl.Buffer(connection.context, flags, hostbuf=counters)
        self._kernel = cl.Kernel(connection.build(SOURCE).program, NAME)
        self.queue = cl.CommandQueue(connection.context, connection.device.handle, cl.command_queue_properties.PROFILING_ENABLE)
        self._kernel.set_args(self._buffer, np.int64(1 << 32), np.int64(CALIBRATION_CYCLES))  # so many never come
        shortest_s = min(self._calibrated_s() for _ in range(8))  # other programs take the core now and then
        cycles = CALIBRATION_CYCLES * WAIT_S / shortest_s
        self._kernel.set_args(self._buffer, np.int64(self.threads), np.int64(cycles))
        counters[ARRIVED] = counters[LEFT] = counters[LOST] = 0
        self.counters = counters.data  # whose items are Python's numbers

    def _calibrated_s(self) -> float:
        """How long one block waits by itself."""
        alone = self._enqueue(self.queue, self._kernel, (1,), (1,))
        alone.wait()
        return 1e-9 * float(alone.profile.end - alone.profile.start)


def can_wait(threads: int) -> bool:
    """Whether there is a system that the kernel is written for, and a core for each of so many threads."""
    return (sys.platform, platform.machine()) == ("linux", "x86_64") and 1 < threads <= cores()


def cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> float:
    """How many cores this process may use: by its affinity, and by the quota of its control group where there is one."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        granted, period = quota.read_text().split()
    except (OSError, ValueError):
        return own
    return own if granted == "max" else min(own, int(granted) / int(period))
