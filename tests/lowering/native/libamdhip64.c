/* A libamdhip64 that records what it is asked, with memory of the host in place of the device's. One device. */
#include "recording.h"

typedef struct { /* hipDeviceProp_t as far as it is read, of HIP 5 */
    char name[256];
    size_t total_global, shared_per_block;
    int registers_per_block, warp, threads_per_block, threads_dim[3], grid[3], clock, memory_clock, memory_bus;
    size_t total_constant;
    int major, minor, units, l2, threads_per_unit, compute_mode, clock_instruction;
    unsigned features;
    int concurrent, domain, bus, device;
    size_t shared_per_unit;
    int multi, map_host, arch;
    char arch_name[256];
} Properties;

static int device_count = 1;
void set_device_count(int n) { device_count = n; }

const char* hipGetErrorString(int error) { return "stub error"; }
const char* hipGetErrorName(int error) { return "stub error"; }
const char* hiprtcGetErrorString(int error) { return "stub error"; }
int hipInit(unsigned flags) { return note("hipInit %u", flags); }
int hipDriverGetVersion(int* version) { return *version = 60342131, 0; }
int hipRuntimeGetVersion(int* version) { return *version = 60342131, 0; }
int hipGetDeviceCount(int* count) { return *count = device_count, device_count ? 0 : 100; }
int hipSetDevice(int device) { return device < device_count ? 0 : 101; }
int hipGetDeviceProperties(Properties* p, int device) {
    strcpy(p->name, "AMD Stub");
    strcpy(p->arch_name, "gfx90a:sramecc+:xnack-");
    p->total_global = 1u << 30, p->shared_per_block = 65536, p->threads_per_block = 1024, p->units = 104, p->warp = 64;
    p->grid[0] = 2147483647, p->grid[1] = p->grid[2] = 65535;
    return note("hipGetDeviceProperties %d", device);
}
int hipMalloc(void** address, size_t size) {
    if (size > 1u << 30) return 2;
    *address = aligned_alloc(256, (size + 255) / 256 * 256);
    return note("hipMalloc %zu", size);
}
int hipFree(void* address) { return free(address), note("hipFree"); }
int hipMemcpy(void* target, const void* source, size_t size, int direction) {
    return memcpy(target, source, size), note("hipMemcpy %zu %d", size, direction);
}
int hipMemcpyAsync(void* target, const void* source, size_t size, int direction, void* stream) {
    return memcpy(target, source, size), note("hipMemcpyAsync %zu %d %zu", size, direction, (size_t)stream);
}
int hipModuleLoadData(void** module, const void* code) {
    return *module = (void*)1, note("hipModuleLoadData %.3s", (const char*)code + 1);
}
int hipModuleGetFunction(void** kernel, void* module, const char* name) {
    return *kernel = strdup(name), note("hipModuleGetFunction %zu %s", (size_t)module, name);
}
int hipModuleLaunchKernel(void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* stream, void** params, void** extra) {
    if (params || (size_t)extra[0] != 1 || (size_t)extra[2] != 2 || (size_t)extra[4] != 3) return 1;
    size_t size = *(size_t*)extra[3];
    run(extra[1], size);
    return note("hipModuleLaunchKernel %s %u %u %u %u %u %u %u %zu %zu", (const char*)kernel, gx, gy, gz, bx, by, bz, shared,
                (size_t)stream, size);
}
int hipDeviceSynchronize(void) { return note("hipDeviceSynchronize"); }
int hipStreamSynchronize(void* stream) { return note("hipStreamSynchronize %zu", (size_t)stream); }
static size_t events;
static size_t times[64];
int hipEventCreate(void** event) { return *event = (void*)++events, note("hipEventCreate"); }
int hipEventRecord(void* event, void* stream) {
    static size_t now;
    times[(size_t)event] = ++now;
    return note("hipEventRecord %zu %zu", (size_t)event, (size_t)stream);
}
int hipEventSynchronize(void* event) { return note("hipEventSynchronize %zu", (size_t)event); }
int hipEventElapsedTime(float* milliseconds, void* start, void* end) {
    return *milliseconds = times[(size_t)end] - times[(size_t)start], 0;
}
