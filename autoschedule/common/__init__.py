"""The parts that the CPU and GPU models share: a task's axes and loops, lower bounds, holes, limits."""
