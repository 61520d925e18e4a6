"""Schedule to kernel IR: the first stage of the lowering.

`program.py` plans the kernels. `nest.py` walks over the steps of a task; its table `VERBS` has the function for each kind of step. Such
a function takes the kernel under construction (`Build`), the point between two steps (`Frame`), and the step; what follows the step it
gets from `build.chain`, the only recursion. `frame.py` has both. `place.py` makes tensors resident, `leaf.py` and `instruct.py` write
the innermost statements, `state.py` keeps the accumulators. Invariant: everything said in the schedule is in the IR afterwards, except
barriers, vectors and memory offsets, which are passes of their own.
"""
