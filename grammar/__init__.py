"""Text to language and back. Import it as tilelang.grammar."""

if __name__ != "tilelang.grammar":
    raise ImportError("import tilelang.grammar")
