"""The shipped instruction definitions, one module per family, loaded when a name is not defined yet.

Each module defines its instructions with `tl.instruction`, exactly as a user does; the compiler names none of them. An
instruction is available if the profile lists the names in its `needs`.
"""
