"""The collectives of `lax`: what the lanes of `vmap(f, axis_name=...)` tell each other, with JAX's names and meaning.

In: in the mapped function, pytrees of one lane's values and the name of an axis, or a tuple of names. Out: pytrees of
what all lanes' values make. Example: each lane's distance from the mean

    vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(xs)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.axes import NamedAxis, named_axes
from ..core.build import Builder, literal
from ..core.dims import DimLike, product
from ..core.ir import Literal, Var
from ..core.types import f64, i64
from ..ops import collectives as over
from ..ops.arithmetic import add, div, mul
from ..ops.arrays import dim_value
from ..ops.families import broadcast_to, like
from ..ops.shape import convert, permute, reshape
from ..source import DTypeError, ShapeError, UnboundAxisError, UnsupportedError, close_name
from ..tree_util import PyTreeDef, tree_flatten, tree_map
from .arguments import Spec
from .program import Fixed, Program, Slot, under_way, user_span
from .transforms import Transformed, call_inside

Names = Any  # of an axis: hashable, or a tuple of such


class Collective(Transformed):
    """A function of `lax` whose operands are values of one lane. `fun` is run on atoms of the program that is being
    staged, and on everything else as it is given."""

    kind = "collective"

    def __init__(self, fun: Callable[..., Any]):
        super().__init__(fun)
        self.__name__ = fun.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call_inside(self, args, kwargs) if under_way() else self.fun(*args, **kwargs)  # there is no axis then

    def _again(self) -> tuple:
        return (self.fun,)

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        leaves: list[int | Fixed] = []
        values: list[Any] = []
        with Builder(self.__name__) as builder:
            builder.span = user_span()
            for spec in specs:
                if not spec.dynamic or isinstance(spec.value, (int, float, complex)):
                    leaves.append(Fixed(spec.value))
                    values.append(spec.value)
                else:
                    leaves.append(len(builder.params))
                    values.append(builder.parameter("x", spec.type))
            args, kwargs = structure.unflatten(values)
            found, tree = tree_flatten(self.fun(*args, **kwargs))
            results = [value for value in found if isinstance(value, (Var, Literal))]
            numbers = itertools.count()
            slots = [Slot(next(numbers)) if isinstance(v, (Var, Literal)) else Fixed(v) for v in found]
            function = builder.function(results)
        return Program(
            function, (), structure, tuple(leaves), tree, tuple(slots), tuple(map(_form, results)), name=self.__name__
        )


def _form(result: Any) -> str:
    """What the user sees of a result."""
    return "python" if result.type.value is not None else "array" if result.type.dims else "scalar"


# ---- names and operands -----------------------------------------------------------------------------------


def _axes(axis_name: Names) -> tuple[NamedAxis, ...]:
    """The axes of these names, innermost of equal names."""
    names = axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)
    return tuple(map(_axis, names))


def _axis(name: Any) -> NamedAxis:
    around = named_axes()
    found = next((axis for axis in reversed(around) if axis.name == name), None)
    if found is not None:
        return found
    names = [repr(axis.name) for axis in around]
    there = f"the axes around are {', '.join(names)}" if names else "no axis around has a name"
    close = close_name(str(name), [str(axis.name) for axis in around])
    raise UnboundAxisError(
        f"unbound axis name: {name!r}; {there}",
        user_span(),
        code="axis-name",
        remedy=f"write {close!r}" if close else f"map the function over it: vmap(f, axis_name={name!r})",
    )


def _one_axis(axis_name: Names, what: str) -> NamedAxis:
    axes = _axes(axis_name)
    if len(axes) != 1:
        raise UnsupportedError(
            f"{what} over {len(axes)} axes: lanes are exchanged along one",
            user_span(),
            code="collective",
            remedy="name one axis, and call it for each",
        )
    return axes[0]


def _named(axis: NamedAxis) -> dict[str, Any]:
    return {"axis_name": axis.label, "axis_size": axis.size}


def _refuse_groups(axis_index_groups: Any, what: str) -> None:
    if axis_index_groups is not None:
        raise UnsupportedError(
            f"{what} with axis_index_groups: vmap has no groups of lanes",
            user_span(),
            code="collective",
            remedy="map over two axes, one for the groups and one inside of them, and name the inner one",
        )


def _atom(leaf: Any, what: str) -> Any:
    """An operand as a value of the program; bools are numbers where they are added."""
    if isinstance(leaf, (Var, Literal)):
        return leaf
    if isinstance(leaf, (bool, int, float, complex, np.generic)):
        return literal(leaf)
    raise DTypeError(
        f"{what} of a {type(leaf).__name__}, which is no number and no array",
        user_span(),
        code="collective",
        remedy="give arrays, numbers, or pytrees of them",
    )


def _number(x: Any) -> Any:
    return convert(x, dtype=i64) if x.type.dtype.kind == "b" else x


def _size(axes: Sequence[NamedAxis]) -> DimLike:
    return product(axis.size for axis in axes)


def _size_value(size: DimLike) -> Any:
    return size if isinstance(size, int) else dim_value(dim=size)


def _place(axis: int, rank: int, what: str, x: Any) -> int:
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{what} asks for axis {axis} of {x.type}",
            user_span(),
            code="collective",
            remedy=f"use an axis below {rank}",
        )
    return axis % rank


def _moved(x: Any, source: int, target: int) -> Any:
    order = [k for k in range(x.type.ndim) if k != source]
    order.insert(target, source)
    return permute(x, axes=tuple(order))


def _merged(x: Any, axis: int) -> Any:
    """x with the dims `axis` and the next as one."""
    dims = x.type.dims
    return reshape(x, shape=(*dims[:axis], dims[axis] * dims[axis + 1], *dims[axis + 2 :]))


def _cut(x: Any, axis: int, count: DimLike, tiled: bool, what: str) -> Any:
    """x whose dim `axis` is the number of lanes: as it is, or, tiled, cut into that many parts, which follow it."""
    dims = x.type.dims
    have = dims[axis]
    if not tiled and have == count:
        return x
    if tiled and have % count == 0:
        return reshape(x, shape=(*dims[:axis], count, have // count, *dims[axis + 1 :]))
    must = f"must be a multiple of {count}" if tiled else f"must be {count}"
    raise ShapeError(
        f"{what}: dim {axis} of {x.type} is {have} and {must}, the number of lanes",
        user_span(),
        code="collective",
        remedy="give each lane as many parts as there are lanes",
    )


def _of_leaves(rule: Callable[[Any], Any], tree: Any, what: str) -> Any:
    return tree_map(lambda leaf: rule(_atom(leaf, what)), tree)


# ---- reductions ---------------------------------------------------------------------------------------------


def _summed(x: Any, axes: Sequence[NamedAxis]) -> Any:
    for axis in reversed(axes):
        x = over.psum(x, **_named(axis))
    return x


@Collective
def psum(x: Any, axis_name: Names, *, axis_index_groups: Any = None) -> Any:
    """The sum of x over all lanes of the axes, in each. x: a pytree of arrays and numbers; bools are added as integers.
    A Python number is multiplied by the size: `psum(1, name)` is the size itself. The derivative is the sum of all
    lanes' tangents, and of all lanes' cotangents. Raises NameError (a SourceError) for a name that is not there,
    UnsupportedError for `axis_index_groups`."""
    _refuse_groups(axis_index_groups, "psum")
    axes = _axes(axis_name)
    size = _size(axes)

    def rule(leaf: Any) -> Any:
        if isinstance(leaf, (int, float, complex)):
            if isinstance(size, int):
                return leaf * size
            return dim_value(dim=size * int(leaf)) if isinstance(leaf, int) else _times(literal(leaf), size)
        return _summed(_number(_atom(leaf, "psum")), axes)

    return tree_map(rule, x)


def _times(x: Any, size: DimLike) -> Any:
    return mul(x, convert(dim_value(dim=size), dtype=x.type.dtype))


@Collective
def pmean(x: Any, axis_name: Names, *, axis_index_groups: Any = None) -> Any:
    """The mean of x over all lanes of the axes, in each; of integers a float. Raises what `psum` raises."""
    _refuse_groups(axis_index_groups, "pmean")
    axes = _axes(axis_name)
    size = _size(axes)

    def rule(leaf: Any) -> Any:
        leaf = convert(leaf, dtype=f64) if leaf.type.dtype.kind in "biu" else leaf
        count = like(leaf, size) if isinstance(size, int) else convert(dim_value(dim=size), dtype=leaf.type.dtype)
        return div(_summed(leaf, axes), broadcast_to(count, leaf.type.dims))

    return _of_leaves(rule, x, "pmean")


def _extreme(primitive: Any, x: Any, axis_name: Names, axis_index_groups: Any) -> Any:
    _refuse_groups(axis_index_groups, primitive.name)
    axes = _axes(axis_name)

    def rule(leaf: Any) -> Any:
        if leaf.type.dtype.kind == "c":
            raise DTypeError(
                f"{primitive.name} of complex numbers, which have no order",
                user_span(),
                code="collective",
                remedy="compare their real parts or absolute values",
            )
        for axis in reversed(axes):
            leaf = primitive(leaf, **_named(axis))
        return leaf

    return _of_leaves(rule, x, primitive.name)


@Collective
def pmax(x: Any, axis_name: Names, *, axis_index_groups: Any = None) -> Any:
    """The largest x of all lanes, elementwise; NaN if any is NaN. The derivative is that of the lane that has it, the
    mean of them at ties. Raises what `psum` raises, and DTypeError for complex numbers."""
    return _extreme(over.pmax, x, axis_name, axis_index_groups)


@Collective
def pmin(x: Any, axis_name: Names, *, axis_index_groups: Any = None) -> Any:
    """The smallest x of all lanes; see `pmax`."""
    return _extreme(over.pmin, x, axis_name, axis_index_groups)


@Collective
def psum_scatter(
    x: Any, axis_name: Names, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """In lane k part k of the sum of x over all lanes. The axis `scatter_dimension` is as long as there are lanes, and
    goes; tiled, it is a multiple of that, and is cut into as many parts. Raises ShapeError where it does not fit, and
    what `psum` raises."""
    _refuse_groups(axis_index_groups, "psum_scatter")
    axes = _axes(axis_name)

    def rule(leaf: Any) -> Any:
        leaf = _number(leaf)
        at = _place(scatter_dimension, leaf.type.ndim, "psum_scatter", leaf)
        leaf = _cut(leaf, at, _size(axes), tiled, "psum_scatter")
        for axis in axes:
            if len(axes) > 1:
                dims = leaf.type.dims
                rest = dims[at] // axis.size
                leaf = reshape(leaf, shape=(*dims[:at], axis.size, rest, *dims[at + 1 :]))
            leaf = over.psum_scatter(leaf, axis=at, **_named(axis))
        if len(axes) > 1:  # one part is left
            leaf = reshape(leaf, shape=(*leaf.type.dims[:at], *leaf.type.dims[at + 1 :]))
        return leaf

    return _of_leaves(rule, x, "psum_scatter")


# ---- exchanges ----------------------------------------------------------------------------------------------


@Collective
def all_gather(x: Any, axis_name: Names, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False) -> Any:
    """All lanes' x in each: along a new axis `axis`, or, tiled, one behind the other along the axis that is there. Of
    several axes the first counts slowest. Raises ShapeError for an axis that is not there, and what `psum` raises."""
    _refuse_groups(axis_index_groups, "all_gather")
    axes = _axes(axis_name)

    def rule(leaf: Any) -> Any:
        at = _place(axis, leaf.type.ndim + (not tiled), "all_gather", leaf)
        for k, one in enumerate(reversed(axes)):
            leaf = over.all_gather(leaf, axis=at, **_named(one))
            if k or tiled:
                leaf = _merged(leaf, at)
        return leaf

    return _of_leaves(rule, x, "all_gather")


@Collective
def all_to_all(
    x: Any, axis_name: Names, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Lane k gets part k of each lane's x: x is split along `split_axis`, as long as there are lanes, which goes, and
    what a lane gets is stacked along a new axis `concat_axis`. Tiled, both axes stay: the first is cut into as many
    parts as there are lanes, and parts are put one behind the other along the second. Raises ShapeError where the axis
    does not fit, UnsupportedError for several axes, and what `psum` raises."""
    _refuse_groups(axis_index_groups, "all_to_all")
    one = _one_axis(axis_name, "all_to_all")

    def rule(leaf: Any) -> Any:
        rank = leaf.type.ndim
        at, to = (_place(a, rank, "all_to_all", leaf) for a in (split_axis, concat_axis))
        parts = _moved(_cut(leaf, at, one.size, tiled, "all_to_all"), at, 0)
        out = _moved(over.all_to_all(parts, axis=0, **_named(one)), 0, to)
        return _merged(out, to) if tiled else out

    return _of_leaves(rule, x, "all_to_all")


