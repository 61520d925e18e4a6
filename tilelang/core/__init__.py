"""Expressions, element types, layouts: the values that everything else is made of."""
