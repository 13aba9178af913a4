"""A generator inside."""


def function(x):
    def values():
        yield x
        yield x + 1
    return sum(values())


CASE = (function, (1.0,))
