"""Builds a computation from its text: declarations in order, each checked by the functions that the Python interface calls.

An error in one declaration does not hide errors in independent ones: all are reported together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilelang.computations.computation import Computation, Tensor, check_name, symbol
from tilelang.computations.computation import axes as make_axes
from tilelang.computations.computation import computation as make_computation
from tilelang.computations.computation import input as make_input
from tilelang.computations.define import define
from tilelang.core.dtype import DType
from tilelang.core.expr import Axis, as_expr
from tilelang.core.node import fill
from tilelang.errors import MOST_FINDINGS, TileLangError, counted, together
from tilelang.grammar.parser import Syntax, uncollected
from tilelang.grammar.values import MOST_DIGITS, Scope, Values, in_text, listed, name_of, type_named

Parameters = Mapping[str, int | DType]


def parameters(item: Syntax) -> tuple[Syntax, ...]:
    """The parameters of a computation or a schedule."""
    return next((tuple(t.children) for t in item.children if t.data == "parameters"), ())


def parameters_of(
    item: Syntax, file: str, given: Parameters, where: str, outer: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The values of an item's parameters: as given, else their defaults, which may use earlier parameters; and those of outer.

    where: the item, for messages. outer: the values of the computation's parameters, if the item is a schedule for it. Raises
    ParseError if a parameter has no value, or a duplicate name.
    """
    scope = Scope(file, outer or {})
    for p in parameters(item):
        name = name_of(p.children[0])
        if outer is not None and name in outer:
            message = f"`{name}` is a parameter of the computation already, and can be used here as it is"
            raise scope.fail(p, "parameter-twice", message, "remove it here; for another value, use another name")
        if name in scope.values:
            raise scope.fail(p, "parameter-twice", f"{where} has two parameters `{name}`", "give them different names")
        if p.data == "launch_parameter":
            scope.values[name] = _at_launch(scope, p, given)
        elif name in given:
            scope.values[name] = given[name]
        elif len(p.children) > 1:
            scope.values[name] = _default(scope, p.children[1])
        else:
            raise scope.fail(
                p,
                "parameter-without-value",
                f"`{name}` of {where} has no value",
                f"give it one, as in --size {name}=1024, or a default",
            )
    return scope.values


def _at_launch(scope: Scope, p: Any, given: Parameters) -> Any:
    """The value given for a launch parameter, else its symbol. Refuses constraints other than divisibility by a number, and values that
    violate it."""
    name, *known = p.children
    name = name_of(name)
    for k in known[1::2]:
        if len(str(k)) > MOST_DIGITS:
            raise scope.fail(p, "number-out-of-range", f"a number of {len(str(k))} digits", "use a smaller one")
    multiple = int(known[1]) if known else 1
    if known and (str(known[2]) != "==" or int(known[3]) != 0 or multiple == 0):
        told = " ".join(str(k) for k in known)
        help = f"write `{name} at launch % {multiple or 16} == 0`"
        raise scope.fail(p, "launch-multiple", f"the only condition on a number at launch is a divisor, not `{told}`", help)
    value = given.get(name)
    if value is None:
        return symbol(name, multiple)
    if not isinstance(value, int):
        raise scope.fail(
            p,
            "launch-value",
            f"`{name}` is {value}, but a number at launch must be a whole number",
            f"give a size, as in --size {name}={multiple}",
        )
    if value % multiple:
        help = f"give a multiple, as in --size {name}={value + -value % multiple}"
        raise scope.fail(p, "launch-value", f"`{name}` is {value}, which is not a multiple of {multiple}", help)
    return value


def _default(scope: Scope, tree: Any) -> Any:
    if tree.data == "variable" and name_of(tree.children[0]) not in scope.values:
        return type_named(scope, tree.children[0])
    return Values(scope, whole=True).value(tree)


@uncollected()
def build_computation(tree: Syntax, file: str, given: Parameters) -> Computation:
    """The computation of a `computation` item for the given parameters. Raises ParseError, or Findings if there are several errors."""
    return _Definitions(tree, file, given).build()


