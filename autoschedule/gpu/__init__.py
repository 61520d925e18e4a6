"""Schedules for GPUs: tiles level by level, and the cost model of warps, banks and memory transactions."""