@Collective
def ppermute(x: Any, axis_name: Names, perm: Sequence[tuple[int, int]]) -> Any:
    """Lane `to` gets the x of lane `at` for each pair (at, to) in `perm`, zeros if no pair names it. Raises ShapeError
    for a lane that is not there or is named twice on one side, UnsupportedError for several axes, and what `psum`
    raises."""
    axis = _one_axis(axis_name, "ppermute")
    pairs = _pairs(perm, axis)
    return _of_leaves(lambda leaf: over.ppermute(leaf, perm=pairs, **_named(axis)), x, "ppermute")


@Collective
def pshuffle(x: Any, axis_name: Names, perm: Sequence[int]) -> Any:
    """Lane k gets the x of lane perm[k]. Raises what `ppermute` raises, and ShapeError where perm is no permutation of
    all lanes."""
    axis = _one_axis(axis_name, "pshuffle")
    pairs = _pairs([(at, to) for to, at in enumerate(perm)], axis)
    if len(pairs) != axis.size:
        _refuse_pairs(f"pshuffle: perm has {len(pairs)} lanes of {axis.size}")
    return _of_leaves(lambda leaf: over.ppermute(leaf, perm=pairs, **_named(axis)), x, "pshuffle")


def _pairs(perm: Sequence[tuple[int, int]], axis: NamedAxis) -> tuple[tuple[int, int], ...]:
    if not isinstance(axis.size, int):
        raise UnsupportedError(
            f"the permutation names lanes, and how many there are, {axis.size}, is left open",
            user_span(),
            code="concrete",
            remedy="call it with one size only; each size has its own program",
        )
    pairs = []
    for pair in perm:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(k, int) for k in pair)):
            _refuse_pairs(f"{pair!r} is no pair of lanes")
        pairs.append((int(pair[0]), int(pair[1])))
    for k in (k for pair in pairs for k in pair):
        if not 0 <= k < axis.size:
            _refuse_pairs(f"there is no lane {k}: axis {axis.name!r} has {axis.size}")
    for side, what in ((0, "sends"), (1, "is sent")):
        lanes = [pair[side] for pair in pairs]
        for k in lanes:
            if lanes.count(k) > 1:
                _refuse_pairs(f"lane {k} {what} to two others" if side == 0 else f"lane {k} {what} two values")
    return tuple(sorted(pairs))


