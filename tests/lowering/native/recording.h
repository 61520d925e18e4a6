/* What both libraries share: a log of the calls as text, and a kernel that copies from its first argument to its second. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char calls[1 << 20];
static size_t written;
int copied_bytes; /* how much a kernel of two arguments copies */

const char* recorded(void) { return calls; }

static int note(const char* format, ...) {
    va_list given;
    va_start(given, format);
    written += vsnprintf(calls + written, sizeof calls - written - 1, format, given);
    va_end(given);
    calls[written++] = '\n';
    return 0;
}

static void run(const void* arguments, size_t size) {
    void* const* address = arguments;
    if (size == 2 * sizeof(void*)) memmove(address[1], address[0], copied_bytes);
}
