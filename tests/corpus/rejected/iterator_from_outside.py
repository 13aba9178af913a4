"""A counter in a global that moves on at each call."""

import itertools

NUMBERS = itertools.count()


def function(x):
    return x + next(NUMBERS)


CASE = (function, (1.0,))
