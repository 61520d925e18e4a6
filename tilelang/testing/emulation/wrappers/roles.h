// Wrappers: Roles of units. Each takes the place of the definition of its name in a source.

static inline void role_meet(int number, int threads) { emulated::meet(emulated::barriers[number], threads, "role_meet()"); }

static inline bool role_elected(int thread) { return thread == 0; }

template <int REGISTERS, int THREADS>
static inline void role_registers() {}
