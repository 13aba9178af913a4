"""Functions of one lane with collectives over the axis "i", and what they are of all lanes, written by hand.

In: `lane(x)`, x: f64[3], mapped over "i"; `whole(X)`, X: f64[n, 3]. Out: equal results, and of `whole` the differences
that derivatives of `lane` are compared with. Example: `lane` is x - pmean(x), `whole` is X - X.mean(0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from metaphrase import custom_jvp, custom_vjp, grad, jit, lax, vmap

LANES = 4
RING = [(k, (k + 1) % LANES) for k in range(LANES)]
CHAIN = RING[:-1]


@dataclass(frozen=True)
class Pair:
    """`smooth`: how often it may be differentiated at the points of the tests."""

    lane: Callable[..., Any]
    whole: Callable[..., Any]
    smooth: int = 2


CORPUS: dict[str, Pair] = {}


def pair(whole: Callable[..., Any], smooth: int = 2) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(lane: Callable[..., Any]) -> Callable[..., Any]:
        CORPUS[lane.__name__] = Pair(lane, whole, smooth)
        return lane

    return add


def alike(row: Any) -> Any:
    """The same in all lanes."""
    return np.broadcast_to(row, (LANES, *np.shape(row))).copy()


# ---- one collective each ------------------------------------------------------------------------------------


@pair(lambda X: X * (X**2).sum(0))
def summed(x):
    return x * lax.psum(x**2, "i")


@pair(lambda X: np.sin(X) * X.mean(0))
def mean(x):
    return np.sin(x) * lax.pmean(x, "i")


@pair(lambda X: np.exp(X - X.max(0)))
def largest(x):
    return np.exp(x - lax.pmax(x, "i"))


@pair(lambda X: X**2 * X.min(0))
def smallest(x):
    return x**2 * lax.pmin(x, "i")


@pair(lambda X: alike(np.cumsum(X, axis=0).ravel() ** 2))
def gathered(x):
    return np.cumsum(lax.all_gather(x, "i"), axis=0).ravel() ** 2


@pair(lambda X: alike((X**2).T @ np.arange(1.0, LANES + 1)))
def gathered_behind(x):
    return lax.all_gather(x**2, "i", axis=1) @ np.arange(1.0, LANES + 1)


@pair(lambda X: alike(np.sin(X).ravel()))
def gathered_tiled(x):
    return np.sin(lax.all_gather(x, "i", tiled=True))


@pair(lambda X: (np.outer(X.sum(0), np.arange(1.0, LANES + 1)).T) ** 2)
def scattered(x):
    return lax.psum_scatter(np.outer(np.arange(1.0, LANES + 1), x), "i") ** 2


@pair(lambda X: np.tile((X**2).sum(0), LANES).reshape(LANES, 3) * X)
def scattered_tiled(x):
    return x * lax.psum_scatter(np.tile(x**2, LANES), "i", tiled=True)


@pair(lambda X: np.einsum("ljd->jld", np.arange(1.0, LANES + 1)[None, :, None] * X[:, None] ** 2))
def exchanged(x):
    parts = np.arange(1.0, LANES + 1)[:, None] * x**2
    return lax.all_to_all(parts, "i", 0, 0)


@pair(lambda X: np.einsum("ljd->jdl", np.arange(1.0, LANES + 1)[None, :, None] * np.sin(X)[:, None]))
def exchanged_behind(x):
    parts = np.arange(1.0, LANES + 1)[:, None] * np.sin(x)
    return lax.all_to_all(parts, "i", 0, 1)


@pair(lambda X: np.hstack([X, X**2, X[:, :2]]).reshape(4, 4, 2).swapaxes(0, 1).reshape(4, 8))
def exchanged_tiled(x):
    return lax.all_to_all(np.concatenate([x, x**2, x[:2]]), "i", 0, 0, tiled=True)


@pair(lambda X: X * np.roll(X, 1, 0))
def ring(x):
    return x * lax.ppermute(x, "i", RING)


@pair(lambda X: X**2 - np.vstack([np.zeros((1, 3)), X[:-1]]) * X)
def chain(x):
    return x**2 - lax.ppermute(x, "i", CHAIN) * x


@pair(lambda X: X * X[[2, 0, 3, 1]])
def shuffled(x):
    return x * lax.pshuffle(x, "i", [2, 0, 3, 1])


@pair(lambda X: X * np.arange(LANES)[:, None] / LANES)
def numbered(x):
    return x * lax.axis_index("i") / lax.axis_size("i")


@pair(lambda X: X**2 * LANES + 2 * LANES)
def of_constants(x):
    return x**2 * lax.psum(1, "i") + lax.psum(2.0, "i")


@pair(lambda X: X * 3.0)
def cast(x):
    return 3.0 * lax.pcast(x, "i", to="varying")


# ---- pytrees, functions, jit --------------------------------------------------------------------------------


@pair(lambda X: X.sum(0) * np.cos(X).sum(0) - X * X[:, :1].sum(0))
def of_trees(x):
    found = lax.psum({"a": x, "b": (np.cos(x), x[0])}, "i")
    return found["a"] * found["b"][0] - x * found["b"][1]


def normalised(x):
    centred = x - lax.pmean(x, "i")
    return centred / np.sqrt(lax.pmean(centred**2, "i") + 0.1)


def normalised_whole(X):
    centred = X - X.mean(0)
    return centred / np.sqrt((centred**2).mean(0) + 0.1)


pair(normalised_whole)(normalised)


@pair(lambda X: normalised_whole(np.tanh(normalised_whole(X))))
def layers(x):
    return normalised(np.tanh(normalised(x)))


@jit
def softmax(x):
    e = np.exp(x - lax.pmax(x, "i"))
    return e / lax.psum(e, "i")


@pair(lambda X: np.exp(X) / np.exp(X).sum(0))
def inner_jit(x):
    return softmax(x)


@pair(lambda X: X.sum(0) * np.cos(X * X.sum(0)))
def inner_grad(x):
    total = lax.psum(x, "i")
    return grad(lambda y: np.sum(np.sin(y * total)))(x)


@pair(lambda X: np.einsum("ij,kj->ik", X, X) @ X)
def attention(x):
    keys = lax.all_gather(x, "i")
    return (keys @ x) @ keys


@pair(lambda X: np.einsum("a,ld->lad", np.arange(1.0, 3.0), X * X.sum(0)).sum(1) + 2 * X.sum(0))
def inner_lanes(x):
    rows = vmap(lambda a: a * x * lax.psum(x, "i") + lax.psum(x, "i"))(np.arange(1.0, 3.0))
    return rows.sum(0)


# ---- branches and loops ---------------------------------------------------------------------------------------


@pair(lambda X: np.where(X[:, :1] > 0, X * (X**2).sum(0), np.sin(X)))
def in_a_branch(x):
    if x[0] > 0:
        return x * lax.psum(x**2, "i")
    return np.sin(x)


@pair(lambda X: np.where(X[:, :1] > 0, X * X.sum(0), np.roll(X, 1, 0) ** 2))
def in_both_branches(x):
    return lax.cond(x[0] > 0, lambda x: x * lax.psum(x, "i"), lambda x: lax.ppermute(x, "i", RING) ** 2, x)


@pair(lambda X: np.where(X[:, :1] > 0, (X.sum(0) * X)[np.arange(4), (np.arange(4) % 3)][:, None] * X, X))
def beside_an_index(x):
    k = lax.axis_index("i") % 3
    if x[0] > 0:
        total = lax.psum(x, "i")
        return (total * x)[k] * x
    return x


def averaging_whole(X):
    for _ in range(3):
        X = 0.5 * X + 0.5 * np.sin(X.mean(0))
    return X


@pair(averaging_whole)
def in_a_loop(x):
    for _ in range(3):
        x = 0.5 * x + 0.5 * np.sin(lax.pmean(x, "i"))
    return x


@pair(averaging_whole)
def in_a_scan(x):
    return lax.scan(lambda x, _: (0.5 * x + 0.5 * np.sin(lax.pmean(x, "i")), None), x, None, length=3)[0]


def shrunk_whole(X):
    while (X**2).sum() > 1.0:
        X = 0.7 * X + 0.05 * X.mean(0)
    return X


@pair(shrunk_whole)
def until_all(x):
    while lax.psum(np.sum(x**2), "i") > 1.0:
        x = 0.7 * x + 0.05 * lax.pmean(x, "i")
    return x


def each_whole(X):
    X = X.copy()
    while (going := (X**2).sum(1) > 0.5).any():
        new = 0.6 * X + 0.05 * X.mean(0)
        X = np.where(going[:, None], new, X)
    return X


@pair(each_whole)
def until_each(x):
    while np.sum(x**2) > 0.5:
        x = 0.6 * x + 0.05 * lax.pmean(x, "i")
    return x


def sometimes_whole(X):
    for k in range(4):
        X = np.sin(X) if k % 2 else X + X.mean(0)
    return X


@pair(sometimes_whole)
def sometimes(x):
    for k in range(4):
        x = lax.cond(k % 2 == 0, lambda x: x + lax.pmean(x, "i"), np.sin, x)
    return x


def as_often_whole(X):
    for k in range(3):
        X = np.where(k < np.arange(LANES)[:, None], X + 0.1 * X.sum(0), X)
    return X


@pair(as_often_whole)
def as_often(x):
    for _ in range(lax.axis_index("i")):
        x = x + 0.1 * lax.psum(x, "i")
    return x


@pair(lambda X: np.stack([X[0] * X.sum(0), X.mean(0) ** 2, np.sin(X[2]), np.sin(X[3])]))
def one_of_many(x):
    ways = [lambda x: x * lax.psum(x, "i"), lambda x: lax.pmean(x, "i") ** 2, np.sin]
    return lax.switch(lax.axis_index("i"), ways, x)


def broken_whole(X):
    total, going = np.zeros_like(X), np.ones((LANES, 1), bool)
    for k in range(5):
        total = np.where(going, total + k * X.mean(0) ** 2, total)
        going = going & ~(total.sum(1, keepdims=True) > 0.2 + X[:, :1])
    return total * X


@pair(broken_whole)
def left_early(x):
    total = np.zeros(3)
    for k in range(5):
        total = total + k * lax.pmean(x, "i") ** 2
        if np.sum(total) > 0.2 + x[0]:
            break
    return total * x


@pair(lambda X: np.where(X[:, :1] > 0, np.stack([X.sum(0)[0] * np.ones(4), X[:, 1], X[:, 2]], 1), X))
def stored(x):
    x = x.copy()
    if x[0] > 0:
        x[0] = lax.psum(x, "i")[0]
    return x


# ---- rules of the user's own ------------------------------------------------------------------------------


@custom_jvp
def halved(x):
    return lax.psum(x, "i") / 2


@halved.defjvp
def halved_jvp(primals, tangents):
    return halved(*primals), lax.psum(tangents[0], "i") / 2


@pair(lambda X: X * X.sum(0) / 2)
def with_a_rule(x):
    return x * halved(x)


@custom_vjp
def squared(x):
    return lax.psum(x**2, "i")


squared.defvjp(lambda x: (lax.psum(x**2, "i"), x), lambda x, bar: (2 * x * lax.psum(bar, "i"),))


@pair(lambda X: X * (X**2).sum(0), smooth=1)
def with_a_backward_rule(x):
    return x * squared(x)