def _refuse_pairs(message: str) -> None:
    raise ShapeError(
        f"ppermute: {message}",
        user_span(),
        code="collective",
        remedy="give pairs (from, to) of lanes, each lane once on either side",
    )


@Collective
def axis_index(axis_name: Names) -> Any:
    """The number of the lane, an int64; of several axes the first counts slowest. Raises NameError (a SourceError)."""
    total: Any = None
    for axis in _axes(axis_name):
        own = over.axis_index(**_named(axis))
        total = own if total is None else add(mul(total, _count(axis.size)), own)
    return literal(0, i64) if total is None else total


def _count(size: DimLike) -> Any:
    return literal(size, i64) if isinstance(size, int) else convert(dim_value(dim=size), dtype=i64)


@Collective
def axis_size(axis_name: Names) -> Any:
    """How many lanes the axis has, the product for several. Raises NameError (a SourceError)."""
    return _size_value(_size(_axes(axis_name)))


@Collective
def pcast(x: Any, axis_name: Names, *, to: str) -> Any:
    """x, which under vmap may differ from lane to lane anyway; `to` is "varying". Raises UnsupportedError for any
    other, and NameError (a SourceError)."""
    _axes(axis_name)
    if to != "varying":
        raise UnsupportedError(
            f"pcast to {to!r}: under vmap every value may vary",
            user_span(),
            code="collective",
            remedy="leave pcast out, or use psum, pmax or all_gather, which give every lane the same",
        )
    return _of_leaves(lambda leaf: leaf, x, "pcast")


__all__ = [
    "Collective",
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
]
