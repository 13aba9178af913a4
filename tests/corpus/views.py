"""Views: arrays that share memory, by every way NumPy has to make one; and what is no view but a copy.

In: arrays, some changed through views of them. Out: the arrays and the views.
"""

import numpy as np


def slice_is_a_view(x):
    y = x[1:]
    y[0] = 3.0
    return x, y


def column_read_before_it_is_written(a, x):
    """The quotients are made before the store, whenever they are used."""
    kept = [x / a[:, :1] - x * a[:, :1]]
    a = a + 1.0
    kept.append(x / a[:, :1] - x * a[:, :1])
    a[:, 0] = 7.0
    return kept[0] * a, kept[1] * a


def row_is_a_view(a):
    r = a[1]
    r += 10.0
    c = a[:, 2]
    c[:] = r[0]
    return a, r, c


def transpose_is_a_view(a):
    t = a.T
    t[0, 1] = -1.0
    a.T[...] *= 2.0
    a.transpose()[1] = 7.0
    return t


def reshape_is_a_view(x):
    m = x.reshape(2, 3)
    m[1] = 0.0
    x[0] = 50.0
    n = x.reshape(-1, 2)
    n[:, 1] += 1.0
    return m, n


def reshape_of_transpose_is_a_copy(a):
    b = a.T.reshape(-1)
    b[0] = 99.0
    return a, b


def ravel_and_flatten(a):
    r = a.ravel()
    r[0] = 5.0
    f = a.flatten()
    f[1] = 6.0
    t = a.T.ravel()
    t[2] = 7.0
    return a, r, f, t


def ravel_of_a_slice(a):
    r = a[:, 1:].ravel()
    r[0] = -5.0
    s = a[1:].ravel()
    s[0] = -6.0
    return a, r, s


def ravel_of_step(x):
    r = x[::2].ravel()
    r[0] = -5.0
    s = x[::2].reshape(-1)
    s[1] = -6.0
    t = x[::2].reshape(3, 1)
    t[2] = -7.0
    return x, r, s, t


def reshape_of_slice_columns(a):
    b = a[:, :2].reshape(3, 2, 1)
    b[0] = 1.0
    c = a[:, 1:3].reshape(-1)
    c[:] = 0.0
    return a, b, c


def swapaxes_moveaxis(c):
    d = np.swapaxes(c, 0, 2)
    d[0, 1] = 5.0
    e = np.moveaxis(c, 0, -1)
    e[..., 1] += 1.0
    f = np.rollaxis(c, 2)
    f[1] *= 2.0
    return c, d, e


def squeeze_and_expand(x):
    y = x[:, None]
    y[0, 0] = 7.0
    z = np.expand_dims(x, 0)
    z[0, 1] = 8.0
    w = y.squeeze()
    w[2] = 9.0
    v = np.atleast_2d(x)
    v[0, 3] = 10.0
    return x


def diagonal_reads(a):
    d = a.diagonal()
    e = np.diagonal(a, 1)
    s = d.sum()
    a[0, 0] = 50.0
    return d, e, s


def diag_is_a_copy(a):
    d = np.diag(a).copy()
    d[0] = 50.0
    m = np.diag(d)
    return a, m


def flips_are_views(a):
    f = np.flip(a, 0)
    f[0] = 1.0
    g = np.fliplr(a)
    g[0, 0] = 2.0
    h = np.flipud(a)
    h[0, 1] = 3.0
    k = np.rot90(a)
    k[0, 2] = 4.0
    return a


def split_gives_views(x):
    first, second = np.split(x, 2)
    first[0] = 40.0
    second[:] = first
    parts = np.array_split(x, 3)
    parts[2][1] = 60.0
    return x


def real_and_imag(z):
    z.real[0] = 3.0
    z.imag += 1.0
    return z, z.real


def index_array_is_a_copy(x):
    y = x[[0, 1, 2]]
    y[0] = 99.0
    z = x[x > 0]
    z[0] = 98.0
    return x, y, z


def astype_and_array_copy(x):
    y = x.astype(float)
    y[0] = 1.5
    z = np.array(x)
    z[1] = 2.5
    w = np.asarray(x)
    w[2] = 3.5
    v = np.ascontiguousarray(x)
    v[3] = 4.5
    u = x.astype(float, copy=False)
    u[4] = 5.5
    return x, y, z


