"""Passes: functions from kernel to kernel, one per file. `lowering/pipeline.py` lists them in order."""
