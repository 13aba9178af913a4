"""A list from outside is changed."""
SEEN = []


def function(x):
    SEEN.append(x)
    return x


CASE = (function, (1.0,))
