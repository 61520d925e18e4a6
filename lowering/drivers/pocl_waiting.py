"""PoCL's threads wait for the next launch for a short while before they sleep, as those of OpenMP's runtimes do.

PoCL's threads sleep whenever there is no work. Waking one on another core takes an interrupt between cores: 20 to 60 us on a virtual
machine, at the beginning of each launch, and between two that follow one another. So a command of ours is enqueued behind a launch, on
a queue of its own: a kernel with a block for each thread, which a thread takes when there is nothing left for it in the launch. The
last one to come leaves at once: it ends the launch, and the host needs a core and other commands a thread. The others wait until all
have come and the next launch was made, or the time is over. No result depends on it: it reads and writes its own counters alone.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any

WAIT_S = 100e-6  # about what sleeping and waking cost: waiting never costs more than twice the better of the two
OFTEN_S = 10e-3  # launches that follow one another more slowly gain too little
CALIBRATION_ROUNDS = 512
RELEASED, ARRIVED, COUNTERS = 16, 32, 48  # apart from one another and from other memory, by the lines of caches

NAME = "wait_for_launch"
SOURCE = f"""\
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE()
#endif
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void {NAME}(volatile __global long* counters, long threads, long rounds) {{
  const long arrived = atom_inc(&counters[{ARRIVED}]), number = arrived / threads;
  if (arrived % threads == threads - 1) return;
  for (long round = 0; round < rounds; round++) {{
    if (counters[{RELEASED}] > number && counters[{ARRIVED}] >= (number + 1) * threads) break;
    PAUSE();
  }}
}}
"""


class Waiting:
    """What has the threads of a connection's device wait. begun: how many such commands were enqueued.

    counters: how many of them are released, and how many blocks of them have begun.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.threads = connection.device.compute_units
        self.begun = 0
        self.counters: Any = None  # until launches follow one another quickly
        self._last = float("-inf")
        self._lock = threading.Lock()

    def after(self, queue: Any) -> None:
        """Called after each launch on a queue: who waits for it is released, and whoever is done with it waits for the next one.

        On another queue than the connection's, a launch may have to wait for what it would then be in the way of.
        """
        with self._lock:
            now = time.perf_counter()
            often, self._last = now - self._last < OFTEN_S, now
            if self.counters is None:
                if not often:
                    return
                self._prepare()
            self.counters[RELEASED] = self.begun
            if often and queue is self._connection.queue:
                self._enqueue(self.queue, self._kernel, (self.threads,), (1,))
                self.begun += 1

    def _prepare(self) -> None:
        """Compiles the kernel and finds out how many rounds it may wait."""
        import numpy as np
        import pyopencl as cl

        connection, flags = self._connection, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        counters = np.zeros(COUNTERS, np.int64)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(counters))  # threads may wait while the interpreter ends
        self._buffer = cl.Buffer(connection.context, flags, hostbuf=counters)
        self._enqueue = cl.enqueue_nd_range_kernel
        self._kernel = cl.Kernel(connection.build(SOURCE).program, NAME)
        self.queue = cl.CommandQueue(connection.context, connection.device.handle, cl.command_queue_properties.PROFILING_ENABLE)
        self._kernel.set_args(self._buffer, np.int64(1 << 32), np.int64(CALIBRATION_ROUNDS))  # so many never come
        shortest_s = min(self._calibrated_s() for _ in range(8))  # other programs take the core now and then
        rounds = CALIBRATION_ROUNDS * WAIT_S / shortest_s
        self._kernel.set_args(self._buffer, np.int64(self.threads), np.int64(rounds))
        counters[ARRIVED] = 0
        self.counters = counters

    def _calibrated_s(self) -> float:
        """How long one block waits by itself."""
        alone = self._enqueue(self.queue, self._kernel, (1,), (1,))
        alone.wait()
        return 1e-9 * float(alone.profile.end - alone.profile.start)


def cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> float:
    """How many cores this process may use: by its affinity, and by the quota of its control group where there is one."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        granted, period = quota.read_text().split()
    except (OSError, ValueError):
        return own
    return own if granted == "max" else min(own, int(granted) / int(period))
