"""Measuring a device: probes that run on it, fits of what they find, and the profile that comes of it.

`sampling` times a run until the time can be trusted, `fits` reads curves, `bench` compiles and launches, `aspects` are the probes, each
of one question, and `measure` puts their answers in a file. Only `bench` touches a device: all else is tested without one.
"""
