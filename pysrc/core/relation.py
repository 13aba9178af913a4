"""How the dims of an operation's operands and results relate: dims that run over one factor are cut together.

In: types and attributes of a call. Out: for each dim of each operand and each result its factor; None where
the dim is needed whole. A factor that no result has is reduced.

    reduce_sum(x: f64[n, m], axes=(1,))       ((0, 1),), ((0,),)
    cholesky(a: f64[b, n, n])                 ((0, None, None),), ((0, None, None), (0,))

Lanes are one factor more, the first of each operand that has them: this is the batch rule
(`transforms/batch.py`), and a primitive writes one only where it can do better, or must.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .dims import DimLike
from .types import Array

Factors = Sequence[int | None]
Relation = tuple[Sequence[Factors], Sequence[Factors]]
Moved = Callable[[Any, DimLike, Sequence[bool]], Any]

# What becomes of an attribute when operands with `lanes` have a dim of `size` in front.
MOVED: dict[str, Moved] = {
    "axis": lambda axis, size, lanes: axis + 1,
    "axes": lambda axes, size, lanes: tuple(a + 1 for a in axes),
    "shape": lambda dims, size, lanes: (size, *dims),  # of the result
    "step": lambda steps, size, lanes: (1, *steps),
    **dict.fromkeys(("low", "high", "interior"), lambda widths, size, lanes: (0, *widths)),
}


def places(axes: tuple, size: DimLike, lanes: Sequence[bool]) -> tuple:
    """Where `axes` say for each dim which axis it becomes."""
    return (0, *(a + 1 for a in axes))


class Dims:
    """`relation(*types, **attributes)` as above. `arrays`: how many operands have dims, the others are scalars
    that all parts share; `starts`: these are starts, one a dim. `alone`: an operand need not have every
    factor. `moved`: attributes that name dims in another way than `MOVED` says."""

    def __init__(
        self,
        relation: Callable[..., Relation],
        arrays: int | None = None,
        starts: bool = False,
        alone: bool = False,
        **moved: Moved,
    ):
        self.relation, self.arrays, self.starts, self.alone = relation, arrays, starts, alone
        self.moved = {**MOVED, **moved}

    def attributes(self, attributes: Mapping[str, Any], size: DimLike, lanes: Sequence[bool]) -> dict[str, Any]:
        """The attributes of the call where operands with `lanes` have a dim of this size in front."""
        return {k: self.moved[k](v, size, lanes) if k in self.moved else v for k, v in attributes.items()}


def without(x: Array, axes: Sequence[int]) -> list[int | None]:
    """The dims of x as factors, those of `axes` needed whole."""
    return [None if k in axes else k for k in range(x.ndim)]


def same_dims(one: Array, other: Array, step: Sequence[int]) -> Factors:
    """A factor for each dim that both have as it is."""
    return [k if a == b and s == 1 else None for k, (a, b, s) in enumerate(zip(one.dims, other.dims, step))]


POINTWISE = Dims(lambda *types, **_: ((range(types[0].ndim),) * len(types), (range(types[0].ndim),)))
REDUCED = Dims(lambda x, *, axes: ((range(x.ndim),), ([k for k in range(x.ndim) if k not in axes],)))
ALONG = Dims(lambda *types, axis, **_: ([without(t, [axis]) for t in types], (without(types[0], [axis]),)))
NO_OPERANDS = Dims(lambda **_: ((), ()))
