"""From a computation to a kernel that runs: the choice of a schedule, targets, arguments, launches."""

from tilelang.renamed import moved

_NAMES = ("Kernel", "Target", "compile", "devices", "simulate", "target")
__getattr__ = moved(__name__, dict.fromkeys(_NAMES, "tilelang.runtime.kernel"))
