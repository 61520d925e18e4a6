"""Runs CUDA and HIP text on this CPU, compiled by clang, as a second check next to the simulator.

The kernel's text is compiled for the host as C++, with headers that define the keywords and functions of CUDA and HIP. Device-only code
(assembly, compiler builtins) is only in named wrapper functions; here these are replaced by the emulations of the same names in
wrappers/, and the rest of the text is unchanged. Every thread of a block is a fiber with its own stack, which runs until it must wait.
So barriers, spin waits on barriers in shared memory, warp specialization, and instructions that the lanes of a warp execute together
all work. The caller chooses the order in which threads run, and when asynchronous operations complete.

Two approaches were tried first (on a product of 64 x 64 x 64 with wgmma, tensor copies, swizzle and mbarrier):

- An OpenCL runtime for the CPU (SPIR-V by clang, Intel's runtime 2026.2). It runs all work items of a block one after another between
  two barriers, so a thread that waits for another thread's arrival at a barrier in shared memory hangs, unless the other one happens to
  run first: roles, and producers that wait for their consumers, are impossible. It also took 2 s per kernel, refused constant
  address expressions, crashed on some loops, is proprietary, and takes 810 MB. It is not used.
- Fibers in a shared library, which clang and lld build in 0.3 s. They support all of this. The result was right; one arrival too few
  or too many, a wrong number of expected bytes, a phase that does not advance, and a missing barrier were all detected. Requires Linux
  with the GNU C library, and the wheel `ziglang` of the extra `[compilers]`.

It detects wrong lane maps, descriptors and swizzles; accesses beyond an array or at misaligned addresses; races between threads, warps,
roles and blocks, whatever the order of execution (races.h says which may be missed); missing waits (data that has not arrived is NaN);
deadlocks, with what each thread waits for; lanes of a warp that issue different instructions; reads of memory that was never written
(it is NaN); and a missing fence between a thread's write and the asynchronous copy or product that reads it. It does not model the
fence of registers before a product, caches and their order, speed, bank conflicts, or register counts.
"""

from tilelang.testing.emulation.kernels import check, run_kernel, run_program
from tilelang.testing.emulation.launch import EmulationFault, Launch, Mapped, absent, run

__all__ = ["EmulationFault", "Launch", "Mapped", "absent", "check", "run", "run_kernel", "run_program"]
