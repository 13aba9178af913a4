"""A loop of unknown length in a `try`, with something in it that may fail."""


def function(x):
    try:
        while x < 10:
            x = x + 1 / (x - 3)
    except ZeroDivisionError:
        x = 0.0
    return x


CASE = (function, (1.0,))
