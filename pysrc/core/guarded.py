"""Operations that do harm where a check before them has failed, and must not run there.

In: an operation. Out: whether it may read or write outside of an array, divide by 0, or raise NumPy's exception. What
is computed of numbers and of whole arrays can't, whatever the numbers are.
"""

from __future__ import annotations

from collections.abc import Mapping

from .dims import Dim, DimLike, divides
from .ir import Atom, Let, Literal, Var
from .native import Composite, Gather, Lib, Move, Reduce


def needs_a_check(let: Let) -> bool:
    """Whether an operation may do harm where the check before it has failed: read outside of an array, divide by 0, or
    raise NumPy's exception."""
    native = let.primitive.native
    dims = [d for v in (*let.args, *let.outs) for d in (*v.type.dims, v.type.value)]
    if isinstance(native, (Gather, Lib, Composite)) or any(map(divides, dims)):
        return True
    return isinstance(native, (Move, Reduce)) and any(isinstance(d, Dim) for d in dims)


def is_count(atom: Atom, makers: Mapping[Var, Let]) -> bool:
    """Whether an integer can't be negative: a size, a count, or the larger of something and one. `makers`: the
    operation that made each variable, of those that are known."""
    if not isinstance(atom, Var):
        return bool(atom.value >= 0)
    let = makers.get(atom)
    if let is None:
        return False
    of_truths = let.primitive.name == "convert" and let.args[0].type.dtype == bool
    enough = let.primitive.nonnegative
    return of_truths or enough is not None and enough(is_count(a, makers) for a in let.args)


def most(atom: Atom, makers: Mapping[Var, Let]) -> DimLike | None:
    """What an integer is not larger than, where it is the smaller of something and a size that is known."""
    let = makers.get(atom) if isinstance(atom, Var) else None
    if let is None or let.primitive.name != "min":
        return None
    known = (int(a.value) if isinstance(a, Literal) else a.type.value for a in let.args)
    return next((size for size in known if size is not None), None)


__all__ = ["is_count", "most", "needs_a_check"]
