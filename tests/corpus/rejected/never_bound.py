"""A variable that no path has bound."""


def function(x):
    if x > 100 and False:
        y = x
    return y


CASE = (function, (1.0,))
