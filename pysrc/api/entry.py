"""A compiled program -> the description by which the dispatcher finds and runs it.

In: structures and specs of the arguments, a finished Function, its library. Out: the parts of a
`runtime.entry.Entry`: trees of leaves, results, sites. Example, for `f({"w": f64[n]}, 2.0)`:

    leaves = [leaf_of(spec) for spec in call.specs]          # ArrayLeaf("float64", (n,)), NumberLeaf(float)
    tree = tree_of(call.structure, iter(leaves), leaf=True)  # Sequence(tuple, (Dictionary(("w",), ...), ...))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..core.dims import Dim, DimLike, product, symbols
from ..core.types import Array
from ..runtime import entry as abi
from ..tree_util import PyTreeDef
from .arguments import Form, Spec
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


__all__ = ["leaf_of", "static_leaf", "tree_of", "flattener", "output_of", "result_of", "work_of"]
