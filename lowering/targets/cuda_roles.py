"""Roles of units in CUDA C++: barriers with phases, barriers of one role, registers that are given out anew.

Source: Parallel Thread Execution ISA 8.5, "mbarrier", "bar", "setmaxnreg".
"""

from __future__ import annotations

from tilelang.instructions.ptx import BARRIERS, FUNCTION, SHARED_ADDRESS
from tilelang.lowering.targets.c_dialect import RoleTexts

MEETING = f"""
{FUNCTION} void role_meet(int number, int threads) {{  // a barrier of so many threads
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}}
"""

# Of 65536 registers each thread of a block has as many at the start, a multiple of 8.
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
    definitions=(SHARED_ADDRESS, BARRIERS, MEETING, REGISTERS),
)
