"""Schedule generation, autotuning and cost models. Import it as tilelang.autoschedule."""

if __name__ != "tilelang.autoschedule":
    raise ImportError("import tilelang.autoschedule")
