/* An example of calling ${name}_run_threads: fills the inputs with the same numbers on every machine, runs the kernels, and prints
 * checksums and the time.
 *
 *     main [THREADS [FILE]]
 *
 * FILE: the bytes of all outputs are written to it, one output after another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "$header_file"

#define RUNS 10

/* Element i of an input is one of 16 values, selected by the top 4 bits of a hash of i. */
static unsigned chosen(size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u;
    x ^= x >> 15;
    return (x * 2246822519u) >> 28;
}

/* The FNV-1a hash. */
static unsigned long long hash(const void *bytes, size_t count)
{
    unsigned long long h = 14695981039346656037ull;
    size_t i;
    for (i = 0; i < count; ++i)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211ull;
    return h;
}

static void *array(size_t bytes)
{
    void *made = calloc(bytes + 1, 1);
    if (made == NULL) {
        fputs("not enough memory for the arrays\n", stderr);
        exit(1);
    }
    return made;
}

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

$conversions$values
int main(int count, char **words)
{
    int threads = count > 1 ? atoi(words[1]) : 1, code, n;
    double least = 0;
    size_t i;
$arrays
    void *memory = NULL; /* each call allocates its own; pass memory if you call often */

    (void)i;
$fills
    for (n = 0; n <= RUNS; ++n) { /* the first run is not timed */
        double before = seconds(), took;
        code = ${name}_run_threads($names, memory, threads);
        took = seconds() - before;
        if (code != 0) {
            fprintf(stderr, "${name}_run_threads returned %d\n", code);
            return 1;
        }
        if (n == 1 || took < least)
            least = took;
    }
$prints
    printf("%d threads, fastest of %d runs: %.6f ms\n", threads, RUNS, least * 1e3);
    if (count > 2) {
        FILE *file = fopen(words[2], "wb");
        if (file == NULL) {
            perror(words[2]);
            return 1;
        }
$writes
        if (fclose(file) != 0) {
            perror(words[2]);
            return 1;
        }
    }
    return 0;
}
