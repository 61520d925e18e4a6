"""Random steps from `grammar/schedule.lark` and `docs/schedules.md`: no plan, most are refused."""

import random
from typing import Any

from benchmarks.foreign.program import walk

LEVELS = ("block",) * 5 + ("thread",) * 5 + ("warp", "warpgroup", "cluster")
MEMORIES = ("shared",) * 4 + ("register",) * 4 + ("global", "l1", "l2")


class StepDrawer:
    def __init__(self, program: dict[str, Any], random: random.Random, units: str):
        self.program, self.random, self.units = program, random, units
        self.axes = dict(program["axes"])
        used = set()
        for d in program["definitions"]:
            used |= set(d["axes"])
            for e in d["values"]:
                used |= {a for x in walk(e) if x[0] == "reduce" for a in x[2]}
        self.names = [a for a in self.axes if a in used]
        self.made = [n for d in program["definitions"] for n in d["names"]]
        self.dims = {i["name"]: [n for n, _ in i["dims"]] for i in program["inputs"]}
        for d in program["definitions"]:
            for n in d["names"]:
                self.dims[n] = list(d["axes"])
        self.extents = {n: e for i in program["inputs"] for n, e in i["dims"]} | self.axes

    def size(self, axis: str) -> int:
        r, extent = self.random, self.extents.get(axis, 8)
        return r.choice((1, 1, 2, 2, 3, 4, 4, 5, 7, 8, 16, max(1, extent), extent + 3, max(1, extent // 2)))

    def sizes(self, axes: list[str], most: int = 3) -> str:
        r = self.random
        return " ".join(f"{a}={self.size(a)}" for a in r.sample(axes, r.randint(1, min(most, len(axes)))))

    def cut(self, axes: list[str], levels: tuple[str, ...]) -> str:
        r = self.random
        sizes = self.sizes(axes)
        names = [s.split("=")[0] for s in sizes.split()]
        if r.random() < 0.5:
            return f"split {sizes}" + r.choice(("", "", "", " unroll", " peel"))
        level = r.choice(levels)
        count = f" {r.randint(1, 8)}" if r.random() < 0.15 else ""
        order = ""
        if r.random() < 0.12:
            r.shuffle(names)
            order = f" order ({', '.join(names)})"
        return f"tile {sizes} -> {level}{count}{order}"

    def layout(self, name: str) -> str:
        r = self.random
        dims = list(self.dims[name])
        if not dims or r.random() < 0.7:
            return f" pad {r.randint(1, 4)}" if r.random() < 0.1 else ""
        r.shuffle(dims)
        if r.random() < 0.2:
            return f" layout ({', '.join(r.sample(self.names, min(len(self.names), 2)))})"
        if r.random() < 0.25:
            c = r.choice((2, 4, 8))
            return f" layout ({', '.join([f'{dims[0]} / {c}', *dims[1:], f'{dims[0]} % {c}'])})"
        return f" layout ({', '.join(dims)})" + (f" pad {r.randint(1, 4)}" if r.random() < 0.3 else "")

    def inner(self, axes: list[str]) -> list[Any]:
        r = self.random
        found: list[Any] = []
        if axes:
            for _ in range(r.choice((0, 1, 1, 2, 3))):
                found.append(self.cut(axes, ("thread", "thread", "warp", "block")))
            if r.random() < 0.4:
                found.append(f"vectorize {r.choice(axes)}={r.choice((2, 4, 8, 16))}")
        if r.random() < 0.15:
            found.insert(0, f"via {r.choice(('shared', 'register'))}")
        return found

    def step(self) -> Any:
        r = self.random
        chance = r.random()
        names = self.names
        if chance < 0.4 and names:
            return self.cut(names, LEVELS)
        if chance < 0.58:
            name = r.choice(list(self.dims))
            ahead = f" ahead {r.randint(1, 3)}" if r.random() < 0.25 else ""
            stream = " stream" if r.random() < 0.05 else ""
            text = f"load {name} in {r.choice(MEMORIES)}{self.layout(name)}{ahead}{stream}"
            return [text, found] if r.random() < 0.35 and (found := self.inner(self.dims[name])) else text
        if chance < 0.74:
            name = r.choice(self.made)
            ahead = f" ahead {r.randint(1, 2)}" if r.random() < 0.15 else ""
            text = f"compute {name} in {r.choice(MEMORIES)}{self.layout(name)}{ahead}"
            axes = list(self.dims[name])
            for d in self.program["definitions"]:
                if name in d["names"]:
                    axes += [a for e in d["values"] for x in walk(e) if x[0] == "reduce" for a in x[2]]
            return [text, found] if r.random() < 0.4 and (found := self.inner(axes)) else text
        if chance < 0.82:
            text = f"accumulate in {r.choice(('register', 'register', 'shared', 'global'))}"
            return [text, found] if r.random() < 0.3 and (found := self.inner(names)) else text
        if chance < 0.85:
            text = f"via {r.choice(('register', 'shared'))}" + r.choice(("", " stream", " behind 1"))
            return [text, found] if r.random() < 0.3 and (found := self.inner(names)) else text
        if chance < 0.92 and names:
            return f"vectorize {r.choice(names)}={r.choice((2, 4, 8, 16))}"
        if chance < 0.95 and len(names) > 1:
            fused = r.sample(names, 2)
            name = "".join(fused)
            self.extents[name] = self.extents[fused[0]] * self.extents[fused[1]]
            self.names = [n for n in names if n not in fused] + [name, *fused]
            return f"fuse {name} = ({', '.join(fused)})"
        if chance < 0.97 and names:
            axis = r.choice(names)
            inner = r.choice((2, 3, 4))
            first, second = axis + "a", axis + "b"
            self.extents |= {first: -(-self.extents[axis] // inner), second: inner}
            self.names = [*names, first, second]
            return f"unfuse {axis} = ({first}: {self.extents[first]}, {second}: {inner})"
        if chance < 0.985:
            return f"inline {r.choice(self.made)}"
        if self.units == "roles":
            return "units block = 1 warp as producer + 2 warp as consumer"
        return r.choice((f"units block = {r.randint(1, 4)} warp", "units block = 64 thread", "units cluster = 2 block"))

    def mutated(self, steps: list[Any]) -> list[Any]:
        r = self.random
        steps = list(steps)
        chance = r.random()
        if not steps or chance < 0.72:
            step = self.step()
            text = step if isinstance(step, str) else step[0]
            at = 0 if text.startswith(("units", "fuse", "unfuse", "inline")) else r.randint(min(1, len(steps)), len(steps))
            steps.insert(at, step)
        elif chance < 0.8:
            steps.pop(r.randrange(len(steps)))
        elif chance < 0.88 and len(steps) > 1:
            a, b = r.sample(range(len(steps)), 2)
            steps[a], steps[b] = steps[b], steps[a]
        else:
            at = r.randrange(len(steps))
            if isinstance(steps[at], str) and steps[at].split()[0] in ("tile", "split", "vectorize"):
                words = steps[at].split()
                for n, word in enumerate(words):
                    if "=" in word and r.random() < 0.5:
                        words[n] = f"{word.split('=')[0]}={self.size(word.split('=')[0])}"
                steps[at] = " ".join(words)
            else:
                steps[at] = self.step()
        return steps
