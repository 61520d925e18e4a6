"""Imports go one way, and only options.py reads the environment."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"grammar", "lowering", "autoschedule"}

# A package or module may import what stands in an earlier row, and its own modules as long as no cycle comes of it.
ROWS = [
    "errors options renamed",
    "core",
    "profiles computations",
    "instructions semantics",
    "schedules",
    "grammar lowering autoschedule",
    "runtime",
    "testing demo cli torch",
    "__main__",
]
RANK = {module: row for row, modules in enumerate(ROWS) for module in modules.split()}
ACROSS = {
    ("autoschedule.tune", "lowering"),
    ("autoschedule.profile", "lowering"),
    ("autoschedule.tune", "grammar"),
}

# The families of devices know what they have in common, but it does not know them, nor they each other: only `models.py` chooses.
FAMILIES = ("autoschedule.cpu", "autoschedule.gpu")

# Methods that are the other way round for the reader's sake, `computation.evaluate(...)`: imported when they are called.
LATE = {
    ("core", "computations"),
    ("computations", "semantics"),
    ("schedules", "runtime"),
}


def modules() -> Iterator[tuple[Path, str]]:
    """Every source file of the package, with its module's name below `tilelang`."""
    for base, folder in [(ROOT / "tilelang", ROOT / "tilelang"), *((ROOT, ROOT / name) for name in sorted(FOLDERS))]:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            if base == ROOT or parts[0] not in FOLDERS:  # the links in tilelang/ lead to the folders at the root
                yield path, ".".join(parts)


@functools.cache
def imports(path: Path) -> tuple[tuple[int, str, bool], ...]:
    """Every import of our own: its line, the module's name below `tilelang`, and whether it runs only when something is called."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str, bool]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = set()
    for outer in ast.walk(tree):
        typing_only = isinstance(outer, ast.If) and isinstance(outer.test, ast.Name) and outer.test.id == "TYPE_CHECKING"
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) or typing_only:
            late |= {id(inner) for inner in ast.walk(outer)}
    for item in ast.walk(tree):
        names: list[str] = []
        if isinstance(item, ast.Import):
            names = [alias.name for alias in item.names]
        elif isinstance(item, ast.ImportFrom):
            assert item.level == 0, f"{path}:{item.lineno}: relative import; write `from tilelang...`"
            whole = item.module or ""
            inside = [f"{whole}.{alias.name}" for alias in item.names]
            names = [n if n.removeprefix("tilelang.") in NAMES else whole for n in inside]
        for name in sorted({n for n in names if n.startswith("tilelang.")}):
            yield getattr(item, "lineno", 0), name.removeprefix("tilelang."), id(item) in late


NAMES = {name.removesuffix(".__init__") for _, name in modules()}


def wrong(importer: str, imported: str, late: bool = False) -> str | None:
    """Why `importer` must not import `imported`; None where it may."""
    mine, theirs = importer.split(".")[0], imported.split(".")[0]
    if theirs not in RANK:
        return f"`{theirs}` stands in no row of the import order"
    family = ".".join(imported.split(".")[:2])
    if family in FAMILIES and not importer.startswith((f"{family}.", "autoschedule.models")) and mine == theirs:
        return f"only its own modules and `autoschedule.models` know `{family}`"
    if mine == theirs or (late and (mine, theirs) in LATE):
        return None
    if mine in FOLDERS and theirs in FOLDERS:
        return None if (".".join(importer.split(".")[:2]), theirs) in ACROSS else "the three folders do not import each other"
    return None if RANK[theirs] <= RANK[mine] else f"`{theirs}` comes after `{mine}`"


def test_imports_go_one_way() -> None:
    found = []
    for path, name in modules():
        if name == "__init__":
            continue
        if name.split(".")[0] not in RANK:
            found.append(f"{path.relative_to(ROOT)}: stands in no row of the import order")
            continue
        for line, imported, late in imports(path):
            reason = wrong(name, imported, late)
            if reason:
                found.append(f"{path.relative_to(ROOT)}:{line}: imports tilelang.{imported}: {reason}")
    assert not found, "\n" + "\n".join(found)


def test_imports_have_no_cycle() -> None:
    graph = {
        name.removesuffix(".__init__"): {imported for _, imported, late in imports(path) if not late and imported in NAMES}
        for path, name in modules()
    }
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert state.get(name) != 1, "cycle: " + " -> ".join((*trail[trail.index(name) :], name))
        if name not in state:
            state[name] = 1
            for target in sorted(graph.get(name, ())):
                if target != name:
                    visit(target, (*trail, name))
            state[name] = 2

    for name in sorted(graph):
        visit(name, ())


def test_the_naive_reading_and_the_simulator_find_out_for_themselves_who_has_what() -> None:
    """They check what the compiler makes of distributions, so they must not share its mistakes."""
    apart = {
        name: {imported for _, imported, _ in imports(path)}
        for path, name in modules()
        if name.startswith(("testing.", "lowering.simulator."))
    }
    assert {"testing.naive", "testing.points", "lowering.simulator.threads"} <= set(apart)
    known = ("core.distribution", "lowering.build.distribution", "schedules.unit_numbering", "instructions.fragment")
    assert not [(name, i) for name, found in apart.items() for i in found if i.startswith(known)]


def test_only_options_reads_the_environment() -> None:
    found = []
    for path, name in modules():
        for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            reads = isinstance(item, ast.Attribute) and item.attr in ("environ", "getenv", "environb")
            if reads and name != "options":
                found.append(
                    f"{path.relative_to(ROOT)}:{getattr(item, 'lineno', 0)}: reads the environment; ask tilelang.options"
                )
    assert not found, "\n" + "\n".join(found)


def test_the_order_refuses_what_it_should() -> None:
    assert wrong("core.expr", "schedules.spec") == "`schedules` comes after `core`"
    assert wrong("lowering.ir", "grammar.parser") == "the three folders do not import each other"
    assert wrong("autoschedule.tune.database", "grammar") is None
    assert wrong("autoschedule.models", "autoschedule.gpu.device", late=True) is None
    assert wrong("autoschedule.cpu.model", "autoschedule.cpu.device") is None
    for importer in ("autoschedule.common.complete", "autoschedule.cpu.construct"):
        only = "only its own modules and `autoschedule.models` know `autoschedule.gpu`"
        assert wrong(importer, "autoschedule.gpu.construct", late=True) == only
    assert wrong("schedules.spec", "core.expr") is None
    assert wrong("schedules.schedule", "runtime.kernel") == "`runtime` comes after `schedules`"
    assert wrong("schedules.schedule", "runtime.kernel", late=True) is None
    assert wrong("schedules.spec", "nowhere") is not None
