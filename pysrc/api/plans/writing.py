"""A compiled program's entry as text: the plan of a call, as Python that reads back (reading.py).

In: an `Entry`, the function that it was made for, the call that it was made by. Out: text, in which objects that
live in this process stand as places where another process finds its own, and what guards compare as fingerprints.
Example, of `def f(x): return scale * x` (shortened):

    Plan(
        title='(f64[n])',
        dims=((n,),),
        library='8d3c...',
        roots=(Root(Position(0), ArrayLeaf('f64', (n,))), Root(Item(Globals('models'), 'scale'), NumberLeaf('float'))),
        parameters=(node(1), node(0)),
        results=(Fresh('f64', (n,)),),
        guards=(Guard(Held(Own()), '5f0c1e... tuple(None, None)', 'function'),),
        ...

Raises `NotPortable` where an object has no such place. Trees are numbered as they are closed: `node(0)` is the
first.
"""

from __future__ import annotations

import enum
import math
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..._tree_registry import REGISTRY, Keys
from ...astpasses.frontend import (
    AttributeSource,
    CellSource,
    GlobalSource,
    ItemSource,
    NumberSource,
    ObjectSource,
    Source,
)
from ...core.types import NAMES
from ...exceptions import Room, Site
from ...runtime import entry as abi
from ...source import Span
from ..captures import SameObject, Structure, Value
from .cells import digest_of_cell
from .fingerprints import (
    NotPortable,
    bound_objects,
    class_name,
    fingerprint,
    function_state,
    identities,
    outline,
    own_functions,
)
from .sources import module_of_file

_SIMPLE = (bool, int, str, bytes, type(None), type(Ellipsis))


def plan_text(
    entry: abi.Entry,
    function: Any,
    leaves: Sequence[abi.Leaf | None],
    values: Sequence[Any],
    given: Sequence[Any],
    sites: Sequence[Site],
    **head: Any,
) -> str:
    """`leaves`: what the static leaves of the call are matched by, None for the others; `values`: what the leaves were
    in the call that the program was made for, and `given` those that are objects. `head`: more of the plan."""
    return Writer(entry, function, leaves, values, given).text(sites, **head)


def _tuple(texts: Iterable[str]) -> str:
    parts = list(texts)
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _rows(texts: Iterable[str]) -> str:
    """A tuple with a line for each item."""
    rows = "".join(f"        {text},\n" for text in texts)
    return f"(\n{rows}    )" if rows else "()"


def _dtype(dtype: Any) -> str:
    dtype = np.dtype(dtype)
    return repr(NAMES[dtype] if dtype in NAMES else dtype.str)


