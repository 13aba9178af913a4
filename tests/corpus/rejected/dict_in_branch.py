"""A dict that grows on one side of a branch."""


def function(x):
    out = {}
    if x > 0:
        out["x"] = x
    return out


CASE = (function, (9.0,))
