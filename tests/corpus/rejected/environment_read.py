"""A variable of the environment."""

import os


def function(x):
    return x * float(os.environ.get("SCALE", "1"))


CASE = (function, (1.0,))
