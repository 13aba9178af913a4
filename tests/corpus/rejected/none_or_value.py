"""A function that returns a value on some paths only."""


def function(x):
    if x > 0:
        return x


CASE = (function, (1.0,))
