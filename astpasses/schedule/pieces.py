"""Where the elements of a moved array come from.

In: a Let whose native field is a Move, and the index asked for. Out: Pieces (operand, index there, guard).
"""

from __future__ import annotations

from metaphrase.core.dims import DimLike, Sym
from metaphrase.core.ir import Let
from metaphrase.core.native import Move, Piece


def move_pieces(
    let: Let,
    index: tuple[DimLike, ...] | None = None,
    attributes: dict | None = None,
    types: tuple | None = None,
) -> tuple[Piece, ...]:
    """The Pieces of `let` at `index` (by default at symbols of no meaning, to see how many there are)."""
    native = let.primitive.native
    assert isinstance(native, Move)
    if index is None:
        index = tuple(Sym(f"_{k}") for k in range(len(let.out.type.dims)))
    types = types or tuple(a.type for a in let.args)
    pieces = native.pieces(index, types, **(let.attributes if attributes is None else attributes))
    return tuple(pieces) if isinstance(pieces, (tuple, list)) else (pieces,)
