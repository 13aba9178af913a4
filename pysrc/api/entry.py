"""A compiled program -> the description by which the dispatcher finds and runs it.

In: structures and specs of the arguments, a finished Function, its library. Out: the parts of a
`runtime.entry.Entry`: trees of leaves, results, sites. Example, for `f({"w": f64[n]}, 2.0)`:

    leaves = [leaf_of(spec) for spec in call.specs]          # ArrayLeaf("float64", (n,)), NumberLeaf(float)
    tree = tree_of(call.structure, iter(leaves), leaf=True)  # Sequence(tuple, (Dictionary(("w",), ...), ...))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..core.dims import Dim, DimLike, product, symbols, symbols_of
from ..core.types import Array, type_symbols
from ..runtime import entry as abi
from ..tree_util import PyTreeDef
from .arguments import Form, Spec
from .program import Captured, Same, Slot
from .statics import comparison, is_changeable, static_key

if TYPE_CHECKING:
    from ..core.ir import Function

LONG = 1_000_000  # nanoseconds: of programs with loops, whose work the sizes do not tell
RELEASE_PER_ELEMENT = 2  # nanoseconds of work a loop iteration is taken for, when nothing better is known


def leaf_of(spec: Spec, type_: Array | None = None, ordered: bool = False) -> abi.Leaf:
    """The leaf that a dynamic or static argument is matched by. `type_`: the parameter's type, if it is a
    size. `ordered`: an array has to lie in memory row after row."""
    if spec.form is Form.STATIC:
        return static_leaf(spec.value)
    if spec.form is Form.ARRAY:
        return abi.ArrayLeaf(spec.dtype, spec.dims, ordered)
    if spec.form is Form.SCALAR:
        return abi.ScalarLeaf(spec.dtype)
    assert spec.python is not None
    if type_ is not None and type_.value is not None:
        return abi.SizeLeaf(type_.value)
    return abi.NumberLeaf(spec.python)


def static_leaf(value: Any) -> abi.StaticLeaf:
    return abi.StaticLeaf(value, comparison(value), is_changeable(value), static_key)


def tree_of(structure: PyTreeDef, leaves: Iterator[Any]) -> Any:
    """A structure with these at its leaves, in the dispatcher's terms (of arguments, or of an output)."""
    if structure.kind is None:
        return next(leaves)
    cls, metadata = structure.kind.type, structure.metadata
    children = tuple(tree_of(child, leaves) for child in structure.children())
    if cls is type(None):
        return abi.StaticLeaf(None)
    if cls is tuple or cls is list:
        return abi.Sequence(cls, children)
    if cls is dict:
        order = [metadata.index(key) for key in getattr(metadata, "order", metadata)]
        keys = tuple(metadata[k] for k in order)
        return abi.Dictionary(keys, tuple(children[k] for k in order), ordered=True)
    if issubclass(cls, tuple):
        return abi.Record(cls, children)
    return abi.Node(cls, flattener(structure.kind.flatten), structure.kind.unflatten, metadata, children)


def call_roots(
    structure: PyTreeDef,
    entries: Sequence[Any],
    parameters: Sequence[str] | None,
    static: Sequence[int | str],
    in_order: bool,
) -> list[abi.Root]:
    """Where a call's arguments stand in the dispatcher's tuple, and their trees. `structure`: of (args, kwargs), whose
    leaves are matched by `entries`. `parameters`: the dispatcher's. `static`: arguments that are one leaf each.
    `in_order`: whether the order of keywords is part of the call."""
    leaves = iter(entries)

    def argument(which: int | str, tree: PyTreeDef) -> Any:
        return next(leaves) if which in static else tree_of(tree, leaves)

    args, kwargs = structure.children()
    names = (kwargs.node_data() or (dict, ()))[1]
    positional = [argument(k, child) for k, child in enumerate(args.children())]
    keywords = {name: argument(name, child) for name, child in zip(names, kwargs.children())}
    if parameters is not None:
        roots = [abi.Root(abi.Position(k), tree) for k, tree in enumerate(positional)]
        return roots + [abi.Root(abi.Position(parameters.index(name)), tree) for name, tree in keywords.items()]
    order = getattr(names, "order", names) if in_order else names  # the dispatcher's tuple is (args, kwargs)
    mapping = abi.Dictionary(tuple(order), tuple(keywords[name] for name in order), ordered=in_order)
    return [abi.Root(abi.Position(0), abi.Sequence(tuple, tuple(positional))), abi.Root(abi.Position(1), mapping)]


