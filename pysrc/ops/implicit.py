"""What an equation defines: `custom_root`, the solution x of f(x) = 0, and `linear_solve`, that of A x = b.

In: what the equation reads, and for `linear_solve` b. Out: the solution, then what `function`, which finds it, gives
beside. The other Functions say what the derivatives are; those who take derivatives run them (Griewank & Walther,
Evaluating Derivatives, ch. 15). A program that is finished has `call`s in their place (`core/custom.py`).

    x = custom_root(a, function=newton, residual=f, tangent=f_slope_solve)
        # f(a, x) -> residual; f_slope_solve(a, x, r) -> v with (df/dx) v = r
    x = linear_solve(a, b, function=cg, matvec=A, back=cg, vecmat=A_transposed)
        # A(a, x) -> A x; back(a, c) solves A' y = c, and vecmat(a, y) -> A' y. Without a transpose both are None.
"""

from __future__ import annotations

from ..core.ir import Function
from ..core.native import Region
from ..core.primitive import Primitive
from ..core.types import Array
from .custom_rules import OF_TRANSFORMS, gives, takes


def _root_type(*types: Array, function: Function, residual: Function, tangent: Function) -> tuple:
    count = len(residual.results)
    solution = function.result_types[:count]
    takes("custom_root", function, types)
    takes("custom_root", residual, (*types, *solution))
    takes("custom_root", tangent, (*types, *solution, *residual.result_types))
    gives("custom_root", tangent, solution)
    return tuple(t.plain for t in function.result_types)


custom_root = Primitive(
    "custom_root",
    type=_root_type,
    numpy=lambda run, *args, function, residual, tangent: tuple(run(function, *args)),
    **OF_TRANSFORMS,
    native=Region("call"),
    doc="function(*operands) -> (*x, *aux), with residual(*operands, *x) = 0; tangent(*operands, *x, *r) solves the "
    "linear equation (d residual / dx) v = r.",
)


def _solve_type(
    *types: Array, function: Function, matvec: Function, back: Function | None, vecmat: Function | None
) -> tuple:
    count = len(matvec.results)
    takes("linear_solve", function, types)
    takes("linear_solve", matvec, (*types[: len(types) - count], *function.result_types[:count]))
    gives("linear_solve", matvec, types[len(types) - count :])
    if back is not None and vecmat is not None:
        takes("linear_solve", back, (*types[: len(types) - count], *function.result_types[:count]))
        takes("linear_solve", vecmat, (*types[: len(types) - count], *back.result_types))
    return tuple(t.plain for t in function.result_types)


linear_solve = Primitive(
    "linear_solve",
    type=_solve_type,
    numpy=lambda run, *args, function, matvec, back, vecmat: tuple(run(function, *args)),
    **OF_TRANSFORMS,
    native=Region("call"),
    doc="function(*operands, *b) -> (*x, *aux), with matvec(*operands, *x) = b; back and vecmat are the same of the "
    "transposed map.",
)

__all__ = ["custom_root", "linear_solve"]
