"""A return inside `finally`."""


def function(x):
    try:
        x = x + 1
    finally:
        return x


CASE = (function, (1.0,))
