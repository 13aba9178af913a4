"""A loop of unknown length in a `try`, with something in it that may fail."""


def function(x):
    try:
        while x < 10:
            x = x + 6 / (4 - x)
    except ZeroDivisionError:
        x = 0.0
    return x


CASE = (function, (1.0,))
