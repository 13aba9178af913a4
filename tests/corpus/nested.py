"""Comprehensions in comprehensions and lists that loops make: rows of rows, what is read from them, what
keeps its items apart."""

import functools

import numpy as np

from metaphrase import tree_util


def kernel(x):
    return np.array([[np.exp(-((a - b) ** 2)) for b in x] for a in x])


def kernel_by_index(x):
    n = len(x)
    k = [[np.exp(-((x[i] - x[j]) ** 2)) + (i == j) for j in range(n)] for i in range(n)]
    return np.linalg.solve(np.array(k), x), k[2][3], len(k), len(k[1])


def product(a, b):
    n = len(b)
    t = [[b[j][i] for j in range(n)] for i in range(len(b[0]))]
    return np.array([[sum(u * v for u, v in zip(row, col)) for col in t] for row in a])


def product_by_index(a):
    n = 5
    return np.array([[sum(a[i][k] * a[k][j] for k in range(n)) for j in range(n)] for i in range(n)])


def cube(x):
    c = [[[x[i] * x[j] + k for k in range(2)] for j in range(5)] for i in range(6)]
    return np.array(c), c[1][2], [r[1] for r in c[4]]


def pairs(x):
    rows = [[(a, b) for b in x] for a in x]
    u, v = rows[1][2]
    return np.array(rows), u - v, sum(p[0] * p[1] for row in rows for p in row)


def outer_flat(x):
    flat = [a * b for a in x for b in x]
    return np.array(flat), len(flat), flat[7], sum(flat)


def outer_flat_tested(x):
    return np.array([x[i] * x[j] for i in range(5) for j in range(5) if i < j])


def ragged(x):
    rows = [[x[i] * x[j] for j in range(i)] for i in range(6)]
    return [sum(row) for row in rows], len(rows[3]), rows[4][1]


def ragged_by_value(x):
    rows = [[v for v in x if v > w] for w in x]
    return [len(row) for row in rows], sum(sum(row) for row in rows)


def others_only(x):
    return np.array([sum(1 / (x[i] - x[j]) for j in range(5) if j != i) for i in range(5)])


def nested_sums(x):
    return sum(sum(x[i] * x[j] / (1 + i + j) for j in range(6)) for i in range(6))


def transposed(x):
    m = [[a - 2 * b for b in x] for a in x]
    t = [list(c) for c in zip(*m)]
    rows = [max(row) for row in m]
    return t, rows, min(rows), [row[::-1] for row in m][1]


def relaxed(x):
    v = [[a * b for b in x] for a in x]
    for _ in range(4):
        v = [[0.5 * v[i][j] + x[j] for j in range(5)] for i in range(5)]
    return v


def leaves_of_rows(x):
    """Numbers are leaves in lists in lists, too, whatever code that is not translated is given."""
    v = [[x[i] * x[j] for j in range(3)] for i in range(4)]
    deep = {"a": [[[x[i] * x[j] * k for k in range(2)] for j in range(3)] for i in range(4)]}
    leaves = tree_util.tree_leaves(v)
    return len(leaves), sum(leaves), len(tree_util.tree_leaves(deep)), tree_util.tree_map(lambda a: -a, v)


def relaxed_in_place(x):
    v = [[a * b for b in x] for a in x]
    for i in range(1, 4):
        for j in range(1, 4):
            v[i][j] = (v[i - 1][j] + v[i][j - 1]) / 2
    return np.array(v)


def table(x):
    best = [[0.0] * 6 for _ in range(6)]
    for i in range(1, 6):
        for j in range(1, 6):
            best[i][j] = max(best[i - 1][j], best[i][j - 1]) + x[i - 1] * x[j - 1]
    return best[5][5], best[2]


def large_table(x):
    zeros = [[0.0] * 2 for _ in range(70)]
    zeros[5][1] = x[0]
    return zeros[5][1] + zeros[5][0], zeros[6]


def item_changed(x):
    rows = [[a, 2 * a] for a in x]
    row = rows[1]
    row[0] = x[4]
    rows[2].append(x[0])
    return rows[1][0], len(rows[2]), rows


