"""A deque is returned."""

from collections import deque


def function(x):
    queue = deque([x])
    queue.append(2 * x)
    return queue


CASE = (function, (8.0,))
