"""Loops that a GPU divides: nests of independent iterations, and where what each iteration has for itself lies.

In: nothing. Out: `Shape` and `Own`, which the passes of kernels (kernels.py, partial_sums.py, scatters.py) hand to one
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metaphrase.core.dims import DimLike, floordiv, mod, product
from metaphrase.late import dataclass

from .independence import Roles
from .nest import Buf, For, Stmt


@dataclass
class Shape:
    """Loops that stand in one another with nothing between, what is inside of them, and their roles together."""

    loops: list[For]
    body: tuple[Stmt, ...]
    roles: Roles

    @property
    def total(self) -> DimLike:
        return product([loop.extent for loop in self.loops])

    def nest(self, body: tuple[Stmt, ...], on: str, **more: object) -> For:
        """The loops around another body."""
        for loop in reversed(self.loops):
            body = (replace(loop, body=body, on=on, **more),)  # type: ignore[arg-type]
        (outer,) = body
        assert isinstance(outer, For)
        return outer


@dataclass
class Own:
    """The arrays of an iteration: in a thread's memory, in a block's, and those that are parts of larger ones."""

    frame: tuple[Buf, ...]
    shared: tuple[Buf, ...]
    parts: dict[Buf, tuple[Buf, tuple[DimLike, ...]]]


def unravelled(place: DimLike, loops: Sequence[For]) -> dict[str, DimLike]:
    """The indices of loops in one another at one place of all their iterations."""
    values: dict[str, DimLike] = {}
    for loop in reversed(loops[1:]):
        values[loop.index] = mod(place, loop.extent)
        place = floordiv(place, loop.extent)
    return {**values, loops[0].index: place}


__all__ = ["Own", "Shape", "unravelled"]
