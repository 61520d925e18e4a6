"""Kernels that are written by hand, run on this processor: what works, and that what is wrong shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelang.errors import DeviceError
from tilelang.instructions.instruction import use
from tilelang.instructions.shipped.asynchronous_copy import GROUPS
from tilelang.testing import emulation
from tilelang.testing.emulation import Launch

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))


def defined(*names: str) -> str:
    """The definitions that some instructions bring along in CUDA."""
    return "".join(dict.fromkeys(text for name in names for text in use(name).definitions_in("cuda")))


TURNS: list[str | int] = ["ascending", "descending", 1]

REVERSE = """
extern "C" __global__ void __launch_bounds__(64) reverse(const float* __restrict__ x, float* y, int n) {
    __shared__ __align__(16) float t[64];
    const int first = blockIdx.x * 64;
    t[threadIdx.x] = x[first + threadIdx.x];
    __syncthreads();
    y[first + threadIdx.x] = t[63 - threadIdx.x] + n;
}
"""


def reverse(source: str = REVERSE, **how: Any) -> Any:
    x = np.arange(256, dtype=np.float32)
    launch = Launch("reverse", (4, 1, 1), 64, ("x", "y", np.int32(3)))
    return emulation.run(source, [launch], {"x": x, "y": np.zeros_like(x)}, **how)["y"]


@pytest.mark.parametrize("turns", TURNS)
def test_threads_meet_at_a_barrier(turns: str | int) -> None:
    assert np.array_equal(reverse(turns=turns), np.arange(256).reshape(4, 64)[:, ::-1].reshape(-1) + 3)


@pytest.mark.parametrize("turns", TURNS)
def test_a_missing_barrier_shows(turns: str | int) -> None:
    with pytest.raises(emulation.EmulationFault, match="a race: byte .* of shared memory"):
        reverse(REVERSE.replace("__syncthreads();", ""), turns=turns)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("+ n;", "+ n; y[256] = 0;", "out of bounds: bytes 1024 to 1027 of y, which has 1024"),
        ("+ n;", "+ n; y[-16300] = 0;", "out of bounds: bytes -65200 to -65197 of y, which has 1024"),
        (
            "y[first + threadIdx.x] =",
            "y[first + threadIdx.x] = x[256] +",
            "out of bounds: bytes 1024 to 1027 of x, which has 1024",
        ),
        ("t[63 - threadIdx.x]", "t[64 - threadIdx.x]", "thread 0: line 7: index 64 is beyond its array"),
        ("+ n;", "+ n + *(int*)((char*)(x + first) + 2);", "line 7: an access at an address that is not a multiple"),
        ("+ n;", "+ n; if (threadIdx.x) __syncthreads();", "threads 1 to 63 wait for __syncthreads();"),
        ("int first = blockIdx.x * 64;", "int first = blockIdx.x * 64, zero = n - 3; t[0] = 1 / zero;", "a division by zero"),
        ("__syncthreads();", "if (threadIdx.x < 16) __syncwarp(); __syncthreads();", "threads 0 to 15 wait for __syncwarp();"),
        ("+ n;", "+ n; *(volatile int*)0 = 0;", "a null pointer"),
    ],
)
def test_a_fault_is_told(old: str, new: str, message: str) -> None:
    assert old in REVERSE
    with pytest.raises(emulation.EmulationFault) as caught:
        reverse(REVERSE.replace(old, new))
    assert message in str(caught.value)


def test_assembly_outside_a_wrapper_is_refused() -> None:
    with pytest.raises(DeviceError, match="nothing emulates reverse") as caught:
        reverse(REVERSE.replace("__syncthreads();", 'asm volatile("bar.sync 0;");'))
    assert caught.value.code == "no-emulation"


def test_wrappers_are_replaced_by_emulations_of_their_names() -> None:
    wrapper = 'static __device__ float twice(float x) { asm("add.f32 %0, %0, %0;" : "+f"(x)); return x; }\n'
    source = wrapper + REVERSE.replace("+ n;", "+ twice(n);")
    found = reverse(source, emulations="static float twice(float x) { return 2 * x; }")
    assert np.array_equal(found, reverse() + 3)


def test_a_text_that_does_not_compile_is_refused_with_the_compilers_words() -> None:
    with pytest.raises(DeviceError, match="use of undeclared identifier 'm'"):
        reverse(REVERSE.replace("+ n;", "+ m;"))


ROLES = (
    defined("tma_load_2d")
    + """
