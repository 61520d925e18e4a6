"""Choosing a schedule. Import it as tilelang.autoschedule."""

if __name__ != "tilelang.autoschedule":
    raise ImportError("import tilelang.autoschedule")
