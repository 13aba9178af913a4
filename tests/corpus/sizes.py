"""Arrays whose sizes are known only when the program runs: masks, nonzero, unique, staged bounds, arange(n).

In: arrays and counts. Out: reductions of such arrays, arrays of other sizes made from them, and themselves.
"""

import numpy as np


def mask_read(x):
    return x[x > 0]


def mask_sum(x):
    return x[x > 0].sum(), x[x < -100].sum()


def mask_mean_of_some(x):
    y = x[x > 0]
    return y.mean() if len(y) > 0 else 0.0


def mask_statistics(x):
    y = x[np.abs(x) < 4]
    return y.mean(), y.var(), y.max(), y.argmin(), y.size, y.shape


def mask_elementwise(x):
    m = x > 0
    y = x[m]
    z = np.sin(x)[m] * y + 1.0
    z -= y.mean()
    return z @ y, z


def mask_two_arrays(x, z):
    keep = ~np.isnan(z)
    a, b = x[keep], z[keep]
    a = a - a.mean()
    b = b - b.mean()
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


def mask_store_into(x):
    y = x[x > 0]
    y[0] = 100.0
    y[1:] *= 2.0
    return y, x


def mask_loop(x):
    y = x[x > 0]
    total = 0.0
    for v in y:
        total = total * 0.5 + v
    for i in range(len(y)):
        total += i * y[i]
    return total


def mask_back_into_place(x):
    m = x > 0
    y = x[m]
    y = np.sort(y)
    x[m] = y
    return x


def mask_rows(a):
    b = a[a[:, 0] > 3.5]
    return b, b.sum(axis=0), b.shape


def mask_rows_product(a, w):
    b = a[a[:, 1] > 2]
    return b @ w, b.T @ b


def mask_of_mask(x):
    y = x[x > 0]
    z = y[y < 3]
    return z, len(z), z.sum()


def mask_columns(a):
    c = a[:, a[0] > 1]
    return c, c.sum(axis=1)


def mask_two_dims(a):
    b = a[a > 4]
    return b, b.sum()


def mask_and_index(a):
    m = a[:, 0] > 0
    return a[m, 1], a[m, 1:].sum(axis=0)


def nonzero_one(x):
    (k,) = np.nonzero(x > 0)
    return k, x[k], len(k)


def nonzero_two(a):
    i, j = np.nonzero(a % 2 == 0)
    return i + j, a[i, j].sum()


def where_one_argument(x):
    k = np.where(x < 3)[0]
    return k, x[k].sum()


def flatnonzero_argwhere(a):
    k = np.flatnonzero(a > 3)
    w = np.argwhere(a > 3)
    return k, w, w.shape[0]


def first_true(x):
    k = np.flatnonzero(x > 2)
    if k.size == 0:
        return -1
    return k[0]


def compress_extract(x, a):
    p = np.compress(x > 0, x)
    q = np.extract(x > 0, x * 2)
    r = np.compress(a[:, 0] > 2, a, axis=0)
    return p, q, r


def unique_values(k):
    u = np.unique(k)
    return u, len(u), u.sum()


def unique_counts(k):
    u, c = np.unique(k, return_counts=True)
    return u, c, u[np.argmax(c)]


def unique_inverse(k):
    u, i, v, c = np.unique(k, return_index=True, return_inverse=True, return_counts=True)
    return u, i, v, c, u[v]


def unique_of_none(x, limit):
    y = x[x > limit]
    u, k, i, c = np.unique(y, return_index=True, return_inverse=True, return_counts=True)
    return u, k, i, c, np.intersect1d(y, x), len(np.union1d(y, x))


def quantiles_of_some(x, limit):
    y = x[x > limit]
    middle = np.median(y)
    if len(y) > 0:
        middle += np.percentile(y, 25.0)
    return middle


def entropy(k):
    _, c = np.unique(k, return_counts=True)
    p = c / len(k)
    return -(p * np.log(p)).sum()


def group_means(k, x):
    u, v = np.unique(k, return_inverse=True)
    total = np.zeros(len(u))
    np.add.at(total, v, x)
    count = np.zeros(len(u))
    np.add.at(count, v, 1.0)
    return u, total / count


def group_by_masks(k, x):
    out = np.zeros(4)
    for g in range(4):
        rows = x[k == g]
        if len(rows):
            out[g] = rows.mean()
    return out


def staged_slice(x, lo, hi):
    y = x[lo:hi]
    return y, y.sum(), len(y)


def staged_slice_sum_in_loop(x, w):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[max(0, i - w) : i + w + 1].mean()
    return out


def staged_slice_products(a, k):
    left = a[:k]
    right = a[k:]
    return left.T @ left + right.T @ right, left.shape[0]


