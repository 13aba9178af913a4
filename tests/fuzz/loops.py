"""What transformations mean, by loops and differences in NumPy: the oracle for random programs of them.

In: functions of numbers and arrays that are polynomials of at most the fourth degree, for
which the five-point difference is exact. Out: what `metaphrase`'s function of the same name gives. Example:

    grad(lambda y: y * y)(3.0)        # 6.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.tree_util import tree_map

STEP = 0.5
POINTS = ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0))


def slope(f: Callable, x: Any, direction: Any) -> Any:
    """The derivative of each leaf of f along a direction."""
    parts = [(w / (12 * STEP), f(tree_map(lambda a, d, k=k: a + k * STEP * d, x, direction))) for k, w in POINTS]
    weights, values = zip(*parts)
    return tree_map(lambda *leaves: sum(w * leaf for w, leaf in zip(weights, leaves)), *values)


def units(x: Any) -> list[np.ndarray]:
    """The directions of the elements of a number or array, in order."""
    shape = np.shape(x)
    return [row.reshape(shape)[()] for row in np.eye(int(np.prod(shape)))]


def jit(f: Callable) -> Callable:
    return f


def grad(f: Callable, has_aux: bool = False) -> Callable:
    def run(x: Any) -> Any:
        value = (lambda a: f(a)[0]) if has_aux else f
        found = np.array([slope(value, x, unit) for unit in units(x)]).reshape(np.shape(x))[()]
        return (found, f(x)[1]) if has_aux else found

    return run


def value_and_grad(f: Callable) -> Callable:
    return lambda x: (f(x), grad(f)(x))


def jacfwd(f: Callable) -> Callable:
    def run(x: Any) -> Any:
        columns = [slope(f, x, unit) for unit in units(x)]
        return tree_map(lambda *leaves: _columns(leaves, np.shape(x)), *columns)

    return run


def _columns(leaves: tuple, shape: tuple) -> Any:
    return np.stack(leaves, axis=-1).reshape((*np.shape(leaves[0]), *shape))[()]


jacrev = jacfwd


def hessian(f: Callable) -> Callable:
    return jacfwd(jacfwd(f))


def jvp(f: Callable, primals: tuple, tangents: tuple) -> tuple:
    (x,), (dot,) = primals, tangents
    return f(x), slope(f, x, dot)


def linearize(f: Callable, x: Any) -> tuple:
    return f(x), lambda dot: slope(f, x, dot)


def vjp(f: Callable, x: Any) -> tuple:
    def pull(bars: Any) -> tuple:
        found = []
        for unit in units(x):
            dots, products = slope(f, x, unit), []
            tree_map(lambda dot, bar, products=products: products.append(np.sum(dot * bar)), dots, bars)
            found.append(sum(products))
        return (np.array(found).reshape(np.shape(x))[()],)

    return f(x), pull


def vmap(f: Callable) -> Callable:
    def run(x: Any) -> Any:
        return tree_map(lambda *leaves: np.stack(leaves), *[f(row) for row in x])

    return run
