// The beginning of a block's shared memory: it stands before the text of each kernel, whose `__shared__` variables follow. It is apart
// from the other headers, which are precompiled: clang reports a conflict where a precompiled header names the section of a variable.
#pragma once

namespace emulated {
alignas(1024) __attribute__((section("emulated_shared"), used, retain)) inline uint8_t first_shared[ALIGNMENT];
}