def views_of_views(a):
    v = a[1:]
    w = v[:, ::2]
    t = w.T
    t[1] = 5.0
    r = t[::-1, ::-1]
    r[0, 0] = 6.0
    v[0, 0] = r[1, 0] + 1
    return a, v, w, t, r


def view_of_row_of_view(c):
    m = c[1].T[2]
    m[0] = 3.0
    n = c.reshape(4, 6)[2:].reshape(2, 2, 3)
    n[1, 1] = -n[0, 0]
    return c, m


def view_sees_later_writes(x):
    v = x[2:4]
    x[2] = 8.0
    s = v.sum()
    x *= 2.0
    return s, v


def view_kept_across_a_loop(x, n):
    v = x[1:]
    for i in range(n):
        x[i + 1] += x[i]
        v[0] += 0.5
    return v.sum(), x


def view_made_in_a_loop(a):
    for i in range(a.shape[0]):
        row = a[i]
        row -= row.mean()
        row[0] = i
    return a


def view_of_last_row(a):
    row = a[0]
    for i in range(1, a.shape[0]):
        row = a[i]
    row[0] = 77.0
    return a


def rows_iterated(a):
    for row in a:
        row /= row.sum() + 1.0
    for row in a.T:
        row[0] = 1.0
    return a


def zip_of_rows(a, b):
    for r, s in zip(a, b):
        r[:] = r + s
        s[0] = 0.0
    return a, b


def enumerate_rows(a):
    for i, row in enumerate(a):
        row[i] = -1.0
    return a


def view_written_in_branch(x, t):
    v = x[1:]
    if t > 0:
        v[0] = 4.0
        x[0] = 2.0
    else:
        x[1] = v[1]
    return x, v


def view_kept_across_a_branch(x, t):
    v = x[::2]
    if t > 0:
        x[0] = v[1] + 1.0
    v *= 2.0
    if t > 1:
        v = v[1:]
        v[0] = 0.0
    return x


def view_of_staged_index(a, i):
    r = a[i]
    r[1] = 5.0
    c = a[:, i]
    c *= 2.0
    e = a[i, i:]
    e += 100.0
    return a


def view_at_old_index(a, i):
    r = a[i]
    i = i + 1
    r[:] = -1.0
    a[i] = r * 2
    return a


def view_of_staged_slice(x, lo, hi):
    v = x[lo:hi]
    v += 1.0
    w = v[1:]
    w *= 3.0
    x[0] = v.sum()
    return x, len(v)


def view_passed_to_a_function(a):
    def clear(v):
        v[...] = 0.0

    def double(v):
        v *= 2.0
        return v

    clear(a[0])
    clear(a[:, 1:2])
    r = double(a[2])
    r[0] = 1.0
    return a


def base_rebound(x):
    v = x[1:]
    x = x * 2.0
    v[0] = 100.0
    return x, v


def broadcast_reads_through(x):
    b = np.broadcast_to(x, (2, len(x)))
    x[0] = 12.0
    return b.sum(axis=1), b


def meshes_are_copies(x):
    g, h = np.meshgrid(x, x)
    x[0] = 5.0
    return g, h


def concatenate_is_a_copy(x):
    y = np.concatenate([x, x])
    s = np.stack([x, x])
    x[0] = 9.0
    y[1] = 8.0
    return x, y, s


def ternary_of_views(x, t):
    v = x[:2] if t > 0 else x[2:4]
    return v.sum(), v * 2.0


def windows(x):
    w = np.zeros(len(x) - 2)
    for k in range(3):
        w += x[k : len(x) - 2 + k]
    return w


def where_writes_view(a):
    inner = a[1:-1, 1:-1]
    inner[...] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return a


def reshape_of_cut_rows(x):
    v = x[:, :-1]
    w = v.reshape(v.shape[1], v.shape[0])  # as many rows as before where x has one more column than rows
    w[0, 0] = 7.0
    return w, v.copy()


def shape_of_a_row(x):
    first, second = x
    first.shape = (2, 2)
    first[1, 0] = 7.0
    return first @ first, x[0] + second


_X = np.array([1.0, -2.0, 3.0, 0.5, 4.0, 2.5])
_A = np.arange(9.0).reshape(3, 3)
_B = np.arange(12.0).reshape(3, 4)
_C = np.arange(24.0).reshape(2, 3, 4)


