"""Attributes that are computed when they are first read."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tilelang.core.lazy import cached_property


def test_threads_that_compute_a_value_at_once_get_one() -> None:
    """Else the memory of a call would be another connection's than its kernel."""
    both = threading.Barrier(2, timeout=30)

    class Device:
        @cached_property
        def connection(self) -> object:
            both.wait()
            return object()

    device = Device()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: device.connection, range(2)))
    assert found == [device.connection] * 2
