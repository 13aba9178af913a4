"""Transformations from a function of a tuple of arguments to another one, so that any may follow any; and the same by
differences and loops.

In: `function(*args)`, of pytrees of floats. Out: `TRANSFORMATIONS`, by name; `by_differences`, of a function that is
only called. Directions, weights and lanes follow from the arguments: what comes out is a function of them again.
Example:

    TRANSFORMATIONS["grad"](TRANSFORMATIONS["vmap"](f))(*args)

The text runs as it stands with JAX in metaphrase's place (beside_jax.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import metaphrase as mp
from metaphrase import tree

LANES = (1.0, 1.0625)  # by what the arguments are multiplied in each


def direction(args: Any) -> Any:
    return tree.map(lambda leaf: np.cos(np.arange(np.size(leaf)) + 0.5).reshape(np.shape(leaf)), args)


def weights(result: Any) -> Any:
    return tree.map(lambda leaf: np.cos(np.arange(np.size(leaf)) * 0.7 + 0.2).reshape(np.shape(leaf)), result)


def weighted(result: Any) -> Any:
    parts = [np.sum(a * b) for a, b in zip(tree.leaves(result), tree.leaves(weights(result)))]
    return sum(parts[1:], parts[0])


def total(f: Callable) -> Callable:
    return lambda *args: weighted(f(*args))


def all_of(args: tuple) -> tuple[int, ...]:
    return tuple(range(len(args)))


def lanes(args: Any) -> Any:
    return tree.map(lambda leaf: np.stack([leaf * factor for factor in LANES]), args)


def vmap_of_one(f: Callable) -> Callable:
    """Lanes of the last argument, along its last axis."""

    def mapped(*args):
        *rest, last = args
        last = tree.map(lambda leaf: np.stack([leaf * factor for factor in LANES], axis=-1), last)
        return mp.vmap(f, (*[None] * len(rest), -1))(*rest, last)

    return mapped


def taylor(f: Callable) -> Callable:
    """The derivatives of orders 1 and 2 along a straight line. Of the leaves, since JAX's `jet` takes no pytrees."""

    def series(*args):
        leaves, structure = tree.flatten(args)
        dots = tree.leaves(direction(args))
        return mp.jet(
            lambda *leaves: tree.leaves(f(*structure.unflatten(leaves))),
            tuple(leaves),
            tuple((dot, dot * 0.0) for dot in dots),
        )

    return series


TRANSFORMATIONS: dict[str, Callable[[Callable], Callable]] = {
    "jit": lambda f: mp.jit(f),
    "jvp": lambda f: lambda *args: mp.jvp(f, args, direction(args))[1],
    "linearize": lambda f: lambda *args: mp.linearize(f, *args)[1](*direction(args)),
    "grad": lambda f: lambda *args: mp.grad(total(f), argnums=all_of(args))(*args),
    "vmap": lambda f: lambda *args: mp.vmap(f)(*lanes(args)),
    "vmap_of_one": vmap_of_one,
    "jacfwd": lambda f: lambda *args: mp.jacfwd(f, argnums=all_of(args))(*args),
    "jacrev": lambda f: lambda *args: mp.jacrev(f, argnums=all_of(args))(*args),
    "hessian": lambda f: lambda *args: mp.hessian(f, argnums=all_of(args))(*args),
    "jet": taylor,
    "checkpoint": lambda f: mp.checkpoint(f),
}


def sparse(f: Callable) -> Callable:
    """The Jacobian in matrices of SciPy's, which are there outside of translated functions alone."""

    def blocks(*args):
        found = mp.jacobian(f, argnums=all_of(args), sparsity="detect")(*args)
        return tree.map(lambda matrix: matrix.toarray(), found)

    return blocks


OUTERMOST: dict[str, Callable[[Callable], Callable]] = {"sparse": sparse}
FORWARD = ("jvp", "linearize", "jacfwd", "jet")  # what a rule for reverse mode alone does not go through
REVERSE = ("grad", "jacrev", "hessian")  # what forward mode goes through all the same


LANES_OF = ("vmap", "vmap_of_one")


def may_follow(case: Any, outer: str, *inner: str) -> bool:
    """Whether a function has this derivative after these; the outer ones stand first."""
    forward = case.forward or outer not in FORWARD or any(name in REVERSE for name in inner)
    same = all(name in ("jit", "checkpoint") for name in inner)
    lanes = outer not in LANES_OF or not (case.frozen or (case.stores and same))
    pattern = outer != "sparse" or case.sparse or not any(name in (*REVERSE, "linearize") for name in inner)
    return forward and lanes and pattern and (not inner or may_follow(case, *inner))


def pairs(case: Any) -> list[tuple[str, ...]]:
    """Each transformation alone and each ordered pair of them that a function has; the outer one stands first."""
    outer = [*TRANSFORMATIONS, *OUTERMOST]
    every = [(a,) for a in outer] + list(itertools.product(outer, TRANSFORMATIONS))
    return [names for names in every if may_follow(case, *names)]


def composed(names: tuple[str, ...], function: Callable) -> Callable:
    for name in reversed(names):
        function = (TRANSFORMATIONS | OUTERMOST)[name](function)
    return function


# ---- the same by differences --------------------------------------------------------------------------------

