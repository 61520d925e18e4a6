"""Schedules: steps, the builder, the spec after each step, and the checks that refuse a step."""
