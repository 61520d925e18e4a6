"""Arguments of verbs that are not what the verb takes."""

import tilelang as tl
from tests.errors._computations import matmul


def vector_of_two_axes() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).vectorize(m=4, n=4)


def units_as_a_number() -> None:
    tl.schedule(matmul()).units(block=8)  # type: ignore[arg-type]


def units_of_nothing() -> None:
    tl.schedule(matmul()).units()


def fuse_of_nothing() -> None:
    tl.schedule(matmul()).fuse()


def layout_as_text() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).load("A", tl.shared, layout="k m")  # type: ignore[arg-type]


def order_as_text() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block, order="n")  # type: ignore[arg-type]


def size_as_text() -> None:
    tl.schedule(matmul()).split(k="8")  # type: ignore[arg-type]


def tile_without_a_level_is_compiled() -> None:
    tl.compile(tl.schedule(matmul()).tile(m=16))  # type: ignore[arg-type]


def fuse_of_a_text() -> None:
    tl.schedule(matmul()).fuse(mn="mn")


def unfuse_of_a_number() -> None:
    tl.schedule(matmul()).unfuse(m=4)  # type: ignore[arg-type]


def do_nothing() -> None:
    tl.schedule(matmul()).do(None)


def when_of_a_bool() -> None:
    tl.schedule(matmul()).when(True, tl.move())  # type: ignore[arg-type]


def no_count() -> None:
    tl.schedule(matmul()).tile(m=4).to(tl.block, 0)


def half_an_iteration() -> None:
    tl.schedule(matmul()).tile(m=4).to(tl.block).load("A", tl.shared, ahead=1.5)  # type: ignore[arg-type]


def half_a_place() -> None:
    tl.layout("k", "m").pad(1.5)  # type: ignore[arg-type]


def options_of_a_text() -> None:
    tl.compile(matmul(), options="fast")  # type: ignore[arg-type]


def schedule_of_a_text() -> None:
    tl.compile(matmul(), schedule="fast")  # type: ignore[arg-type]


def blocks_inside_a_walk_over_the_reduction() -> None:
    tl.schedule(matmul()).split(k=8).tile(m=4).to(tl.block)


def when_without_steps() -> None:
    tl.schedule(matmul()).when(tl.extent("m") < 4, None)  # type: ignore[arg-type]


def when_of_an_axis() -> None:
    tl.schedule(matmul()).when(tl.axes(m=4) < 4, tl.move())


def unfuse_with_a_hole() -> None:
    tl.schedule(matmul()).unfuse(m={"a": tl.hole, "b": 4})  # type: ignore[dict-item]


def unroll_of_a_text() -> None:
    tl.schedule(matmul()).split(k=8, unroll="twice")  # type: ignore[arg-type]


def walk_shared_by_a_number() -> None:
    tl.schedule(matmul()).split(k=8, of=3)  # type: ignore[arg-type]


def role_of_a_number() -> None:
    tl.schedule(matmul()).tile(m=16).to(tl.block).load("A", tl.shared, on=3)  # type: ignore[arg-type]


def warps_and_a_half() -> None:
    tl.warps(1.5)


def lanes_beyond_any_device() -> None:
    tl.schedule(matmul()).vectorize(n=2**40)


def schedule_of_a_schedule() -> None:
    tl.compile(tl.schedule(matmul()), schedule=tl.move())


def target_of_a_device_by_name() -> None:
    tl.target("opencl", device="cpu")  # type: ignore[arg-type]


def debug_without_a_pass() -> None:
    tl.Options(debug="everything")


def debug_of_an_unknown_pass() -> None:
    tl.compile(matmul(), target=tl.target(profile="simulated"), options=tl.Options(debug="pass:vectorise"))


def option_of_another_type() -> None:
    tl.Options(dump=3)  # type: ignore[arg-type]


def simulation_of_a_tensor() -> None:
    tl.simulate(matmul())  # type: ignore[arg-type]


def simulation_in_another_order() -> None:
    tl.simulate(tl.compile(matmul(4, 4, 4), target=tl.target(profile="simulated")), order="sideways")


def kernel_of_a_number() -> None:
    tl.kernel(3)  # type: ignore[call-overload]


def dump_where_nothing_can_be_written() -> None:
    tl.compile(matmul(), options=tl.Options(dump="/proc/nowhere"))


def behind_a_load() -> None:
    text = "computation f { input A: float32[i: 8] output C[i] = A[i] }\nschedule for f { load A in shared behind 1 }"
    tl.parse(text).schedule()
