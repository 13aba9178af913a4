"""Rules of comparisons that sizes and counters decide: the bounds of an index that counts are no checks.

In: operands of a comparison. Out: True or False where it is known, or None.

    j: loop counter of length i        lt(j, i) -> True        ge(iota(length=n), 0) -> True everywhere
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom, Literal
from metaphrase.core.types import i64
from metaphrase.ops.shape import broadcast

from .simplify import Rewriter, rule


def _known_order(kind: str) -> None:
    @rule(kind)
    def known_order(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
        if args[0].type.dtype != i64:
            return None
        first, second = (_range(rewriter, a) for a in args)
        if first is None or second is None:
            return None
        holds = rewriter.places.compared(kind, first, second)
        if holds is None:
            return None
        value = Literal(np.bool_(holds))
        return rewriter.make(broadcast, value, shape=types[0].dims, axes=()) if types[0].dims else value


for _kind in ("lt", "le", "gt", "ge"):
    _known_order(_kind)


def _range(rewriter: Rewriter, atom: Atom) -> tuple[DimLike, DimLike] | None:
    """The smallest and the largest element."""
    if not atom.type.dims:
        return (rewriter.places.of(atom),) * 2
    spread = rewriter.maker(atom, "broadcast")
    if spread is not None:
        return _range(rewriter, spread.args[0])
    counter = rewriter.maker(atom, "iota")
    return None if counter is None else (0, counter.attributes["length"] - 1)


__all__ = ["_range"]
