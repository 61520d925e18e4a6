// Runs launches on an image of memory that it reads from standard input, and writes the image to standard output. Linux, no C library.
// Appended to: the size of the image, IMAGE_BYTES, and the launches. A byte goes to standard error before each launch.
typedef unsigned long word;

static char image[IMAGE_BYTES] __attribute__((aligned(4096)));

#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, EXIT = 60 };
static long call(long number, word a, word b, word c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
__asm__(".globl _start\n_start:\n    and $-64, %rsp\n    call begin\n");
#elif defined(__aarch64__)
enum { READ = 63, WRITE = 64, EXIT = 93 };
static long call(long number, word a, word b, word c)
{
    register long x8 __asm__("x8") = number;
    register word x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return (long)x0;
}
__asm__(".globl _start\n_start:\n    bl begin\n");
#endif

static void pass(long number, int stream, char *bytes, word count)
{
    for (word done = 0; done < count;) {
        long more = call(number, stream, (word)(bytes + done), count - done);
        if (more <= 0)
            call(EXIT, 3, 0, 0);
        done += more;
    }
}

__attribute__((used)) void begin(void)
{
    pass(READ, 0, image, sizeof image);
    for (int i = 0; i < COUNT; ++i) {
        void *arguments[64];
        for (int k = 0; k < launches[i].count; ++k)
            arguments[k] = image + launches[i].offsets[k];
        pass(WRITE, 2, ".", 1);
        launches[i].run(arguments, image + launches[i].scratch, 0, launches[i].blocks);
    }
    pass(WRITE, 1, image, sizeof image);
    call(EXIT, 0, 0, 0);
}
