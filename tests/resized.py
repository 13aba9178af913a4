"""Calls of a corpus function at several lengths of its arrays, as Python runs them.

In: a function and arguments. Out: `runs_of`: arguments of growing lengths, with Python's results. Example:

    for given, want, after in runs_of(function, args): ...
"""

from __future__ import annotations

import contextlib
import signal
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from corpus import fresh

from metaphrase import tree_util

GROWTH: dict[str, list[Callable[[int], int]]] = {
    "longer": [lambda size, k=k: size + k for k in (0, 1, 2, 3, 5)],
    "multiples": [lambda size, k=k: size * k for k in (1, 2, 3, 4, 6)],
}


class Endless(Exception):
    """Python did not come to an end with these lengths."""


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def stop(*_):
        raise Endless

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def resized(args: tuple, grow: Callable[[int], int]) -> tuple:
    """The arguments with every size from 2 on grown, their elements repeated; floats stay different."""

    def one(leaf):
        if not isinstance(leaf, np.ndarray):
            return leaf
        shape = tuple(grow(d) if d > 1 else d for d in leaf.shape)
        if shape == leaf.shape:
            return leaf
        made = np.resize(leaf, shape).astype(leaf.dtype)
        if leaf.dtype == np.float64:  # equal elements may be sorted in any order
            made += 1e-3 * np.arange(made.size).reshape(shape)
        return made

    return tree_util.tree_map(one, args)


def runs_of(function: Callable, args: tuple) -> list[tuple]:
    """(arguments, result, arguments afterwards) by Python, at the lengths that it can do: three at least."""
    for grows in GROWTH.values():
        runs = []
        for grow in grows:
            given = resized(args, grow)
            after = fresh(given)
            with contextlib.suppress(Exception), at_most(2), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                runs.append((given, function(*after), after))
        if len(runs) >= 3:
            return runs
    return []


def has_lengths(args: tuple) -> bool:
    return any(isinstance(leaf, np.ndarray) and any(d > 1 for d in leaf.shape) for leaf in tree_util.tree_leaves(args))