def slot_output(slot: Any, leaves: Sequence[Any], captures: Sequence[Any]) -> Any:
    """A slot of a program's output, in the dispatcher's terms."""
    if isinstance(slot, Slot):
        return abi.Result(slot.index)
    if isinstance(slot, Same):
        return abi.Argument(leaves[slot.leaf])
    if isinstance(slot, Captured):
        return abi.Argument(captures[slot.index])
    return abi.Constant(slot.value)


def size_names(function: Function) -> list[str]:
    """The sizes of a program's parameters, in the order in which a call tells them."""
    names: list[str] = []
    for param in function.params:
        for dim in param.type.dims:
            names += [s for s in sorted(symbols_of((dim,))) if s not in names]
        if param.type.value is not None:
            names += [s for s in sorted(type_symbols(param.type)) if s not in names]
    return names


def output_of(structure: PyTreeDef, leaves: Iterator[Any]) -> Any:
    """Like `tree_of`, for what a call returns: None is a constant."""
    tree = tree_of(structure, leaves)
    return _constants(tree)


def _constants(tree: Any) -> Any:
    if isinstance(tree, abi.StaticLeaf):
        return abi.Constant(tree.value)
    if isinstance(tree, abi.Sequence):
        return abi.Sequence(tree.kind, tuple(map(_constants, tree.children)))
    if isinstance(tree, abi.Dictionary):
        return abi.Dictionary(tree.keys, tuple(map(_constants, tree.children)), tree.ordered)
    if isinstance(tree, abi.Record):
        return abi.Record(tree.type, tuple(map(_constants, tree.children)))
    if isinstance(tree, abi.Node):
        children = tuple(map(_constants, tree.children))
        return abi.Node(tree.type, tree.flatten, tree.unflatten, tree.auxiliary, children)
    return tree


def flattener(flatten: Callable[[Any], tuple]) -> Callable[[Any], tuple]:
    def flattened(value: Any) -> tuple:
        children, metadata = flatten(value)
        return tuple(children), metadata

    return flattened


def result_of(type_: Array, known: frozenset[str], form: str) -> abi.Fresh | abi.RunTime:
    """A result buffer: of dims that follow from the sizes, or measured by the program. `form`: of rank 0."""
    if all(symbols(dim) <= known for dim in type_.dims if isinstance(dim, Dim)):
        return abi.Fresh(type_.dtype, type_.dims, form)
    return abi.RunTime(type_.dtype, type_.ndim)


def work_of(function: Function, known: frozenset[str]) -> DimLike:
    """A guess at the nanoseconds of a call, from the `known` sizes: what decides whether the GIL is
    released."""
    if any(let.primitive.name in ("loop", "cond", "call", "dot_general", "sort", "argsort") for let in function.lets):
        return LONG
    total: DimLike = 0
    for dims in {type_.dims for type_ in (*function.param_types, *function.result_types)}:
        if all(isinstance(d, int) or symbols(d) <= known for d in dims):
            total = total + product(dims) * (RELEASE_PER_ELEMENT + len(function.lets) // 2)
    return total


__all__ = [
    "call_roots",
    "flattener",
    "leaf_of",
    "output_of",
    "result_of",
    "size_names",
    "slot_output",
    "static_leaf",
    "tree_of",
    "work_of",
]
