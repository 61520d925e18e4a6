"""Builds kernel IR from a schedule: the first stage of the lowering.

`program.py` plans the kernels. `lower_steps.py` lowers the steps of a task one after the other; its table `VERBS` has a function
for each kind of step. Such a function takes the kernel under construction (`Build`), the point between two steps (`Frame`), and
the step, and gets the statements of the remaining steps from `build.chain`, the only recursion. `frame.py` defines `Build` and
`Frame`. The folder `movement` makes tensors resident, `innermost_body.py` and `instruction` write the innermost statements, and
`reductions` handles the accumulators. Invariant: the resulting IR contains everything that the schedule says, except barriers,
vectors and memory offsets, which later passes add.
"""
