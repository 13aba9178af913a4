"""A store through a reshape of an array that NumPy leaves transposed in memory: there it is a copy."""
import numpy as np


def function(x):
    doubled = x.T * 2.0
    flat = doubled.reshape(-1)
    flat[0] = 1.0
    return doubled


CASE = (function, (np.ones((3, 5)),))
