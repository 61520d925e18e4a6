"""Schedule to kernel IR: the first stage of the lowering.

`program.py` plans the kernels, `nest.py` walks over the steps of a task, `place.py` makes tensors resident, `leaf.py` writes the
innermost statements, `state.py` keeps the accumulators. `frame.py` has what they hand to each other. Invariant: everything said
in the schedule is in the IR afterwards, except barriers, vectors and memory offsets, which are passes of their own.
"""
