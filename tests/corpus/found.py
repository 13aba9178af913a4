"""What random programs have found: each function once gave something else than Python."""

import numpy as np


def largest_of_some(v, x):
    some = v[v > x]
    return some.max()


def last_of_some(v, x):
    some = v[v > x]
    return np.max(some, initial=-1.0), np.min(some, initial=9.0)


def place_of_largest(v, x):
    return np.argmax(v[v > x])


def smallest_or_default(v):
    best = None
    for e in v:
        if best is None or e < best:
            best = e
    return 0.0 if best is None else best


def smallest_positive_and_place(v):
    best, place = None, None
    for i, e in enumerate(v):
        if e > 0 and (best is None or e < best):
            best, place = e, i
    if best is not None and place is not None:
        return best * 2 + place
    return -1.0


def found_or_limit(v, limit):
    found = None
    for e in v:
        if e > limit:
            found = e
            break
    if found is None:
        found = limit
    y = found + 1
    return y if not found < 0 else found


def swap_beside_a_raise(x, y):
    z = 0.5
    if x > 3.0:
        y, z = z, y
    elif x > 2.5:
        raise ValueError("between")
    return z + np.tanh(y)


def beyond_the_end_on_one_path(v, x):
    y = v[7] if x > 1.0 else v[0]
    for i in range(3):
        if v[i] > x:
            y = y + v[5]
        v[i] = y
    return v


def list_of_odd(x):
    return [x * i for i in range(5) if i % 2]


def array_of_larger(v, x):
    return np.array([e * 2 for e in v if e > x])


def signs_of_zeros(a, b):
    extremes = np.minimum(a, b), np.maximum(a, b), np.clip(a, 0.0, 1.0), np.clip(b, -1.0, 0.0)
    return [1.0 / e for e in extremes]


def nothing_minus_counts(x):
    return 1.0 / (np.zeros(3) - np.arange(3)), 1.0 / (0.0 - np.full(2, x))


def words_of_cython(IF, DEF):
    ELIF = IF * 2.0
    operator = np.zeros(3)
    for ELSE in range(3):
        operator[ELSE] = ELIF[ELSE] + DEF
    staticmethod = operator.sum()
    return ELIF, operator, staticmethod


def rounded_to_float_backwards(v):
    return (v * 2)[::-1].astype(np.float32).astype(np.float64)


def larger_ones_beside_all(v, x):
    total = 0.0
    larger = (e for e in v if e > x)
    for a, b in zip(larger, v):
        total += a * b
    return total


def pairs_beside_the_reversed(v, x):
    larger = []
    for e in v:
        if e > x:
            larger.append((e, e * e))
    total = 0.0
    for (a, b), c in zip(larger, v[::-1]):
        total += a * b - c
    return total


def truncated_and_stored(v):
    out = np.zeros(4)
    out[0] = int(v[0])
    out[1] = float(int(v[1])) / 4
    out[2:] = int(v[2])
    return out, int(v[1]) / 2, int(v[2]) > 1.5


def narrowed_and_stored(v):
    out, small, whole = np.zeros(3), np.zeros(3, np.float32), np.zeros(3, int)
    small[:] = v.astype(int)
    whole[:] = v.astype(np.int8)
    out[1:] += v[1:].astype(np.int64)
    out[0] = np.int64(v[0])
    return out, small, whole, v.astype(bool).astype(float) + v


_V = np.array([0.5, -1.0, 2.0])
_Z = np.arange(8.0) + 1j * np.arange(8.0)[::-1]
_W = np.array([1 + 2j, 1 - 1j, 3 + 1j, 2, complex(1, np.nan), 9j, 3 + 1j, complex(np.nan, 1)])
_GATES = np.array([[[1, 1], [1, -1]], [[0, 1j], [-1j, 0]]])


def running_sums_of_zeros(a):
    return np.cumsum(a), np.cumsum(a * 1j), np.cumsum(a.reshape(2, -1), axis=1), np.cumsum(a[::-1])


def unsigned_as_python_ints(a, k):
    total = int(a[0]) // 3 + a.item(1) % 7
    for v in a.tolist():
        total -= v
    return total + round(a[k]), a[k], a[k] // 2


def column_from_a_row(x, y):
    g = np.stack([x, y, x - y])
    v = g[1]
    g[:, 4] = v[::2].copy()
    g[1, ::2] = g[:, 1].copy()
    return g


