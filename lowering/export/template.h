/* $title
 *
 * Written by tilelang for $system. $source_file is the text of the kernels; $launch_file calls them.
 *
$computation
 *
 * Arguments of the two functions below, in this order:
 *
$arguments
 *
 * Arrays are dense and row-major: the last dimension is contiguous. Each begins at a multiple of the size of its elements; a multiple
 * of 64 bytes is best. No output may overlap another array, and inputs are not written.
$types
 * memory: NULL, or ${name}_memory_bytes(threads) bytes at a multiple of 64, which hold what the kernels keep between them
 * ($workspace_bytes bytes) and, for each thread, what one block works in ($scratch_bytes bytes). What it holds before a call does
 * not matter. With NULL each call allocates this memory and frees it. Calls at the same time need memory of their own.
 *
 * Both functions return 0, or one of the numbers below, and then have written nothing.
 */
#ifndef ${guard}
#define ${guard}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ${macro}_NO_MEMORY 1  /* memory is NULL, and nothing could be allocated */
#define ${macro}_MISPLACED 2  /* an array is NULL, or an array or memory does not begin where it must */

/* The bytes of memory for a call with so many threads; ${name}_run is a call with one. */
size_t ${name}_memory_bytes(int threads);

/* Runs the kernels in the calling thread. */
int ${name}_run(
$parameters,
    void *memory);

/* Runs the kernels in at most so many threads, the calling one among them: each kernel's blocks are divided evenly. Fewer than 1 is 1;
 * what no thread can be started for is run by the calling one. No thread outlives the call. */
int ${name}_run_threads(
$parameters,
    void *memory,
    int threads);

#ifdef __cplusplus
}
#endif
#endif
