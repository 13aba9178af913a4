"""A method that arrays do not have here."""
import numpy as np


def function(x):
    return x.newbyteorder()


CASE = (function, (np.ones(3),))
