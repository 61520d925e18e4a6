"""Schedules for CPUs: tiles from registers outward, and the cost model of cores with vectors and caches."""
