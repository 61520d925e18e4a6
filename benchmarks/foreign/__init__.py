"""Random programs, written from the documentation alone.

`python -m benchmarks.foreign --kind cpu --first 0 --count 100 --seconds 100` runs a hundred of them and lists the faults; the kinds are
`cpu` and `simulated`, with schedules that are drawn too, and `constructed`, where the compiler makes the schedule.

The kind `steered` goes further: what reaches a new branch of the compiler is kept in `tests/corpus` and changed again and again; it
begins with programs of the other kinds, with the examples, and with what the package's own generators draw. `python -m
benchmarks.foreign.counts --branches` tells what ran so far and which branches nothing reached.

Everything else here follows `docs/` and `grammar/schedule.lark` alone: programs are drawn as trees of its own, printed as text of the
language, and evaluated by its own few lines of NumPy. Results are compared with this
evaluation alone; simulated kernels are also checked against their steps by `tilelang.testing`.
"""