class Writer:
    def __init__(
        self,
        entry: abi.Entry,
        function: Any,
        leaves: Sequence[abi.Leaf | None],
        values: Sequence[Any],
        given: Sequence[Any] = (),
    ):
        self.entry = entry
        self.own, self.bound = own_functions(function), bound_objects(function)
        self.numbers: dict[int, int] = {}  # of trees
        self.given = {id(leaf): k for k, leaf in enumerate(leaves) if leaf is not None}
        self.values = {id(value): k for k, value in enumerate(values) if leaves[k] is not None}
        self.objects = identities([*self.bound, *given])  # and those that guards watch, in their order
        self.seen: dict[int, abi.Source] = {}  # objects that guards watch: where they stand
        self.functions = list(self.own)
        self.under_way: set[int] = set()
        for guard in entry.guards:
            if guard.mode == "names":
                for name, value in guard.expected.items():
                    self.seen.setdefault(id(value), abi.Item(guard.source.value, name))  # type: ignore[union-attr]
            elif guard.mode == "is":
                self.seen.setdefault(id(guard.expected), guard.source)
            elif guard.mode == "function" and isinstance(guard.source, abi.Held):
                self.functions.append(guard.source.value)

    def text(self, sites: Sequence[Site], **head: Any) -> str:
        """The whole plan."""
        texts = {"dims": self.dims, "sources": lambda digests: f"Sources({digests!r})"}
        rows = [(name, texts.get(name, self.literal)(value)) for name, value in head.items()]
        rows += self.rows()
        rows.append(("sites", _rows(map(self.site, sites))))
        return "Plan(\n" + "".join(f"    {name}={text},\n" for name, text in rows) + ")\n"

    def rows(self) -> list[tuple[str, str]]:
        """What is not the default of an entry, in an order in which each tree stands before it is named."""
        entry = self.entry
        roots = [f"Root({self.source(r.source)}, {self.tree(r.tree)})" for r in entry.roots]
        rows = [
            ("roots", _rows(roots)),
            ("parameters", _tuple(map(self.node, entry.parameters))),
            ("symbols", repr(entry.symbols)),
            ("minimum", repr(dict(entry.minimum) if entry.minimum else None)),
            ("same", _tuple(_tuple(map(self.node, pair)) for pair in entry.same)),
            ("results", _tuple(map(self.result, entry.results))),
            ("writes", _tuple(map(self.write, entry.writes))),
            ("output", self.output(entry.output)),
            ("stores", _tuple(map(self.store, entry.stores))),
            ("guards", _rows(map(self.guard, entry.guards))),
            ("objects", repr(tuple(map(self.objects.index, self.objects)))),
            ("comparisons", _tuple(f"Compare({c.operator!r}, {c.left}, {c.right})" for c in entry.comparisons)),
            ("work", str(entry.work)),
            ("uses_blas", repr(entry.uses_blas)),
            ("uses_fourier", repr(entry.uses_fourier)),
            ("name", repr(entry.name)),
        ]
        return [(name, text) for name, text in rows if name == "roots" or text not in ("()", "None")]

    # ---- where values are ---------------------------------------------------------------------------------------

    def source(self, source: Any) -> str:
        if isinstance(source, abi.Position):
            return f"Position({source.index})"
        if isinstance(source, abi.Held):
            return f"Held({self.place(source.value)})"
        if isinstance(source, abi.Cell):
            return self.cell(source.cell)
        if isinstance(source, abi.Item):
            return f"Item({self.globals(source.mapping)}, {self.literal(source.key)})"
        if isinstance(source, abi.Path):
            return f"Path({self.source(source.source)}, {self.literal(source.steps)})"
        if isinstance(source, abi.Getter) and isinstance(source.function, Value):
            reader = source.function
            parts = [self.users(reader.source)]
            if isinstance(reader, SameObject):
                parts.append(self.users(reader.other))
            return f"Getter({type(reader).__name__}({', '.join(parts)}))"
        raise NotPortable(f"a value that is read by {source!r}")

    def users(self, source: Source) -> str:
        """A source of the front end's."""
        if isinstance(source, GlobalSource):
            return f"GlobalSource({self.globals(source.globals)}, {source.name!r})"
        if isinstance(source, CellSource):
            return f"CellSource({self.cell(source.cell)}.cell, {source.name!r})"
        if isinstance(source, ObjectSource):
            return f"ObjectSource({self.place(source.value)}, {source.name!r})"
        if isinstance(source, ItemSource):
            return f"ItemSource({self.users(source.parent)}, {self.literal(source.index)})"
        if isinstance(source, AttributeSource):
            return f"AttributeSource({self.users(source.parent)}, {source.name!r})"
        if isinstance(source, NumberSource):
            return self.users(source.place)
        raise NotPortable(f"a value that is read by {type(source).__name__}")

    def globals(self, mapping: dict) -> str:
        if any(function.__globals__ is mapping for function in self.own):
            return "Globals()"
        name = mapping.get("__name__")
        if getattr(sys.modules.get(name or ""), "__dict__", None) is mapping:
            return f"Globals({name!r})"
        raise NotPortable(f"names of {name}, which is no module")

    def cell(self, cell: types.CellType) -> str:
        for function in self.functions:
            for k, one in enumerate(function.__closure__ or ()):
                if one is cell:
                    return f"Cell({self.place(function)}, {k})"
        raise NotPortable("a variable of an outer function")

    def place(self, value: Any) -> str:
        """Where another process finds its own of an object."""
        if any(value is function for function in self.own):
            return "Own()"
        if any(value is one for one in self.bound):
            return "Self()"
        if id(value) in self.values:
            return f"Given({self.values[id(value)]})"
        if isinstance(value, Room):
            return f"Room({value.name!r}, {int(value.size)})"
        if isinstance(value, types.ModuleType) and sys.modules.get(value.__name__) is value:
            return f"Module({value.__name__!r})"
        named = _name_of(value)
        if named is not None:
            return named
        if id(value) in self.seen and id(value) not in self.under_way:
            self.under_way.add(id(value))
            try:
                return f"At({self.source(self.seen[id(value)])})"
            finally:
                self.under_way.discard(id(value))
        for function in self.functions:
            for k, one in enumerate(function.__closure__ or ()):
                if id(one) not in self.under_way and _content(one) is value:
                    self.under_way.add(id(one))
                    try:
                        return f"At(Cell({self.place(function)}, {k}))"
                    finally:
                        self.under_way.discard(id(one))
        raise NotPortable(f"a {class_name(type(value))} that nothing names")

    # ---- values --------------------------------------------------------------------------------------------------

    def literal(self, value: Any) -> str:
        """A value that another process makes anew, or finds by its name."""
        kind = type(value)
        if kind is str and " at 0x" in value:
            raise NotPortable("an address in memory")
        if kind in _SIMPLE:
            return repr(value)
        if kind is float:
            return repr(value) if math.isfinite(value) else f"Float({str(value)!r})"
        if kind is complex:
            return f"Complex({self.literal(value.real)}, {self.literal(value.imag)})"
        if kind is tuple:
            return _tuple(map(self.literal, value))
        if kind is list:
            return f"[{', '.join(map(self.literal, value))}]"
        if kind is dict:
            return f"{{{', '.join(f'{self.literal(k)}: {self.literal(v)}' for k, v in value.items())}}}"
        if kind in (set, frozenset):
            return f"{'Set' if kind is set else 'FrozenSet'}({_tuple(sorted(map(self.literal, value)))})"
        if kind is Keys:
            return f"Keys({_tuple(map(self.literal, value))}, {self.literal(value.order)})"
        if kind is slice:
            return f"Slice({self.literal(value.start)}, {self.literal(value.stop)}, {self.literal(value.step)})"
        if kind is range:
            return f"Range({value.start}, {value.stop}, {value.step})"
        if isinstance(value, np.dtype) and not value.hasobject:
            return f"Dtype({_dtype(value)})"
        if isinstance(value, np.generic) and value.dtype in NAMES:
            return f"Scalar({_dtype(value.dtype)}, {value.tobytes()!r})"
        if isinstance(value, enum.Enum):
            return f"Member({self.place(kind)}, {value.name!r})"
        return self.place(value)

    def dims(self, value: Any) -> str:
        """Tuples of sizes, which print as the expressions that they are."""
        return _tuple(map(self.dims, value)) if isinstance(value, tuple) else str(value)

    # ---- trees ---------------------------------------------------------------------------------------------------

    def node(self, tree: Any) -> str:
        return f"node({self.numbers[id(tree)]})"

    def tree(self, tree: Any) -> str:
        text = self._tree(tree)
        self.numbers[id(tree)] = len(self.numbers)
        return text

    def _tree(self, tree: Any) -> str:
        if isinstance(tree, abi.ArrayLeaf):
            return f"ArrayLeaf({_dtype(tree.dtype)}, {self.dims(tree.dims)}{', ordered=True' if tree.ordered else ''})"
        if isinstance(tree, abi.ScalarLeaf):
            return f"ScalarLeaf({_dtype(tree.dtype)})"
        if isinstance(tree, abi.NumberLeaf):
            return f"NumberLeaf({tree.kind.__name__!r})"
        if isinstance(tree, abi.SizeLeaf):
            return f"SizeLeaf({tree.dim})"
        if isinstance(tree, abi.StaticLeaf):
            known = self.given.get(id(tree))
            return f"StaticLeaf({self.literal(tree.value) if known is None else f'Given({known})'})"
        if isinstance(tree, abi.AnyLeaf):
            return "AnyLeaf()"
        return self.container(tree, self.tree)

    def container(self, tree: Any, child: Any) -> str:
        children = _tuple(map(child, tree.children))
        if isinstance(tree, abi.Sequence):
            return f"Sequence({tree.kind.__name__!r}, {children})"
        if isinstance(tree, abi.Dictionary):
            return f"Dictionary({self.literal(tree.keys)}, {children}, {tree.ordered})"
        if isinstance(tree, abi.Record):
            return f"Record({self.place(tree.type)}, {children})"
        if tree.type not in REGISTRY:
            raise NotPortable(f"a {tree.type.__name__} in a result")
        return f"Node({self.place(tree.type)}, {self.literal(tree.auxiliary)}, {children})"

    def output(self, output: Any) -> str:
        if isinstance(output, abi.Result):
            return f"Result({output.index})"
        if isinstance(output, abi.Argument):
            return f"Argument({self.node(output.tree)})"
        if isinstance(output, abi.Constant):
            return f"Constant({self.literal(output.value)})"
        return self.container(output, self.output)

    # ---- the rest ------------------------------------------------------------------------------------------------

    def result(self, result: abi.Fresh | abi.RunTime) -> str:
        if isinstance(result, abi.RunTime):
            return f"RunTime({_dtype(result.dtype)}, {result.rank})"
        return f"Fresh({_dtype(result.dtype)}, {self.dims(result.dims)}, {result.form!r})"

    def write(self, write: abi.Write) -> str:
        return f"Write({write.result}, {self.node(write.leaf)}, {write.in_place}, {write.contiguous})"

    def store(self, store: abi.Store) -> str:
        return (
            f"Store({self.source(store.source)}, {self.literal(store.name)}, {self.output(store.value)}, {store.item})"
        )

    def guard(self, guard: abi.Guard) -> str:
        expected: Any
        if guard.mode == "names":
            expected = {name: fingerprint(value) for name, value in guard.expected.items()}
            self.objects += map(id, guard.expected.values())
            return f"Names({self.globals(guard.source.value)}, {expected!r})"  # type: ignore[union-attr]
        if guard.mode == "function":
            function = guard.source.value  # type: ignore[union-attr]
            if function.__code__ is not guard.expected[0]:
                raise NotPortable("a function that has changed")
            if function.__globals__ is not getattr(sys.modules.get(function.__module__), "__dict__", None):
                raise NotPortable(f"{function.__qualname__}, whose names are no module's")
            expected = function_state(function)
        elif guard.mode == "class":
            expected = fingerprint(guard.source.value)  # type: ignore[union-attr]
        elif guard.mode == "method":
            expected = guard.expected[0], fingerprint(guard.expected[1])
        else:
            expected = fingerprint(guard.expected)
            if isinstance(guard.source, abi.Getter) and isinstance(guard.source.function, Structure):
                expected = expected, outline(guard.source.function.source.read())
            if guard.mode == "is":
                self.objects.append(id(guard.expected))
        return f"Guard({self.source(guard.source)}, {expected!r}, {guard.mode!r})"

    def site(self, site: Site) -> str:
        if site.kind == "callback":
            raise NotPortable("a Python function that is called back")
        parts = [repr(site.kind), repr(site.exception), self.literal(site.message), self.span(site.span)]
        parts += [_tuple(map(_dtype, site.dtypes)), repr(site.ranks), self.literal(site.holds)]
        return f"Site({', '.join(parts)})"

    def span(self, span: Span | None) -> str:
        """A place in the user's files; the file of the function itself may have another name next time."""
        if span is None:
            return "None"
        parts = (span.line, span.column, span.end_line, span.end_column, span.role, span.function)
        return f"Span({self.file(span.file)}, {', '.join(map(repr, parts))})"

    def file(self, path: str) -> str:
        if any(path == function.__code__.co_filename for function in self.own):
            return "Here()"
        module, cell = module_of_file(path), digest_of_cell(path)
        if module is not None:
            return f"FileOf({module!r})"
        return repr(path) if cell is None else f"CellOf({cell!r})"


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing has been assigned yet
        return None


# What a name stands for may hold the object that is meant: a wrapper, a property, a method.
_HOLDERS = ("__wrapped__", "__func__", "fget", "fset", "fdel", "func")


def _name_of(value: Any) -> str | None:
    """The words by which an object is found by its module and name; None where that finds another."""
    if isinstance(value, np.ufunc):
        known = value.__name__
        homes = [m for m in ("numpy", "scipy.special") if getattr(sys.modules.get(m), known, None) is value]
        return f"Named({homes[0]!r}, {known!r})" if homes else None
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not isinstance(value, type) and not callable(value):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    level = [(found, "")]
    for _ in range(4):
        for one, steps in level:
            if one is value:
                return f"Named({module!r}, {name!r}{steps})"
        level = [
            (held, f"{steps}, {holder!r}")
            for one, steps in level
            for holder in _HOLDERS
            if (held := getattr(one, holder, None)) is not None
        ]
    return None


__all__ = ["Writer", "plan_text"]
