"""A captured array of strings."""
import numpy as np

NAMES = np.array(["a", "b"])


def function(x):
    return NAMES[0], x


CASE = (function, (1.0,))
