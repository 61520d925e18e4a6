"""Loops shared by several reductions, and their repairs."""

from typing import Any

import tilelang as tl
from tilelang.core.expr import Expr


def _axes() -> Any:
    return tl.axes(i=64, j=256, e=16)


def _soft(term: Any = None, of: Any = None) -> tuple[Any, Any, Any]:
    """A peak, a sum whose term reads it, and their axes."""
    i, j, _ = _axes()
    x = tl.input("X", tl.float32, i, j)
    values = x[i, j] if of is None else of(x[i, j])
    peak = tl.define("peak", tl.max(values, over=j), i)
    total = tl.define("total", tl.sum((term or (lambda x, m: tl.exp(x - m)))(x[i, j], peak[i]), over=j), i)
    return peak, total, i


def _scheduled(term: Any = None, of: Any = None) -> tl.Schedule:
    peak, total, i = _soft(term, of)
    return tl.schedule(tl.define("Y", peak[i] + tl.log(total[i]), i)).tile(i=8).to(tl.block)


def _attention() -> tl.Schedule:
    i, j, e = _axes()
    s, v = tl.input("S", tl.float32, i, j), tl.input("V", tl.float32, j, e)
    peak = tl.define("peak", tl.max(s[i, j], over=j), i)
    p = tl.define("P", tl.exp(s[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(p[i, j], over=j), i)
    mix = tl.define("mix", tl.sum(p[i, j] * v[j, e], over=j), i, e)
    return tl.schedule(tl.define("O", mix[i, e] / total[i], i, e)).tile(i=8).to(tl.block)


def _here(made: tl.Schedule) -> None:
    tl.compile(made, tl.target("opencl", profile="simulated"))


def not_separable() -> None:
    _scheduled(lambda x, m: (x - m) * (x - m)).split(j=32, of=("peak", "total"))


def nothing_seen_yet() -> None:
    i, j, _ = _axes()
    x, w = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(w[i, j] - peak[i]), over=j), i)
    tl.schedule(total).tile(i=8).to(tl.block).split(j=32, of=("peak", "total"))


def any_sign() -> None:
    def of(x: Expr) -> Expr:
        return abs(x)

    _scheduled(lambda x, m: x * tl.tanh(m), of).split(j=32, of=("peak", "total"))


def no_rule() -> None:
    _scheduled(lambda x, m: tl.exp(x - m) + tl.exp(x - m / 2)).split(j=32, of=("peak", "total"))


def no_such_definition() -> None:
    _scheduled().split(j=32, of=("peek", "total"))


def pointwise_member() -> None:
    _attention().split(j=32, of=("peak", "P", "mix"))


def over_another_axis() -> None:
    i, j, e = _axes()
    x, y = tl.input("X", tl.float32, i, j), tl.input("Y", tl.float32, i, e)
    high = tl.define("high", tl.max(y[i, e], over=e), i)
    total = tl.define("total", tl.sum(x[i, j] * high[i], over=j), i)
    tl.schedule(total).tile(i=8).to(tl.block).split(j=32, of=("high", "total"))


def over_several_axes() -> None:
    _scheduled().split(j=32, i=2, of=("peak", "total"))


def over_an_output_axis() -> None:
    i, j, _ = _axes()
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    tl.schedule(tl.define("Y", tl.exp(x[i, j] - peak[i]) / total[i], i, j)).tile(i=8).to(tl.block).split(
        j=32, of=("peak", "total")
    )


def through_another_reduction() -> None:
    i, j, e = _axes()
    x, w = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, j, e)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    spread = tl.define("spread", tl.sum(w[j, e] * peak[i], over=e), i, j)
    total = tl.define("total", tl.sum(spread[i, j], over=j), i)
    tl.schedule(total).tile(i=8).to(tl.block).split(j=32, of=("peak", "total"))


def other_elements() -> None:
    i, j = tl.axes(i=64, j=64)
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[j]), over=j), i)
    tl.schedule(total).tile(i=8).to(tl.block).split(j=32, of=("peak", "total"))


def left_out() -> None:
    i, j, _ = _axes()
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    more = tl.define("more", tl.sum(x[i, j] * tl.exp(x[i, j] - peak[i]), over=j), i)
    outputs = (tl.define("Y", total[i] + more[i], i),)
    tl.schedule(tl.computation("two", outputs=outputs)).tile(i=8).to(tl.block).split(j=32, of=("peak", "total"))


def stage_inside() -> None:
    _here(_scheduled().split(j=32, of=("peak", "total")).split(i=2).compute("peak", tl.register))


def stage_read_before() -> None:
    made = _attention().split(j=32, of=("peak", "total", "mix"))
    _here(made.compute("P", tl.shared).compute("peak", tl.register))


