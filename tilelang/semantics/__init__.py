"""What a computation means: its value in NumPy, and how far a correct result may be from it."""