def dict_changed(x):
    found = []
    for v in x:
        found.append({"v": v, "n": 0})
    for d in found:
        d["n"] += 1
    found[1]["v"] = x[0]
    return found


def array_changed(x):
    rows = [v * x for v in x]
    rows[1][0] = 7.0
    first = rows[0]
    first[1] = 8.0
    return rows, np.array(rows)


def one_row(x):
    row = [0.0]
    rows = []
    for v in x:
        row[0] = v
        rows.append(row)
    return rows[0][0]


def last_row(x):
    rows, row = [], [x[0]]
    for v in x:
        row = [v, v]
        rows.append(row)
    row[0] = x[0] - 5
    return rows[-1], rows[-1] is row


def same_arrays(x):
    rows = [x for _ in range(5)]
    rows[0][1] = 9.0
    return rows[3][1], rows[2] is x


def views(x):
    rows = [row for row in x]
    rows[1][0] = 5.0
    return x, rows


def kinds(x):
    found = [x[k] if k % 2 else 1 for k in range(5)]
    return found, isinstance(found[0], int), [isinstance(v, float) for v in [2 * v for v in x]]


def indices(x):
    at = [2 * k for k in range(5)]
    sizes = [np.zeros(k) for k in at]
    return x[at[1]], [len(s) for s in sizes], x.reshape(at[1], -1)


