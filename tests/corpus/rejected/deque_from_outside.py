"""A deque in a global that a program appends to."""

from collections import deque

RECENT = deque(maxlen=3)


def function(x):
    RECENT.append(1.0)
    return x * len(RECENT)


CASE = (function, (1.0,))
