"""Shapes: reshape, transpose, broadcasting, joining, splitting, creation."""

import numpy as np


def reshapes(a):
    return a.reshape(4, 3), a.reshape((2, -1)), a.ravel(), np.reshape(a, 12), a.flatten()


def transposes(a):
    return a.T, a.transpose(), a.transpose(1, 0), np.swapaxes(a, 0, 1), np.moveaxis(a[None], 0, -1)


def axes_in_and_out(a):
    return a[None], a[:, None], np.expand_dims(a, 1), np.squeeze(a[None]), a[..., np.newaxis]


def broadcasting(a, x):
    return a + x, a * x[0], a - a[:, :1], np.broadcast_to(x, (2, 4))


def joining(a):
    return (
        np.concatenate([a, a]),
        np.concatenate((a, a), axis=1),
        np.stack([a, a], axis=1),
        np.vstack([a, a]),
        np.hstack([a, a]),
    )


def splitting(a):
    p, q = np.split(a, 2, axis=1)
    return p + 1, q * 2, np.array_split(a, 2)


def equal_parts(x, axis):
    p, q, r = np.split(x, 3, axis)
    return p * q - r, [part.shape for part in np.array_split(x, 4, axis=axis)]


def padding(a):
    return np.pad(a, 1), np.pad(a, ((0, 1), (2, 0)), constant_values=7.0), np.pad(a, 1, mode="edge")


def repeating(x):
    return np.repeat(x, 2), np.tile(x, 3), np.tile(x, (2, 1)), np.repeat(x[None], 2, axis=0)


def flipping(a):
    return a[::-1], np.flip(a, 1), np.flip(a), np.roll(a, 1, axis=1), np.roll(a, 2), np.rot90(a)


def creation():
    return (
        np.zeros(3),
        np.ones((2, 2), dtype=np.int64),
        np.full(2, 7.5),
        np.eye(3),
        np.arange(5),
        np.arange(1, 4),
        np.arange(0, 1, 0.25),
        np.linspace(0, 1, 5),
        np.array([1, 2, 3]),
        np.array([[1.0, 2], [3, 4]]),
    )


def creation_like(a):
    return np.zeros_like(a), np.ones_like(a), np.full_like(a, 3), np.empty_like(a).shape


def array_of_staged(x, y):
    return np.array([x, y, x * y]), np.array([[x, 1.0], [2.0, y]])


def shape_arithmetic(a):
    rows, columns = a.shape
    return np.zeros((columns, rows + 1)), a.size, a.ndim, len(a), rows * columns


def diagonals(a):
    return np.diag(a), np.diag(a[0]), np.trace(a), np.diagonal(a, 1), np.tril(a), np.triu(a, 1)


def meshes(x):
    p, q = np.meshgrid(x, x[:2])
    return p + q, np.outer(x, x)


def one_hot(k):
    return (k[:, None] == np.arange(4)).astype(np.float64)


def attributes(a):
    return a.shape, a.dtype == np.float64, a.itemsize, a.T.shape


def zero_size(x):
    return x[:0].sum(), np.zeros((0, 3)).shape, np.concatenate([x[:0], x])


def rank_zero():
    y = np.array(3.0)
    y[...] = 4.0
    return y + 1, y


def square_of_kept(x, low):
    return x[x > low].reshape(2, -1)


def front_as_square(x, n):
    return x[:n].reshape(2, 2)


def zeros_of(n):
    return np.zeros((2, n + 1))


def ranges_of(a, b):
    return np.arange(a, b), np.arange(b, a, -2), np.arange(b)


def cholesky_factor(numbers, n):
    lower = np.zeros((n, n))
    lower[np.tril_indices(n)] = numbers
    above = np.triu_indices(n, 1, n + 1)
    return lower @ lower.T, above[0] - above[1]


def corner_of(m, n):
    return m[np.tril_indices(n)].sum(), m[np.triu_indices(n, 1)]


def grids_of_so_many(n, x):
    rows, columns = np.ogrid[-1.0 : x : n * 1j, 0:2]
    return np.mgrid[0:x:2j, 0:n], rows, columns, np.r_[x : 1 : n * 1j, 5], np.mgrid[n : 1 : complex(0, n)]


_M = np.arange(12.0).reshape(3, 4)
_S = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])
_X = np.array([1.0, 2.0, 3.0, 4.0])
CASES = [
    (corner_of, (_M, 3)),
    (corner_of, (_M, 0)),
    (cholesky_factor, (np.array([1.5, -0.5, 2.0, 0.25, 1.0, 0.75]), 3)),
    (cholesky_factor, (np.array([1.5]), 1)),
    (grids_of_so_many, (3, 1.5)),
    (grids_of_so_many, (1, 1.5)),
    (grids_of_so_many, (0, 2.5)),
    (equal_parts, (np.arange(30.0).reshape(6, 5), 0)),
    (equal_parts, (np.arange(30.0).reshape(5, 6), 1)),
    (reshapes, (_M,)),
    (transposes, (_M,)),
    (axes_in_and_out, (_M,)),
    (broadcasting, (_M, _X)),
    (joining, (_M,)),
    (splitting, (_M,)),
    (padding, (_M,)),
    (repeating, (_X,)),
    (flipping, (_M,)),
    (creation, ()),
    (creation_like, (_M,)),
    (array_of_staged, (1.0, 2.0)),
    (shape_arithmetic, (_M,)),
    (diagonals, (_S,)),
    (meshes, (_X,)),
    (one_hot, (np.array([0, 2, 3]),)),
    (attributes, (_M,)),
    (zero_size, (_X,)),
    (rank_zero, ()),
    (square_of_kept, (np.arange(6.0), 1.0)),
    (square_of_kept, (np.arange(6.0), 2.0)),
    (front_as_square, (np.arange(6.0), 4)),
    (front_as_square, (np.arange(6.0), 3)),
    (zeros_of, (2,)),
    (zeros_of, (-3,)),
    (ranges_of, (-3, 4)),
    (ranges_of, (3, -4)),
]
