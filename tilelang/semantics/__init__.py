"""The meaning of a computation: its value in NumPy, and the maximum error of a correct result."""