def counted_on(m, x):
    # a number that a loop goes on with stands in a function of its own when the program is in pieces
    k = int(m[0])
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = k * x[i]
        if x[i] > 1:
            k += 1
    last = np.zeros(len(x))
    for i in range(len(x)):
        last[i] = x[k % len(x)]
        k += 1
    return out, last


def clipped_by_pythons_own(x, w):
    j = (2 + int(min(max(x, -5.0), 5.0))) % 7
    return x, w, j


def gates_on_a_register(state, gates, n, q):
    """The sizes of the reshapes are numbers of the run, bound anew in each iteration."""
    for k in range(n):
        s = state.reshape(2**q, 2, 2 ** (n - q - 1))
        state = np.tensordot(gates[k % 2], s, axes=(1, 1)).transpose(1, 0, 2).reshape(2**n)
    return state


def turned_by_the_run(state, n, q):
    for _ in range(n):
        s = state.reshape(2**q, 2, 2 ** (n - q - 1))
        state = (s * 1j).reshape(2**n)
    return state


def reshaped_by_numbers(x, n, m):
    """A negative one is what is left of the elements."""
    return x.reshape(n, m), np.reshape(x, (n, m), order="F"), x.reshape(n, 1, m).shape


def reshaped_beside_the_rest(x, n):
    return x.reshape(-1, n), x.reshape(n, -1).shape


def of_no_rows(n, m):
    """Negative sizes of these are 0 in NumPy."""
    return np.tri(n, m), np.tri(n), np.hanning(m), np.blackman(n)


def repeated_so_often(x, k):
    return np.repeat(x, k), np.repeat(x[:, None], k, axis=0)


def places_of_a_grid(n, m):
    return np.indices((n, m))


def cast_to_its_own_type(x):
    """Of an array that has the type this is the array itself; of another it is a new one."""
    y, z = np.float64(x)[::-1], np.float32(x)
    y[0] = 7.5
    z[0] = 9.5
    return x, y, z, np.float64(np.float64(x)) is x


def not_for_bools(p):
    """NumPy has no differences of bools, nor signs, nor decimals."""
    said = []
    for f in (np.sign, np.ptp, lambda p: np.cross(p, p), lambda p: np.round(p, 1)):
        try:
            f(p)
            said.append(0)
        except TypeError:
            said.append(1)
    return said, np.round(p), np.round(p, 0)


def not_for_halves(h):
    said = []
    a = np.outer(h, h)
    for f in (lambda h: np.polyfit(h, h, 1), lambda h: np.linalg.det(a), lambda h: np.linalg.solve(np.eye(3), h)):
        try:
            f(h)
        except TypeError as error:
            said.append(str(error))
    return said


def not_for_such_matrices(a, b):
    said = []
    for f in (np.linalg.det, np.linalg.inv, np.linalg.cholesky, np.linalg.eigh, np.linalg.eig):
        try:
            f(a)
        except np.linalg.LinAlgError as error:
            said.append(str(error))
    for rows in (a, b):
        try:
            np.linalg.lstsq(rows, b)
        except np.linalg.LinAlgError as error:
            said.append(str(error))
    return said


def square_for_some_masks(v):
    some = v[v > 0]
    try:
        return np.linalg.det(np.stack([some, some * some], axis=1))
    except np.linalg.LinAlgError as error:
        assert str(error) == "Last 2 dimensions of the array must be square"
        return -1.0


def square_or_not(v):
    some = v[v > 0]
    return np.linalg.det(np.stack([some, some * some], axis=1))


def quantiles_of_nothing(a):
    found = []
    for f in (np.percentile, np.quantile, np.nanpercentile, np.nanquantile):
        for x in (a, a.astype(int)):
            try:
                found.append(f(x, 0.5, axis=0))
            except IndexError:
                found.append(-1.0)
    return found


def percentile_of_some(v, x):
    return np.percentile(v[v > x], 50.0)


def along_no_rows(a):
    said = []
    for axis in (0, 1):
        try:
            said.append(np.apply_along_axis(np.sum, axis, a))
        except ValueError as error:
            said.append(str(error))
    return said


def complex_as_numbers(z, w):
    try:
        int(w)
    except TypeError as error:
        return str(error), int(z[0]), float(z[1])


def chosen_into(i, a, b):
    out, narrow = np.zeros(3), np.zeros(3, np.float32)
    chosen = np.choose(i, [a, b], out=out)
    np.choose(i, [a, b], narrow, "clip")
    return out, narrow, chosen is out


def partition_of_some(v, x):
    return np.partition(v[v > x], 1)