STEP = 2.0**-7
FIRST = (45 / 60, -9 / 60, 1 / 60)  # of f(x + k h) - f(x - k h), by h; error h**6
SECOND = (270 / 180, -27 / 180, 2 / 180)  # of f(x + k h) + f(x - k h) - 2 f(x), by h**2


def flat(value: Any) -> list:
    return [np.asarray(leaf, np.float64) for leaf in tree.leaves(value)]


class Differences:
    """A function that is only called, at and around a point."""

    def __init__(self, f: Callable, args: tuple):
        self.f, self.args = f, args
        leaves, self.structure = tree.flatten(args)
        self.leaves = [np.asarray(leaf, np.float64) for leaf in leaves]
        self.shapes = [leaf.shape for leaf in self.leaves]
        self.kinds = [float if isinstance(leaf, float) else np.array for leaf in leaves]
        self.here = np.concatenate([leaf.ravel() for leaf in self.leaves])
        self.seen: dict[bytes, list] = {}

    def at(self, x: np.ndarray) -> list:
        key = x.tobytes()
        if key not in self.seen:
            places = np.cumsum([leaf.size for leaf in self.leaves])[:-1]
            parts = [
                kind(part.reshape(shape)) for part, shape, kind in zip(np.split(x, places), self.shapes, self.kinds)
            ]
            self.seen[key] = flat(self.f(*self.structure.unflatten(parts)))
        return self.seen[key]

    def along(self, dot: np.ndarray, order: int) -> list:
        """The derivative of an order along a line."""
        pairs = [(self.at(self.here + k * STEP * dot), self.at(self.here - k * STEP * dot)) for k in (1, 2, 3)]
        if order == 1:
            return [
                sum(c * (after - before) for c, (after, before) in zip(FIRST, leaf)) / STEP
                for leaf in zip(*[list(zip(*pair)) for pair in pairs])
            ]
        middle = self.at(self.here)
        return [
            sum(c * (after + before - 2 * m) for c, (after, before) in zip(SECOND, leaf)) / STEP**2
            for m, leaf in zip(middle, zip(*[list(zip(*pair)) for pair in pairs]))
        ]

    def split(self, columns: list, order: int) -> list:
        """Derivatives by all directions (of order 2: pairs of them) as blocks of leaves of the arguments."""
        places = np.cumsum([leaf.size for leaf in self.leaves])[:-1]
        n, found = len(self.here), []
        for k, value in enumerate(self.at(self.here)):
            whole = np.stack([column[k] for column in columns], axis=-1).reshape((*value.shape, *[n] * order))
            for which in itertools.product(range(len(self.leaves)), repeat=order):
                part = whole
                for axis, leaf in enumerate(which):
                    part = np.split(part, places, axis=value.ndim + axis)[leaf]
                found.append(part.reshape((*value.shape, *[size for leaf in which for size in self.shapes[leaf]])))
        return found

    def dot(self) -> np.ndarray:
        return np.concatenate([np.ravel(leaf) for leaf in tree.leaves(direction(self.args))])

    def value(self) -> list:
        return self.at(self.here)

    def jvp(self) -> list:
        return self.along(self.dot(), 1)

    def jacobian(self) -> list:
        return self.split([self.along(e, 1) for e in np.eye(len(self.here))], 1)

    def matrices(self) -> list:
        blocks, count = self.jacobian(), len(self.leaves)
        return [block.reshape(-1, self.leaves[k % count].size) for k, block in enumerate(blocks)]

    def grad(self) -> list:
        scalar = Differences(total(self.f), self.args)
        return scalar.jacobian()

    def hessian(self) -> list:
        unit = np.eye(len(self.here))
        own = [self.along(e, 2) for e in unit]
        columns = []
        for i, j in itertools.product(range(len(unit)), repeat=2):
            if i == j:
                columns.append(own[i])
            else:
                a, b = (min(i, j), max(i, j))
                both, apart = self.along(unit[a] + unit[b], 2), self.along(unit[a] - unit[b], 2)
                columns.append([(x - y) / 4 for x, y in zip(both, apart)])
        return self.split(columns, 2)

    def jet(self) -> list:
        dot = self.dot()
        first, second = self.along(dot, 1), self.along(dot, 2)
        return [*self.value(), *[term for pair in zip(first, second) for term in pair]]

    def lanes(self) -> list:
        found = [Differences(self.f, self.args).at(self.here * factor) for factor in LANES]
        return [np.stack(leaf) for leaf in zip(*found)]

    def lanes_of_one(self) -> list:
        found = []
        for factor in LANES:
            *rest, last = self.args
            found.append(flat(self.f(*rest, tree.map(lambda leaf, factor=factor: leaf * factor, last))))
        return [np.stack(leaf) for leaf in zip(*found)]


ORACLES: dict[str, Callable[[Differences], list]] = {
    "jit": Differences.value,
    "jvp": Differences.jvp,
    "linearize": Differences.jvp,
    "grad": Differences.grad,
    "vmap": Differences.lanes,
    "vmap_of_one": Differences.lanes_of_one,
    "jacfwd": Differences.jacobian,
    "jacrev": Differences.jacobian,
    "hessian": Differences.hessian,
    "jet": Differences.jet,
    "checkpoint": Differences.value,
    "sparse": Differences.matrices,
}


def by_differences(name: str, f: Callable, args: tuple) -> list:
    """What the transformation of that name gives at `args`, from calls of f alone."""
    return ORACLES[name](Differences(f, args))
