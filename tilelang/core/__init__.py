"""Expressions, element types, layouts and immutable nodes: the basis of all other packages."""
