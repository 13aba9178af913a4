"""The derivatives of what an equation defines: by the implicit function theorem, not through what solves it.

In: a Let that is `custom_root` or `linear_solve`. Out: for jvp its results and the tangents of the solution, for batch
the same Let of batched functions, for transpose the solution of the transposed equation.

    x = custom_root(a, function=newton, residual=f, tangent=slope_solve)
        jvp        ->   r_dot = f's tangent at x, of a alone
                        x_dot = slope_solve(a, x, -r_dot)
    x = linear_solve(a, b, function=cg, matvec=A, back=cg_t, vecmat=A_t)
        jvp        ->   x_dot = linear_solve(a, b_dot - A's tangent at x, of a alone, ...)
        transpose  ->   b_bar = linear_solve(a, x_bar, function=cg_t, matvec=A_t, back=cg, vecmat=A)

(Griewank & Walther, Evaluating Derivatives, ch. 15; Giles, Collected matrix derivative results, 2008.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metaphrase.core.build import current
from metaphrase.core.calls import derived
from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom, Function, Let
from metaphrase.ops.arithmetic import neg, sub
from metaphrase.ops.arrays import zeros
from metaphrase.ops.families import expand_batch
from metaphrase.ops.implicit import custom_root, linear_solve
from metaphrase.source import SourceError

from .common import spread
from .custom import Batch, applied, named_as


def _bound(let: Let) -> tuple:
    """The Let itself, which stands as it is."""
    builder = current()
    assert builder is not None
    builder.lets.append(let)
    return let.outs


def _tangents(jvp: Callable[..., Any], function: Function, args: Sequence[Atom], dots: Sequence[Atom | None]) -> list:
    """The tangents of the results of `function`, None for those that are zero."""
    marks = tuple(d is not None for d in dots)
    if not any(marks):
        return [None] * len(function.results)
    inner, nonzero = derived(function, ("jvp", marks), lambda: jvp(function, marks))
    found = applied(inner, (*args, *(d for d in dots if d is not None)))
    return spread(found[len(function.results) :], nonzero)


def _jvp_of_root(jvp: Callable[..., Any], let: Let, arg_dots: list[Atom | None]) -> tuple:
    residual, tangent = let.attributes["residual"], let.attributes["tangent"]
    count = len(residual.results)
    outs = _bound(let)
    solution = outs[:count]
    dots = _tangents(jvp, residual, (*let.args, *solution), [*arg_dots, *[None] * count])
    if all(d is None for d in dots):
        return outs, [None] * len(outs)
    sides = [zeros(r.type.plain) if d is None else neg(d) for r, d in zip(residual.results, dots)]
    return outs, [*applied(tangent, (*let.args, *solution, *sides)), *[None] * (len(outs) - count)]


def _jvp_of_solve(jvp: Callable[..., Any], let: Let, arg_dots: list[Atom | None]) -> tuple:
    matvec = let.attributes["matvec"]
    count = len(matvec.results)
    operands, own = let.args[: len(let.args) - count], len(let.args) - count
    outs = _bound(let)
    moved = _tangents(jvp, matvec, (*operands, *outs[:count]), [*arg_dots[:own], *[None] * count])
    sides = list(map(_difference, let.args[own:], arg_dots[own:], moved))
    dots = linear_solve(*operands, *sides, **{**let.attributes, "function": _alone(let)})
    return outs, [*dots, *[None] * (len(outs) - count)]


def _difference(b: Atom, b_dot: Atom | None, moved: Atom | None) -> Any:
    if moved is None:
        return zeros(b.type.plain) if b_dot is None else b_dot
    return neg(moved) if b_dot is None else sub(b_dot, moved)


def _alone(let: Let) -> Function:
    """What solves, without what it gives beside the solution."""
    function: Function = let.attributes["function"]
    solution = function.results[: len(let.attributes["matvec"].results)]
    if len(solution) == len(function.results):
        return function
    make = lambda: Function(function.name, function.params, function.lets, solution)  # noqa: E731
    return derived(function, ("alone", len(solution)), make)


def transposed(let: Let, out_bars: Sequence[Atom | None]) -> tuple[Atom, ...]:
    """The cotangents of the right sides."""
    matvec, back, vecmat = (let.attributes[k] for k in ("matvec", "back", "vecmat"))
    if back is None:
        raise SourceError(
            "the derivative of custom_linear_solve in reverse mode solves the transposed equation, and there is no "
            "transpose_solve",
            let.span,
            code="no-rule",
            remedy="give it transpose_solve, or symmetric=True where the matrix is symmetric",
        )
    operands = let.args[: len(let.args) - len(matvec.results)]
    bars = [zeros(out.type.plain) if bar is None else bar for out, bar in zip(let.outs, out_bars)]
    return linear_solve(
        *operands, *bars[: len(matvec.results)], function=back, matvec=vecmat, back=_alone(let), vecmat=matvec
    )


# ---- batch ----------------------------------------------------------------------------------------------


def _batch_root(batch: Batch, size: DimLike, let: Let, args: tuple, marks: list[bool]) -> tuple:
    """Each lane has a solution of its own."""
    function, residual, tangent = (let.attributes[k] for k in ("function", "residual", "tangent"))
    lanes = [True] * len(residual.results)
    plain, out = batch(function, size, marks, [*lanes, *[False] * (len(let.outs) - len(lanes))])
    equation, _ = batch(residual, size, [*marks, *lanes], lanes)
    slope, _ = batch(tangent, size, [*marks, *lanes, *lanes], lanes)
    made = custom_root(
        *args,
        function=named_as(function, plain),
        residual=named_as(residual, equation),
        tangent=named_as(tangent, slope),
    )
    return made, out


def _batch_solve(batch: Batch, size: DimLike, let: Let, args: tuple, marks: list[bool]) -> tuple:
    """Each lane has a right side and a solution of its own; a matrix that is one for all lanes stays one."""
    count = len(let.attributes["matvec"].results)
    own, lanes = len(args) - count, [True] * count
    sides = [expand_batch(size, a, m) for a, m in zip(args[own:], marks[own:])]
    plain, out = batch(
        let.attributes["function"], size, [*marks[:own], *lanes], [*lanes, *[False] * (len(let.outs) - count)]
    )

    def batched(name: str) -> Function | None:
        inner: Function | None = let.attributes[name]
        return inner and named_as(inner, batch(inner, size, [*marks[:own], *lanes], lanes)[0])

    made = linear_solve(
        *args[:own],
        *sides,
        function=named_as(let.attributes["function"], plain),
        **{name: batched(name) for name in ("matvec", "back", "vecmat")},
    )
    return made, out


JVP: dict[str, Callable[..., tuple]] = {"custom_root": _jvp_of_root, "linear_solve": _jvp_of_solve}
BATCH: dict[str, Callable[..., tuple]] = {"custom_root": _batch_root, "linear_solve": _batch_solve}

__all__ = ["BATCH", "JVP", "transposed"]