def sizes_known(x):
    halves = [len(x) // 2**k for k in range(4)]
    return np.zeros(halves[1]), x[: halves[2]]


def steps(x, n):
    grid = [n * k for k in range(5)]
    return np.zeros(grid[1]), [x * g for g in grid]


def failing(x):
    def inverse(v):
        if v == 0.0:
            raise ValueError("zero")
        return 1 / v

    return [[inverse(a - 2 * b) for b in x] for a in x]


def unpacked(x):
    a, b, *rest = [v * v for v in x]
    (c, d), *others = [[v, 2 * v] for v in x]
    return a + b, rest, c - d, others


def stacked(x):
    rows = [x * v for v in x]
    squares = [np.outer(x, x) * v for v in x]
    return np.stack(rows), np.vstack(rows), np.vstack(squares), np.concatenate(rows), np.column_stack(rows)


def compared(x):
    squares = [v * v for v in x]
    return squares == [v * v for v in x], x[0] in squares, sorted(squares)


def extended(x):
    squares = [v * v for v in x]
    twice = squares + squares
    squares.extend([1.0, x[0]])
    squares.insert(1, x[1])
    squares.pop()
    return squares, twice, squares * 2, [squares, twice]


def given_to_builtins(x):
    rows = [[v, 2 * v] for v in x]
    joined = sum(rows, [])
    folded = functools.reduce(lambda a, b: a + b, rows)
    totals = list(map(sum, rows))
    lengths = [len(r) for r in reversed(rows)]
    return joined, len(joined), folded, totals, lengths, any(r[0] > 1 for r in rows), rows + rows[:1]


def keyed(x):
    found = {str(k): v for k, v in enumerate([v * v for v in x])}
    both = dict([(f"{k}", [v, -v]) for k, v in enumerate(x)])
    return found, both


def whole_sum(n):
    many = [n * k for k in range(1, 6)]
    return sum(many), sum([k * k for k in many], 0.5), sum(v > 2 * n for v in many)


def last_kept(x):
    rows = []
    for v in x:
        row = [v, v]
        rows.append(row)
    return rows[2], row


def rows_of_argument(x):
    rows = [x[k] for k in range(len(x))]
    columns = [x[:, k] for k in range(len(x))]
    rows[1][0] = 5.0
    columns[2][3] = 7.0
    return x, rows[3][2]


def in_two_lists(x):
    rows, doubles = [], []
    for row in x:
        y = row * 2
        rows.append(y)
        doubles.append((y, y))
    rows[1][0] = 5.0
    doubles[2][0][1] = 7.0
    return rows, doubles


def carried_on(x):
    rows, y = [], x[0]
    for row in x:
        y = y + row
        rows.append(y)
    rows[-1][0] = 5.0
    return y, rows


def same_item(x):
    rows = [row * 2 for row in x]
    first = rows[0]
    return first is rows[0], rows[0] is rows[1], rows[-1] is rows[4]


def filter_steps(state, covariance, measured):
    noise = np.diag([0.1, 0.2])
    path = []
    for z in measured:
        jacobian = np.array([[1.0, 0.1 * np.cos(state[1])], [0.0, 1.0]])
        state = jacobian @ state
        covariance = jacobian @ covariance @ jacobian.T + noise
        gain = covariance[:, 0] / (covariance[0, 0] + 0.5)
        state = state + gain * (z - state[0])
        covariance = covariance - np.outer(gain, covariance[0])
        path.append(state)
    return np.array(path), covariance


class Matrix:
    def __init__(self, rows):
        self.rows = rows if len(rows) != 0 else []

    @property
    def order(self):
        return len(self.rows), len(self.rows[0])

    def determinant(self):
        if self.order == (2, 2):
            return self.rows[0][0] * self.rows[1][1] - self.rows[0][1] * self.rows[1][0]
        return sum(self.rows[0][c] * self.cofactors().rows[0][c] for c in range(self.order[1]))

    def minor(self, row, column):
        rows, columns = self.order
        return Matrix(
            [[self.rows[r][c] for c in range(columns) if c != column] for r in range(rows) if r != row]
        ).determinant()

    def cofactors(self):
        rows, columns = self.order
        return Matrix([[self.minor(r, c) * (-1) ** (r + c) for c in range(columns)] for r in range(rows)])


def cofactors(rows):
    """Rows of a small table: what is found while a trial rolls the outer loop is no verdict on the inner one
    where the outer one is unrolled."""
    return Matrix(rows).cofactors().rows


X = np.array([0.5, -1.25, 2.0, 0.75, -0.375])
M = np.arange(25.0).reshape(5, 5) / 8 - 1

CASES = [
    (cofactors, ([[1, 2, 3], [4, 5, 6], [7, 8, 10]],)),
    (cofactors, ([[1.5, 2.0, -3.0], [4.0, 0.5, 6.0], [7.0, 8.0, 10.0]],)),
    (kernel, (X,)),
    (kernel_by_index, (X,)),
    (product, (M, M[:, :4])),
    (product_by_index, (M,)),
    (cube, (np.linspace(-1.0, 1.0, 6),)),
    (pairs, (X,)),
    (outer_flat, (X,)),
    (outer_flat_tested, (X,)),
    (ragged, (np.linspace(-1.0, 1.0, 6),)),
    (ragged_by_value, (X,)),
    (others_only, (X,)),
    (nested_sums, (np.linspace(-1.0, 1.0, 6),)),
    (transposed, (X,)),
    (leaves_of_rows, (X,)),
    (relaxed, (X,)),
    (relaxed_in_place, (X,)),
    (table, (X,)),
    (large_table, (X,)),
    (item_changed, (X,)),
    (dict_changed, (X,)),
    (array_changed, (X,)),
    (one_row, (X,)),
    (last_row, (X,)),
    (same_arrays, (X,)),
    (views, (M,)),
    (kinds, (X,)),
    (indices, (np.linspace(-1.0, 1.0, 8),)),
    (sizes_known, (np.linspace(-1.0, 1.0, 8),)),
    (steps, (X, 3)),
    (failing, (X,)),
    (failing, (np.array([0.5, 1.0, 2.5]),)),
    (unpacked, (X,)),
    (stacked, (X,)),
    (compared, (X,)),
    (extended, (X,)),
    (given_to_builtins, (X,)),
    (given_to_builtins, (np.linspace(-1.0, 2.0, 40),)),
    (keyed, (X,)),
    (whole_sum, (3,)),
    (last_kept, (X,)),
    (rows_of_argument, (M,)),
    (in_two_lists, (M,)),
    (carried_on, (M,)),
    (same_item, (M,)),
    (filter_steps, (np.array([0.5, 0.25]), np.eye(2), np.linspace(0.0, 1.0, 7))),
]
