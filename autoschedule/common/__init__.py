"""What both models share: a task's axes and loops, its lower bound, holes, limits."""
