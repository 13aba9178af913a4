"""Reverse mode, put together: jvp, then split, then transpose.

In: a Function and which of its parameters to differentiate. Out: one program that returns the results and,
from the cotangents of the results, the cotangents of those parameters; or the two halves apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metaphrase.core.build import Builder, literal
from metaphrase.core.ir import Atom, Function, Var
from metaphrase.core.types import Array, i64
from metaphrase.late import dataclass
from metaphrase.ops.arrays import zeros
from metaphrase.ops.indexing import slice as slice_primitive

from .common import select_marked
from .jvp import jvp
from .split import split
from .transpose import transpose

Clean = Callable[[Function], Function]


@dataclass(frozen=True)
class Linearized:
    """`known(*params) -> (*results, *residuals)`; `linear(*residuals, *dots) -> out dots` of results that
    have one."""

    known: Function
    linear: Function
    out_nonzero: list[bool]
    residuals: int


def linearize(function: Function, wrt: Sequence[bool], clean: Clean = lambda f: f, segments: bool = True) -> Linearized:
    """Split `function` at a point into its value and its derivative. `clean` runs between the steps
    (simplify); `segments` is that of `split`."""
    forward, nonzero = jvp(function, wrt)
    forward = clean(forward)
    known = [True] * len(function.params) + [False] * sum(wrt)
    count = len(function.results)
    wanted = [True] * count + [False] * (len(forward.results) - count)
    part = split(forward, known, segments=segments, results_known=wanted)
    return Linearized(part.known, part.linear, nonzero, len(part.residuals))


def vjp(function: Function, wrt: Sequence[bool], clean: Clean = lambda f: f) -> Function:
    """`(*params, *cotangents of results that have one) -> (*results, *cotangents of the marked
    parameters)`."""
    parts = linearize(function, wrt, clean)
    linear_marks = [False] * parts.residuals + [True] * sum(wrt)
    backward, found = transpose(clean(parts.linear), linear_marks)
    with Builder(f"vjp_{function.name}") as builder:
        params = [builder.parameter(p.name, p.type) for p in function.params]
        bars = [
            builder.parameter(f"{r.name if isinstance(r, Var) else 'result'}_bar", r.type.plain)
            for r, m in zip(function.results, parts.out_nonzero)
            if m
        ]
        outs = builder.replay(parts.known, params)
        results, residuals = outs[: len(function.results)], outs[len(function.results) :]
        measured = [_as_large(bar, out.type) for bar, out in zip(bars, select_marked(results, parts.out_nonzero))]
        cotangents = iter(builder.replay(backward, [*residuals, *measured]))
        targets = select_marked(function.params, wrt)
        found_bars = [next(cotangents) if f else zeros(p.type.plain) for p, f in zip(targets, found)]
        return builder.function([*results, *found_bars])


def _as_large(bar: Var, type_: Array) -> Atom:
    """A cotangent by the size of its result, which the program itself may bind."""
    if bar.type.dims == type_.dims:
        return bar
    starts = (literal(0, i64) for _ in type_.dims)
    return slice_primitive(bar, *starts, shape=type_.dims, step=(1,) * type_.ndim)


def out_nonzero(function: Function, wrt: Sequence[bool]) -> list[bool]:
    """Which results have a cotangent in `vjp(function, wrt)`."""
    return jvp(function, wrt)[1]