def complex_in_order(z):
    """By real parts, then by imaginary ones; a NaN stays once it is there."""
    rows = np.stack([z, z[::-1], -z])
    return np.maximum.accumulate(z), np.minimum.accumulate(rows, axis=1), np.maximum.accumulate(rows)


def places_among_complex(s, v):
    s, wanted = np.sort(s), v.reshape(2, -1)
    return np.searchsorted(s, wanted), np.searchsorted(s, wanted, side="right"), np.searchsorted(s, v[1])


def complex_numbers_of_a_mask(z, x):
    some = z[z.real > x]
    return np.maximum.accumulate(some), np.searchsorted(np.sort(some), z, side="right")


def moments_of_numbers(rate, steps):
    """`np.zeros_like` of a number is an array of rank 0, and a number after the first step."""
    at = {"rate": rate, "weights": np.arange(3.0)}
    mean = {k: np.zeros_like(v) for k, v in at.items()}
    for t in range(1, steps + 1):
        mean = {k: 0.9 * mean[k] + 0.1 * np.sum(at[k]) for k in at}
        at = {k: at[k] - 0.1 * mean[k] / (1 - 0.9**t) for k in at}
    return at, mean


def halved_from_rank_0(x, n):
    """The inner loop is staged for an array of rank 0 first, then for a number."""
    q = {"b": x}
    for _ in range(n):
        p = q["b"] * 0.5
        for _ in range(n):
            q = {"b": q["b"] - 0.125 * p}
        while p > 4.0:
            p = p * 0.5
    return q["b"], p


def neighbours_in_cells(heads, following, n):
    """Loops over a few ints that have loops in them."""
    total = np.zeros(n)
    for c in range(n):
        for dx in (-1, 0, 1):
            for dy in [-1, 0, 1]:
                for dz in (2, 0):
                    j = heads[(c + dx) % n, (c + dy) % n]
                    while j >= 0:
                        total[c] += dx + 2.5 * dy + dz * j
                        j = following[j]
    return total, dx, dy, dz


def changed_while_it_runs(x):
    items = [0, 1, 2, 3]
    total = 0.0
    for k in items:
        for v in x:
            total = total * 0.5 + v * k
        items[3] = 5
    return total, items


def halves_of_so_many(n):
    halves = iter(np.arange(n) * 0.5)
    first, second, *rest = np.arange(n) * 1.5
    return next(halves) + next(halves) + second, len(rest)


_HEADS = np.array([[0, -1, 3], [2, 4, -1], [-1, 5, 1]])


def ordinary_least_squares(x, y):
    x = np.column_stack([np.ones(len(x)), x])
    fitted = np.linalg.lstsq(x, y, rcond=None)[0]
    rest = y - x @ fitted
    variance = rest @ rest / (len(y) - x.shape[1])
    deviations = np.sqrt(np.diag(variance * np.linalg.inv(x.T @ x)))
    spread = y - y.mean()
    return np.sin(fitted).sum() + np.sin(fitted / deviations).sum() + np.sin(1 - rest @ rest / (spread @ spread))