extern "C" __global__ void roles(const float* x, float* y, int rounds) {
    extern __shared__ __align__(16) unsigned char arena[];
    unsigned long long* full = (unsigned long long*)arena;
    unsigned long long* empty = full + 2;
    float* slot = (float*)(arena + 32);
    if (threadIdx.x == 0)
        for (int s = 0; s < 2; ++s) {
            barrier_init(full + s, 32);
            barrier_init(empty + s, 64);
        }
    __syncthreads();
    if (threadIdx.x >= 64) {
        for (int r = 0; r < rounds; ++r) {
            barrier_wait(empty + r % 2, r / 2 % 2 ^ 1);
            slot[r % 2 * 32 + threadIdx.x - 64] = x[r * 32 + threadIdx.x - 64];
            barrier_arrive(full + r % 2);
        }
    } else {
        float sum = 0;
        for (int r = 0; r < rounds; ++r) {
            barrier_wait(full + r % 2, r / 2 % 2);
            sum += slot[r % 2 * 32 + 31 - threadIdx.x % 32] * (1 + threadIdx.x / 32);
            barrier_arrive(empty + r % 2);
        }
        y[threadIdx.x] = sum;
    }
}
"""
)


def roles(source: str = ROLES, **how: Any) -> Any:
    x = np.arange(7 * 32, dtype=np.float32)
    launch = Launch("roles", (1, 1, 1), 96, ("x", "y", np.int32(7)))
    return emulation.run(source, [launch], {"x": x, "y": np.zeros(64, np.float32)}, shared_bytes=288, **how)["y"]


ROLES_RESULT = np.concatenate([np.arange(7 * 32).reshape(7, 32).sum(axis=0)[::-1] * part for part in (1, 2)])


@pytest.mark.parametrize("turns", TURNS)
def test_roles_hand_over_through_a_ring(turns: str | int) -> None:
    assert np.array_equal(roles(turns=turns), ROLES_RESULT)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("barrier_arrive(empty + r % 2);", "", "threads 0 to 95 wait for a phase of a barrier in shared memory"),
        ("r / 2 % 2 ^ 1", "r / 2 % 2", "no thread can go on"),
        ("barrier_wait(empty + r % 2, r / 2 % 2 ^ 1);", "", "threads 64 to 95 are at the end"),
        ("barrier_wait(full + r % 2, r / 2 % 2);", "", "a race"),
        ("barrier_init(full + s, 32);", "barrier_init(full + s, 33);", "no thread can go on"),
        ("barrier_init(empty + s, 64);", "", "a barrier in shared memory is used before it is made"),
        ("(unsigned long long*)arena;", "(unsigned long long*)(arena + 4);", "address is not a multiple of 8"),
    ],
)
def test_a_faulty_protocol_is_told(old: str, new: str, message: str) -> None:
    assert old in ROLES
    with pytest.raises(emulation.EmulationFault) as caught:
        roles(ROLES.replace(old, new))
    assert message in str(caught.value)


RACES = """
extern "C" __global__ void races(int* y, int step) {
    __shared__ int t[256];
    const int i = threadIdx.x;
    t[i] = i;
    MEET
    y[i] = t[i ^ step];
    MEET
    t[i ^ 1] = y[i];
}
"""


@pytest.mark.parametrize(
    ("meet", "step", "fault"),
    [
        ("__syncthreads();", 128, None),
        ("__syncwarp();", 16, None),
        ("__syncwarp();", 32, "a race"),
        ("", 0, "a race"),
    ],
)
def test_threads_race_where_nothing_orders_them(meet: str, step: int, fault: str | None) -> None:
    launch = Launch("races", (1, 1, 1), 256, ("y", np.int32(step)))
    arrays = {"y": np.zeros(256, np.int32)}
    if fault is None:
        assert np.array_equal(emulation.run(RACES.replace("MEET", meet), [launch], arrays)["y"], np.arange(256) ^ step)
        return
    with pytest.raises(emulation.EmulationFault, match=fault):
        emulation.run(RACES.replace("MEET", meet), [launch], arrays)


def test_nothing_orders_blocks() -> None:
    launch = Launch("races", (2, 1, 1), 256, ("y", np.int32(128)))
    with pytest.raises(emulation.EmulationFault, match="of y is written, and thread .* of another block wrote it"):
        emulation.run(RACES.replace("MEET", "__syncthreads();"), [launch], {"y": np.zeros(256, np.int32)})


def test_launches_are_ordered() -> None:
    launch = Launch("races", (1, 1, 1), 256, ("y", np.int32(128)))
    found = emulation.run(RACES.replace("MEET", "__syncthreads();"), [launch, launch], {"y": np.zeros(256, np.int32)})
    assert np.array_equal(found["y"], np.arange(256) ^ 128)


HALVES = """
static __device__ void role_meet(int number, int threads) { asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory"); }
extern "C" __global__ void halves(int* y, int threads) {
    __shared__ int t[128];
    const int i = threadIdx.x;
    t[i] = i;
    role_meet(1 + i / 64, threads);
    y[i] = t[i ^ STEP];
}
"""


def test_halves_of_a_block_meet_apart() -> None:
    launch = Launch("halves", (1, 1, 1), 128, ("y", np.int32(64)))
    arrays = {"y": np.zeros(128, np.int32)}
    assert np.array_equal(emulation.run(HALVES.replace("STEP", "63"), [launch], arrays)["y"], np.arange(128) ^ 63)
    with pytest.raises(emulation.EmulationFault, match="a race"):
        emulation.run(HALVES.replace("STEP", "64"), [launch], arrays)
    with pytest.raises(emulation.EmulationFault, match=r"no thread can go on: threads 0 to 127 wait for role_meet\(\)"):
        emulation.run(HALVES.replace("STEP", "63"), [Launch("halves", (1, 1, 1), 128, ("y", np.int32(96)))], arrays)


COPIES = (
    defined("cp_async_16")
    + GROUPS
    + """
extern "C" __global__ void copies(const float* x, float* y, int existing) {
    __shared__ __align__(16) float a[128], b[128];
    cp_async_16(a + 4 * threadIdx.x, x + 4 * threadIdx.x, existing);
    cp_async_commit();
    cp_async_16(b + 4 * threadIdx.x, x + 128 + 4 * threadIdx.x, 16);
    cp_async_commit();
    cp_async_wait<1>();
    __syncthreads();
    for (int i = threadIdx.x; i < 128; i += 32) y[i] = a[127 - i];
    cp_async_wait<0>();
    __syncthreads();
    for (int i = threadIdx.x; i < 128; i += 32) y[128 + i] = b[127 - i];
}
"""
)


def copies(source: str = COPIES, existing: int = 16, **how: Any) -> Any:
    x = np.arange(256, dtype=np.float32)
    launch = Launch("copies", (1, 1, 1), 32, ("x", "y", np.int32(existing)))
    return emulation.run(source, [launch], {"x": x, "y": np.zeros_like(x)}, **how)["y"].reshape(2, 128)[:, ::-1]


@pytest.mark.parametrize("landing", ["early", "late", 5])
def test_asynchronous_copies_land_by_their_wait(landing: str | int) -> None:
    assert np.array_equal(copies(landing=landing), np.arange(256).reshape(2, 128))
    first = np.where(np.arange(128) % 4 < 3, np.arange(128), 0)
    assert np.array_equal(copies(existing=12, landing=landing)[0], first)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cp_async_wait<1>();", "cp_async_wait<2>();"),
        ("cp_async_wait<0>();", ""),
        ("cp_async_wait<1>();\n    __syncthreads();", ""),
    ],
)
def test_a_missing_wait_is_a_race(old: str, new: str) -> None:
    assert old in COPIES
    with pytest.raises(emulation.EmulationFault, match="a race"):
        copies(COPIES.replace(old, new))


def test_what_has_not_landed_is_no_number() -> None:
    one_warp = COPIES.replace("__syncthreads", "__syncwarp").replace("cp_async_wait<0>();\n", "").replace("127 - i", "i")
    rest = one_warp.replace(
        "for (int i = threadIdx.x; i < 128; i += 32)", "for (int i = 4 * threadIdx.x; i < 4 * threadIdx.x + 4; ++i)"
    )
    found = copies(rest)
    assert not np.isnan(found[0]).any() and np.isnan(found[1]).all()


def test_a_copy_to_a_misaligned_place_is_told() -> None:
    with pytest.raises(emulation.EmulationFault, match="16 bytes from or to an address that is not a multiple"):
        copies(COPIES.replace("a + 4 * threadIdx.x", "a + 3 * threadIdx.x"))


def test_arguments_are_not_changed_and_keep_their_shape() -> None:
    x, y = np.ones((4, 64), np.float32), np.zeros((2, 128), np.float32)
    found = emulation.run(REVERSE, [Launch("reverse", (4, 1, 1), 64, ("x", "y", np.int32(1)))], {"x": x, "y": y})
    assert found["y"].shape == (2, 128) and (found["y"] == 2).all() and (y == 0).all()
