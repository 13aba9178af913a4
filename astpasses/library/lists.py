"""What is asked of lists whose length only the run knows, in plain Python: staged as a user's own loops are.

In: the items, a key. Out: an item, or places of items.

    max((v for v in x if v > 0), key=f)    is   best_by(items, f, True)
    print(h)                               is   print("[", end=""); print_items(h, False, ...); print("]")
"""

from __future__ import annotations

import numpy as np


def require(test, message):
    if not test:
        raise ValueError(message)


def print_items(items, behind, file):
    """The items as a list shows them, with a comma before the first one if others stand before it."""
    for k, item in enumerate(items):
        if behind or k > 0:
            print(", ", end="", file=file)
        print(repr(item), end="", file=file)


def best_by(items, key, largest):
    """The first item whose key is the largest, or the smallest."""
    best = items[0]
    top = key(best)
    for item in items[1:]:
        value = key(item)
        if value > top if largest else value < top:
            best, top = item, value
    return best


def reduced(function, items, *initial):
    """`functools.reduce`."""
    if initial:
        found = initial[0]
        for item in items:
            found = function(found, item)
        return found
    if len(items) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    found = items[0]
    for item in items[1:]:
        found = function(found, item)
    return found


def order_by(items, key, reverse):
    """The places of the items in order of their keys; equal ones keep their order in either direction."""
    keys = np.array([key(item) for item in items])
    if reverse:
        return (len(keys) - 1 - np.argsort(keys[::-1], kind="stable"))[::-1]
    return np.argsort(keys, kind="stable")


def place_of(items, value, start=0, stop=None):
    """`list.index`: the first place of an item that equals a value."""
    place = -1
    for k in reversed(range(len(items))[start:stop]):
        if items[k] == value:
            place = k
    if place < 0:
        raise ValueError(f"{value!r} is not in list" if isinstance(items, list) else "tuple.index(x): x not in tuple")
    return place


def number_of(items, value):
    """`list.count`: how many items equal a value."""
    return sum([1 if item == value else 0 for item in items])
