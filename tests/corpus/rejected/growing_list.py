"""A list that grows in a loop of unknown length."""


def function(t):
    out = []
    while t > 1:
        out.append(t)
        t = t / 2
    return out


CASE = (function, (9.0,))
