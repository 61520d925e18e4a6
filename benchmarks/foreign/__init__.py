"""Random programs, written from the documentation alone.

`python -m benchmarks.foreign --kind cpu --first 0 --count 100 --seconds 100` runs a hundred of them and lists the faults; the kinds are
`cpu` and `simulated`, with schedules that are drawn too, and `constructed`, where the compiler makes the schedule.

Everything here follows `docs/` and `grammar/schedule.lark` alone: programs are drawn as trees of its own, printed as text of the
language, and evaluated by its own few lines of NumPy. Nothing is shared with what the compiler is tested by elsewhere.
"""
