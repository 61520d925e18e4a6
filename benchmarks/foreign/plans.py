"""Schedules in the order in which people write them: blocks, states, walks, loads, threads, vectors, with holes and choices.

A plan is a list of steps to be tried one after the other; `StepDrawer` changes what was accepted at random afterwards.
"""

import random
from typing import Any

from benchmarks.foreign.program import walk
from benchmarks.foreign.steps import StepDrawer

# name: the extents of a piece and the level that issues it, from the table in docs/instructions.md.
PRODUCTS: dict[tuple[str, str], list[tuple[str, int, int, int, str]]] = {
    ("float32", "thread"): [
        ("opencl_mad4", 1, 4, 1, "thread"),
        ("opencl_mad8", 1, 8, 1, "thread"),
        ("opencl_mad16", 1, 16, 1, "thread"),
        ("opencl_dot2", 1, 1, 2, "thread"),
        ("opencl_dot4", 1, 1, 4, "thread"),
    ],
    ("float16", "warp"): [
        ("mma_m16n8k16", 16, 8, 16, "warp"),
        ("mma_m16n8k8", 16, 8, 8, "warp"),
        ("mfma_32x32x8", 32, 32, 8, "warp"),
        ("mfma_16x16x16", 16, 16, 16, "warp"),
    ],
    ("bfloat16", "warp"): [("mma_m16n8k16_bfloat16", 16, 8, 16, "warp"), ("mma_m16n8k8_bfloat16", 16, 8, 8, "warp")],
    ("int8", "warp"): [("mma_m16n8k16_int8", 16, 8, 16, "warp"), ("mma_m16n8k32_int8", 16, 8, 32, "warp")],
    ("uint8", "warp"): [("mma_m16n8k16_uint8", 16, 8, 16, "warp"), ("mma_m16n8k32_uint8", 16, 8, 32, "warp")],
}


