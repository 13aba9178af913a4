"""Where the elements of a moved array come from.

In: a Let whose native field is a Move, and the index asked for. Out: Pieces (operand, index there, guard).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metaphrase.core.dims import DimLike, Sym, dim_max, dim_min, substitute, symbols
from metaphrase.core.ir import Let
from metaphrase.core.native import Move, Piece

from .nest import Axis, E, Index

if TYPE_CHECKING:
    from .lower import Block


def move_pieces(
    let: Let, index: tuple[DimLike, ...] | None = None, attributes: dict | None = None, types: tuple | None = None
) -> tuple[Piece, ...]:
    """The Pieces of `let` at `index` (by default at symbols of no meaning, to see how many there are)."""
    native = let.primitive.native
    assert isinstance(native, Move)
    if index is None:
        index = tuple(Sym(f"_{k}") for k in range(len(let.out.type.dims)))
    types = types or tuple(a.type for a in let.args)
    pieces = native.pieces(index, types, **(let.attributes if attributes is None else attributes))
    return tuple(pieces) if isinstance(pieces, (tuple, list)) else (pieces,)


def piece_at(piece: Piece, index: tuple[DimLike, ...]) -> Piece:
    """One of the Pieces of `move_pieces(let)` at this index: what each would be asked anew takes the square
    of their number."""
    values = {f"_{k}": i for k, i in enumerate(index)}
    read = tuple(substitute(i, values) for i in piece.index)
    guard = tuple(tuple(substitute(d, values) for d in row) for row in piece.guard)
    return Piece(piece.operand, read, guard)  # type: ignore[arg-type]


def restrict(block: Block, guard: tuple, axes: list[Axis]) -> tuple[dict[str, DimLike], list, list[Axis]]:
    """Turn guards `lo <= axis + c < hi` into shorter loops; what is left become conditions."""
    values: dict[str, DimLike] = {}
    conditions = []
    facts = block.shared.facts
    for low, expression, high in guard:
        axis = next(
            (
                a
                for a in axes
                if a.name not in values
                and isinstance(expression - Sym(a.name), int)
                or a.name not in values
                and a.name not in symbols(expression - Sym(a.name))
                and not (symbols(expression - Sym(a.name)) & {b.name for b in axes})
            ),
            None,
        )
        if axis is None:
            conditions.append(_guard_condition(block, low, expression, high))
            continue
        rest = expression - Sym(axis.name)
        first = facts.simplify(dim_max(0, low - rest))
        end = facts.simplify(dim_min(axis.extent, high - rest))
        length = facts.simplify(dim_max(end - first, 0))
        if length == 1:
            values[axis.name] = first
            axes = [a for a in axes if a is not axis]
            continue
        name = block.shared.symbol("i", 0, length - 1)
        values[axis.name] = first + Sym(name)
        axes = [Axis(name, length, a.kind) if a is axis else a for a in axes]
    return values, conditions, axes


def _guard_condition(block: Block, low: DimLike, expression: DimLike, high: DimLike) -> Any:
    def condition(values: dict[str, DimLike]) -> E:
        e = Index(substitute(expression, values))
        bool_ = np.dtype(bool)
        return block.apply(
            "and",
            block.apply("le", Index(low), e, dtype=bool_),
            block.apply("lt", e, Index(high), dtype=bool_),
            dtype=bool_,
        )

    return condition
