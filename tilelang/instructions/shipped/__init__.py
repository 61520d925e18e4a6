"""The shipped instruction definitions, one module per family, loaded when a name is not defined yet.

Each module defines its instructions with `tl.instruction` exactly as a user does; nothing in the compiler names one. What a profile has
to list for an instruction to be used stands in its `needs`.
"""
