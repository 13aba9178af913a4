"""Reductions and products."""

import numpy as np


def sums(a):
    return a.sum(), a.sum(axis=0), a.sum(axis=1, keepdims=True), np.sum(a, axis=(0, 1)), a.sum(-1)


def means(a):
    return a.mean(), a.mean(axis=0), a.var(), a.std(axis=1), np.var(a, ddof=1), np.average(a)


def extremes(a):
    return a.max(), a.min(axis=0), np.max(a, axis=1), a.argmax(), a.argmin(axis=1), np.ptp(a)


def products(a):
    return a.prod(), np.prod(a, axis=0), np.cumsum(a), np.cumsum(a, axis=1), np.cumprod(a[0])


def logical(a):
    return (a > 3).any(), np.all(a > -1), (a > 3).sum(axis=0), np.count_nonzero(a > 3), np.any(a)


def int_sums(k):
    return k.sum(), k.mean(), k.max(), (k > 1).mean(), k.astype(np.int32).sum()


def matrix_products(a, x):
    return a @ x, a.T @ a, np.dot(a, x), x @ x, np.inner(x, x), np.outer(x, x), np.vdot(x, x)


def stacks(t):
    return t @ t.transpose(0, 2, 1), np.matmul(t[0], t[1].T), np.tensordot(t, t, axes=([1, 2], [1, 2]))


def einsums(a, x):
    return (
        np.einsum("ij,j->i", a, x),
        np.einsum("ij,kj->ik", a, a),
        np.einsum("ij->ji", a),
        np.einsum("ij->", a),
        np.einsum("i,j->ij", x, x),
        np.einsum("ij,ij->i", a, a),
    )


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_sum_exp(x):
    m = x.max()
    return m + np.log(np.sum(np.exp(x - m)))


def layer_norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    std = x.std(axis=-1, keepdims=True)
    return (x - mean) / (std + 1e-5)


def norms(a, x):
    return np.linalg.norm(x), np.linalg.norm(a), np.linalg.norm(a, axis=1), np.linalg.norm(x, 1)


def sorting(x):
    return np.sort(x), np.argsort(x), np.median(x), np.searchsorted(np.sort(x), 2.5)


def builtin_reductions(x):
    return sum(x), max(x), min(x), any(x > 3), all(x > 0)


def f32_reductions(x):
    return x.sum(), x.mean(), x.std(), (x * x).sum()


def ufunc_methods(x):
    return np.add.reduce(x), np.multiply.outer(x, x), np.maximum.accumulate(x), np.maximum.reduce(x)


_M = np.array([[1.0, 5.0, -2.0, 3.0], [4.0, 0.5, 2.0, 8.0], [7.0, 1.0, 3.0, -1.0]])
_X = np.array([3.0, 1.0, 4.0, 1.5])
_T = np.arange(24.0).reshape(2, 3, 4)


def convolve_numbers(x, y):
    return np.convolve(x, y), np.convolve(2.0, x), np.convolve(y, 3.0)


def choose_weakly(x, k):
    return np.choose(k, [x.astype(np.float32), 2.0]), np.choose(k, [x.astype(np.int8), 2])


def pythons_sums(x, start):
    """Sums of narrow integers are narrow, and wrap around, as each addition does."""
    listed = [v for v in x]
    some = [v for v in x if v > 3]
    return sum(x), sum(x, start), sum(listed, 10), sum(some), sum(v for v in -x), sum(x.reshape(-1, 2)), sum(x, 0.5)


def numbers_in_rows(x, y):
    return np.vstack([x, y]), np.vstack((x, 2.0)), np.concatenate([np.atleast_2d(x), np.atleast_2d(y)], axis=1)


CASES = [
    (numbers_in_rows, (2.5, np.array(1.5))),
    (pythons_sums, (np.array([200, 90, 7, 3], np.uint8), 5)),
    (pythons_sums, (np.array([100, -120, 101, 3], np.int8), np.int16(300))),
    (pythons_sums, (np.array([0.25, -120, 101, 3], np.float32), 0.5)),
    (convolve_numbers, (np.arange(4.0), 2.5)),
    (choose_weakly, (np.arange(4.0), np.array([0, 1, 1, 0]))),
    (sums, (_M,)),
    (means, (_M,)),
    (extremes, (_M,)),
    (products, (_M,)),
    (logical, (_M,)),
    (int_sums, (np.arange(5),)),
    (matrix_products, (_M, _X)),
    (stacks, (_T,)),
    (einsums, (_M, _X)),
    (softmax, (_M,)),
    (log_sum_exp, (_X,)),
    (layer_norm, (_M,)),
    (norms, (_M, _X)),
    (sorting, (_X,)),
    (builtin_reductions, (_X,)),
    (f32_reductions, (_X.astype(np.float32),)),
    (ufunc_methods, (_X,)),
]
