"""The module `heapq` in plain Python: staged as a user's own functions are.

In: a list of numbers, or of tuples that compare. Out: what heapq gives; the list is left in the order in
which heapq leaves it. `ORDERING` says which functions put a heap in order.

    heapq.heappush(heap, (d, k))    is   heap.append((d, k)); towards_root(heap, 0, len(heap) - 1)
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from . import stands_for

ORDERING: dict[Any, Callable] = {}


def orders(function: Any) -> Callable:
    """Say which function of heapq this one is, which puts a heap in order."""
    return lambda program: ORDERING.setdefault(function, program)


def towards_root(heap, start, place):
    """Let the item at `place` change places with larger parents."""
    item = heap[place]
    while place > start:
        above = (place - 1) >> 1
        parent = heap[above]
        if not item < parent:
            break
        heap[place] = parent
        place = above
    heap[place] = item


def towards_leaves(heap, place):
    """Let the smaller child move up, down to a leaf, and the item from there towards its place."""
    end, start, item = len(heap), place, heap[place]
    child = 2 * place + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    towards_root(heap, start, place)


@orders(heapq.heappush)
def heappush(heap, item):
    heap.append(item)
    towards_root(heap, 0, len(heap) - 1)


@orders(heapq.heappop)
def heappop(heap):
    last = heap.pop()
    if heap:
        smallest = heap[0]
        heap[0] = last
        towards_leaves(heap, 0)
        return smallest
    return last


@orders(heapq.heapreplace)
def heapreplace(heap, item):
    smallest = heap[0]
    heap[0] = item
    towards_leaves(heap, 0)
    return smallest


@orders(heapq.heappushpop)
def heappushpop(heap, item):
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        towards_leaves(heap, 0)
    return item


@orders(heapq.heapify)
def heapify(heap):
    for k in reversed(range(len(heap) // 2)):
        towards_leaves(heap, k)


@stands_for(heapq.nsmallest)
def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[:n]


@stands_for(heapq.nlargest)
def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[:n]
