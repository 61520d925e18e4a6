"""From schedule to kernel IR to source to binary. Import it as tilelang.lowering."""

if __name__ != "tilelang.lowering":
    raise ImportError("import tilelang.lowering")
