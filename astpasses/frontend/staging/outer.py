"""Values of the function around one that `grad`, `vmap` or a nested `jit` stages: hidden arguments of that.

In: an array or a number of an outer session. Out: one of this session, which every use of the value shares.

    jit(lambda x: grad(lambda y: y * x[0])(2.0))    # x is a parameter of the inner function's program
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metaphrase.core.dims import Sym, symbols
from metaphrase.core.ir import Literal, Var
from metaphrase.ops.shape import broadcast

from ..values.staged_values import Box, Number, StagedArray

if TYPE_CHECKING:
    from .session import Session


def adopted(here: Session, value: Any) -> Any:
    """A value of an outer session as one of this."""
    key: tuple = ("outer", id(value))
    if isinstance(value, StagedArray):
        key = ("outer", id(value.box), value.chain)
    if key not in here.boxes:
        here.boxes[key] = _adopted(here, value, key), value
    return here.boxes[key][0]


def _adopted(here: Session, value: StagedArray | Number, key: tuple) -> StagedArray | Number:
    atom = value.box.atom if isinstance(value, StagedArray) else value._atom
    if isinstance(value, Number) and (atom is None or isinstance(atom, Literal)):
        _bring_sizes(here, value)
        return Number(here, atom, value.kind, value.dim)
    param = Var(getattr(atom, "name", "array"), value.type)
    here.know_symbols(value.type)
    here.captures[key] = value, param
    if isinstance(value, Number):
        here.origins[param] = key
        return Number(here, param, value.kind)
    made = StagedArray(Box(here, param, origin=value))
    made.box.region = here.regions[0]
    return made


def _bring_sizes(here: Session, size: Number) -> None:
    """The symbols of a size are bound, each by the type of an array of that size, which nobody reads."""
    for name in sorted(symbols(0 if size.dim is None else size.dim)):
        if not here.is_bound(Sym(name)):
            atom = size.session.emit(broadcast, False, shape=(Sym(name),), axes=())
            adopted(here, size.session.array(atom))
