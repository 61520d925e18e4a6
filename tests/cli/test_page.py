"""The page of a kernel: well-formed, true to the IR and the simulator, and the same every time."""

from __future__ import annotations

import importlib
import itertools
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

import tilelang as tl
from tests.cli.pages import KERNELS, double, product, simulated, softmax, written
from tilelang.cli.page import divisions, page
from tilelang.cli.page.divisions import global_accesses
from tilelang.cli.page.loops import rows
from tilelang.cli.page.record import record
from tilelang.instructions.instruction import instruction, updates
from tilelang.instructions.operand import operand
from tilelang.lowering import ir
from tilelang.lowering.targets.c.emitter import emit_placed
from tilelang.runtime.kernel import DIALECTS
from tilelang.schedules.explain import flat

VOID = {"meta", "input", "br", "hr", "col"}


class Checked(HTMLParser):
    """A page as a browser would read it: the texts, the ids, the data; complains about what does not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.data: dict[str, Any] = {}
        self._identity: str | None = None
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        self.links += [str(found[name]) for name in ("href", "src") if name in found]
        self._identity = found.get("id") if tag == "script" and found.get("type") == "application/json" else None

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self._identity is not None:
            self.data[self._identity] = json.loads(data)
        elif self.open[-1:] not in (["script"], ["style"]):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


# ---------------------------------------------------------------- the text


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_a_page_is_balanced_and_leads_nowhere_else(name: str) -> None:
    found = Checked(written(name))
    assert len(found.ids) == len(set(found.ids))
    assert found.links and all(link.startswith("#") and link[1:] in found.ids for link in found.links)
    assert not re.search(r"https?:|@import|url\(", written(name))
    for _, attributes in found.elements:
        assert set((attributes.get("data-rows") or "").split()) <= set(found.ids)
        assert attributes.get("data-of", "d0") in found.data


@pytest.mark.slow
def test_a_page_stays_small() -> None:
    assert len(written("product").encode()) < 1_000_000
    i = tl.axes(i=1_000_000)
    y = tl.define("Y", 2 * tl.input("X", tl.float32, i)[i], i)  # rows are wrapped, and there are few of them
    kernel = simulated(tl.schedule(y).tile(i=4096).to(tl.block).tile(i=16).to(tl.thread).vectorize(i=4))
    assert record(kernel).report is not None and len(page(kernel).encode()) < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["07_split_reduction", "12_embedding_bag", "13_causal_product"])
def test_kernels_of_every_kind_have_a_page(name: str) -> None:
    kernel = simulated(importlib.import_module(f"examples.{name}").schedules(small=True)["simt"])
    found = Checked(page(kernel))
    assert len(found.ids) == len(set(found.ids)) and all(link[1:] in found.ids for link in found.links)
    assert "The simulator ran the whole launch and found no faults." in found.text
    for k in kernel.program.kernels:
        assert f"kernel {k.name}" in found.text


@pytest.mark.parametrize("name", KERNELS)
def test_a_page_says_what_the_program_has(name: str) -> None:
    kernel, found = KERNELS[name](), Checked(written(name))
    for k in kernel.program.kernels:
        for buffer in k.buffers:
            assert f"{buffer.name} {buffer.memory}" in found.text and f" {buffer.bytes:,} " in found.text
        barriers = [s for s in ir.statements(k.body) if isinstance(s, ir.Barrier)]
        assert sum(a.get("class") == "row barrier" for _, a in found.elements) == len(barriers)
        for reason in (r for b in barriers for r in b.reasons):
            assert " ".join(re.sub(r"(?<=at )/\S*/", "", reason).split()) in found.text
    for r, _ in flat(kernel.refinements):
        assert r.head in found.text


def test_a_page_says_what_the_simulator_counts() -> None:
    kernel, report = product(), tl.simulate(product())
    text = Checked(written("product")).text
    for buffer in "ABC":
        total = sum(count.total for count in report.transactions if count.buffer == buffer)
        assert f"transactions of 32 bytes {total:,}, at best" in text
    assert len(kernel.program.kernels) == 1


def test_the_same_kernel_gives_the_same_page() -> None:
    example = importlib.import_module("examples.08_softmax")
    again = page(simulated(example.softmax_rows(example.softmax(3, 1023))))
    assert again == written("softmax")


def test_names_are_escaped() -> None:
    steps = ".tile(i=8).to(tl.block).load('möbius', tl.shared).tile(i=1).to(tl.thread)"
    names: dict[str, Any] = {"tl": tl, "double": double}
    exec(compile("schedule = tl.schedule(double('möbius'))" + steps, '/tmp/</script><b>"x"&.py', "exec"), names)
    text = page(simulated(names["schedule"]))
    found = Checked(text)
    assert 'script><b>"x"&.py:1' in found.text and "read möbius into möbius_shared" in found.text
    assert text.count("</script>") == text.count("<script")


# ---------------------------------------------------------------- what it tells


def stands_out(schedule: tl.Schedule) -> str:
    text = Checked(page(simulated(schedule))).text
    return text[text.index("What stands out", text.index("What stands out") + 1) : text.index("The simulator ran")]


def test_neighbours_that_read_a_column_stand_out() -> None:
    y = tl.schedule(double()).tile(i=64, j=1).to(tl.block)
    assert "64 transactions, although 8 would be enough for the requested bytes" in stands_out(y.tile(i=1).to(tl.thread))
    along = tl.schedule(double()).tile(i=1, j=64).to(tl.block).tile(j=1).to(tl.thread)
    assert "transactions" not in stands_out(along)


def test_a_bank_that_is_asked_twice_stands_out() -> None:
    y = tl.schedule(double()).tile(i=32, j=32).to(tl.block)
    rows_of_32 = y.load("X", tl.shared, layout=tl.layout("j", "i")).tile(i=1, j=1).to(tl.thread)
    assert "extra phases by bank conflicts" in stands_out(rows_of_32)
    padded = y.load("X", tl.shared, layout=tl.layout("j", "i").pad(1)).tile(i=1, j=1).to(tl.thread)
    assert "bank conflicts" not in stands_out(padded)


def test_idle_threads_stand_out() -> None:
    half = tl.schedule(double()).units(block=tl.warps(2)).tile(i=1).to(tl.block).tile(j=2).to(tl.thread)
    assert "32 of 64 threads are idle" in stands_out(half)


def test_a_shared_buffer_tells_which_element_lies_where() -> None:
    y = tl.schedule(double()).tile(i=32, j=32).to(tl.block)
    kernel = simulated(y.load("X", tl.shared, layout=tl.layout("j", "i").pad(1)).tile(i=1, j=1).to(tl.thread))
    (held,) = record(kernel).held
    assert (held.kernel, held.buffer.name, held.tensor) == (0, "X_shared", "X")
    found = dict(zip(held.place.tolist(), held.element.tolist(), strict=True))
    assert found == {j * 33 + i: i * 64 + j for i in range(32) for j in range(32)}


def held(kernel: tl.Kernel, buffer: str) -> set[tuple[int, int, int]]:
    """(thread, register, element) of a buffer."""
    (found,) = [h for h in record(kernel).held if h.buffer.name == buffer]
    return set(zip(found.thread.tolist(), found.place.tolist(), found.element.tolist(), strict=True))


def test_registers_tell_which_element_of_the_result_a_thread_holds() -> None:
    by_hand = set()
    for thread, place in itertools.product(range(256), range(64)):
        warp, lane = divmod(thread, 32)
        high, right, i, j = place // 32, place // 16 % 2, place // 4 % 4, place % 4  # C_state[2, 2, 4, 4]
        m, n = warp // 4 * 64 + high * 32 + lane // 4 * 4 + i, warp % 4 * 32 + right * 16 + lane % 4 * 4 + j
        if m < 75 and n < 83:
            by_hand.add((thread, place, m * 83 + n))
    example = importlib.import_module("examples.01_matmul")
    assert held(simulated(example.gemm_simt(example.matmul(75, 83, 37))), "C_state") == by_hand


@pytest.mark.slow
def test_registers_tell_every_sum_that_an_epilogue_takes() -> None:
    m, n, k = tl.axes(m=40, n=70, k=90)
    A, B, bias = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n), tl.input("bias", tl.float32, n)
    C = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k) + bias[n], m, n)
    start = tl.schedule(C).tile(m=64, n=32).to(tl.block).accumulate(tl.register).split(k=16).load("A", tl.shared)
    found = held(simulated(start.tile(m=8, n=4).to(tl.thread)), "C_sum_state")
    assert len(found) == 40 * 32  # sums of what cancels are far from the reference's, of their size


def test_registers_tell_which_elements_of_the_inputs_were_brought() -> None:
    rows = {(t, r, (t // 128 * 64 + r // 4 * 32 + t % 32 // 4 * 4 + r % 4) * 64) for t in range(128) for r in range(8)}
    assert held(product(), "A_register") == rows  # of the first column


def test_registers_tell_values_between_inputs_and_outputs() -> None:
    every = range(256)
    assert held(softmax(), "shifted_register") == {(t, r, 4 * t + r) for t in every for r in range(4) if 4 * t + r < 1023}
    assert held(softmax(), "peak_register") == held(softmax(), "total_state") == {(t, 0, 0) for t in every}


def test_parts_of_results_are_no_elements() -> None:
    (found,) = [h for h in record(softmax()).held if h.buffer.name == "peak_state_meet"]
    assert found.place.tolist() == found.element.tolist() == [0]  # the others hold the greatest of some of the row


@pytest.mark.parametrize(("level", "units"), [("warpgroup", 2), ("warp", 8), ("thread", 256)])
def test_every_spread_has_a_picture_of_who_owns_the_result(level: str, units: int) -> None:
    start = tl.schedule(double()).units(block=tl.warps(8)).tile(i=64, j=64).to(tl.block)
    sizes = {"warpgroup": {"i": 32}, "warp": {"i": 8}, "thread": {"i": 4, "j": 4}}[level]
    found = Checked(page(simulated(start.tile(**sizes).to(getattr(tl, level)))))
    pictures = [data for data in found.data.values() if data["name"] == "Y" and "thread" in data]
    assert pictures and f"Y by {level}" in found.text
    per = 256 // units
    assert len({thread // per for thread in pictures[0]["thread"]}) == units


def test_requests_add_up_to_the_moves_counts() -> None:
    for move in record(softmax()).moves:
        kept = move.requests
        assert len({r.number for r in kept}) == len(kept) and all(r.number < move.count for r in kept)
        if move.count == len(kept):
            assert sum(r.cost for r in kept) == move.cost and sum(r.least for r in kept) == move.least


def test_blocks_share_the_inputs_of_a_product() -> None:
    example = importlib.import_module("examples.01_matmul")
    kernel = simulated(example.gemm_simt(example.matmul(64, 96, 16), 64, 32, 8))
    found = {(d.buffer.name, d.writes): d for d in record(kernel).divisions}
    assert (found["A", False].blocks == 3).all() and (found["B", False].blocks == 1).all()
    assert found["C", True].first.reshape(64, 96)[:, ::32].tolist() == [[0, 1, 2]] * 64


@pytest.mark.slow
def test_a_large_launch_is_cut_and_says_so() -> None:
    i, j = tl.axes(i=4096, j=4096)
    y = tl.define("Y", 2 * tl.input("X", tl.float32, i, j)[i, j], i, j)
    text = Checked(page(simulated(tl.schedule(y).tile(i=4).to(tl.block).tile(i=4, j=1).to(tl.thread, count=64)))).text
    assert "Not shown" not in text  # said by the script, from the data
    found = Checked(page(simulated(tl.schedule(y).tile(i=64, j=64).to(tl.block)))).text
    assert "The whole launch is too large to simulate" in found


@pytest.mark.slow
def test_blocks_of_a_launch_too_large_to_be_simulated_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divisions, "EXECUTIONS", 10_000)
    example = importlib.import_module("examples.01_matmul")
    small, large = (simulated(example.gemm_simt(example.matmul(300, 200, k), 64, 32, 8)) for k in (16, 256))
    records = record(small), record(large)
    assert records[0].report is not None and records[1].report is None
    of_small, of_large = ({(d.buffer.name, d.writes): d for d in found.divisions} for found in records)
    assert of_small.keys() == of_large.keys()
    same = of_small["C", True], of_large["C", True]
    assert (same[0].first == same[1].first).all() and (same[0].blocks == same[1].blocks).all()
    assert (of_large["A", False].blocks == 7).all() and (of_large["B", False].blocks == 5).all()
    found = Checked(page(large))
    (picture,) = [d for d in found.data.values() if d["name"] == "C" and "block" in d]
    assert picture["scale"] == [4, 2] and picture["shape"] == [75, 100] and picture["cut"] == 0
    assert "The whole launch is too large to simulate, so it was not checked for faults." in found.text


def test_blocks_that_depend_on_what_is_computed_are_not_guessed() -> None:
    i, j = tl.axes(i=20_000, j=512)
    y = tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)
    kernel = simulated(tl.schedule(y).tile(i=1).to(tl.block))
    stores = [s for k in kernel.program.kernels for s in ir.statements(k.body) if isinstance(s, ir.Store)]
    (store,) = [s for s in stores if s.buffer.role == "output"]
    register = next(load for load in ir.loads(store.value) if load.buffer.memory == "register")
    chosen = ir.If(register > 0.0, store)
    bodies = [k.replace(body=ir.Seq((k.body, chosen))) for k in kernel.program.kernels]
    assert global_accesses(kernel.program, False) is not None
    assert global_accesses(kernel.program.replace(kernels=tuple(bodies)), False) is None


def test_a_launch_without_blocks_shows_no_block() -> None:
    i = tl.axes(i=0)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=8).to("block").tile(i=2).to("thread")
    text = page(tl.compile(made, tl.target("opencl", profile="simulated")))
    assert "There are no blocks" in text and "too large to simulate" not in text and "threads are idle" not in text


def test_without_a_source_the_page_says_why(only_shipped_instructions: None) -> None:
    n = tl.axes(n=4)
    A, C = operand("A", tl.float32, "register"), operand("C", tl.float32, "register", n)
    instruction("add4", means=updates(C[n], A[()] * 2.0), operands=(A, C), level="thread")
    m, n4, k = tl.axes(m=4, n=4, k=4)
    X = tl.input("X", tl.float32, m, k)
    start = tl.schedule(tl.define("Y", tl.sum(X[m, k] * 2.0, over=k), m, n4)).tile(m=4, n=4).to(tl.block)
    kernel = simulated(start.accumulate(tl.register).split(m=1).split(k=1).load("X", tl.register).do("add4"))
    text = Checked(page(kernel)).text
    assert "for k in 0..4:" in text
    assert "There is no source to show: the instruction add4 has no template for opencl." in text


# ---------------------------------------------------------------- loops and lines


@pytest.mark.parametrize("name", KERNELS)
def test_every_statement_stands_in_one_row(name: str) -> None:
    for kernel in KERNELS[name]().program.kernels:
        found = sorted(n for row in each(rows(kernel)) for n in row.numbers)
        left = [n for n, s in enumerate(ir.statements(kernel.body)) if n not in found]
        assert len(found) == len(set(found))
        assert all(isinstance(s, ir.Seq) for n, s in enumerate(ir.statements(kernel.body)) if n in left)


def test_a_step_lights_the_rows_that_it_became() -> None:
    found = Checked(written("product"))
    steps = [a for tag, a in found.elements if a.get("class") == "step"]
    lit = {str(a["id"]): str(a.get("data-rows") or "").split() for a in steps}
    rows_of = {str(a["id"]) for _, a in found.elements if str(a.get("class")).startswith("row ")}
    assert all(set(ids) <= rows_of for ids in lit.values())
    steps_of_all = [r for r, _ in flat(product().refinements)]
    assert not [str(r) for r, ids in zip(steps_of_all, lit.values(), strict=True) if r.step and not r.implied and not ids]


def test_a_step_that_became_no_loop_lights_the_work_that_it_divided() -> None:
    found = Checked(written("product"))
    rows_of = {str(a["id"]): a for _, a in found.elements if str(a.get("class")).startswith("row ")}
    lines = emit_placed(product().program, DIALECTS["opencl"])[0].split("\n")
    step = next(n for n, (r, _) in enumerate(flat(product().refinements)) if r.head == "split m=32 n=16")
    lit = {}
    for tag, a in found.elements:
        if tag == "button" and str(a.get("id")).startswith("step-"):
            rows = [rows_of[identity] for identity in str(a.get("data-rows") or "").split()]
            lit[str(a["id"])] = [
                lines[n] for r in rows for n in range(int(r.get("data-from") or 1) - 1, int(r.get("data-to") or 0))
            ]
    written_out = lit[f"step-{step}"]
    assert sum("+ A_register" in line for line in written_out) == 64 and any("(C + " in line for line in written_out)
    assert not any("A_shared[" in line and "= A_staged" in line for line in written_out)  # moved by the block, not by its warps
    for row in rows_of.values():
        lit_by = {*(row.get("data-steps") or "").split(), *(row.get("data-around") or "").split()}
        assert all(lines[int(row["data-from"] or 1) - 1] in lit[identity] for identity in lit_by if row.get("data-from"))


def each(found: Any) -> Iterator[Any]:
    for row in found:
        yield row
        for _, inner in row.inside:
            yield from each(inner)


def test_axes_are_called_reduced_where_the_schedule_itself_reduces_them() -> None:
    assert "k (reduced)" in Checked(written("product")).text
    assert "j (reduced)" not in Checked(written("softmax")).text  # only a stage in braces does
