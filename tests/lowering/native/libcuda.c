/* A libcuda that records what it is asked, with memory of the host in place of the device's. One device, of compute capability 9.0.
   What needs a context fails where none is current in the calling thread. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "recording.h"

static __thread int depth;
static int context;
char parameters[16] = "aa"; /* of the kernels */
#define CURRENT if (depth <= 0) return 201

int cuInit(unsigned flags) { return note("cuInit %u", flags); }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetErrorString(int error, const char** text) { return *text = error == 2 ? "out of memory" : "stub error", 0; }
int cuGetErrorName(int error, const char** text) { return *text = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_STUB", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int number) { return *device = number, 0; }
int cuDeviceGetName(char* name, int length, int device) { return snprintf(name, length, "NVIDIA Stub"), 0; }
int cuDeviceTotalMem_v2(size_t* size, int device) { return *size = 1u << 30, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    *value = attribute == 16 ? 132 : attribute == 1 ? 1024 : attribute == 97 ? 232448 : 5 <= attribute && attribute <= 7 ? 65535 : attribute == 75 ? 9 : 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(void** made, int device) { return *made = &context, note("cuDevicePrimaryCtxRetain %d", device); }
int cuDevicePrimaryCtxRelease_v2(int device) { return note("cuDevicePrimaryCtxRelease %d", device); }
int cuCtxPushCurrent_v2(void* pushed) { return pushed == &context ? ++depth, 0 : 201; }
int cuCtxPopCurrent_v2(void** popped) { CURRENT; return *popped = &context, --depth, 0; }
int cuCtxSynchronize(void) { CURRENT; return note("cuCtxSynchronize"); }
int cuMemAlloc_v2(void** address, size_t size) {
    CURRENT;
    if (size > 1u << 30) return 2;
    *address = aligned_alloc(256, (size + 255) / 256 * 256);
    return note("cuMemAlloc %zu", size);
}
int cuMemFree_v2(void* address) { CURRENT; return free(address), note("cuMemFree"); }
int cuMemcpyHtoD_v2(void* target, const void* source, size_t size) {
    CURRENT;
    return memcpy(target, source, size), note("cuMemcpyHtoD %zu", size);
}
int cuMemcpyDtoH_v2(void* target, const void* source, size_t size) {
    CURRENT;
    return memcpy(target, source, size), note("cuMemcpyDtoH %zu", size);
}
int cuMemcpyHtoDAsync_v2(void* target, const void* source, size_t size, void* stream) {
    CURRENT;
    return memcpy(target, source, size), note("cuMemcpyHtoDAsync %zu %zu", size, (size_t)stream);
}
int cuMemcpyDtoHAsync_v2(void* target, const void* source, size_t size, void* stream) {
    CURRENT;
    return memcpy(target, source, size), note("cuMemcpyDtoHAsync %zu %zu", size, (size_t)stream);
}
int cuModuleLoadData(void** module, const void* code) {
    CURRENT;
    return *module = (void*)1, note("cuModuleLoadData %.3s", (const char*)code + 1);
}
int cuModuleGetFunction(void** kernel, void* module, const char* name) {
    CURRENT;
    return *kernel = strdup(name), note("cuModuleGetFunction %s", name);
}
int cuFuncGetAttribute(int* value, int attribute, void* kernel) { CURRENT; return *value = 0, note("cuFuncGetAttribute %d", attribute); }
int cuFuncSetAttribute(void* kernel, int attribute, int value) {
    CURRENT;
    return note("cuFuncSetAttribute %s %d %d", (const char*)kernel, attribute, value);
}
int cuLaunchKernel(void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** params, void** extra) {
    CURRENT;
    if (!params || extra) return 1;
    char said[256] = "", packed[256];
    size_t size = 0;
    for (const char* kind = parameters; *kind; ++kind, ++params) /* a: an address; m: a tensor map */
        if (*kind == 'a') {
            memcpy(packed + size, *params, sizeof(void*));
            size += sizeof(void*);
        } else {
            const unsigned char* map = *params;
            if ((size_t)map % 64) return 1;
            sprintf(said + strlen(said), " map %d %d", map[0], map[127]);
        }
    run(packed, size);
    return note("cuLaunchKernel %s %u %u %u %u %u %u %u %zu%s", (const char*)kernel, gx, gy, gz, bx, by, bz, shared, (size_t)stream, said);
}
int cuStreamSynchronize(void* stream) { CURRENT; return note("cuStreamSynchronize %zu", (size_t)stream); }
static size_t events;
static size_t times[64];
int cuEventCreate(void** event, unsigned flags) { CURRENT; return *event = (void*)++events, note("cuEventCreate %u", flags); }
int cuEventRecord(void* event, void* stream) {
    CURRENT;
    static size_t now;
    times[(size_t)event] = ++now;
    return note("cuEventRecord %zu %zu", (size_t)event, (size_t)stream);
}
int cuEventSynchronize(void* event) { CURRENT; return note("cuEventSynchronize %zu", (size_t)event); }
int cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
    return *milliseconds = times[(size_t)end] - times[(size_t)start], 0;
}
int cuTensorMapEncodeTiled(unsigned char* map, int type, unsigned rank, void* address, const unsigned long long* shape,
                           const unsigned long long* strides, const unsigned* box, const unsigned* steps, int interleave, int swizzle,
                           int promotion, int fill) {
    memset(map, 7, 128);
    return note("cuTensorMapEncodeTiled %d %u %zu %llu %llu %llu %u %u %u %u %d %d %d %d", type, rank, (size_t)address, shape[0], shape[1],
                strides[0], box[0], box[1], steps[0], steps[1], interleave, swizzle, promotion, fill);
}
int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, int* status) {
    char later[256]; /* how cuda-bindings finds what it calls */
    snprintf(later, sizeof later, "%s_v2", name);
    Dl_info own;
    dladdr(&context, &own);
    void* library = dlopen(own.dli_fname, RTLD_NOLOAD | RTLD_NOW);
    *function = dlsym(library, later) ? dlsym(library, later) : dlsym(library, name);
    if (status) *status = *function ? 0 : 1;
    return *function ? 0 : 500;
}
