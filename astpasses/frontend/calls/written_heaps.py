"""The module `heapq` in plain Python: staged as a user's own functions are.

In: a list of numbers, or of tuples that compare. Out: what heapq gives; the list is left in the order in
which heapq leaves it. A heap that the run orders is held in buffers (`flow/stacks.py`).

    heapq.heappush(heap, (d, k))    is   heap.append((d, k)); towards_root(heap, 0, len(heap) - 1)
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from ..flow.gathering import is_gathered
from ..flow.stacks import become_stack, is_stack
from ..staging.journal import noticed
from ..staging.session import session
from .call import call_value, handles, has_staged
from .written import stands_for


def of_heap(function: Callable) -> Callable:
    """Say which function of heapq this one is, where staged values decide the order."""

    def register(program: Callable) -> Callable:
        @handles(function)
        def handler(heap: Any, *args: Any) -> Any:
            here = session()
            if type(heap) is not list or not (here.in_region() or is_gathered(heap) or has_staged((heap, args))):
                with noticed(here.journal, (heap,)):
                    return function(heap, *args)
            if not is_stack(heap):
                become_stack(here, heap, None, "a heap puts its items in order")
            return call_value(program, (heap, *args), {})

        return program

    return register


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


@of_heap(heapq.heappush)
def heappush(heap, item):
    heap.append(item)
    towards_root(heap, 0, len(heap) - 1)


@of_heap(heapq.heappop)
def heappop(heap):
    last = heap.pop()
    if heap:
        smallest = heap[0]
        heap[0] = last
        towards_leaves(heap, 0)
        return smallest
    return last


@of_heap(heapq.heapreplace)
def heapreplace(heap, item):
    smallest = heap[0]
    heap[0] = item
    towards_leaves(heap, 0)
    return smallest


@of_heap(heapq.heappushpop)
def heappushpop(heap, item):
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        towards_leaves(heap, 0)
    return item


@of_heap(heapq.heapify)
def heapify(heap):
    for k in reversed(range(len(heap) // 2)):
        towards_leaves(heap, k)


@stands_for(heapq.nsmallest)
def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[:n]


@stands_for(heapq.nlargest)
def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[:n]
