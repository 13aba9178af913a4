"""Escape times of the Mandelbrot set; points that have escaped leave the arrays."""

import numpy as np


def mandelbrot(left, right, bottom, top, width, height, limit):
    x = np.linspace(left, right, width)
    y = np.linspace(bottom, top, height)
    c = (x + 1j * y[:, np.newaxis]).ravel()
    at = np.arange(c.size)
    z = np.zeros_like(c)
    count = np.zeros(c.size, dtype=np.int64)
    for step in range(limit):
        z = z * z + c
        escaped = z.real**2 + z.imag**2 > 4.0
        count[at[escaped]] = step + 1
        staying = ~escaped
        at, z, c = at[staying], z[staying], c[staying]
    return count.reshape(height, width)


def arguments(rng, width, height, limit):
    return -2.0, 0.5, -1.25, 1.25, width, height, limit


SMALL, LARGE = (9, 7, 12), (160, 160, 60)
DIFFERENTIABLE = ()
