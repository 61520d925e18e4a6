"""Drivers: devices, memory, launches and times for OpenCL, CUDA, HIP and the CPU."""
