import numpy as np


def distinct(xs):
    seen = set()
    for x in xs:
        seen.add(x)
    return len(seen)


CASE = distinct, (np.array([3.0, 1.0, 3.0]),)
