// Wrappers: Asynchronous copies, barriers in shared memory and tensor copies. Each takes the place of the definition of its name in a source.

static inline void cp_async_16(void* target, const void* source, int existing) { emulated::copy(target, source, 16, existing); }
static inline void cp_async_8(void* target, const void* source, int existing) { emulated::copy(target, source, 8, existing); }
static inline void cp_async_4(void* target, const void* source, int existing) { emulated::copy(target, source, 4, existing); }
static inline void cp_async_commit() { emulated::current->copies.commit(); }
template <int PENDING>
static inline void cp_async_wait() {
    emulated::current->copies.wait(PENDING);
}

static inline void global_load_lds_4(void* target, const void* source, int existing) { emulated::copy(target, source, 4, existing); }
static inline void copies_wait() {
    emulated::current->copies.commit();
    emulated::current->copies.wait(0);
}

static inline void async_copy_first_16(void* target, const void* source, int existing) { emulated::copy(target, source, 16, existing); }
static inline void async_copy_first_8(void* target, const void* source, int existing) { emulated::copy(target, source, 8, existing); }
static inline void async_copy_first_4(void* target, const void* source, int existing) { emulated::copy(target, source, 4, existing); }
static inline void async_copy_16(void* target, const void* source) { emulated::copy(target, source, 16, 16); }
static inline void async_copy_8(void* target, const void* source) { emulated::copy(target, source, 8, 8); }
static inline void async_copy_4(void* target, const void* source) { emulated::copy(target, source, 4, 4); }
static inline void async_commit() { emulated::current->copies.commit(); }
template <int PENDING>
static inline void async_wait() {
    emulated::current->copies.wait(PENDING);
}

static inline void barrier_init(unsigned long long* barrier, int arrivals) { emulated::mbarrier_make(barrier, arrivals); }
static inline void barrier_init_fence() { emulated::mbarrier_fence(); }
static inline void barrier_arrive(unsigned long long* barrier) { emulated::mbarrier_arrive_at(barrier, 0); }
static inline void barrier_arrive_expecting(unsigned long long* barrier, int bytes) { emulated::mbarrier_arrive_at(barrier, bytes); }
static inline void barrier_wait(unsigned long long* barrier, int parity) { emulated::mbarrier_wait_for(barrier, parity); }

static inline void tensor_load_2d(void* target, const void* map, int x, int y, unsigned long long* barrier) {
    const int start[] = {x, y};
    emulated::tensor_load(target, map, barrier, start, emulated::here);
}
static inline void tensor_load_2d_multicast(void* target, const void* map, int x, int y, unsigned long long* barrier, int blocks) {
    const int start[] = {x, y};
    for (int block = 0; block < blocks; ++block)  // in each of them it lands by itself
        emulated::tensor_load(target, map, barrier, start, block);
}
static inline void tensor_store_2d(const void* map, int x, int y, const void* source) {
    const int start[] = {x, y};
    emulated::tensor_store(map, source, start);
}
static inline void tensor_store_fence() { emulated::fence(); }
static inline void tensor_store_commit() { emulated::current->stores.commit(); }
template <int PENDING>
static inline void tensor_store_wait_read() {
    emulated::current->stores.wait(PENDING);
}
template <int PENDING>
static inline void tensor_store_wait() {
    emulated::current->stores.wait(PENDING);
}
