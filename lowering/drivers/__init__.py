"""Part of tilelang.lowering."""
