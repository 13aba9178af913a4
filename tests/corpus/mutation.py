"""Stores with NumPy's meaning: elements, slices, strides, index arrays, masks, `op=`; and what becomes of
the arguments.

In: arrays, some of which the function changes. Out: results; the tests compare the arguments, too.
"""

import bisect
import heapq
import operator

import numpy as np


def strided_stores(x):
    y = x.copy()
    y[::2] = -1
    y[1::3] += 10
    y[::-2] *= 2
    y[-1:0:-3] = [5.0, 6.0, 7.0][: len(y[-1:0:-3])]
    return y


def reversed_store(x):
    y = np.zeros_like(x)
    y[::-1] = x
    y[4:1:-1] -= x[:3]
    return y


def shift_right(x):
    x[1:] = x[:-1]
    return x


def shift_left(x):
    x[:-1] = x[1:]
    x[-1] = 0


def reverse_itself(x):
    x[:] = x[::-1]


def reverse_by_view(x):
    x[::-1] = x


def reverse_half(x):
    n = len(x) // 2
    x[:n] = x[: -n - 1 : -1]
    return x


def overlapping_update(x):
    x[1:] += x[:-1]
    x[:-2] -= x[2:]
    return x


def transpose_itself(a):
    a[...] = a.T
    a.T[...] += a
    return a


def swap_rows(a):
    a[[0, 2]] = a[[2, 0]]
    t = a[1].copy()
    a[1] = a[0]
    a[0] = t
    return a


def swap_rows_as_tuple(a):
    a[0], a[1] = a[1].copy(), a[0].copy()
    return a


def swap_rows_without_copy(a):
    a[0], a[1] = a[1], a[0]
    return a


def swap_elements(x, i, j):
    x[i], x[j] = x[j], x[i]
    return x


def swap_columns(a, i, j):
    a[:, [i, j]] = a[:, [j, i]]
    return a


def duplicate_indices(x, k):
    y = x.copy()
    y[k] += 1.0
    y[k] *= 2.0
    y[k[:2]] = 5.0
    return y


def last_store_wins(x, k):
    y = x.copy()
    y[k] = np.arange(len(k)) + 0.5
    return y


def two_index_arrays(a):
    b = a.copy()
    r = np.array([0, 2])
    c = np.array([1, 3])
    b[r, c] = -1.0
    b[r[:, None], c] += 100.0
    b[np.ix_(r, c)] *= 2.0
    return b


def index_array_and_slice(a, k):
    b = a.copy()
    b[1:, k] = 0.0
    b[k[:2], 1:3] += [[1.0, 2.0], [3.0, 4.0]]
    b[0, k] -= 3.0
    return b


def negative_indices(x, k):
    y = x.copy()
    y[-k] = 1.0
    y[-2] -= 1.0
    return y


def masks(x):
    y = x.copy()
    y[y > 1] -= 1.0
    y[y < 0] = 0.0
    y[(y > 0.1) & (y < 2)] **= 2
    y[~(y == 0)] /= 2.0
    return y


def mask_takes_elements(x):
    y = np.zeros_like(x)
    m = x > 0
    y[m] = x[m]
    y[~m] = np.arange(len(x))[~m]
    y[m] += x[m] * 2
    return y


def mask_of_rows(a):
    b = a.copy()
    b[a[:, 0] > 3] = 0.0
    b[a[:, 1] < 8, 1] = 7.0
    b[:, a[0] > 1] *= -1.0
    return b


def mask_two_dims(a):
    b = a.copy()
    b[b % 2 == 0] = -1.0
    b[b > 6] += 0.5
    return b


def mask_from_other(x, z):
    y = x.copy()
    y[x < z] = z[x < z]
    return y


def mask_on_view(a):
    v = a[1:, ::2]
    v[v > 5] = 0.0
    a.T[a.T < 2] -= 1.0
    return v


def mask_is_list(x):
    y = x.copy()
    y[[True, False, True, False, True, False]] = 9.0
    return y


def staged_bounds_store(x, lo, hi):
    y = x.copy()
    y[lo:hi] = 0.0
    y[lo:hi] += 2.0
    y[hi:] *= 2.0
    y[: lo + 1] = x[: lo + 1] + 1
    return y


def names_rebound_or_written(x):
    y = x
    y += 1.0
    z = x
    z = z + 1.0
    t = 1.0
    s = t
    s += 1.0
    return y, z, t, s


def op_on_scalars(x):
    a = x[0]
    a += 10.0
    b = x[1:2]
    b += 10.0
    return a, x


def every_operator(x, k):
    y = x.copy()
    y += 2
    y -= x
    y *= 3
    y /= 4
    y //= 0.25
    y %= 3
    y **= 2
    m = k.copy()
    m <<= 2
    m >>= 1
    m |= 1
    m &= 7
    m ^= 2
    return y, m


def matmul_in_place(a):
    b = a.copy()
    b @= np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    return b


