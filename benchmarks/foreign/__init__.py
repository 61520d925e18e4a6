"""Random programs by somebody who read only the documentation.

`python -m benchmarks.foreign.worker cpu|simulated|constructed FIRST COUNT SECONDS` prints a line for each case;
`faults` says what is wrong.

Everything here follows `docs/` and `grammar/schedule.lark` alone: programs are drawn as trees of its own, printed as text of the
language, and evaluated by its own few lines of NumPy. Nothing is shared with what the compiler is tested by elsewhere.
"""
