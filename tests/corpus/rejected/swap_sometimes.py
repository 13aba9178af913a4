"""Two arrays change places in some iterations, and are written to."""
import numpy as np


def function(u, steps):
    a, b = u.copy(), u * 10
    for _ in range(steps):
        a[0] += 1.0
        if a[0] > b[1]:
            a, b = b, a
    return a, b


CASE = (function, (np.ones(3), 400))
