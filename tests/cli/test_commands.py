"""The commands as a person types them: what they print, their exit codes, their JSON; and every way to misuse them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.shell_completion import ShellComplete

import tilelang as tl
from tests.cli.commands import GEMM, PAIR, ROOT, of_json, raising, tilelang
from tilelang.cli import COMMANDS, main
from tilelang.lowering.compilers import wheels
from tilelang.lowering.compilers.interface import tools


@pytest.mark.slow
def test_run_checks_and_times(gemm: str) -> None:
    result = tilelang("run", gemm, "-s", "simt", "--check", "--time", "--size", "M=33")
    assert result.exit_code == 0, result.output
    assert "33 x 24" in result.stdout and "matmul: right" in result.stdout and " ms (median" in result.stdout
    found = of_json(tilelang("run", gemm, "-s", "plain", "--check", "--json", "-S", "type=float64"))
    assert found["check"]["right"] and found["outputs"]["C"]["type"] == "float64"


def test_run_reads_and_writes_arrays(gemm: str, tmp_path: Path) -> None:
    a, b = np.ones((20, 12), np.float32), np.full((12, 24), 2, np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    made = ["run", gemm, "-s", "simt", "-i", f"A={tmp_path}/a.npy", "-i", f"B={tmp_path}/b.npy"]
    result = tilelang(*made, "-o", f"{tmp_path}/c.npy", "--check")
    assert result.exit_code == 0, result.output
    assert (np.load(tmp_path / "c.npy") == 24).all() and not list(tmp_path.glob(".c*"))
    assert tilelang(*made, "-o", f"D={tmp_path}/d.npy").exit_code == 2
    nowhere = tilelang(*made, "-o", f"{tmp_path}/no/where.npy")
    assert nowhere.exit_code == 1 and "error[output-file]" in nowhere.stderr
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    refused = tilelang(*made)
    assert refused.exit_code == 2 and "Python objects" in refused.stderr and "pickle" not in refused.stderr
    (tmp_path / "a.npy").write_bytes(b"1 2 3")
    assert "no file of `numpy.save`" in tilelang(*made).stderr
    np.save(tmp_path / "a.npy", np.ones((3, 3), np.float32))
    assert tilelang(*made).exit_code == 1
    np.savez(tmp_path / "a.npz", a)
    several = tilelang(*made, "-i", f"A={tmp_path}/a.npz")
    assert several.exit_code == 2 and "`A` has two values" in several.stderr
    several = tilelang("run", gemm, "-s", "simt", "-i", f"A={tmp_path}/a.npz")
    assert several.exit_code == 2 and "several arrays" in several.stderr
    twice = tilelang("run", gemm, "-s", "simt", "-o", f"{tmp_path}/c.npy", "-o", f"C={tmp_path}/d.npy")
    assert twice.exit_code == 2 and "two files for the output `C`" in twice.stderr
    nameless = tilelang("run", gemm, "-s", "simt", "-o", "")
    assert nameless.exit_code == 1 and "name of the output file is empty" in nameless.stderr
    sizes = tilelang("run", gemm, "-s", "simt", "-S", "M=5", "-S", "M=6")
    assert sizes.exit_code == 2 and "`M` has two values, 5 and 6" in sizes.stderr


@pytest.mark.slow
def test_run_until_a_step(gemm: str) -> None:
    for steps in range(7):
        assert tilelang("run", gemm, "-s", "simt", "--until", str(steps), "--check").exit_code == 0
    assert tilelang("run", gemm, "-s", "simt", "--until", "7").exit_code == 2


def test_check_finds_everything(gemm: str) -> None:
    result = tilelang("check", gemm)
    assert result.exit_code == 1 and result.stderr.count("error[") == 1
    assert f"{gemm}:17:3" in result.stderr and "split q=2" in result.stderr
    assert tilelang("check", gemm, "-s", "simt").exit_code == 0
    found = of_json(tilelang("check", gemm, "--json"))
    (error,) = found["errors"]
    assert (error["line"], error["column"], error["file"]) == (17, 3, gemm) and error["mend"]
    assert of_json(tilelang("check", gemm, "--format=json")) == found
    note = tilelang("check", gemm, "--format=github").stdout
    assert note.startswith(f"::error file={gemm},line=17,col=3,") and "\n" not in note.strip()


def test_check_leaves_out_what_conditions_leave_out(tmp_path: Path) -> None:
    path = tmp_path / "when.tile"
    double = "computation f(M = 9) { input X: float32[i: M] output Y[i] = X[i] + Z }"
    path.write_text(f"when M < 8 {{ {double} }}\nschedule s for f {{ tile q=4 -> block }}\n")
    result = tilelang("check", str(path))
    told = f"{path}: 0 computations, 0 schedules (2 not checked, because their conditions do not hold), no faults found\n"
    assert result.exit_code == 0 and result.stdout == told
    assert "error[unknown-name]" in tilelang("check", str(path), "-S", "M=4").stderr
    mistyped = tilelang("check", str(path), "-S", "M=4", "-S", "Q=4")
    assert mistyped.exit_code == 2 and "error[unknown-parameter]" in mistyped.stderr


def test_check_counts_what_it_checked(tmp_path: Path) -> None:
    path = tmp_path / "two.tile"
    text = "computation f(M = 9) { input X: float32[i: M] output Y[i] = X[i] * 2.0 }\n"
    path.write_text(text + "when M < 8 { schedule s for f { tile i=4 -> block } } else { schedule s for f { split i=4 } }\n")
    more = "(1 not checked, because their conditions do not hold), no faults found\n"
    assert tilelang("check", str(path)).stdout == f"{path}: 1 computation, 1 schedule {more}"
    assert tilelang("check", str(path), "-s", "s").stdout == f"{path}: 1 schedule, no faults found\n"
    path.write_text(text)
    assert tilelang("check", str(path)).stdout == f"{path}: 1 computation, 0 schedules, no faults found\n"


@pytest.mark.parametrize("text", ["", "# nothing\n", "tilelang 1\n"])
def test_check_of_an_empty_file_is_an_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.tile"
    path.write_text(text)
    result = tilelang("check", str(path))
    assert result.exit_code == 2 and "there is no computation in it" in result.stderr


def test_errors_before_the_check_are_annotations_too(tmp_path: Path) -> None:
    path = tmp_path / "long.tile"
    path.write_text("computation f(N) {\n" + " " * 100)
    small = tilelang("check", str(path), "--format=github", "--limit-bytes", "10")
    assert small.exit_code == 1 and small.stdout.startswith(f"::error file={path},line=1,title=too-large::")
    missing = tilelang("check", str(tmp_path / "no.tile"), "--format=github")
    assert missing.exit_code == 2 and missing.stdout.startswith("::error file=")
    broken = tilelang("check", str(path), "--format=github")
    assert broken.exit_code == 1 and broken.stdout.startswith(f"::error file={path},line=")


def test_check_tells_syntax_errors_together(tmp_path: Path) -> None:
    path = tmp_path / "bad.tile"
    path.write_text("computation f {\n  input A\n}\nschedule s for f { tile m=4 }\n")
    result = tilelang("check", str(path))
    assert result.exit_code == 1 and result.stderr.count("error[") == 2


def test_check_of_computations_under_conditions(tmp_path: Path) -> None:
    path = tmp_path / "a.tile"
    text = "computation f(N) {{ input X: float32[i: N] output Y[i] = X[i{}] }}".format
    path.write_text(f"when N < 8 {{ {text('')} }} else {{ {text(' + 1')} }}\n")
    assert [tilelang("check", str(path), "-S", f"N={n}").exit_code for n in (4, 8)] == [0, 1]


def test_errors_of_a_text_use_its_words_in_every_form(tmp_path: Path) -> None:
    path = tmp_path / "a.tile"
    path.write_text("computation f { input V: int8[i: 4] in 9 .. 3 output Y[i] = 1.0 }\n")
    for form in ("text", "github", "json"):
        assert "in low .. high" in tilelang("check", str(path), "--format", form).output


def test_fmt(tmp_path: Path) -> None:
    path = tmp_path / "a.tile"
    path.write_text("computation f(N){input X:float32[i:N]   # rows\noutput Y[i]=X[i]*2.0}\n")
    path.chmod(0o640)
    assert tilelang("fmt", "--check", str(path)).exit_code == 1
    assert tilelang("fmt", str(path)).exit_code == 0
    text = path.read_text()
    assert text == "computation f(N) { input X: float32[i: N]  # rows\n  output Y[i] = X[i] * 2.0 }\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert tilelang("fmt", "--check", str(path)).exit_code == 0
    assert tilelang("fmt", "-", input="use   opencl_mad4\n").stdout == "use opencl_mad4\n"
    assert of_json(tilelang("fmt", "-", "--json", input="use   opencl_mad4\n"))["text"] == "use opencl_mad4\n"
    path.write_bytes(b"\xef\xbb\xbfuse   opencl_mad4\r\n\r\n# end\r\n")
    assert tilelang("fmt", str(path)).exit_code == 0
    assert path.read_bytes() == b"use opencl_mad4\r\n\r\n# end\r\n"
    steps = "schedule s(`A` = (2 + 1) / 2) for f {\n  tile i=(A + 1) / 2 -> block (A / 2) order (i)\n"
    steps += "  load X in shared layout (i) pad (A) ahead (A + 1) / 2 { tile i=1 -> thread (8) }\n}\n"
    assert tilelang("fmt", "-", input=steps).stdout == steps
    read = "computation f { input X: float32[i: 4] output Y[i] = pad(X[i - 1], 0.0) }\n"
    assert tilelang("fmt", "-", input=read).stdout == read
    path.write_text("computation {")
    assert tilelang("fmt", str(path)).exit_code == 1 and path.read_text() == "computation {"


def test_source_needs_no_device(gemm: str) -> None:
    plain = tilelang("source", gemm, "-s", "simt", "--target", "opencl", "--profile", "simulated").stdout
    assert "__kernel" in plain and plain == tilelang("source", gemm, "-s", "simt", "-p", "simulated").stdout
    assert tilelang("source", gemm, "-s", "simt", "--target", "opencle").exit_code == 2
    assert tilelang("source", gemm, "-s", "simt", "--profile", "nope").exit_code == 2


def test_explain(gemm: str) -> None:
    text = tilelang("explain", gemm, "-s", "simt", "--barriers").stdout
    for part in ("load A in shared", "A_shared", "threads", "transactions", "bank conflicts", "barriers"):
        assert part in text
    found = of_json(tilelang("explain", gemm, "-s", "simt", "--json", "-p", "simulated"))
    assert found["kernels"][0]["threads"] == 16 and found["transactions"]
    assert [s["step"] for s in found["steps"]][:3] == [None, "tile m=8 n=8 -> block", "accumulate in register"]
    assert found["steps"][3]["axes"] == {"m": 8, "n": 8, "k": 4} and found["steps"][3]["level"] == "block"
    kernel = found["kernels"][0]
    assert kernel["threads_limit"] == 1024 and kernel["shared_bytes"] < kernel["shared_bytes_limit"] and kernel["register_bytes"]
    large = tilelang("explain", gemm, "-s", "simt", "-S", "M=100000")
    assert large.exit_code == 0 and "too large to simulate" in large.stdout


def test_explain_shows_roles_and_what_orders_them(tmp_path: Path) -> None:
    path = tmp_path / "roles.tile"
    text = GEMM.replace(
        "tile m=8 n=8 -> block\n", "units block = 1 warp as loader + 1 warp as worker\n  tile m=8 n=8 -> block\n", 1
    )
    path.write_text(text.replace("shared ahead 1", "shared ahead 1 on loader"))
    given = (str(path), "-s", "simt", "-p", "simulated")
    text = tilelang("explain", *given, "--barriers").stdout
    assert "loader" in text and "32..64" in text
    assert "B_full, 2 slots: loader arrives, worker awaits" in text
    assert "read of B_shared by the worker, then write by the loader" in text
    (kernel,) = of_json(tilelang("explain", *given, "--json"))["kernels"]
    assert [r["name"] for r in kernel["roles"]] == ["loader", "worker"]


def test_machine_code(gemm: str) -> None:
    if not all(tool.found for tool in tools()):
        pytest.skip(f"a compiler is not installed: {wheels.INSTALL}")
    small = ("-s", "simt", "-S", "M=64", "-S", "N=64", "-S", "K=32")
    assert "FFMA" in tilelang("source", gemm, *small, "--target", "cuda", "--assembly").stdout
    found = of_json(tilelang("source", gemm, *small, "--target", "hip", "-p", "rdna3", "--assembly", "--json"))
    assert found["architecture"] == "gfx1100" and "s_endpgm" in found["assembly"] and "__global__" in found["source"]
    assert "compiled for sm_80: " in tilelang("explain", gemm, *small, "--target", "cuda").stdout
    (kernel,) = of_json(tilelang("explain", gemm, *small, "--target", "cuda", "-p", "hopper", "--json"))["kernels"]
    assert kernel["registers"] > 10 and kernel["spill_store_bytes"] == 0


def test_explain_writes_a_page(gemm: str, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    result = tilelang("explain", gemm, "-s", "simt", "-p", "simulated", "--html", str(target))
    assert result.exit_code == 0 and str(target) in result.stdout, result.output
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert of_json(tilelang("explain", gemm, "-s", "simt", "--html", str(target), "--json"))["bytes"] == target.stat().st_size
    refused = tilelang("explain", gemm, "-s", "simt", "--html", str(tmp_path / "nowhere" / "page.html"))
    assert refused.exit_code == 1 and "cannot be written" in refused.stderr


def test_simulate(gemm: str) -> None:
    result = tilelang("simulate", gemm, "-s", "simt", "-p", "simulated", "--late")
    assert result.exit_code == 0 and "no faults found" in result.stdout and "matmul" in result.stdout
    assert of_json(tilelang("simulate", gemm, "-s", "simt", "--json"))["right"] is True


def test_bisect(gemm: str) -> None:
    assert tilelang("bisect", gemm, "-s", "simt").exit_code == 0
    for where in ("device", "simulator"):
        found = tilelang("bisect", gemm, "-s", "wrong", "--on", where)
        assert found.exit_code == 1 and "step 2 of 3: split q=2" in found.stdout and ":17:3" in found.stdout
    assert of_json(tilelang("bisect", gemm, "-s", "wrong", "--json"))["step"] == 2


def test_diff(gemm: str) -> None:
    assert tilelang("diff", f"{gemm}:simt", f"{gemm}:simt").exit_code == 0
    result = tilelang("diff", f"{gemm}:simt", f"{gemm}:plain", "-S", "M=40")
    assert result.exit_code == 1 and "- split k=4" in result.stdout and "threads of a block" in result.stdout
    found = of_json(tilelang("diff", f"{gemm}:simt", f"{gemm}:plain", "--json"))
    assert found["first"]["threads of a block"] == 16 and found["second"]["threads of a block"] == 1


def test_devices() -> None:
    result = tilelang("devices")
    assert result.exit_code == (0 if tl.devices() else 3) and "cuda:" in result.stdout
    assert all(device.name in result.stdout for device in tl.devices())
    assert "to compile for cuda" in result.stdout and "to compile for hip" in result.stdout
    listed = of_json(tilelang("devices", "--json"))
    here = {d["dialect"] for d in listed["devices"]}
    assert here | {m["dialect"] for m in listed["missing"]} == {"cpu", "opencl", "cuda", "hip"}
    assert all(m["why"] and ("pip install" in m["get"] or "OpenCL driver" in m["get"]) for m in listed["missing"])
    assert len(listed["devices"]) == len(tl.devices()) and len(listed["compilers"]) == 4
    assert all(tool["found"] or "[compilers]" in tool["get"] for tool in listed["compilers"])


@pytest.mark.parametrize(
    "arguments, code, part",
    [
        ([], 2, "Usage"), (["rnu", "x"], 2, "No such command 'rnu'. Did you mean 'run'?"), (["run"], 2, "Missing argument"),
        (["run", "gone.tile"], 2, "cannot be read"), (["run", "GEMM", "-s", "simt", "-S", "M=-3"], 1, "error[extent]"),
        (["source", "GEMM", "-s", "simt", "--target=opencl", "--assembly"], 1, "error[no-compiler]"),
        (["run", "GEMM"], 2, "several schedules"), (["run", "GEMM", "-s", "smt"], 2, "did you mean `simt`?"),
        (["run", "GEMM", "-s", "simt", "-S", "Q=3"], 2, "no parameter `Q`"), (["run", "GEMM", "-S", "M"], 2, "is not a valid size"),
        (["run", "GEMM", "-S", "M=x"], 2, "is not a valid size"), (["run", "GEMM", "-s", "simt", "-i", "Z=z.npy"], 2, "no input `Z`"),
        (["run", "GEMM", "-s", "simt", "-i", "A=gone.npy"], 2, "cannot be read"),
        (["check", "GEMM", "-S", "Q=3"], 2, "no parameter `Q`"), (["check", "GEMM", "--limit-bytes", "10"], 1, "error[too-large]"),
        (["diff", "GEMM:simt", "GEMM:simd"], 2, "did you mean `simt`?"), (["run", "GEMM", "--bogus"], 2, "No such option"),
        *(([c, "GEMM", "-s", "simt", "--seed", "-1"], 2, "-1 is not in the range") for c in ("run", "simulate", "bisect")),
        (["check", "GEMM", "-s", "simt", "--limit-bytes", "9" * 30], 0, "no faults found"),
    ],
)  # fmt: skip
def test_usage(gemm: str, arguments: list[str], code: int, part: str) -> None:
    result = tilelang(*(a.replace("GEMM", gemm) for a in arguments))
    assert result.exit_code == code, result.output
    assert part in result.output and "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_every_command_has_help_and_an_entry() -> None:
    for name in COMMANDS:
        assert tilelang(name, "--help").exit_code == 0
    assert sorted(p.stem for p in (ROOT / "tilelang" / "cli").glob("*.py")) == sorted(
        [*COMMANDS, "__init__", "common", "output", "search"]
    )


def test_help_imports_little() -> None:
    code = "import sys, tilelang.cli; print(sorted(m for m in ('numpy', 'lark', 'rich', 'pyopencl') if m in sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert "lark" not in found.stdout and "rich" not in found.stdout and "pyopencl" not in found.stdout


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["run", "GEMM", "--bogus"], 2), (["run"], 2), (["source", "GEMM", "-s", "simt", "--until", "99"], 2), (["rnu"], 2),
        (["run", "GEMM", "-s", "simt", "-o", "Q=x.npy"], 2), (["source", "GEMM", "-s", "simt", "--profile", "nope"], 2),
        (["source", "GEMM", "-s", "simt", "--target", "metal"], 2), (["run", "GEMM", "-s", "simt", "-o", "/no/where.npy"], 1),
        (["run", "GEMM", "-s", "simt", "-S", "M=4000000", "-S", "K=4000000"], 1),
    ],
)  # fmt: skip
def test_errors_about_the_request_are_json_and_have_no_place(gemm: str, arguments: list[str], code: int) -> None:
    result = tilelang(*(a.replace("GEMM", gemm) for a in arguments), "--json")
    (error,) = of_json(result)["errors"]
    assert result.exit_code == code and error["message"] and error["file"] is None and error["line"] is None


@pytest.mark.parametrize(("target", "word"), [("cuda", "__global__"), ("hip", "hip_runtime.h"), ("opencl", "__kernel")])
def test_the_source_for_a_target(gemm: str, target: str, word: str) -> None:
    result = tilelang("source", gemm, "-s", "simt", "--target", target)
    assert result.exit_code == 0 and word in result.stdout


def test_run_for_a_target(gemm: str) -> None:
    assert tilelang("run", gemm, "-s", "simt", "--check", "--target", "cpu").exit_code == 0
    result = tilelang("run", gemm, "-s", "simt", "--target", "metal", "--json")
    assert result.exit_code != 0 and of_json(result)["errors"][0]["code"] == "unknown-dialect"


@pytest.mark.parametrize("setting", ["TARGET=metal", "PROFILE=nope", "THREADS=x", "CHECK=foo", "VERIFY=maybe", "DEBUG=zzz"])
def test_a_wrong_value_in_the_environment_is_a_wrong_request(gemm: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_" + setting.partition("=")[0], setting.partition("=")[2])
    result = tilelang("run", gemm, "-s", "simt")
    assert result.exit_code == 2 and "error[" in result.stderr


def test_json_has_no_numbers_that_json_lacks(tmp_path: Path) -> None:
    path = tmp_path / "f.tile"
    path.write_text(PAIR)
    np.save(tmp_path / "x.npy", np.array([0, 1, -1, 2], np.float32))
    result = tilelang("run", str(path), "--json", "-i", f"X={tmp_path}/x.npy")
    assert "NaN" not in result.stdout and of_json(result)["outputs"]["Y"]["mean"] == "nan"
    empty = of_json(tilelang("run", str(path), "--json", "-S", "N=0"))["outputs"]["Y"]
    assert empty["least"] is None and empty["mean"] is None and empty["greatest"] is None
    assert tilelang("run", str(path), "-S", "N=0").exit_code == 0


@pytest.mark.parametrize(
    "type, steps, code, place",
    [
        ("float32", "{ tile i=9999999999999999999999 -> block }", "number-out-of-range", (2, 20)),
        ("float32", "{ units block = 8 wrp tile i=4 -> block }", "unknown-level", (2, 20)),
        ("int4", "{ tile i=4 -> block }", "not-lowered-yet", (1, 23)), ("int4", "", "not-lowered-yet", (1, 23)),
    ],
)  # fmt: skip
def test_faults_in_a_file_have_their_place_in_it(
    tmp_path: Path, type: str, steps: str, code: str, place: tuple[int, int]
) -> None:
    path = tmp_path / "f.tile"
    text = f"computation f {{ input X: {type}[i: 8] output Y[i] = X[i] }}\n"
    path.write_text(text + (f"schedule s for f {steps}\n" if steps else ""))
    for command in ("check", "source", "run"):
        result = tilelang(command, str(path), "--json")
        (error,) = of_json(result)["errors"]
        assert result.exit_code == 1 and (error["code"], error["file"]) == (code, str(path))
        assert (error["line"], error["column"]) == place


def test_diff_refuses_sizes_that_neither_file_has_and_large_files(gemm: str) -> None:
    result = tilelang("diff", f"{gemm}:simt", f"{gemm}:plain", "-S", "Q=16")
    assert result.exit_code == 2 and "has a parameter `Q`" in result.stderr
    for command in (["diff", f"{gemm}:simt", f"{gemm}:plain"], ["check", gemm]):
        large = tilelang(*command, "--limit-bytes", "10")
        assert large.exit_code == 1 and "has more than 10 bytes" in large.stderr


def test_check_tells_schedules_of_one_name_that_both_hold(tmp_path: Path) -> None:
    path = tmp_path / "f.tile"
    path.write_text(PAIR + "when N < 6 { schedule s for f { } }\nwhen N > 2 { schedule s for f { } }\n")
    result = tilelang("check", str(path))
    assert result.exit_code == 1 and "two schedules named s hold" in result.stderr and f"{path}:3:23" in result.stderr
    assert tilelang("check", str(path), "-S", "N=9").exit_code == 0


def test_more_dimensions_than_an_array_has_are_refused_where_they_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "f.tile"
    for count, code in ((64, 0), (65, 1)):
        dims = ", ".join(f"a{k}: 1" for k in range(count))
        indices = ", ".join(f"a{k}" for k in range(count))
        path.write_text(f"computation f {{\n  input X: int32[{dims}]\n  output Y[{indices}] = X[{indices}]\n}}\n")
        for command in ("check", "run", "simulate", "explain", "bisect"):
            result = tilelang(command, str(path))
            assert result.exit_code == code and ("error[too-many-axes]" in result.stderr) is bool(code), result.output
    assert f"{path}:2:3" in tilelang("check", str(path)).stderr


@pytest.mark.parametrize("condition, cut", [("not can(opencl_mad4)", 8), ("can(opencl_mad4)", 16)])
def test_conditions_ask_the_profile_that_is_lowered_for(tmp_path: Path, condition: str, cut: int) -> None:
    around, inside, alone = (tmp_path / f"{n}.tile" for n in ("around", "inside", "alone"))
    one, other = "{ tile i=8 -> block }", "{ tile i=16 -> block }"
    text = "computation f(N = 64) { input X: float32[i: N] output Y[i] = X[i] * 2.0 }\n"
    around.write_text(f"{text}when {condition} {{ schedule s for f {one} }} else {{ schedule s for f {other} }}\n")
    inside.write_text(f"{text}schedule s for f {{ when {condition} {one} else {other} }}\n")
    alone.write_text(f"{text}when {condition} {{ schedule s for f {one} }}\n")
    holds = cut == 8
    for path in (around, inside):
        for profile in ((), ("-p", "sapphire_rapids")):
            assert f"block_x * {cut} + i" in tilelang("source", str(path), "-s", "s", *profile).stdout
    for command in ("run", "check", "source", "explain", "simulate", "bisect"):
        result = tilelang(command, str(alone), "-s", "s")
        assert result.exit_code == (0 if holds else 2), (command, result.output)


def test_bisect_blames_the_step_that_brings_the_fault_of_the_whole(tmp_path: Path) -> None:
    """Prefixes before it may be refused for what later steps mend."""
    path = tmp_path / "softmax.tile"
    text = (ROOT / "examples" / "08_softmax.tile").read_text()
    path.write_text(text.rstrip().removesuffix("vectorize j=4\n}") + "do opencl_mad4 (n=j)\n}\n")
    found = tilelang("bisect", str(path), "-s", "softmax_rows", "-p", "ampere", "--on", "simulator", "--size", "M=4", "--json")
    assert (of_json(found)["step"], "instruction-mismatch" in of_json(found)["fault"]) == (7, True)


def test_explain_shows_the_steps_in_braces_beneath_their_own(tmp_path: Path) -> None:
    path = tmp_path / "gemm.tile"
    steps = "split m=1; when can(no) { tile k=4 -> thread } else { tile k=1 -> thread }"
    path.write_text(GEMM.replace("load A in shared\n", f"load A in shared layout (m, k) pad 1 {{ {steps} }}\n"))
    lines = tilelang("explain", str(path), "-s", "simt", "-p", "simulated").stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("load A"))
    column = lines[0].index("C  m")
    assert [line[:column].rstrip() for line in lines[at : at + 4]] == [
        "load A in shared layout (m, k) pad 1", "", "  split m=1", "  tile k=1 -> thread",
    ]  # fmt: skip
    assert [line[column:].split("  if ")[0] for line in lines[at + 1 : at + 4]] == [
        "A  m:8 k:4  on block", "A  m:1 k:4  on block", "A  m:1 k:1  on thread",
    ]  # fmt: skip
    found = of_json(tilelang("explain", str(path), "-s", "simt", "-p", "simulated", "--json"))
    (load,) = (s for s in found["steps"] if str(s["step"]).startswith("load A"))
    assert [s["step"] for s in load["inside"]] == [None, "split m=1", "tile k=1 -> thread"] and load["inside"][1]["line"] == 10


def test_options_complete_to_names_that_are_there(gemm: str) -> None:
    def completions(*words: str) -> list[str]:
        found = ShellComplete(main, {}, "tilelang", "_TILELANG_COMPLETE").get_completions(list(words[:-1]), words[-1])
        return [item.value for item in found]

    assert completions("run", gemm, "--schedule", "") == ["simt", "plain", "wrong"]
    assert completions("run", gemm, "-s", "p") == ["plain"] and completions("run", "gone.tile", "-s", "") == []
    assert completions("check", gemm, "--profile", "am") == ["ampere"] and completions("diff", "-p", "cdna3") == ["cdna3"]
    assert completions("source", gemm, "--target", "c") == ["cpu", "cuda"]


def test_outputs_are_named_before_anything_runs(gemm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilelang.runtime.kernel.Kernel.__call__", raising(AssertionError))
    result = tilelang("run", gemm, "-s", "simt", "-o", "D=d.npy")
    assert result.exit_code == 2 and "there is no output `D`" in result.stderr


def test_what_a_file_lacks_has_no_line_of_it(gemm: str) -> None:
    for arguments in (("run", gemm), ("run", gemm, "-s", "smt"), ("run", gemm, "-s", "simt", "-S", "Q=3")):
        text = tilelang(*arguments).stderr
        assert f"--> {gemm}\n  = help: " in text
