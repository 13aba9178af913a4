"""Solvers whose derivatives are those of the equation that they solve, by jaxopt's names.

In: a residual, and a solver as a user writes it. Out: the solver, called as before. Its derivatives, in both modes
and of every order, come from the residual at the solution, not from the solver's steps, and reach all parameters.

    @custom_root(lambda x, a: x**2 - a)
    def square_root(guess, a):
        x = guess
        while abs(x**2 - a) > 1e-12:
            x = (x + a / x) / 2
        return x

    grad(square_root, argnums=1)(1.0, 2.0)      # 1 / (2 sqrt(2))

(Griewank & Walther, Evaluating Derivatives, ch. 15; Blondel et al., Efficient and modular implicit differentiation,
2022.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _implicit, tree
from .api.public import vmap
from .flatten_util import joined, ravel_pytree
from .interpreter import signature_of


def solve_dense(matvec: Callable, b: Any) -> Any:
    """The x with matvec(x) = b, pytrees of real floats of one dtype, by the matrix of `matvec` and LU. It is made by
    as many products as b has numbers, as one batch."""
    flat, unravel = ravel_pytree(b)
    columns = vmap(lambda v: joined(matvec(unravel(v))))(np.eye(flat.shape[0], dtype=flat.dtype))
    return unravel(np.linalg.solve(columns.T, flat))


def _any_solve(solve: Callable) -> Callable:
    """`solve(matvec, b)` as the solver of the slope's equation; it solves the transposed one, too."""
    return lambda g, y: _implicit.custom_linear_solve(g, y, solve, solve)


def _in_order(names: list[str], defaults: dict, params: tuple, given: dict) -> tuple:
    """The parameters by position: those that have them, then those that are named, or left out before these."""
    rest = names[len(params) :]
    for name in given:
        if name not in rest:
            raise TypeError(f"the solver is given {name!r} twice, or has no such parameter")
    while rest and rest[-1] not in given:
        rest = rest[:-1]
    for name in rest:
        if name not in given and name not in defaults:
            raise TypeError(f"the solver is not given {name!r}")
    return (*params, *[given[name] if name in given else defaults[name] for name in rest])


def custom_root(residual: Callable, has_aux: bool = False, solve: Callable = solve_dense) -> Callable:
    """A decorator for `solver(guess, *params) -> x`, which finds the x with `residual(x, *params) = 0`.

    x and the residual are pytrees of floats of one structure; with `has_aux` the solver returns (x, aux), and aux has
    no derivative, nor has the guess. `solve(matvec, b)` solves the linear equations of the derivatives, transposed
    ones too: `solve_dense`, or one that iterates (`scipy.sparse.linalg.gmres(matvec, b)[0]`). Raises DTypeError and
    ShapeError where structures, dtypes or shapes differ.
    """

    def decorated(solver: Callable) -> Callable:
        parameters = [p for p in signature_of(solver).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        names = [p.name for p in parameters[1:]]
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

        @functools.wraps(solver, assigned=("__name__", "__doc__"))  # its names are those of this module
        def solved(guess: Any, *params: Any, **named: Any) -> Any:
            params = _in_order(names, defaults, params, named)
            return _implicit.custom_root(
                lambda x: residual(x, *params), guess, lambda _, x: solver(x, *params), _any_solve(solve), has_aux
            )

        return solved

    return decorated


def custom_fixed_point(f: Callable, has_aux: bool = False, solve: Callable = solve_dense) -> Callable:
    """`custom_root` for a solver that finds the x with `x = f(x, *params)`."""

    def residual(x: Any, *params: Any) -> Any:
        return tree.map(lambda a, b: a - b, f(x, *params), x)

    return custom_root(residual, has_aux, solve)


__all__ = ["custom_fixed_point", "custom_root", "solve_dense"]
