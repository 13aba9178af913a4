"""Lowering of linear algebra: one call of LAPACK for each matrix of a stack.

In: a Let of a primitive of `ops/linear_algebra.py`. Out: loops over the leading dims around a Call whose
views are whole matrices, row after row in memory; operands that lie otherwise are copied first.

    x, singular = solve(a, b)     ->   Call("solve", (a, b), (x, singular))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metaphrase.core.dims import DimLike, product
from metaphrase.core.ir import Let, Var
from metaphrase.core.primitive import REGISTRY

from .library import LIBRARY, library_sites, materialized, strided
from .lower import Block
from .nest import Call, For, Load, Stmt, View
from .values import Indices, Place, Value, stored

NAMES = ("solve", "triangular_solve", "slogdet", "cholesky", "qr", "eigh", "svd", "eig")


def routine_name(name: str, attributes: dict[str, Any]) -> str:
    """The primitive's name and those of its attributes that hold."""
    return "__".join([name, *sorted(key for key, value in attributes.items() if value)])


def row_strides(dims: Sequence[DimLike]) -> tuple[DimLike, ...]:
    return tuple(product(dims[k + 1 :]) for k in range(len(dims)))


def _matrices(block: Block, value: Value, lead: int) -> Callable[[Indices], View]:
    """The matrix of `value` at each index of its leading dims, rows one behind the other in memory."""
    view = strided(block, value)
    wanted = row_strides(value.dims)
    if view is None or any(s != w and d != 1 for s, w, d in zip(view.strides, wanted, value.dims)):
        view = strided(block, materialized(block, value, "matrix"))
    assert view is not None
    found, core = view, value.dims[lead:]

    def at(index: Indices) -> View:
        offset: DimLike = 0
        for i, stride in zip(index, wanted):
            offset = offset + i * stride
        start = (*found.index[:-1], found.index[-1] + offset)  # type: ignore[operator]
        return View(found.buf, start, core, wanted[lead:])

    return at


def _results(block: Block, out: Var, lead: int) -> tuple[Place, Callable[[Indices], View]]:
    """Where a result goes; a scalar goes into an array of one element first."""
    dims = block.dims(out.type.dims)
    place = block.place_for(out) if dims else block.temp(out.name, out.type.dtype, (1,))
    core = dims[lead:]

    def at(index: Indices) -> View:
        rest = (0,) * (len(place.buf.dims) - len(place.prefix) - len(index))
        return View(place.buf, (*place.prefix, *index, *rest), core, row_strides(core))

    return place, at


def lapack(block: Block, let: Let) -> None:
    values = block.args(let)
    lead = len(values[0].dims) - 2
    loops, index = block.axes(values[0].dims[:lead])
    reads = [_matrices(block, v, lead) for v in values]
    writes = [_results(block, out, lead) for out in let.outs]
    name = routine_name(let.primitive.name, block.attributes(let))
    call = Call(name, tuple(r(index) for r in reads), tuple(w(index) for _, w in writes))
    call.site = library_sites(block, let, f"{let.primitive.name} of a matrix of {{0}} rows and {{1}} columns")
    call.span = let.span
    stmt: Stmt = call
    for loop in reversed(loops):
        stmt = For(loop.name, loop.extent, (stmt,), "seq", let.span)
    block.emit(stmt)
    for out, (place, _) in zip(let.outs, writes):
        if out.type.dims:
            block.values[out] = stored(place)
        else:
            block.define(out, lambda index, place=place: Load(place.buf, (0,)))  # type: ignore[misc]


LIBRARY.update({name: lapack for name in NAMES})


def python_routine(name: str) -> Callable[..., None] | None:
    """The routine as Python: the primitive's NumPy rule, written into the views of its results."""
    base, *flags = name.split("__")
    if base not in NAMES:
        return None
    primitive = REGISTRY[base]
    attributes = {key: key in flags for key in ATTRIBUTES.get(base, ())}
    inputs = 2 if base in ("solve", "triangular_solve") else 1

    def run(*views: np.ndarray) -> None:
        made = primitive.numpy(*(np.array(v) for v in views[:inputs]), **attributes)
        for view, value in zip(views[inputs:], made if isinstance(made, tuple) else (made,)):
            view[...] = value

    return run


ATTRIBUTES = {
    "solve": ("transposed",),
    "triangular_solve": ("lower", "transposed"),
    "qr": ("full",),
    "svd": ("full",),
}

__all__ = ["python_routine", "NAMES", "ATTRIBUTES"]
