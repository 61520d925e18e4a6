"""The distribution of elements over threads, and how elements reach the threads that need them."""