class _Definitions:
    def __init__(self, tree: Syntax, file: str, given: Parameters) -> None:
        self.tree, self.name = tree, name_of(tree.children[0])
        self.declarations = [t for t in tree.children[1:] if t.data != "parameters"]
        self.scope = Scope(file, parameters_of(tree, file, given, self.name))
        self.outputs: list[Tensor] = []
        self.order: list[str] | None = None
        self.errors: list[TileLangError] = []
        self.broken: set[str] = set()  # names whose declarations have errors; errors that depend on them are not reported

    def build(self) -> Computation:
        for d in self._axes_first():
            self._tried(d)
            if len(self.errors) > MOST_FINDINGS:
                break
        if not self.outputs and not self.errors:
            self.errors.append(
                self.scope.fail(self.tree.children[0], "output", f"{self.name} has no output", "put `output` before a definition")
            )
        if self.errors:
            raise together(self.errors)
        try:
            outputs = self._ordered()
            return make_computation(self.name, outputs)
        except TileLangError as error:
            raise in_text(error, self.scope.span(self.tree.children[0])) from None

    def _ordered(self) -> tuple[Tensor, ...]:
        """The outputs in order. Refuses an incomplete list of them."""
        if self.order is None:
            return tuple(self.outputs)
        for t in self.outputs:
            if t.name not in self.order:
                (tree,) = [d for d in self.declarations if d.data == "outputs"]
                message = f"{t.name} is marked `output`, but is not among the outputs listed"
                raise self.scope.fail(tree, "output-not-listed", message, "list it too, or remove its `output`")
        return tuple(self.scope.tensors[n] for n in self.order)

    def _axes_first(self) -> Iterator[Any]:
        """The declarations, with extents of axes and combiners before their uses."""
        yield from (d for d in self.declarations if d.data in ("axis", "combiner"))
        yield from (d for d in self.declarations if d.data not in ("axis", "combiner"))

    def _tried(self, d: Any) -> None:
        try:
            getattr(self, f"_{d.data}")(d)
        except TileLangError as error:
            error = in_text(error, self.scope.span(d))
            if not any(f"`{n}`" in error.message for n in self.broken):
                self.errors.append(error)
            self.broken |= {n for n in _declared(d) if not isinstance(self.scope.values.get(n), Axis)}

    # ------------------------------------------------------------ declarations

    def _checked(self, tree: Any) -> str:
        """The name in a tree. Raises ComputationError if it is invalid."""
        try:
            check_name(name_of(tree))
        except TileLangError as error:
            raise in_text(error, self.scope.span(tree)) from None
        return name_of(tree)

    def _fresh(self, tree: Any) -> None:
        name = self._checked(tree)
        if name in self.scope.tensors:
            raise self.scope.fail(tree, "name-twice", f"two tensors are named {name}", "give one of them another name")

    def _input(self, d: Any) -> None:
        name, type_name, *rest = d.children
        self._fresh(name)
        dims = [self._dimension(t) for t in rest if t.data == "dimension"]
        told = next((t for t in rest if t.data == "value_range"), None)
        layout = next((t for t in rest if t.data in ("layout", "plain_layout")), None)
        if layout is not None:
            message = "a layout of an input is valid, but not supported yet for this target"
            help = f"pack it: `load {name_of(name)} in global layout (...)` at the head of a schedule"
            raise self.scope.fail(layout, "not-lowered-yet", message, help)
        inner = Values(self.scope)
        bounds = None if told is None else tuple(inner.number(t, "a bound of the range", -(2**63)) for t in told.children)
        made = make_input(name_of(name), type_named(self.scope, type_name), *dims, range=bounds)  # type: ignore[arg-type]
        fill(made, span=self.scope.span(name))
        self.scope.tensors[made.name] = made
        for axis in dims:
            self._known_axis(axis)

    def _known_axis(self, axis: Axis) -> None:
        """The meaning of a dimension's name in definitions: determined by an `axis` declaration, else by the first input."""
        if not isinstance(self.scope.values.get(axis.name), Axis):
            self.scope.values[axis.name] = axis

    def _dimension(self, d: Any) -> Axis:
        name = self._checked(d.children[0])
        if len(d.children) == 1:
            axis = self.scope.values.get(name)
            if isinstance(axis, Axis):
                return axis
            raise self.scope.fail(
                d, "extent", f"the extent of `{name}` is not known", f"write {name}: 64, or {name}: with a parameter"
            )
        return self._axis_of(name, d.children[1])

    def _axis_of(self, name: str, extent: Any) -> Axis:
        found = Values(self.scope, whole=True).value(extent)
        try:
            made = make_axes(**{name: found})
        except TileLangError as error:
            raise in_text(error, self.scope.span(extent)) from None
        assert isinstance(made, Axis)
        return made

    def _axis(self, d: Any) -> None:
        name = self._checked(d.children[0])
        self.scope.values[name] = self._axis_of(name, d.children[1])

    def _combiner(self, d: Any) -> None:
        name, left, right, results, identity = d.children
        sides = [[name_of(m.children[0]) for m in side.children] for side in (left, right)]
        types, others = ([type_named(self.scope, m.children[1]) for m in side.children] for side in (left, right))
        names = [*sides[0], *sides[1]]
        if len(sides[0]) != len(sides[1]) or len(set(names)) != len(names):
            message = "both states of a combiner must have the same number of members, each with its own name"
            raise self.scope.fail(d, "reduce-members", message, "write combiner w(a: float32; b: float32) { ... }")
        if not len(results.children) == len(identity.children) == len(sides[0]):
            counts = f"{counted(len(results.children), 'result')} and {counted(len(identity.children), 'identity', 'identities')}"
            message = f"{name_of(name)} has {counted(len(sides[0]), 'member')}, {counts}"
            raise self.scope.fail(d, "reduce-members", message, "give one result and one identity for each member")
        if types != others:
            message = f"one state of {name_of(name)} has the types ({listed(types)}), the other one ({listed(others)})"
            raise self.scope.fail(d, "combiner-types", message, "use the same types in both")
        neutral = [Values(self.scope).value(t) for t in identity.children]

        def combine(a: Any, b: Any) -> Any:
            many = isinstance(a, tuple)
            values = dict(zip(names, (*a, *b) if many else (a, b), strict=True))
            inner = Values(Scope(self.scope.file, values))
            made = tuple(inner.value(t) for t in results.children)
            return made if many else made[0]

        self.scope.combiners[name_of(name)] = (combine, neutral, types)

    def _outputs(self, d: Any) -> None:
        if self.order is not None:
            raise self.scope.fail(d, "outputs-twice", "`outputs` appears twice", "write one list of all outputs")
        self.order = [name_of(n) for n in d.children]
        for k, (name, tree) in enumerate(zip(self.order, d.children, strict=True)):
            if name in self.order[:k]:
                raise self.scope.fail(tree, "name-twice", f"`{name}` appears twice among the outputs", "list each output once")
            if name not in self.scope.tensors and name not in self.broken:
                raise self.scope.fail(tree, "unknown-tensor", f"there is no tensor `{name}`", "use definitions above as outputs")

    def _definition(self, d: Any) -> None:
        parts: dict[str, list[Any]] = {}
        for t in d.children:
            parts.setdefault(t.data, []).append(t)
        targets, (expressions,) = parts["target"], parts["expressions"]
        names = [name_of(t.children[0]) for t in targets]
        for t in targets:
            self._fresh(t.children[0])
        spelled = [[name_of(n) for n in t.children[1].children] if len(t.children) > 1 else [] for t in targets]
        if any(s != spelled[0] for s in spelled):
            raise self.scope.fail(
                d, "define-members", "tensors that are defined together must have the same axes", "define them separately"
            )
        values = Values(self.scope)
        axes = values.axes(targets[0].children[1]) if len(targets[0].children) > 1 else []
        found = self._values(values, expressions, len(names))
        licences = [name_of(n) for t in parts.get("licences", ()) for n in t.children]
        if len(names) == 1 and not isinstance(found, tuple):
            tensors: tuple[Tensor, ...] = (define(names[0], found, *axes, allow=licences),)
        else:
            tensors = define(names, found if isinstance(found, tuple) else (found,), *axes, allow=licences)
        for t, target in zip(tensors, targets, strict=True):
            fill(t, span=self.scope.span(target.children[0]))
            self.scope.tensors[t.name] = t
        only = [name_of(n) for t in parts.get("only", ()) for n in t.children]
        for t in parts.get("only", ()):
            for n in t.children:
                if name_of(n) not in names:
                    raise self.scope.fail(
                        n, "unknown-tensor", f"`{name_of(n)}` is not defined here", "use one of " + ", ".join(names)
                    )
        if "is_output" in parts:
            self.outputs += [t for t in tensors if not only or t.name in only]

    @staticmethod
    def _values(values: Values, expressions: Any, names: int) -> Any:
        """The right-hand side: one value; or a tuple, of several values or of one reduction's members."""
        trees = expressions.children
        if len(trees) == 1 and trees[0].data == "reduction":
            return values.reduced(trees[0])
        found = tuple(as_expr(values.value(t)) for t in trees)
        return found[0] if len(found) == 1 and names == 1 else found


def _declared(d: Any) -> list[str]:
    """The names that a declaration would have defined."""
    if d.data == "definition":
        return [name_of(t.children[0]) for t in d.children if t.data == "target"]
    if d.data == "input":
        return [name_of(d.children[0]), *(name_of(t.children[0]) for t in d.children if t.data == "dimension")]
    return [name_of(d.children[0])] if d.data in ("axis", "combiner") else []