def staged_step_slice(x, lo):
    return x[lo::2], x[:lo:3].sum(), x[lo:][::-1]


def zeros_of_count(n, x):
    y = np.zeros(n)
    for i in range(n):
        y[i] = x * i
    return y, y.sum()


def made_of_count(n):
    a = np.arange(n)
    b = np.ones(n) * 2
    c = np.full(n, 3.0)
    d = np.empty(n)
    d[:] = a
    return a * b + c - d, np.arange(n, dtype=float).sum()


def count_of_values(x):
    n = int(np.sum(x > 0))
    y = np.arange(n) ** 2
    z = np.zeros((n, 2))
    z[:, 0] = y
    return y, z, np.arange(1, n + 1), np.linspace(0.0, 1.0, n)


def repeated(x, k):
    r = np.repeat(x, k)
    return r, len(r)


def concatenated(x):
    a, b = x[x > 0], x[x <= 0]
    c = np.concatenate([a, b])
    d = np.concatenate([b, [7.0], a])
    return c, d, len(d)


def stacked_masks(x):
    m = x > 0
    return np.stack([x[m], x[m] * 2]), np.vstack([x[m], -x[m]]).sum(axis=0)


def partition_sort(x):
    pivot = x[0]
    rest = x[1:]
    small, large = rest[rest < pivot], rest[rest >= pivot]
    return np.concatenate([np.sort(small), [pivot], np.sort(large)])


def set_operations(k, m):
    return np.intersect1d(k, m), np.union1d(k, m), np.setdiff1d(k, m), np.isin(k, m)


def halved(x):
    y = x
    while len(y) > 1:
        n = len(y) // 2
        y = y[:n] + y[n : 2 * n]
    return y[0]


