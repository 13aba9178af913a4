"""An exception that holds an array besides its message."""

import numpy as np


class Diverged(Exception):
    def __init__(self, reason, at):
        super().__init__(reason)
        self.at = at


def function(x):
    if x[0] > 10:
        raise Diverged("too large", x)
    return x


CASE = (function, (np.ones(3),))
