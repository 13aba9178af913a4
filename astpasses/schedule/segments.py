"""Segments of a loop on stacks: arrays of run-time length, each behind those of the iterations before.

In: a loop Let with segments. Out: a stack for each, and in the body what goes there; `filled` counts rows.

    xs = []                                 filled = 0
    for i in range(n):               ->     for i in range(n):
        xs += part(i)                           trips = 0
                                                while ...:
                                                    grow(xs, filled + trips + 1); xs[filled + trips] = x
                                                filled = filled + trips

What a loop in the body stacks as a segment of the loop around is made in its place, at any depth; what comes
about otherwise is copied there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metaphrase.core.dims import DimLike, Sym
from metaphrase.core.ir import Function, Let, Var
from metaphrase.late import dataclass

from .lower import Block
from .nest import Bind, Buf, Grow, Index, Load, Store
from .values import Place, Value


@dataclass(eq=False)
class Segment:
    """A stack that takes an array in each iteration, from row `start` on; `filled` counts the rows so far."""

    buf: Buf
    start: DimLike
    filled: str


def open_segments(block: Block, let: Let, outs: Sequence[Var]) -> list[Segment]:
    """The stacks of a loop's segments, empty."""
    filled: dict[str, str] = {}
    found = []
    for out, name in zip(outs, let.attributes.get("segment_sizes", ())):
        if name not in filled:
            filled[name] = block.shared.symbol("filled", 0, None)
            block.emit(Bind(filled[name], Index(0)))
        block.wanted.pop(out, None)
        buf, start = block.behind.pop(out, (None, 0))
        if buf is None:
            dims = (Sym(filled[name]), *block.dims(out.type.dims[1:]))
            buf = Buf(block.shared.names.fresh(out.name), out.type.dtype, dims, "stack", dynamic=True)
        found.append(Segment(buf, start, filled[name]))
    return found


def behind(buf: Buf, start: DimLike, dims: tuple[DimLike, ...]) -> Value:
    """The array that lies on a stack from row `start` on."""
    if start == 0:
        return Value(buf.dtype, dims, lambda index: Load(buf, index), Place(buf))
    return Value(buf.dtype, dims, lambda index: Load(buf, (start + index[0], *index[1:])))


def append_segments(inner: Block, results: Sequence[Any], segments: Sequence[Segment]) -> None:
    """What the body did not make where it belongs is copied there; then the stacks are longer."""
    longer: dict[str, DimLike] = {}
    for result, segment in zip(results, segments):
        value, start = inner.value(result), segment.start + Sym(segment.filled)
        longer[segment.filled] = inner.dims(result.type.dims)[0]
        if inner.behind.pop(result, None) is None and _is_behind(value, segment, start):
            continue
        inner.emit(Grow((segment.buf,), start + longer[segment.filled]))
        if not value.undefined:
            axes, index = inner.axes(value.dims)
            inner.nest(axes, [Store(segment.buf, (start + index[0], *index[1:]), value.at(index))])
    for name, length in longer.items():
        inner.emit(Bind(name, Index(Sym(name) + length)))


def _is_behind(value: Value, segment: Segment, start: DimLike) -> bool:
    """Whether a value lies where its segment is to be."""
    at = value.at((0,) * len(value.dims))
    return isinstance(at, Load) and at.buf is segment.buf and at.index == (start, *(0 for _ in at.index[1:]))


def ask_behind(inner: Block, body: Function, results: Sequence[Any], segments: Sequence[Segment]) -> None:
    """A segment that a loop in the body stacks, as rows or as segments of its own, is made in its place."""
    made = {out for let in body.lets if let.primitive.name == "loop" for out in let.outs if out.type.dims}
    for result, segment in zip(results, segments):
        if result in made and body.results.count(result) == 1:
            inner.behind[result] = (segment.buf, segment.start + Sym(segment.filled))


__all__ = ["Segment", "open_segments", "append_segments", "ask_behind", "behind"]
