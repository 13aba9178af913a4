"""Operations that do harm where a check before them has failed, and must not run there.

In: an operation. Out: whether it may read or write outside of an array, divide by 0, or raise NumPy's exception. What
is computed of numbers and of whole arrays can't, whatever the numbers are.
"""

from __future__ import annotations

from .dims import Dim, divides
from .ir import Let
from .native import Composite, Gather, Lib, Move, Reduce


def needs_a_check(let: Let) -> bool:
    """Whether an operation may do harm where the check before it has failed: read outside of an array, divide by 0, or
    raise NumPy's exception."""
    native = let.primitive.native
    dims = [d for v in (*let.args, *let.outs) for d in (*v.type.dims, v.type.value)]
    if isinstance(native, (Gather, Lib, Composite)) or any(map(divides, dims)):
        return True
    return isinstance(native, (Move, Reduce)) and any(isinstance(d, Dim) for d in dims)


__all__ = ["needs_a_check"]
