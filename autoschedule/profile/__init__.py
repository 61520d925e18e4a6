"""Measures a device: probes that run on it, fits of the results, and the profile made from them.

`sampling` repeats a run until its time is reliable, `fits` interprets curves, `bench` compiles and launches, `aspects` has the
probes, one question each, and `measure` writes their answers to a file. Only `bench` touches a device: everything else is tested
without one.
"""
