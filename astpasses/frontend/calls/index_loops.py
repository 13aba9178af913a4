"""Iterators over many indices at once: `np.ndindex`, `np.ndenumerate`, and `itertools`' products and choices.

In: sizes, ranges, arrays. Out: what a rolled loop can run over (a `Ranged`): the item of iteration k is made
of k, or read from a table of all items where these are known.

    for i, j in np.ndindex(n, m):                 # i, j = k // m % n, k % m
    for i, j in combinations(range(4), 2):        # i, j = table[k]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metaphrase.core.dims import product as product_of_dims
from metaphrase.late import dataclass, field

from ..flow.iteration import ranged, staged_range
from ..flow.iterators import Ranged, iterator
from ..staging.literals import elements
from ..staging.session import Session, session
from ..values.staged_values import StagedArray
from .builtin_calls import combined
from .call import handles
from .numpy_shapes import ravel

FEW = 8  # items up to which a known iterator stays Python's
MOST = 1 << 20  # items of a table


@dataclass
class Table(Ranged):
    """Known tuples of ints: Python's own where the loop is unrolled."""

    items: list[tuple] = field(default_factory=list)

    def __iter__(self) -> Iterator:
        return super().__iter__() if self.once else iter(self.items)


def _digits(here: Session, k: Any, sources: list[Ranged]) -> tuple:
    """The items of several ranges of which the last runs fastest."""
    out: list[Any] = []
    for source in reversed(sources):
        size = here.size(source.length)
        last = len(out) + 1 == len(sources)
        out.append(source.item(k if last else k % size, []))
        k = k if last else k // size
    return tuple(reversed(out))


def _grid(here: Session, sources: list[Ranged]) -> Ranged:
    total = product_of_dims(source.length for source in sources)
    return Ranged(total, lambda k, rows: _digits(here, k, sources))


@handles(np.ndindex)
def ndindex(*shape: Any) -> Any:
    here = session()
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    axes: list[Any] = [ranged(here, staged_range(here, size)) for size in sizes]
    return iterator(here, _grid(here, axes)) if axes else here.born(iter([()]))


@handles(np.ndenumerate)
def ndenumerate(array: Any) -> Any:
    here = session()
    array = here.lift(array) if isinstance(array, np.ndarray) else array
    if not isinstance(array, StagedArray) or array.ndim == 0:
        return np.ndenumerate(array)
    axes: list[Any] = [ranged(here, staged_range(here, here.size(dim))) for dim in array.type.dims]
    flat: Any = ranged(here, ravel(array))
    return iterator(here, combined(flat, lambda k, item: (_digits(here, k, axes), item)))


@handles(itertools.product)
def product(*iterables: Any, repeat: int = 1) -> Any:
    here = session()
    if all(isinstance(i, (range, Ranged)) for i in iterables) and iterables and repeat > 0:
        sources: list[Any] = [ranged(here, i) for i in iterables] * repeat
        if all(not source.rows for source in sources):
            return iterator(here, _grid(here, sources))
    return _chosen(here, lambda *given: itertools.product(*given, repeat=repeat), *iterables)


@handles(itertools.combinations)
def combinations(iterable: Any, r: int) -> Any:
    return _chosen(session(), lambda items: itertools.combinations(items, r), iterable)


@handles(itertools.combinations_with_replacement)
def combinations_with_replacement(iterable: Any, r: int) -> Any:
    return _chosen(session(), lambda items: itertools.combinations_with_replacement(items, r), iterable)


@handles(itertools.permutations)
def permutations(iterable: Any, r: int | None = None) -> Any:
    return _chosen(session(), lambda items: itertools.permutations(items, r), iterable)


def _chosen(here: Session, make: Callable, *iterables: Any) -> Any:
    """What an iterator of `itertools` gives, as a table where it is tuples of ints."""
    given = [list(elements(here, i)) for i in iterables]
    first = list(itertools.islice(make(*given), MOST + 1))
    if not FEW < len(first) <= MOST or not all(type(v) is int for v in itertools.chain(*given)):
        return here.born(make(*given))
    columns = [here.lift(np.array(column)) for column in zip(*first)]

    def item(k: Any, rows: list) -> tuple:
        return tuple(here.wrap(here.atom(row), int) for row in rows)

    return iterator(here, Table(len(first), item, columns, items=first))
