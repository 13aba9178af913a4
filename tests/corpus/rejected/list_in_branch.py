"""A list that grows on one side of a branch."""


def function(x):
    out = []
    if x > 0:
        out.append(x)
    return out


CASE = (function, (9.0,))