def median_of_positive(x):
    y = np.sort(x[x > 0])
    n = len(y)
    if n % 2 == 1:
        return y[n // 2]
    return 0.5 * (y[n // 2 - 1] + y[n // 2])


def outliers_removed(x):
    for _ in range(3):
        m, s = x.mean(), x.std()
        x = x[np.abs(x - m) <= 1.2 * s]
    return x.mean(), len(x)


def cumulative_of_mask(x):
    y = x[x > 0]
    c = np.cumsum(y)
    d = np.diff(y)
    return c, d, c[-1]


def outer_of_mask(x):
    y = x[x > 0]
    m = np.outer(y, y)
    m[0] = 1.0
    return m, m.sum(axis=0), np.trace(m), m.T


def broadcast_with_mask(x):
    y = x[x > 0]
    d = y[:, None] - y
    return np.abs(d).max(), d.shape, (d * y).reshape(-1).sum()


def argsort_of_mask(x):
    y = x[x > 0]
    p = np.argsort(y)
    return y[p], p, y[::-1], y[-1]


def mask_with_count(x):
    m = x > 0
    n = np.count_nonzero(m)
    y = x[m]
    z = np.zeros(n)
    z += y
    return z, n


def any_and_all(x):
    y = x[x > 1]
    return bool((y > 2).any()), (y > 1).all(), y.size > 2


def fixed_size_from_mask(x):
    y = np.zeros_like(x)
    p = x[x > 0]
    y[: len(p)] = p
    return y


def sparse_row_sums(data, indptr):
    out = np.zeros(len(indptr) - 1)
    for i in range(len(out)):
        out[i] = data[indptr[i] : indptr[i + 1]].sum()
    return out


def spmv(data, indices, indptr, x):
    y = np.empty(len(indptr) - 1)
    for i in range(len(y)):
        lo, hi = indptr[i], indptr[i + 1]
        y[i] = data[lo:hi] @ x[indices[lo:hi]]
    return y


def remainders_of_a_length(x):
    """Negative divisors give remainders that are not positive, and 0 where the length says so."""
    n = len(x)
    rest = n % -3
    x[n % -2] = 7.0
    return rest, n // -2, -n % 4, -n // -3, 3 * n % -4, n % 5 - 2 * n % 5, x[:rest].sum(), x[n % -4 :], x


def divided_by_a_remainder(x):
    """Where 3 divides the length this raises."""
    return 5 // (len(x) % -3) + 5 // (len(x) % 3)


def places_by_remainders(x):
    y = np.zeros(9)
    for i in range(len(x)):
        y[i % -3] += x[i % -2] * (i // -2)
        y[(i - 5) // 2] += x[i]
        y[2 * i % -5] *= 0.5
    return y


def counted_by_remainders(x):
    total = 0
    for i in range(len(x) % -4 + 2):
        total += i + 1
    for i in range(len(x) // -2, 3, 2):
        total += 10 * i
    for i in range(3, len(x) // -2, -2):
        total += 100 * i
    return total


def slice_of_some_round(x, limit):
    """How much room the slice needs no sign may be guessed for."""
    y = np.zeros(0)
    for i in range(len(x)):
        if x[i] > limit:
            y = x[: (i - 3) // 2]
        elif x[i] > limit - 2:
            y = x[(i - 2) % -3 :]
    return y


def half_of_the_rest(x):
    return np.zeros((len(x) - 5) // 2), np.ones(min(len(x) - 5, 3))


_X = np.array([1.0, -2.0, 3.0, 0.5, 4.0, 2.5])
_Z = np.array([1.0, np.nan, 2.0, 4.0, np.nan, 3.0])
_A = np.array([[2.0, 1.0, 4.0], [6.0, 3.5, 1.0], [1.0, 5.0, 2.0], [4.0, 3.0, 8.0]])
_K = np.array([1, 3, 3, 0, 1, 3])
_PTR = np.array([0, 2, 2, 5, 6])


def part_of_two(b, n, m):
    c = np.ones(n + m)
    c[:n] += b
    np.multiply(c[n:], 2.0, out=c[n:])
    np.add(b, b, out=c[-n:])
    return c


CASES = [
    (remainders_of_a_length, (_X,)),
    (remainders_of_a_length, (_X[:5],)),
    (divided_by_a_remainder, (_X[:4],)),
    (places_by_remainders, (_X,)),
    (counted_by_remainders, (_X,)),
    (slice_of_some_round, (_X, 2.0)),
    (half_of_the_rest, (_X,)),
    (part_of_two, (np.arange(3.0), 3, 2)),
    (part_of_two, (np.arange(1.0), 3, 2)),
    (mask_read, (_X,)),
    (mask_read, (-np.abs(_X),)),
    (mask_sum, (_X,)),
    (mask_mean_of_some, (_X,)),
    (mask_mean_of_some, (-np.abs(_X),)),
    (mask_statistics, (_X,)),
    (mask_elementwise, (_X,)),
    (mask_two_arrays, (_X, _Z)),
    (mask_store_into, (_X,)),
    (mask_loop, (_X,)),
    (mask_back_into_place, (_X,)),
    (mask_rows, (_A,)),
    (mask_rows_product, (_A, np.array([1.0, 2.0, 3.0]))),
    (mask_of_mask, (_X,)),
    (mask_columns, (_A,)),
    (mask_two_dims, (_A,)),
    (mask_and_index, (_A,)),
    (nonzero_one, (_X,)),
    (nonzero_two, (_A,)),
    (where_one_argument, (_X,)),
    (flatnonzero_argwhere, (_A,)),
    (first_true, (_X,)),
    (first_true, (_X * 0,)),
    (compress_extract, (_X, _A)),
    (unique_values, (_K,)),
    (unique_counts, (_K,)),
    (unique_inverse, (_K,)),
    (unique_of_none, (_X, 100.0)),
    (unique_of_none, (_X, 3.5)),
    (unique_of_none, (_X, -9.0)),
    (quantiles_of_some, (_X, 100.0)),
    (quantiles_of_some, (_X, 3.5)),
    (quantiles_of_some, (_X, 0.0)),
    (entropy, (_K,)),
    (group_means, (_K, _X)),
    (group_by_masks, (_K, _X)),
    (staged_slice, (_X, 1, 4)),
    (staged_slice, (_X, -3, 20)),
    (staged_slice, (_X, 4, 2)),
    (staged_slice_sum_in_loop, (_X, 1)),
    (staged_slice_products, (_A, 2)),
    (staged_step_slice, (_X, 1)),
    (staged_step_slice, (_X, 3)),
    (zeros_of_count, (4, 2.5)),
    (made_of_count, (5,)),
    (count_of_values, (_X,)),
    (repeated, (_X, np.array([0, 2, 1, 0, 3, 1]))),
    (concatenated, (_X,)),
    (stacked_masks, (_X,)),
    (partition_sort, (_X,)),
    (set_operations, (_K, np.array([3, 5, 1, 1]))),
    (halved, (np.arange(11.0),)),
    (median_of_positive, (_X,)),
    (outliers_removed, (np.array([1.0, 2.0, 1.5, 1.2, 9.0, 1.1, -4.0]),)),
    (cumulative_of_mask, (_X,)),
    (outer_of_mask, (_X,)),
    (broadcast_with_mask, (_X,)),
    (argsort_of_mask, (_X,)),
    (mask_with_count, (_X,)),
    (any_and_all, (_X,)),
    (fixed_size_from_mask, (_X,)),
    (sparse_row_sums, (_X, _PTR)),
    (spmv, (_X, np.array([0, 2, 1, 3, 0, 2]), _PTR, np.array([1.0, -1.0, 2.0, 0.5]))),
]
