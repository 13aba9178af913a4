"""Indices as a person writes them: `x[i]`, `x[1:]`, `x[:-1]`, `x[::2]`, `x[::-1]`, from starts, lengths and
steps.

In: the start, length and step of a region in each dim. Out: an `Index`, which can be read (`x[...]`) or
written to. Regions lie inside the array: that is what the core language promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom
from metaphrase.core.types import Array
from metaphrase.late import dataclass

from .numpy_source_blocks import Emitter
from .numpy_source_expressions import SUM, Expr, infix, literal, reads_of, suffix
from .numpy_source_spellings import known_dim


@dataclass(frozen=True)
class Index:
    """A rectangular region of `base`: element k of dim d is base element starts[d] + k * step[d]."""

    base: Expr
    starts: tuple[Expr, ...]
    known: tuple[Any, ...]  # each start as a dim, where it is one
    shape: tuple[DimLike, ...]
    step: tuple[int, ...]

    def text(self, emitter: Emitter, drop: Sequence[int] = ()) -> str:
        """What stands in the brackets; `drop` names dims of length 1 to leave out. Empty: the whole array."""
        parts = [self._single(d) if d in drop else self._range(emitter, d) for d in range(len(self.shape))]
        after = ""
        while parts and parts[-1] == ":":
            parts.pop()
        return ", ".join(parts) + after

    def _single(self, d: int) -> str:
        start, dim = self.known[d], self.base.type.dims[d]
        if start is not None and not isinstance(start, int) and isinstance(start - dim, int) and start - dim < 0:
            return str(start - dim)
        return self.starts[d].text

    def _range(self, emitter: Emitter, d: int) -> str:
        step, length, dim, start = self.step[d], self.shape[d], self.base.type.dims[d], self.known[d]
        if step < 0:
            return self._backwards(emitter, d)
        stride = f":{step}" if step != 1 else ""
        if start is None:
            first = self.starts[d]
            return f"{first.text}:{self._sum(emitter, first, length * step)}{stride}"
        begin = "" if start == 0 else self._end(emitter, start, dim) if _before_end(start, dim) else self.starts[d].text
        covered = length == (dim - start) // 1 if step == 1 else length == (dim - start + step - 1) // step
        if covered:
            return f"{begin}:{stride}"
        return f"{begin}:{self._end(emitter, start + length * step, dim)}{stride}"

    @staticmethod
    def _end(emitter: Emitter, stop: Any, dim: Any) -> str:
        """A stop counted from the end where that is shorter."""
        if _before_end(stop, dim):
            return str(stop - dim)
        return emitter.dim(stop)

    def _backwards(self, emitter: Emitter, d: int) -> str:
        step, length, dim, start = self.step[d], self.shape[d], self.base.type.dims[d], self.known[d]
        if step == -1 and start is not None and length == dim and start == dim - 1:
            return "::-1"
        if isinstance(start, int) and isinstance(length, int):
            if length == 0:
                return "0:0"
            stop = start + length * step
            return f"{start}:{stop if stop >= 0 else ''}:{step}"
        first, out = self.starts[d], _dim_of(emitter, length)
        emitter.helpers.add("backwards")
        return f"backwards({first.text}, {out.text}, {step})"

    @staticmethod
    def _sum(emitter: Emitter, first: Expr, length: Any) -> str:
        """`first + length`; a constant already at the end of `first` is added to."""
        if isinstance(length, int) and first.parts is not None and first.parts[0] == "infix" and first.level == SUM:
            _, left, operator, right = first.parts
            if operator in "+-" and right.text.isdigit():
                constant = length + (int(right.text) if operator == "+" else -int(right.text))
                if constant == 0:
                    return left.text
                sign = "+" if constant > 0 else "-"
                return infix(sign, left, literal(np.int64(abs(constant))), left.type).text
        other = literal(np.int64(length)) if isinstance(length, int) else _dim_of(emitter, length)
        return infix("+", first, other, first.type).text

    def read(self, emitter: Emitter, type_: Array, drop: Sequence[int] = ()) -> Expr:
        text = self.text(emitter, drop)
        if not text:
            return self.base
        storages = self.base.storages if type_.dims else ()
        return suffix(self.base, f"[{text}]", type_, storages, list(self.starts))


def _before_end(position: Any, dim: Any) -> bool:
    """Whether a position is a fixed number of places before the end; of a dim that is a number, one place."""
    if isinstance(dim, int):
        return isinstance(position, int) and position == dim - 1 and dim > 2
    return (
        not isinstance(dim, int)
        and not isinstance(position, int)
        and isinstance(position - dim, int)
        and position - dim < 0
    )


def _dim_of(emitter: Emitter, dim: DimLike) -> Expr:
    return emitter.dim_expr(dim)


def index_of(
    emitter: Emitter, base: Expr, starts: Sequence[Atom], shape: Sequence[DimLike], step: Sequence[int]
) -> Index:
    return Index(
        base,
        tuple(emitter.expr(s) for s in starts),
        tuple(known_dim(emitter, s) for s in starts),
        tuple(shape),
        tuple(step),
    )


__all__ = ["Index", "index_of", "reads_of"]