def stage_made_too_late() -> None:
    i, j, _ = _axes()
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    p = tl.define("P", tl.exp(x[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(p[i, j], over=j), i)
    made = tl.schedule(tl.define("Y", peak[i] + tl.log(total[i]), i)).tile(i=8).to(tl.block)
    _here(made.split(j=32, of=("peak", "total")).compute("P", tl.shared).compute("peak", tl.register))


def stage_ahead() -> None:
    _here(_scheduled().split(j=32, of=("peak", "total")).compute("peak", tl.shared, ahead=1))


def reader_ahead() -> None:
    made = _attention().split(j=32, of=("peak", "total", "mix")).compute("peak", tl.shared)
    _here(made.compute("P", tl.shared, ahead=1).compute("total", tl.shared))


def below_a_cut() -> None:
    _scheduled().split(j=64).split(j=32, of=("peak", "total"))


def two_loops() -> None:
    _scheduled().split(j=64, of=("peak", "total")).split(j=32, of=("peak", "total"))


def in_braces() -> None:
    made = _attention().compute("total", tl.shared, steps=tl.move().split(j=32, of=("peak", "total")))
    _here(made)


def accumulator_in_shared() -> None:
    _here(_scheduled().accumulate(tl.shared).split(j=32, of=("peak", "total")))


def accumulator_inside() -> None:
    _here(_scheduled().split(j=32, of=("peak", "total")).accumulate(tl.register))


def product() -> None:
    i, j, _ = _axes()
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(abs(x[i, j]), over=j), i)
    total = tl.define("total", tl.prod(tl.exp(x[i, j]) * tl.exp(-peak[i]), over=j), i)
    _here(tl.schedule(total).tile(i=8).to(tl.block).split(j=32, of=("peak", "total")))


def argmax() -> None:
    i, j, _ = _axes()
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    computation = tl.computation("best", tl.define("best", tl.argmax(x[i, j] - peak[i], over=j), i))
    _here(tl.schedule(computation).tile(i=8).to(tl.block).split(j=32, of=("peak", computation.definitions[1].tensors[0].name)))


def _with_total() -> tuple[tl.Schedule, tl.Tensor, tl.Tensor]:
    peak, total, i = _soft()
    return tl.schedule(tl.define("Y", peak[i] + tl.log(total[i]), i)).tile(i=8).to(tl.block), peak, total


def given_repair_the_wrong_way() -> None:
    made, peak, total = _with_total()
    given = tl.before(total) * tl.exp(tl.now(peak) - tl.before(peak))
    made.split(j=32, of=("peak", "total"), repairs={"total": given})


def given_repair_in_a_form_that_is_not_known() -> None:
    made, peak, total = _with_total()
    given = tl.before(total) * (tl.expm1(tl.before(peak) - tl.now(peak)) + 1)
    made.split(j=32, of=("peak", "total"), repairs={"total": given})


def given_repair_of_another_form() -> None:
    made, peak, total = _with_total()
    made.split(j=32, of=("peak", "total"), repairs={"total": tl.exp(tl.before(total)) * tl.now(peak)})


def given_repair_of_what_needs_none() -> None:
    made, peak, _ = _with_total()
    made.split(j=32, of=("peak", "total"), repairs={"peak": tl.before(peak) * 1.0})


def given_repair_that_is_no_expression() -> None:
    made, *_ = _with_total()
    made.split(j=32, of=("peak", "total"), repairs={"total": 2})  # type: ignore[dict-item]


def given_repair_of_no_reduction() -> None:
    text = f"{_with_total()[0].computation.text}\nschedule for Y {{ split j=32 of peak total=before(total) * exp(now(pek)) }}"
    tl.parse(text).schedule()


def reduction_inside_a_definition() -> None:
    i, j, _ = _axes()
    x = tl.input("X", tl.float16, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(tl.cast(x[i, j] - peak[i], tl.float32)), over=j), i)
    tl.schedule(total).tile(i=8).to(tl.block).split(j=32, of=("peak", "total"))


def given_repair_of_another_name() -> None:
    made, peak, total = _with_total()
    made.split(j=32, of=("peak", "total"), repairs={"totl": tl.before(total) * tl.exp(tl.before(peak) - tl.now(peak))})


def given_repair_that_reads_an_element() -> None:
    made, peak, total = _with_total()
    made.split(j=32, of=("peak", "total"), repairs={"total": tl.before(total) * tl.exp(tl.before(peak) - peak[_axes()[0]])})


def given_repair_without_the_accumulator() -> None:
    made, peak, _ = _with_total()
    made.split(j=32, of=("peak", "total"), repairs={"total": tl.exp(tl.before(peak) - tl.now(peak))})


def value_of_an_input() -> None:
    tl.before(_with_total()[0].computation.inputs[0])


def value_of_an_element() -> None:
    tl.now(_with_total()[1][_axes()[0]])  # type: ignore[arg-type]
