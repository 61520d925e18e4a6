"""Runs CUDA and HIP text on this CPU, compiled by clang, as a second check next to the simulator.

The kernel's text is compiled for the host as C++, behind headers that give the words of CUDA and HIP their meaning. What only a device
understands (assembly, builtins of its compiler) stands behind named functions, the wrappers; here they are replaced by emulations of
the same names, which are in wrappers/, and the rest of the text is unchanged. Every thread of a block is a fiber with a stack of its
own; a fiber runs until it must wait. So barriers, spin waits on barriers in shared memory, roles of warps and lanes that meet for an
instruction all work, and the run decides in which order threads get their turns and when what is asynchronous lands.

Found out by trial before this was written (a product of 64 x 64 x 64 with wgmma, tensor copies, swizzle and mbarrier):

- An OpenCL runtime for this processor (SPIR-V by clang, Intel's runtime 2026.2) runs all work items of a block between two barriers
  one after another. A thread that waits for another's arrival at a barrier in shared memory never ends, unless the other happens to
  come first: no roles, no producer behind its consumers. Besides, it took 2 s a kernel, refused constant expressions of addresses,
  crashed on some loops, is proprietary, and fills 810 MB. It is not used.
- Fibers in a shared library that clang and lld make in 0.3 s work for all of it; the result was right, and an arrival too few or too
  many, a wrong number of expected bytes, a phase that is not advanced and a missing barrier all show. Needs: Linux with the GNU C
  library, and the wheel `ziglang` of the extra `[compilers]`.

What shows: wrong lane maps, descriptors and swizzles; accesses beyond an array, and at misaligned addresses; races between threads,
warps, roles and blocks, whatever the order of the run (races.h says which may be missed); a missing wait (what has not landed is not a
number); deadlocks, told by what each thread waits for; lanes of a warp that issue different instructions; memory that is read before
it is written (it is not a number); what a thread wrote and an asynchronous copy or product reads without a fence. What does not: the
fence of registers before a product, caches and their order, speed, bank conflicts, register counts.
"""

from tilelang.testing.emulation.kernels import check, run_kernel, run_program
from tilelang.testing.emulation.launch import EmulationFault, Launch, Mapped, absent, run

__all__ = ["EmulationFault", "Launch", "Mapped", "absent", "check", "run", "run_kernel", "run_program"]