CASES = [
    (ordinary_least_squares, (np.cos(np.arange(12.0) ** 2).reshape(6, 2), np.array([1.0, -2.0, 0.5, 1.5, -1.0, 2.0]))),
    (moments_of_numbers, (0.5, 3)),
    (moments_of_numbers, (0.5, 100)),
    (halved_from_rank_0, (np.array(40.0), 5)),
    (neighbours_in_cells, (_HEADS, np.array([-1, -1, 0, 2, -1, 4]), 3)),
    (changed_while_it_runs, (np.arange(3.0),)),
    (halves_of_so_many, (4,)),
    (largest_of_some, (_V, 0.0)),
    (largest_of_some, (_V, 5.0)),
    (last_of_some, (_V, 5.0)),
    (last_of_some, (_V, 0.0)),
    (place_of_largest, (_V, 0.0)),
    (place_of_largest, (_V, 5.0)),
    (smallest_or_default, (_V,)),
    (smallest_or_default, (_V[:0],)),
    (smallest_positive_and_place, (_V,)),
    (smallest_positive_and_place, (-_V[:1],)),
    (found_or_limit, (_V, 1.0)),
    (found_or_limit, (_V, 9.0)),
    (list_of_odd, (1.5,)),
    (array_of_larger, (_V, 0.0)),
    (array_of_larger, (np.arange(80.0), 70.0)),
    (nothing_minus_counts, (0,)),
    (words_of_cython, (_V, 1.5)),
    (rounded_to_float_backwards, (np.array([0.05, 0.1, 0.15, 1 / 6]),)),
    (signs_of_zeros, (np.zeros(3), -np.zeros(3))),
    (signs_of_zeros, (-np.zeros(3), np.zeros(3))),
    (beyond_the_end_on_one_path, (_V, 2.0)),
    (beyond_the_end_on_one_path, (_V, 0.75)),
    (beyond_the_end_on_one_path, (_V - 3, 0.75)),
    (swap_beside_a_raise, (2.25, 2.0)),
    (swap_beside_a_raise, (2.75, 2.0)),
    (swap_beside_a_raise, (3.25, 2.0)),
    (clipped_by_pythons_own, (3.605, np.arange(2.0))),
    (clipped_by_pythons_own, (-9.0, np.arange(2.0))),
    (running_sums_of_zeros, (-np.zeros(4),)),
    (unsigned_as_python_ints, (np.array([9, 70, 5], np.uint64), 1)),
    (column_from_a_row, (np.arange(5.0), np.arange(5.0) ** 2 + 1)),
    (counted_on, (np.array([5, 1]), np.arange(7.0))),
    (larger_ones_beside_all, (_V, 0.5)),
    (pairs_beside_the_reversed, (_V, 0.5)),
    (pairs_beside_the_reversed, (_V, -9.0)),
    (truncated_and_stored, (np.array([2.7, -1.3, 3.3]),)),
    (narrowed_and_stored, (np.array([2.7, -1.3, 1e-9 + 3.3]),)),
    (cast_to_its_own_type, (np.arange(4.0),)),
    (gates_on_a_register, (_Z, _GATES, 3, 1)),
    (turned_by_the_run, (_Z, 3, 0)),
    (reshaped_by_numbers, (np.arange(12.0), 3, 4)),
    (reshaped_by_numbers, (np.arange(12.0), -1, 4)),
    (reshaped_by_numbers, (np.arange(12.0), 2, -1)),
    (reshaped_by_numbers, (np.arange(12.0), -1, -1)),
    (reshaped_by_numbers, (np.zeros(0), -1, 4)),
    (reshaped_beside_the_rest, (np.arange(12.0), 4)),
    (reshaped_beside_the_rest, (np.zeros(0), 4)),
    (reshaped_beside_the_rest, (np.arange(12.0), 0)),
    (reshaped_beside_the_rest, (np.arange(12.0), -1)),
    (of_no_rows, (3, 4)),
    (of_no_rows, (-6, 3)),
    (of_no_rows, (1, -2)),
    (of_no_rows, (0, 1)),
    (repeated_so_often, (np.arange(3.0), 2)),
    (repeated_so_often, (np.zeros(0), -2)),
    (repeated_so_often, (np.arange(3.0), -2)),
    (places_of_a_grid, (2, 3)),
    (places_of_a_grid, (-2, 3)),
    (not_for_bools, (np.array([True, False, True]),)),
    (not_for_halves, (np.arange(3, dtype=np.float16),)),
    (not_for_such_matrices, (np.ones((2, 3)), np.ones(3))),
    (not_for_such_matrices, (np.ones((0, 3)), np.ones(3))),
    (square_for_some_masks, (_V,)),
    (square_for_some_masks, (_V - 1,)),
    (square_or_not, (_V,)),
    (square_or_not, (_V - 1,)),
    (quantiles_of_nothing, (np.zeros((0, 4)),)),
    (quantiles_of_nothing, (np.ones((2, 4)),)),
    (percentile_of_some, (_V, 0.0)),
    (percentile_of_some, (_V, 9.0)),
    (along_no_rows, (np.zeros((0, 3)),)),
    (along_no_rows, (np.zeros((3, 0)),)),
    (along_no_rows, (np.ones((2, 3)),)),
    (complex_as_numbers, (_Z, 2 + 1j)),
    (chosen_into, (np.array([0, 1, 0]), _V, _V * 2)),
    (partition_of_some, (_V, 0.0)),
    (partition_of_some, (_V, 1.0)),
    (complex_in_order, (_W,)),
    (complex_in_order, (_W[::-1],)),
    (complex_in_order, (_W[:0],)),
    (complex_in_order, (_W[:4].astype(np.complex64),)),
    (places_among_complex, (np.sort(_W), _W)),
    (places_among_complex, (np.sort(_Z.real), _W)),
    (places_among_complex, (_W[:0], _Z)),
    (complex_numbers_of_a_mask, (_W, 0.5)),
    (complex_numbers_of_a_mask, (_W, 9.0)),
]
