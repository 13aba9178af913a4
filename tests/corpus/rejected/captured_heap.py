"""A C function that changes a list which outlives the call."""

import heapq

_QUEUE: list = []


def function(x):
    heapq.heappush(_QUEUE, 3)
    return x + len(_QUEUE)


CASE = (function, (1.0,))
