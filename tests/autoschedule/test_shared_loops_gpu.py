"""Loops that several reductions share, constructed for GPUs: products by matrix instructions, the values of a chunk in registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.gpu.shared_loops import owners_of
from tilelang.autoschedule.models import model_of
from tilelang.instructions.instruction import known
from tilelang.instructions.shipped.warp_matrix import accumulator_16x8, left_16x8, left_16x16
from tilelang.instructions.shipped.wave_matrix import right_16x16, sums_16x16
from tilelang.schedules.steps import Do, Place, Split, Tile, every_step


def attention(
    rows: int, keys: int, width: int = 32, type: Any = tl.float16, heads: int = 1, groups: int = 1, causal: bool = False
) -> tl.Computation:
    """softmax(Q K^T / 4) V, with weights in the type of the inputs."""
    h, i, j, d, e, g = tl.axes(h=heads, i=rows, j=keys, d=width, e=width, g=heads // groups)
    q, k, v = tl.input("Q", type, h, i, d), tl.input("K", type, g, j, d), tl.input("V", type, g, j, e)
    wide: Callable[[Any], Any] = lambda x: tl.cast(x, tl.float32) if type != tl.float32 else x  # noqa: E731
    narrow: Callable[[Any], Any] = lambda x: tl.cast(x, type) if type != tl.float32 else x  # noqa: E731
    allow = ("tf32",) if type == tl.float32 else ()
    score = tl.sum(wide(q[h, i, d]) * wide(k[h // groups, j, d]), over=d) * 0.25
    s = tl.define("S", tl.where(j <= i, score, float("-inf")) if causal else score, h, i, j, allow=allow)
    peak = tl.define("peak", tl.max(s[h, i, j], over=j), h, i)
    p = tl.define("P", narrow(tl.exp(s[h, i, j] - peak[h, i])), h, i, j)
    total = tl.define("total", tl.sum(wide(p[h, i, j]), over=j), h, i)
    mix = tl.define("mix", tl.sum(wide(p[h, i, j]) * wide(v[h // groups, j, e]), over=j), h, i, e, allow=allow)
    return tl.computation("attention", tl.define("O", narrow(mix[h, i, e] / total[h, i]), h, i, e))


def shared(computation: tl.Computation, profile: str) -> list[tl.Schedule]:
    """The candidates with a shared loop, the best first."""
    device = tl.load_profile(profile)
    model, found = model_of(device), list[tuple[float, int, tl.Schedule]]()
    for rows, steps in model.fuse_rows(Part.whole(computation)):
        if any(isinstance(s, Split) and s.of for s in steps):
            seconds = model.estimate((rows.loops(steps, device),)).seconds
            found.append((seconds, len(found), tl.Schedule(computation, steps)))
    return [made for *_, made in sorted(found, key=lambda f: f[:2])]


def in_chunks(computation: tl.Computation, profile: str) -> tl.Schedule:
    """The best candidate among those with the smallest chunks, so that few keys take several."""
    return min(shared(computation, profile), key=lambda made: [s.sizes for s in made.steps if isinstance(s, Split) and s.of])


def products(schedule: tl.Schedule) -> list[str]:
    """The instructions of its products."""
    return [s.instruction for s in every_step(schedule.steps) if isinstance(s, Do) and s.binding]


TARGETS = {"ampere": ("cuda", "mma_m16n8k16"), "hopper": ("cuda", "mma_m16n8k16"), "cdna3": ("hip", "mfma_"),
           "rdna3": ("hip", "wmma_")}  # fmt: skip

CASES: dict[str, dict[str, Any]] = {
    "partial tiles": {"rows": 37, "keys": 77},
    "causal": {"rows": 40, "keys": 80, "causal": True},
    "fewer keys than a chunk": {"rows": 20, "keys": 5},
    "grouped": {"rows": 33, "keys": 40, "heads": 4, "groups": 2},
    "bfloat16": {"rows": 40, "keys": 72, "type": tl.bfloat16},
}


@pytest.mark.parametrize(
    ("profile", "name"), [(p, n) for p in ("ampere", "cdna3") for n in CASES] + [("hopper", "causal"), ("rdna3", "causal")]
)
def test_attention_in_one_loop(profile: str, name: str) -> None:
    dialect, unit = TARGETS[profile]
    made = in_chunks(attention(**CASES[name]), profile)
    assert testing.check_kernel(made, None, tl.target(dialect, profile=profile)) == []
    assert [(p.startswith(unit), p.endswith("_bfloat16")) for p in products(made)] == [(True, name == "bfloat16")] * 2
    (kernel,) = tl.compile(made, tl.target(dialect, profile=profile)).program.kernels
    exchanged = {"P_exchanged"} if profile == "rdna3" else set()  # wmma reads whole rows, which two lanes own
    assert {b.name for b in kernel.buffers if b.memory == "shared"} == {"Q_shared", "K_shared", "V_shared"} | exchanged


@pytest.mark.parametrize("causal", [False, True])
def test_float32_with_a_licence(causal: bool) -> None:
    made = in_chunks(attention(40, 72, type=tl.float32, causal=causal), "ampere")
    assert testing.check_kernel(made, None, tl.target("cuda", profile="ampere")) == []
    assert products(made) == ["mma_m16n8k8_tf32"] * 2


def masked(rows: int, keys: int, width: int) -> tuple[tl.Computation, dict[str, Any]]:
    """Attention with a mask that is added, and such masks: whole rows, the first and the last chunks of others, all keys but one."""
    i, j, d, e = tl.axes(i=rows, j=keys, d=width, e=width)
    q, k, v = tl.input("Q", tl.float16, i, d), tl.input("K", tl.float16, j, d), tl.input("V", tl.float16, j, e)
    m = tl.input("M", tl.float32, i, j)
    wide: Callable[[Any], Any] = lambda x: tl.cast(x, tl.float32)  # noqa: E731
    s = tl.define("S", tl.sum(wide(q[i, d]) * wide(k[j, d]), over=d) + m[i, j], i, j)
    peak = tl.define("peak", tl.max(s[i, j], over=j), i)
    p = tl.define("P", tl.cast(tl.exp(s[i, j] - peak[i]), tl.float16), i, j)
    total = tl.define("total", tl.sum(wide(p[i, j]), over=j), i)
    mix = tl.define("mix", tl.sum(wide(p[i, j]) * wide(v[j, e]), over=j), i, e)
    computation = tl.computation("attention", tl.define("O", mix[i, e] / total[i], i, e))
    data, generator = dict(testing.arrays(computation)), np.random.default_rng(7)
    mask = np.where(generator.random((rows, keys)) < 0.3, -np.inf, 0).astype(np.float32)
    mask[3], mask[5, :40], mask[6, 40:], mask[7, :-1] = -np.inf, -np.inf, -np.inf, -np.inf
    mask[8, 4], mask[9, keys // 2] = np.inf, np.nan
    return computation, data | {"M": mask, "Q": data["Q"] * 10}


@pytest.mark.parametrize("profile", ["ampere", "cdna3"])
def test_masked_rows_and_chunks(profile: str) -> None:
    computation, data = masked(20, 80, 32)
    made = in_chunks(computation, profile)
    assert testing.check_schedule(made, data, profile=tl.load_profile(profile)) == []


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["ampere", "cdna3"])
def test_every_candidate_is_right(profile: str) -> None:
    """Also several instructions of a warp along its rows."""
    found = shared(attention(40, 72, causal=True), profile)
    assert {dict(s.sizes)["i"] for made in found for s in made.steps if isinstance(s, Tile) and s.level == "warp"} >= {16, 32}
    for made in found:
        assert testing.check_kernel(made, None, tl.target(TARGETS[profile][0], profile=profile)) == [], made.text


def test_owners_follow_from_the_lane_map() -> None:
    """A result of mma is owned as the next product reads it on its left; one of mfma, as it reads it on its right."""
    rows, turned = owners_of(accumulator_16x8, ("i", "j")), owners_of(sums_16x16, ("j", "i"))
    assert rows is not None and rows.hold(left_16x16, ("i", "j")) and not rows.hold(left_16x8, ("i", "j"))
    assert turned is not None and turned.pieces == (("j", 4), ("i", 1)) and turned.hold(right_16x16, ("j", "i"))
    units = [made for made in known() if made.kind == "update" and made.level == "warp" and len(made.means.target_axes) == 2]
    held = [(made.name, made.fragment(made.writes)) for made in units]
    assert [name for name, lanes in held if lanes is None or owners_of(lanes, ("i", "j")) is None] == []


def test_one_kernel_is_constructed_if_there_are_many_keys() -> None:
    for profile in ("ampere", "hopper", "cdna3"):
        steps = construct(attention(1024, 1024, 64, heads=16), tl.load_profile(profile))[0].steps
        assert any(isinstance(s, Split) and s.of == ("peak", "total", "mix") for s in steps), profile
        assert not any(isinstance(s, Place) and s.memory == "global" for s in steps)


def test_no_kernel_without_instructions_for_all_products() -> None:
    assert not shared(attention(64, 64), "volta")
    assert not shared(attention(64, 64, 24), "ampere")  # nothing fills what is outside a row
    whole = attention(64, 64, type=tl.float32)
    assert "allow tf32" in whole.text
    assert not shared(tl.parse(whole.text.replace("allow tf32", "")).computation(), "ampere")


@pytest.mark.parametrize("profile", ["ampere", "hopper"])
def test_keys_and_values_are_read_once_for_each_block_of_queries(profile: str) -> None:
    computation = attention(256, 128, 64)
    made = shared(computation, profile)[0]
    kernel = tl.compile(made, tl.target(TARGETS[profile][0], profile=profile))
    size = kernel.target.profile.memory("global").transaction_bytes
    moved = Counter[str]()
    for count in tl.simulate(kernel).transactions:
        moved[count.buffer] += count.total * size
    (block,) = (dict(s.sizes)["i"] for s in made.steps if isinstance(s, Tile) and s.level == "block")
    assert isinstance(block, int)
    keys = 128 * 64 * 2 * 256 // block
    assert {name: moved[name] for name in "QKV"} == {"Q": 256 * 64 * 2, "K": keys, "V": keys}
    assert set(moved) == set("QKVO")
