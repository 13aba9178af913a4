"""Floating-point faults are silent in a translated program."""

import numpy as np


def function(x):
    with np.errstate(divide="raise", invalid="ignore"):
        return 1.0 / x


CASE = (function, (np.arange(3.0),))
