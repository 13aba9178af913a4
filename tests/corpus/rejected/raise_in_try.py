"""A raise under a staged test, caught in the same function."""


def function(x):
    try:
        if x > 0:
            raise ValueError("positive")
        y = 1.0
    except ValueError:
        y = 2.0
    return y


CASE = (function, (1.0,))
