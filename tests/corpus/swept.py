"""What programs from control, mechanics, physics and the like asked for, each cut down to a few lines."""

import numpy as np


def inputs_joined(x, n):
    """Model predictive control joins the inputs of all steps."""
    inputs = []
    for _ in range(n):
        u = -0.5 * x
        x = x + 0.1 * u
        inputs.append(u)
    joined = np.concatenate(inputs), np.hstack(inputs), np.vstack(inputs)
    return joined, np.column_stack(inputs), np.dstack(inputs)


def blocks_joined(a, n):
    blocks = []
    for k in range(n):
        blocks.append(a * k)
    joined = np.concatenate(blocks, axis=1), np.concatenate(blocks, None)
    return joined, np.hstack(blocks), np.stack(blocks, -1)


def numbers_joined(x, n):
    found = []
    for k in range(n):
        found.append(x * k)
    return np.hstack(found), np.vstack(found), np.dstack(found), np.column_stack(found)


def nothing_to_join(x, n):
    found = []
    for k in range(n):
        found.append(x * k)
    return np.vstack(found)


def grid_of_ranges(n, m):
    x, y = np.meshgrid(range(n), range(1, m, 2))
    return x, y, np.sqrt(range(n)), np.cumsum(range(n)), np.array(range(m)) * 0.5


def ranges_as_axes(x):
    moved = np.moveaxis(x, (2, 0), range(2))
    return moved, np.tensordot(x, x, axes=(range(2), range(2))), np.transpose(x, range(3))


def wave_numbers(x, length):
    """Spectral methods take the sample distance from a grid."""
    d = (x[-1] - x[0]) / (len(x) - 1) * length
    return np.fft.fftfreq(len(x), d=d), np.fft.rfftfreq(len(x), d), np.fft.fftfreq(x.size, 0.5)


_V = np.array([1.0, -2.0])
_T = np.arange(24.0).reshape(2, 3, 4)

CASES = [
    (inputs_joined, (_V, 4)),
    (inputs_joined, (_V, 80)),
    (blocks_joined, (_T[0], 3)),
    (numbers_joined, (0.5, 5)),
    (nothing_to_join, (_V, 0)),
    (nothing_to_join, (_V, 3)),
    (grid_of_ranges, (3, 8)),
    (ranges_as_axes, (_T,)),
    (wave_numbers, (np.linspace(0.0, 2.0, 8), 1.5)),
    (wave_numbers, (np.linspace(0.0, 2.0, 9), 1.5)),
    (wave_numbers, (np.linspace(0.0, 2.0, 2), 1.5)),
]
