"""The time of day."""

import time


def function(x):
    return x * time.time()


CASE = (function, (1.0,))
