"""Texts that branches append to a list: only the run knows how many there are."""


def function(x):
    found = []
    if x > 0:
        found.append("above zero")
    if x > 1:
        found.append("above one")
    return len(found)


CASE = (function, (0.5,))
