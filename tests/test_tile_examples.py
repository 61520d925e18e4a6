"""Every example as text: laid out, checked and run by the command line; by their hash its schedules are the Python example's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tilelang as tl
from tests.test_examples import NAMES, ROOT, SIZES, WITHOUT_SCHEDULE, load
from tilelang.cli import main

# The tiles that each Python example takes with small=True, in the order of the parameters.
SMALL: dict[str, dict[str, tuple[int, ...]]] = {
    "01_matmul": {"gemm_cpu": (16, 64, 8, 4, 32), "gemm_simt": (64, 32, 8, 32)},
    "02_batched_gelu": {
        "cpu": (16, 32, 8, 4, 16), "simt": (8, 8, 4, 2), "cpu_gelu": (16, 32, 8, 4, 16), "simt_gelu": (8, 8, 4, 2),
    },
    "03_implicit_gemm": {"cpu": (8, 32, 4, 4, 16), "simt": (8, 8, 2, 2)},
    "04_direct_convolution": {"cpu": (2, 16), "simt": (2, 4, 4, 2)},
    "05_depthwise": {"cpu": (16, 2), "simt": (2, 4, 4)},
    "06_row_sum": {"cpu": (), "simt": (4,)},
    "07_split_reduction": {"cpu": (128,), "simt": (32, 4)},
    "08_softmax": {"cpu": (), "softmax_rows": (8,)},
    "09_layer_norm": {"cpu": (), "simt": (8,)},
    "10_argmax": {"cpu": (), "simt": (4,)},
    "11_transpose": {"cpu": (16,), "simt": (8, 2)},
    "12_embedding_bag": {"cpu": (32,), "simt": (2, 16, 2)},
    "13_causal_product": {"cpu": (8, 32, 4, 4, 16), "simt": (8, 8, 4, 2)},
    "14_own_instruction": {"cpu": (16, 64, 8, 4, 32), "simt": (8, 16, 4, 2)},
    "15_matrix_units": {},
    "16_matrix_types": {},
    "18_online_softmax": {"cpu": (), "keys_over_blocks": (), "threads": ()},
}  # fmt: skip
REFUSED = {  # what PoCL lacks the instructions for
    "01_matmul": ("gemm_ampere", "gemm_hopper"),
    "15_matrix_units": ("gemm_ampere", "gemm_cdna", "gemm_mi300", "gemm_ampere_transposed", "gemm_direct", "conv_ampere"),
    "16_matrix_types": ("gemm_tf32", "gemm_int8", "gemm_float8", "gemm_rdna"),
}
ONLY_TEXT = {"14_own_instruction": ("simt",)}  # with a shipped instruction, where Python has one of its own


def path(name: str) -> str:
    return str(ROOT / "examples" / f"{name}.tile")


def small(name: str, schedule: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    """The parameters of a schedule and its computation by name: sizes, and small tiles."""
    document = tl.read(path(name))
    (entry,) = (e for e in document.schedules if e.name == schedule)
    tiles = SMALL[name][schedule]
    named: dict[str, Any] = dict(zip(document.parameters(document.computations[entry.of][0]), sizes, strict=False))
    assert len(named) == len(sizes) and len(document.parameters(entry)) == len(tiles)
    return named | dict(zip(document.parameters(entry), tiles, strict=True))


def tilelang(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_every_example_is_there_as_text() -> None:
    assert sorted(p.stem for p in (ROOT / "examples").glob("*.tile")) == sorted([*NAMES, *WITHOUT_SCHEDULE])
    assert NAMES == sorted(SMALL)


def test_layout() -> None:
    result = tilelang("fmt", "--check", *map(path, NAMES))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", NAMES)
def test_check(name: str) -> None:
    result = tilelang("check", path(name), "--format=json", "--profile=sapphire_rapids")
    found = [(e["code"], e["message"]) for e in json.loads(result.stdout)["errors"]]
    refusals = load(name).refusals(tl.target(profile="sapphire_rapids")) if name in REFUSED else {}
    assert [f"error[{code}]: {message}" for code, message in found] == [t.splitlines()[0] for t in refusals.values()]
    assert tuple(refusals) == REFUSED.get(name, ()) and result.exit_code == bool(refusals)


def test_matrix_instructions_fit_where_they_are() -> None:
    sizes = [f"--size={s}" for s in ("type=float16", "M=256", "N=256", "K=64")]
    result = tilelang("check", path("01_matmul"), "-s", "gemm_ampere", "--profile=ampere", *sizes)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("name", "sizes"), [pytest.param(n, s, id=f"{n}-{'x'.join(map(str, s))}") for n in NAMES for s in [(), *SIZES[n]]]
)
def test_is_the_python_example(name: str, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Computation, name and steps: with the defaults of both where no sizes are given, else with the small tiles."""
    example, document = load(name), tl.read(path(name))
    if name == "14_own_instruction":
        monkeypatch.setattr(
            example, "multiply_accumulate", lambda lanes: "opencl_mad16"
        )  # the text has the shipped one in its place
    schedules = example.schedules(*sizes, small=bool(sizes))
    assert sorted(e.name for e in document.schedules) == sorted((*SMALL[name], *REFUSED.get(name, ())))
    assert sorted(schedules) == sorted(set(SMALL[name]) - set(ONLY_TEXT.get(name, ())))
    for schedule_name, schedule in schedules.items():
        made = document.schedule(schedule_name, **(small(name, schedule_name, sizes) if sizes else {}))
        assert made.computation.text == schedule.computation.text and made.text == schedule.text
        assert made.hash == schedule.hash


def test_the_refused_are_the_python_example() -> None:
    example, document = load("01_matmul"), tl.read(path("01_matmul"))
    half = example.gemm_ampere(example.matmul(256, 256, 64, tl.float16))
    assert document.schedule("gemm_ampere", M=256, N=256, K=64, type=tl.float16).hash == half.hash
    assert document.schedule("gemm_hopper").hash == example.gemm_hopper(example.linear(256, 256, 128)).hash


def runs() -> list[Any]:
    every = [(n, schedule, s) for n in NAMES for schedule in SMALL[n] for s in SIZES[n]]
    return [pytest.param(n, schedule, s, id=f"{n}-{schedule}-{'x'.join(map(str, s))}") for n, schedule, s in every]


@pytest.mark.parametrize(("name", "schedule", "sizes"), runs())
def test_run(name: str, schedule: str, sizes: tuple[int, ...]) -> None:
    given = [f"--size={n}={v}" for n, v in small(name, schedule, sizes).items()]
    result = tilelang("run", path(name), "-s", schedule, *given, "--check")
    assert result.exit_code == 0 and ": right\n" in result.stdout, result.output


@pytest.mark.parametrize("schedule", REFUSED["01_matmul"])
def test_run_refuses_with_a_reason(schedule: str) -> None:
    result = tilelang("run", path("01_matmul"), "-s", schedule)
    assert result.exit_code == 1 and result.stderr.startswith("error[") and "= help:" in result.stderr


def test_the_command_of_the_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "tilelang run examples/01_matmul.tile -s gemm_simt --check"
    assert command in (ROOT / "docs" / "text.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    result = tilelang(*command.split()[1:])
    assert result.exit_code == 0 and "500 x 555" in result.stdout and "C: right" in result.stdout


@pytest.mark.parametrize("name", WITHOUT_SCHEDULE)
def test_examples_without_a_schedule_run_as_text(name: str) -> None:
    for arguments in (("fmt", "--check"), ("run", "--check"), ("fill",)):
        result = tilelang(arguments[0], path(name), *arguments[1:])
        assert result.exit_code == 0, result.output
