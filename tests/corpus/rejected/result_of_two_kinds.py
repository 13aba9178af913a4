"""A function that returns a number on one path and a tuple on the other."""


def function(x):
    if x > 0:
        return 0.0
    return x, 1


CASE = (function, (1.0,))
