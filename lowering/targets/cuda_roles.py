"""Warp specialization in CUDA C++: phase barriers (mbarrier), barriers of one role, and register reallocation.

Source: Parallel Thread Execution ISA 8.5, "mbarrier", "mapa", "barrier.cluster", "bar", "setmaxnreg".
"""

from __future__ import annotations

from tilelang.instructions.shipped.ptx import BARRIERS, FUNCTION, SHARED_ADDRESS
from tilelang.lowering.targets.c.dialect import RoleTexts

MEETING = f"""
{FUNCTION} void role_meet(int number, int threads) {{  // a barrier of `threads` threads
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}}
"""

# At the start the threads of a block share 65536 registers equally, rounded down to a multiple of 8.
REGISTERS = f"""
template <int REGISTERS, int THREADS>
{FUNCTION} void role_registers() {{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_FEAT_SM100_ALL)
    if constexpr (REGISTERS < 65536 / THREADS / 8 * 8)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(REGISTERS));
    else
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(REGISTERS));
#endif
}}
"""

ELECTED = f"""
{FUNCTION} bool role_elected(int thread) {{  // true in one thread of the first warp; the compiler then knows that it is a single one
#if __CUDA_ARCH__ >= 900
    int warp;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 31, 0xffffffff;" : "=r"(warp) : "r"(thread / 32));
    if (warp != 0) return false;
    unsigned elected;
    asm volatile("{{\\n.reg .pred one;\\nelect.sync _|one, 0xffffffff;\\nselp.u32 %0, 1, 0, one;\\n}}" : "=r"(elected));
    return elected;
#else
    return thread == 0;
#endif
}}
"""

CLUSTERS = f"""
{FUNCTION} void cluster_meet() {{  // all threads of all blocks of a cluster
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release;\\nbarrier.cluster.wait.acquire;" ::: "memory");
}}
{FUNCTION} void barrier_arrive_in(unsigned long long* barrier, int block) {{  // the same barrier in another block of the cluster
    asm volatile(
        "{{\\n"
        ".reg .b32 remote;\\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\\n"
        "}}"
        :: "r"(shared_address(barrier)), "r"(block) : "memory");
}}
"""

ROLES = RoleTexts(
    barrier="(unsigned long long*)({pointer})",
    meet="role_meet({number}, {threads});",
    registers="role_registers<{registers}, {threads}>();",
    init="barrier_init({barrier}, {arrivals});",
    init_done="barrier_init_fence();",
    arrive="barrier_arrive({barrier});",
    arrive_bytes="barrier_arrive_expecting({barrier}, {bytes});",
    wait="barrier_wait({barrier}, {parity});",
    together="__syncwarp();",
    elected="role_elected({thread})",
    definitions=(SHARED_ADDRESS, BARRIERS, MEETING, REGISTERS, ELECTED),
    arrive_in="barrier_arrive_in({barrier}, {block});",
    meet_cluster="cluster_meet();",
    cluster_definitions=(CLUSTERS,),
)