def view_unless_a_loop_runs(x, n):
    w = x * 0.5
    v = w[::-1]
    for _ in range(n):
        v = x.copy()
    v[2] = 0.25
    return v, w


def part_unless_a_loop_runs(x, b):
    w = x * 0.5
    v = w[1:]
    i = 0
    while i < 3 and b > 0:
        i += 1
        v = x[:-1] * 3.0
    w[1] = 7.0
    v[2] = 0.25
    return v, w


def views_taken_over_by_a_loop(x, n):
    w = x * 0.5
    a, b = x * 2.0, w[::-1]
    for _ in range(n):
        a, b = a * 0.5, a
    b[0] = 9.0
    return a, b, w


def copies_on_request(x):
    """`copy=` says whether the result is the array itself."""
    apart = x.reshape((2, -1), copy=True)
    apart[0, 0] = 1.5
    turned = np.reshape(x, (2, -1), order="F", copy=True)
    turned[1, 0] = 2.5
    itself = np.astype(x, np.float64, copy=False)
    itself[1] = 3.5
    cleaned = np.nan_to_num(x, copy=False, nan=-1.0)
    cleaned[3] += 4.5
    return x, apart, turned, itself, cleaned


CASES = [
    (copies_on_request, (np.array([5.0, np.nan, 7.0, np.nan]),)),
    (slice_is_a_view, (_X,)),
    (row_is_a_view, (_A,)),
    (transpose_is_a_view, (_B,)),
    (reshape_is_a_view, (_X,)),
    (reshape_of_transpose_is_a_copy, (_B,)),
    (ravel_and_flatten, (_B,)),
    (ravel_of_a_slice, (_B,)),
    (ravel_of_step, (_X,)),
    (reshape_of_slice_columns, (_B,)),
    (swapaxes_moveaxis, (_C,)),
    (squeeze_and_expand, (_X,)),
    (diagonal_reads, (_A,)),
    (diag_is_a_copy, (_A,)),
    (flips_are_views, (_A,)),
    (split_gives_views, (_X,)),
    (real_and_imag, (_X[:3] + 2j,)),
    (index_array_is_a_copy, (_X,)),
    (astype_and_array_copy, (_X,)),
    (views_of_views, (_B,)),
    (view_of_row_of_view, (_C,)),
    (view_sees_later_writes, (_X,)),
    (view_kept_across_a_loop, (_X, 4)),
    (view_made_in_a_loop, (_B,)),
    (view_of_last_row, (_B,)),
    (rows_iterated, (_B,)),
    (zip_of_rows, (_B, _B * 2)),
    (enumerate_rows, (_B,)),
    (view_written_in_branch, (_X, 1.0)),
    (view_written_in_branch, (_X, -1.0)),
    (view_kept_across_a_branch, (_X, 2.0)),
    (view_kept_across_a_branch, (_X, 0.5)),
    (view_of_staged_index, (_A, 1)),
    (view_of_staged_index, (_A, -1)),
    (view_at_old_index, (_A, 1)),
    (view_of_staged_slice, (_X, 1, 4)),
    (view_of_staged_slice, (_X, 2, 2)),
    (view_passed_to_a_function, (_A,)),
    (base_rebound, (_X,)),
    (broadcast_reads_through, (_X,)),
    (meshes_are_copies, (_X,)),
    (concatenate_is_a_copy, (_X,)),
    (ternary_of_views, (_X, 1.0)),
    (windows, (_X,)),
    (column_read_before_it_is_written, (np.arange(1.0, 9.0).reshape(2, 4), np.arange(8.0).reshape(2, 4))),
    (where_writes_view, (np.arange(16.0).reshape(4, 4) ** 2,)),
    (reshape_of_cut_rows, (np.arange(12.0).reshape(3, 4),)),
    (shape_of_a_row, (np.arange(8.0).reshape(2, 4),)),
    (view_unless_a_loop_runs, (np.arange(4.0), 0)),
    (view_unless_a_loop_runs, (np.arange(4.0), 2)),
    (part_unless_a_loop_runs, (np.arange(4.0), -1.0)),
    (part_unless_a_loop_runs, (np.arange(4.0), 1.0)),
    (views_taken_over_by_a_loop, (np.arange(4.0), 0)),
    (views_taken_over_by_a_loop, (np.arange(4.0), 1)),
    (views_taken_over_by_a_loop, (np.arange(4.0), 2)),
]
