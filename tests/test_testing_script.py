"""Scripts of cases make the same schedule again, named reads included."""

from __future__ import annotations

import tilelang as tl
from tilelang.core.expr import Read
from tilelang.schedules.steps import Place
from tilelang.testing import Seeded, draw_case


def test_a_script_names_the_reads_that_its_loads_name() -> None:
    seen = 0
    for seed in range(60):
        case = draw_case(Seeded(seed), ("read_twice",))
        named = [s.what for s in case.schedule.steps if isinstance(s, Place) and isinstance(s.what, Read)]
        if not named:
            continue
        seen += 1
        scope: dict[str, object] = {}
        exec(case.script().rpartition("\n")[0], scope)  # all but the check
        again = scope["s"]
        assert isinstance(again, tl.Schedule)
        assert [str(s) for s in again.steps] == [str(s) for s in case.schedule.steps]
    assert seen > 10
