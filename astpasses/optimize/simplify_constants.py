"""What is computed from arrays that are written in the program is such an array itself.

In: an operation whose operands are constants. Out: a constant, where it is small; one number where it has one.

    table: f64[3] = constant(value=array(f64, (3,), [1.0, 4.0, 1.0]))
    w: f64[3] = div(table, broadcast(6.0))                  ->      w: f64[3] = constant(value=...)
    a: f64 = gather(w, 1, axes=(0,))                        ->      a: f64 = 0.6666666666666666

NumPy computes them, as it does in a program that is not compiled. None has more than a few elements: the text does not
grow by tables of tables. An index that is out of range is left to the check that stands before it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metaphrase.core.ir import Atom, ConstantArray, Literal
from metaphrase.core.native import Gather, Move, Point, Reduce, Scan
from metaphrase.core.primitive import Primitive
from metaphrase.ops.arrays import constant
from metaphrase.ops.indexing import gather
from metaphrase.ops.indexing import slice as slice_
from metaphrase.ops.shape import broadcast

MOST = 256  # elements of what is made


def folded(rewriter: Any, primitive: Primitive, args: tuple, attributes: Any, types: tuple) -> tuple | None:
    """The value of an operation on constants."""
    if primitive.effect or primitive.transient or primitive.multiple:
        return None
    if not isinstance(primitive.native, (Point, Move, Reduce, Scan, Gather)) or not _has(types[0].dims, most=MOST):
        return None
    values = [_value(rewriter, a) for a in args]
    if any(v is None or not np.size(v) for v in values) or not _in_range(primitive, values, attributes):
        return None
    with np.errstate(all="ignore"):
        value = np.asarray(primitive.numpy(*values, **attributes), types[0].dtype)
    if value.ndim == 0:
        return (Literal(value[()]),)
    if not value.size:
        return None
    if len({element.tobytes() for element in value.reshape(-1)}) == 1:
        return (rewriter.make(broadcast, Literal(value.reshape(-1)[0]), shape=value.shape, axes=()),)
    return (rewriter.make(constant, value=ConstantArray(value)),)


def _has(dims: tuple, most: int) -> bool:
    """Whether an array has so many elements, and not more."""
    return all(isinstance(d, int) for d in dims) and math.prod(dims) <= most


def _value(rewriter: Any, atom: Atom) -> Any:
    """The array or number that an atom is, if it is known."""
    if isinstance(atom, Literal):
        return atom.value
    let = rewriter.maker(atom, "constant")
    if let is not None:
        return let.attributes["value"].value
    number = rewriter.uniform(atom) if _has(atom.type.dims, most=2**16) else None
    return None if number is None else np.full(atom.type.dims, number)


def _in_range(primitive: Primitive, values: list, attributes: Any) -> bool:
    """Whether all places that are read lie in the array."""
    if not isinstance(primitive.native, Gather):
        return True
    x, *at = values
    if primitive is gather:
        return all(((0 <= k) & (k < x.shape[axis])).all() for k, axis in zip(at, attributes["axes"]))
    if primitive is slice_:
        ends = [s + (n - 1) * by for s, n, by in zip(at, attributes["shape"], attributes["step"])]
        return all(0 <= min(s, e) and max(s, e) < n for s, e, n in zip(at, ends, x.shape))
    return False


__all__ = ["folded"]
