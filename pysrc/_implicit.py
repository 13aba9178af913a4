"""Solutions of equations by JAX's names: their derivatives are those of what the equation says, not of the steps that
solved it.

In: an equation, and functions that solve it. Out: the solution.

    custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))      # sqrt(a), in a function of a

By the implicit function theorem (Griewank & Walther, Evaluating Derivatives, ch. 15; Blondel et al., Efficient and
modular implicit differentiation, 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import tree
from ._control import _functions
from .api.implicit import root, solution
from .api.public import linearize, vjp


def custom_root(
    f: Callable, initial_guess: Any, solve: Callable, tangent_solve: Callable, has_aux: bool = False
) -> Any:
    """The x with f(x) = 0 that `solve(f, initial_guess)` finds; with `has_aux` that gives (x, aux).

    x and f(x) are pytrees of floats of one structure. `tangent_solve(g, y)` solves g(v) = y for the linear function
    g, the derivative of f at x: `y / g(1.0)` of numbers, `np.linalg.solve(jacfwd(g)(y), y)` of vectors. Reverse mode
    transposes it, so one that iterates calls `custom_linear_solve`. Derivatives of every order reach what f reads of
    what is around it; that of the initial guess is zero. Raises DTypeError and ShapeError where structures, dtypes or
    shapes differ.
    """
    _functions("lax.custom_root(f, initial_guess, solve, tangent_solve)", f=f, solve=solve, tangent_solve=tangent_solve)

    def solved() -> Any:
        return solve(f, initial_guess)

    def slope_solve(x: Any, y: Any) -> Any:
        return tangent_solve(linearize(f, x)[1], y)

    return root(solved, f, slope_solve, has_aux)


def custom_fixed_point(
    f: Callable, initial_guess: Any, solve: Callable, tangent_solve: Callable, has_aux: bool = False
) -> Any:
    """The x with x = f(x) that `solve(f, initial_guess)` finds.

    As `custom_root` of x - f(x): `tangent_solve(g, y)` solves g(v) = y for g, the derivative of that.
    """
    _functions(
        "lax.custom_fixed_point(f, initial_guess, solve, tangent_solve)", f=f, solve=solve, tangent_solve=tangent_solve
    )

    def residual(x: Any) -> Any:
        return tree.map(lambda a, b: a - b, x, f(x))

    return custom_root(residual, initial_guess, lambda _, guess: solve(f, guess), tangent_solve, has_aux)


def custom_linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The x with matvec(x) = b that `solve(matvec, b)` finds; with `has_aux` that gives (x, aux).

    `matvec` is linear; x and b are pytrees of floats of one structure, of the same shapes and dtypes. Derivatives of
    every order reach b and what matvec reads of what is around it. In reverse mode `transpose_solve(vecmat, c)` solves
    the transposed equation; of a `symmetric` matvec it is `solve` itself. Raises DTypeError and ShapeError where
    structures, dtypes or shapes differ, and SourceError in reverse mode without a transpose_solve.
    """
    _functions("lax.custom_linear_solve(matvec, b, solve)", matvec=matvec, solve=solve)
    b = tree.map(lambda leaf: np.asarray(leaf), b)

    def solved(b: Any) -> Any:
        return solve(matvec, b)

    def vecmat(y: Any) -> Any:
        return matvec(y) if symmetric else vjp(matvec, tree.map(lambda leaf: np.zeros_like(leaf), y))[1](y)[0]

    def back(c: Any) -> Any:
        found = solve(vecmat, c) if transpose_solve is None else transpose_solve(vecmat, c)
        return found[0] if has_aux else found

    if transpose_solve is None and not symmetric:
        return solution(solved, matvec, None, None, b, has_aux)
    return solution(solved, matvec, back, vecmat, b, has_aux)
