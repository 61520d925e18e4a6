// Wrappers: Roles of units. Each takes the place of the definition of its name in a source.

static inline void role_meet(int number, int threads) { emulated::meet(emulated::barriers[number], threads, "role_meet()"); }

static inline bool role_elected(int thread) { return thread == 0; }
static inline void cluster_meet() {
    emulated::meet(emulated::cluster_barrier, emulated::cluster_blocks * emulated::thread_count, "cluster_meet()");
}
static inline void barrier_arrive_in(unsigned long long* barrier, int block) { emulated::mbarrier_arrive_at(barrier, 0, block); }

template <int REGISTERS, int THREADS>
static inline void role_registers() {}