class Planner:
    def __init__(self, drawer: StepDrawer, r: random.Random, profile: str | None):
        self.drawer, self.random, self.profile = drawer, r, profile
        program = drawer.program
        self.outer: list[str] = list(dict.fromkeys(a for d in program["definitions"] for a in d["axes"]))
        self.reduced: list[str] = list(
            dict.fromkeys(
                a for d in program["definitions"] for e in d["values"] for x in walk(e) if x[0] == "reduce" for a in x[2]
            )
        )
        self.last: list[str] = list(program["definitions"][-1]["axes"])
        self.roles = profile in ("hopper", "simulated") and r.random() < 0.2

    def steps(self) -> list[Any]:
        if self.drawer.program.get("product") and self.random.random() < 0.7:
            return self.product()
        return self.general()

    def general(self) -> list[Any]:
        r, d = self.random, self.drawer
        plan: list[Any] = []
        if self.roles:
            plan.append(f"units block = {r.choice((1, 1, 2))} warp as producer + {r.choice((1, 2, 4))} warp as consumer")
        elif r.random() < 0.1:
            plan.append(f"units block = {r.choice((1, 2, 3, 4))} warp")
        clustered = self.profile == "hopper" and r.random() < 0.25
        if clustered:
            plan.append(f"units cluster = {r.choice((2, 2, 4))} block")
        if r.random() < 0.12 and len(self.last) > 1:
            fused = r.sample(self.last, 2)
            plan.append(f"fuse {''.join(fused)} = ({', '.join(fused)})")
            d.extents["".join(fused)] = d.extents[fused[0]] * d.extents[fused[1]]
            self.last = [a for a in self.last if a not in fused] + ["".join(fused)]
        stages = [n for definition in d.program["definitions"][:-1] for n in definition["names"]]
        r.shuffle(stages)
        plan += [f"compute {n} in global" for n in stages if r.random() < 0.1]
        if clustered:
            plan.append(f"tile {self.sizes(self.last)} -> cluster")
        for _ in range(r.choice((1, 1, 2))):
            plan.append(f"tile {self.sizes(self.last)} -> block" + self.numbered(self.last))
        plan += [self.stage(n) for n in stages if r.random() < 0.35]
        if r.random() < 0.6:
            plan.append(self.accumulate())
        for _ in range(r.choice((0, 1, 1, 2))):
            axes = self.reduced if self.reduced and r.random() < 0.8 else self.last
            plan.append(f"split {self.sizes(axes)}" + r.choice(("", "", "", "", " peel", " unroll")))
            plan += [self.load() for _ in range(r.choice((0, 1, 1, 2)))]
            plan += [self.stage(n) for n in stages if r.random() < 0.35]
        if self.roles:
            plan.append(f"tile {self.sizes(self.last)} -> consumer")
        elif r.random() < 0.3:
            plan.append(f"tile {self.sizes([*self.last, *self.reduced])} -> {r.choice(('warp', 'warp', 'warpgroup'))}")
        if r.random() < 0.3:
            plan.append(self.load("register"))
        if r.random() < 0.8:
            axes = [*self.last, *self.reduced] if r.random() < 0.3 else self.last
            plan.append(f"tile {self.sizes(axes)} -> thread" + self.numbered(axes))
        plan += [self.load("register") for _ in range(r.choice((0, 0, 1, 2)))]
        plan += [self.stage(n, "register") for n in stages if r.random() < 0.25]
        axes = self.last + self.reduced
        if r.random() < 0.3:
            plan.append(f"split {self.sizes(axes)}" + r.choice(("", " unroll")))
        if r.random() < 0.4 and axes:
            plan.append(f"vectorize {r.choice(axes)}={r.choice((2, 4, 8, 16))}")
        return [p for p in plan if p]

    def numbered(self, axes: list[str]) -> str:
        r = self.random
        if r.random() < 0.12:
            return f" {r.randint(1, 6)}"
        if r.random() < 0.1 and axes:
            axes = list(axes)
            r.shuffle(axes)
            return f" order ({', '.join(axes)})"
        return ""

    def sizes(self, axes: list[str]) -> str:
        r = self.random
        if not axes:
            return "nothing=1"
        chosen = r.sample(axes, r.randint(1, min(3, len(axes))))
        return " ".join(f"{a}={r.choice((1, 2, 2, 3, 4, 4, 5, 8, 8, 16, 32))}" for a in chosen)

    def accumulate(self) -> Any:
        r = self.random
        text = f"accumulate in {r.choice(('register', 'register', 'register', 'shared'))}"
        if r.random() > 0.35 or not self.last:
            return text
        inner: list[Any] = []
        if r.random() < 0.6:
            inner.append(r.choice(("via shared", "via shared", "via register", "via shared pad 1")))
        inner += [f"tile {self.sizes(self.last)} -> thread"] * (r.random() < 0.6)
        inner += [f"vectorize {r.choice(self.last)}={r.choice((2, 4))}"] * (r.random() < 0.5)
        return [text, inner] if inner else text

    def load(self, memory: str = "") -> Any:
        r, d = self.random, self.drawer
        name = r.choice([i["name"] for i in d.program["inputs"]] or list(d.dims))
        memory = memory or r.choice(("shared", "shared", "shared", "register", "l1", "l2"))
        text = f"load {name} in {memory}"
        if memory == "shared":
            text += d.layout(name)
        if r.random() < 0.35 and memory != "register":
            text += f" ahead {r.randint(1, 3)}"
        if self.roles and memory == "shared" and r.random() < 0.8:
            text += " on producer"
        if r.random() < 0.05:
            text += " stream"
        inner = self.moved(d.dims[name])
        return [text, inner] if inner and r.random() < 0.45 else text

    def moved(self, dims: list[str]) -> list[Any]:
        r = self.random
        if not dims:
            return []
        inner: list[Any] = []
        if r.random() < 0.15:
            inner.append(f"via {r.choice(('register', 'shared'))}")
        if r.random() < 0.7:
            inner.append(f"tile {self.sizes(dims)} -> {r.choice(('thread', 'thread', 'thread', 'warp'))}")
        if r.random() < 0.2:
            inner.append(f"split {self.sizes(dims)}")
        if r.random() < 0.5:
            inner.append(f"vectorize {r.choice(dims)}={r.choice((2, 4, 8))}")
        return inner

    def stage(self, name: str, memory: str = "") -> Any:
        r, d = self.random, self.drawer
        memory = memory or r.choice(("shared", "shared", "register"))
        text = f"compute {name} in {memory}" + (d.layout(name) if memory == "shared" else "")
        if r.random() < 0.12:
            text += f" ahead {r.randint(1, 2)}"
        axes = list(d.dims[name])
        for definition in d.program["definitions"]:
            if name in definition["names"]:
                axes += [a for e in definition["values"] for x in walk(e) if x[0] == "reduce" for a in x[2]]
        if r.random() < 0.4 and axes:
            inner: list[Any] = [f"tile {self.sizes(axes)} -> thread"] * (r.random() < 0.7)
            inner += [self.load("register")] * (r.random() < 0.1)
            inner += [f"split {self.sizes(axes)}"] * (r.random() < 0.3)
            inner += [f"vectorize {r.choice(axes)}={r.choice((2, 4, 8))}"] * (r.random() < 0.4)
            return [text, inner] if inner else text
        return text

    # ------------------------------------------------------------ products

    def product(self) -> list[Any]:
        """A tiled product, at times with an instruction."""
        r, d = self.random, self.drawer
        m, n, k, a, b, kind = d.program["product"]
        known = PRODUCTS.get((kind, "thread"), []) + PRODUCTS.get((kind, "warp"), [])
        name, pm, pn, pk, level = r.choice(known) if known and r.random() < 0.7 else ("", 1, 1, 1, "thread")
        times = (1, 1, 2, 2, 4)
        bm, bn, bk = pm * r.choice(times) * r.choice(times), pn * r.choice(times) * r.choice(times), pk * r.choice((1, 2, 4))
        ahead = r.choice(("", "", " ahead 1", " ahead 2"))
        by = " on producer" if self.roles else ""
        plan: list[Any] = []
        if self.roles:
            plan.append("units block = 1 warp as producer + 2 warp as consumer")
        plan.append(f"tile {m}={bm} {n}={bn} -> block" + self.numbered([m, n]))
        plan.append(self.accumulate() if r.random() < 0.3 else "accumulate in register")
        plan.append(f"split {k}={bk}" + r.choice(("", "", "", " peel")))
        for x in (a, b):
            text = f"load {x} in shared{d.layout(x)}{ahead}{by}"
            inner = self.copied(x, kind)
            plan += [[text, inner] if inner else text] * (r.random() < 0.8)
        wm, wn = pm * r.choice((1, 1, 2)), pn * r.choice((1, 1, 2))
        if level == "warp":
            plan.append(f"tile {m}={wm} {n}={wn} -> {'consumer' if self.roles else 'warp'}")
        else:
            plan += [f"tile {m}={wm} -> consumer"] * self.roles
            plan.append(f"tile {m}={wm} {n}={wn} -> thread")
        plan.append(f"split {k}={pk}")
        for x in (a, b):
            text = f"load {x} in register"
            plan += [[text, [f"do {r.choice(MOVES)}"]] if level == "warp" and r.random() < 0.5 else text] * (r.random() < 0.9)
        plan += [f"split {m}={pm} unroll"] * (r.random() < 0.3)
        if name:
            plan.append(f"do {name}" + (f" (m={m}, n={n}, k={k})" if level == "warp" else ""))
        elif r.random() < 0.6:
            plan.append(f"vectorize {r.choice((n, n, m, k))}={r.choice((2, 4, 8))}")
        return plan

    def copied(self, name: str, kind: str) -> list[Any]:
        r, d = self.random, self.drawer
        last = d.dims[name][-1]
        wide = {"float32": 4, "float16": 8, "bfloat16": 8}.get(kind, 16)
        if r.random() < 0.35:
            tiles = " ".join(f"{x}={wide if x == last else 1}" for x in d.dims[name])
            how = [f"vectorize {last}={wide}"] if r.random() < 0.5 else ["do cp_async_16"] if r.random() < 0.7 else []
            return [f"tile {tiles} -> thread", *how]
        return self.moved(d.dims[name]) if r.random() < 0.3 else []

    # ------------------------------------------------------------ what is left open

    def opened(self, steps: list[Any]) -> list[Any]:
        """The steps with some of them left open, or under a condition."""
        r = self.random
        found: list[Any] = []
        for step in steps:
            inner = None if isinstance(step, str) else step[1]
            text = step if isinstance(step, str) else step[0]
            if text.split()[0] in ("tile", "split", "vectorize") and r.random() < 0.5:
                words = [w.split("=")[0] + "=?" if "=" in w and r.random() < 0.6 else w for w in text.split()]
                text = " ".join(words)
            elif text.split()[0] in ("load", "compute", "accumulate") and r.random() < 0.3:
                inner = ["..."]
            elif r.random() < 0.1:
                continue
            if r.random() < 0.1 and self.last and not text.startswith("units"):
                axis = r.choice(self.last)
                whole = text if inner is None else f"{text} {{ {'; '.join(map(str, inner))} }}"
                if not isinstance(inner, list) or all(isinstance(s, str) for s in inner):
                    condition = r.choice((f"{axis} <= {r.choice((4, 8, 16))}", "can(async_copy)", f"{axis} % 4 == 0"))
                    text, inner = f"when {condition} {{ {whole} }}", None
                    if r.random() < 0.5:
                        text += f" else {{ split {self.sizes(self.last)} }}"
            found.append(text if inner is None else [text, inner])
        if r.random() < 0.4:
            found.insert(r.randint(0, len(found)) if r.random() < 0.3 else len(found), "...")
        return found


MOVES = ("ldmatrix_x4", "ldmatrix_x2", "ldmatrix_x4_trans", "ldmatrix_x2_trans", "ldmatrix_x4_right", "ldmatrix_x4_left_trans")
