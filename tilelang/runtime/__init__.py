"""From a computation to a running kernel: schedule selection, targets, arguments, launches."""

from tilelang.renamed import moved

_NAMES = ("Kernel", "Target", "compile", "devices", "simulate", "target")
__getattr__ = moved(__name__, dict.fromkeys(_NAMES, "tilelang.runtime.kernel"))