def narrow_stores(k, x):
    m = np.zeros(4, dtype=np.int32)
    m[0] = x[0]
    m[1:3] = x[1:3]
    m[3] = k[0]
    f = np.zeros(4, dtype=np.float32)
    f[:] = x[:4]
    f[0] += 1e-9
    b = np.zeros(4, dtype=bool)
    b[:] = x[:4]
    return m, f, b


def broadcast_stores(a):
    b = np.zeros_like(a)
    b[:] = a[0]
    b[1:] += a[:2, :1]
    b[..., 0] = [1.0, 2.0, 3.0]
    b[None, 2] = 4.0
    b[1, ...] -= 1.0
    return b


def several_arguments(x, y, a):
    x += y
    y[:] = a[0, 0]
    a[1] = 0.0
    return x.sum() + y.sum()


def nothing_to_return(a, x):
    for i in range(len(a)):
        a[i] -= x[i]
        x[i] = a[i].sum()


def store_before_raise(x, k):
    if k > 2:
        raise ValueError("too large")
    x[k] = 1.0


def empty_stores(x):
    y = x.copy()
    y[3:3] = 1.0
    y[10:] += 2.0
    y[np.array([], dtype=int)] = 4.0
    y[x > 1e9] = 5.0
    return y


def zero_size(x):
    y = np.zeros((0, 3))
    y += 1.0
    y[:] = 2.0
    y[:, 1] = x[0]
    return y, y.sum()


def rank_zero(x):
    y = np.array(0.0)
    y[()] = x[0]
    y += 1.0
    z = y
    z[...] = z * 2
    return y, float(z)


def rank_zero_in_loop(x):
    total = np.array(0.0)
    same = total
    for v in x:
        total += v
    return same, total[()]


def complex_stores(x):
    c = np.zeros(3, dtype=complex)
    c[0] = x[0]
    c[1] = 1j * x[1]
    c.real[2] = x[2]
    c.imag[0] += 5.0
    c.real *= 2.0
    return c


def swap_by_index_arrays(x, k):
    p = np.argsort(x)
    y = np.empty_like(x)
    y[p] = x
    inverse = np.empty_like(p)
    inverse[p] = np.arange(len(p))
    return y, inverse, x[p][inverse]


_X = np.array([1.0, -2.0, 3.0, 0.5, 4.0, 2.5])
_A = np.arange(9.0).reshape(3, 3)
_B = np.arange(12.0).reshape(3, 4)
_K = np.array([1, 3, 3, 0, 1])


def list_changed_by_c_functions(queue, x):
    heapq.heapify(queue)
    bisect.insort(queue, 2)
    list.append(queue, 7)
    operator.setitem(queue, 0, 9)
    return x + queue[0] + len(queue)


CASES = [
    (strided_stores, (_X,)),
    (reversed_store, (_X,)),
    (shift_right, (_X,)),
    (shift_left, (_X,)),
    (reverse_itself, (_X,)),
    (reverse_by_view, (_X,)),
    (reverse_half, (_X,)),
    (overlapping_update, (_X,)),
    (transpose_itself, (_A,)),
    (swap_rows, (_A,)),
    (swap_rows_as_tuple, (_A,)),
    (swap_rows_without_copy, (_A,)),
    (swap_elements, (_X, 1, 4)),
    (swap_columns, (_B, 0, 2)),
    (duplicate_indices, (_X, _K)),
    (last_store_wins, (_X, _K)),
    (two_index_arrays, (_B,)),
    (index_array_and_slice, (_B, np.array([2, 0, 2]))),
    (negative_indices, (_X, _K)),
    (masks, (_X,)),
    (mask_takes_elements, (_X,)),
    (mask_of_rows, (_B,)),
    (mask_two_dims, (_B,)),
    (mask_from_other, (_X, _X[::-1].copy())),
    (mask_on_view, (_B,)),
    (mask_is_list, (_X,)),
    (staged_bounds_store, (_X, 1, 4)),
    (staged_bounds_store, (_X, 4, 2)),
    (staged_bounds_store, (_X, 0, 9)),
    (names_rebound_or_written, (_X,)),
    (op_on_scalars, (_X,)),
    (every_operator, (_X, _K)),
    (matmul_in_place, (_A,)),
    (narrow_stores, (_K, _X)),
    (broadcast_stores, (_B,)),
    (several_arguments, (_X, _X * 2, _B)),
    (nothing_to_return, (_B, _X[:3].copy())),
    (store_before_raise, (_X, 1)),
    (store_before_raise, (_X, 3)),
    (empty_stores, (_X,)),
    (zero_size, (_X,)),
    (rank_zero, (_X,)),
    (rank_zero_in_loop, (_X,)),
    (complex_stores, (_X,)),
    (swap_by_index_arrays, (_X, _K)),
    (list_changed_by_c_functions, ([3, 1, 2], 0.5)),
]
