/* Runs the kernels of $source_file one after another, each over all of its blocks. $header_file describes the interface.
 *
 * Any C99 compiler accepts this file. Compile it with -D${macro}_NO_THREADS to run all blocks in the calling thread, without a threads
 * library.
 */
#include "$header_file"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#else
#include <stdlib.h>
#if !defined(${macro}_NO_THREADS)
#include <pthread.h>
#endif
#endif

/* Runs the blocks first, ..., last - 1 of a kernel. arguments: its arrays; scratch: the scratch space of one block. */
typedef void kernel(void *const *arguments, char *scratch, long long first, long long last);

$declarations

#define ALIGNMENT ((size_t)64)
#define ROUNDED(bytes) (((size_t)(bytes) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)
#define WORKSPACE ROUNDED(${workspace_bytes}u)
#define SCRATCH ROUNDED(${scratch_bytes}u)
#define MOST_THREADS 4096

/* The blocks of a kernel that one thread runs. */
typedef struct {
    kernel *run;
    void *const *arguments;
    char *scratch;
    long long first, last;
} share;

static void run_share(const share *part)
{
    part->run(part->arguments, part->scratch, part->first, part->last);
}

/* ---- threads: start() returns whether a thread was started for a share; finish() joins it */

#if defined(${macro}_NO_THREADS)
typedef int thread;
static int start(thread *started, share *part) { (void)started, (void)part; return 0; }
static void finish(thread started) { (void)started; }
#elif defined(_WIN32)
typedef HANDLE thread;
static DWORD WINAPI entry(void *part)
{
    run_share((const share *)part);
    return 0;
}
static int start(thread *started, share *part)
{
    *started = CreateThread(NULL, 0, entry, part, 0, NULL);
    return *started != NULL;
}
static void finish(thread started)
{
    WaitForSingleObject(started, INFINITE);
    CloseHandle(started);
}
#else
typedef pthread_t thread;
static void *entry(void *part)
{
    run_share((const share *)part);
    return NULL;
}
static int start(thread *started, share *part) { return pthread_create(started, NULL, entry, part) == 0; }
static void finish(thread started) { pthread_join(started, NULL); }
#endif

#if defined(_WIN32)
static void *allocate(size_t bytes) { return HeapAlloc(GetProcessHeap(), 0, bytes); }
static void release(void *memory) { HeapFree(GetProcessHeap(), 0, memory); }
#else
static void *allocate(size_t bytes) { return malloc(bytes); }
static void release(void *memory) { free(memory); }
#endif

/* A thread of a launch: its share, its handle, and whether it was started. */
typedef struct {
    share part;
    thread handle;
    int started;
} worker;

static int number_of_threads(int asked)
{
    return asked < 1 ? 1 : asked > MOST_THREADS ? MOST_THREADS : asked;
}

size_t ${name}_memory_bytes(int threads)
{
    size_t count = (size_t)number_of_threads(threads);
    return WORKSPACE + count * SCRATCH + ROUNDED(count * sizeof(worker));
}

/* Runs all blocks of one kernel and waits until they are done. */
static void launch(kernel *run, long long blocks, void *const *arguments, char *scratch, worker *workers, int threads)
{
    int count = blocks < threads ? (int)blocks : threads, i;
    for (i = 0; i < count; ++i) {
        share *part = &workers[i].part;
        part->run = run;
        part->arguments = arguments;
        part->scratch = scratch + (size_t)i * SCRATCH;
        part->first = blocks / count * i + (i < blocks % count ? i : blocks % count);
        part->last = part->first + blocks / count + (i < blocks % count);
        workers[i].started = i > 0 && start(&workers[i].handle, part);
    }
    for (i = 0; i < count; ++i)
        if (!workers[i].started)
            run_share(&workers[i].part);
    for (i = 0; i < count; ++i)
        if (workers[i].started)
            finish(workers[i].handle);
}
$tiles
static int run(void *const *arrays, char *memory, int threads)
{
    char *allocated = NULL, *scratch;
    worker *workers;
    threads = number_of_threads(threads);
    if (memory == NULL) {
        allocated = (char *)allocate(${name}_memory_bytes(threads) + ALIGNMENT);
        if (allocated == NULL)
            return ${macro}_NO_MEMORY;
        memory = allocated + (ALIGNMENT - (uintptr_t)allocated % ALIGNMENT);
    }
    scratch = memory + WORKSPACE;
    workers = (worker *)(scratch + (size_t)threads * SCRATCH);
    (void)arrays, (void)workers;$allow
$launches
    if (allocated != NULL)
        release(allocated);
    return 0;
}

static int misplaced(const void *array, size_t elements, size_t alignment)
{
    return (array == NULL && elements != 0) || (uintptr_t)array % alignment != 0;
}

int ${name}_run_threads(
$parameters,
    void *memory,
    int threads)
{
    void *const arrays[] = {$arrays};
    if ($checks)
        return ${macro}_MISPLACED;
    return run(arrays, (char *)memory, threads);
}

int ${name}_run(
$parameters,
    void *memory)
{
    return ${name}_run_threads($names, memory, 1);
}
