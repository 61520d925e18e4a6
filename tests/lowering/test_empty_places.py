"""Loads and stages of which no point is read: nothing is moved or made, and no index is asked for."""

from __future__ import annotations

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang.testing import families


def test_rows_that_no_entry_of_an_empty_table_names() -> None:
    c = families.gather(rows=8, bag=0, width=13, table=5, dtype="float32", kind="max")
    s = tl.schedule(c).tile(b=4, e=5).to("block").tile(b=1).to("thread").accumulate("register").load("table", "register")
    assert not faults(s.split(e=1))


def test_a_stage_over_an_axis_without_points() -> None:
    c = families.two_products(m=4, n=7, k=5, p=0, dtype="int8")
    stage = tl.move().tile(k=2).to("thread")
    s = tl.schedule(c).tile(m=3, n=5).to("block").accumulate("shared").compute("T", "shared", steps=stage)
    assert not faults(s.accumulate("register").split(m=1).vectorize(p=8))
