"""Algorithms in the form in which they are usually published: each once gave something else than Python, was
refused, or never ended."""

import numpy as np


def repeated_items(x, n):
    line = [x[0]] * n
    line += n * [0.5]
    return line, (1,) * x.ndim, np.zeros((2,) * n)


def neville(xa, ya, x):
    n = len(xa)
    c = [0.0] * n
    d = [0.0] * n
    for i in range(n):
        c[i] = ya[i]
        d[i] = ya[i]
    for m in range(1, n):
        for i in range(n - m):
            w = (c[i + 1] - d[i]) / (xa[i] - xa[i + m])
            d[i] = (xa[i + m] - x) * w
            c[i] = (xa[i] - x) * w
    return c, d


def fft(x):
    x = np.asarray(x, dtype=complex)
    n = x.shape[0]
    if n <= 1:
        return x
    if n % 2 > 0:
        raise ValueError("the size of x must be a power of 2")
    even, odd = fft(x[::2]), fft(x[1::2])
    factor = np.exp(-2j * np.pi * np.arange(n // 2) / n)
    return np.concatenate([even + factor * odd, even - factor * odd])


def doolittle(a):
    n = len(a)
    lower = [[0.0] * n for i in range(n)]
    upper = [[0.0] * n for i in range(n)]
    for j in range(n):
        lower[j][j] = 1.0
        for i in range(j + 1):
            upper[i][j] = a[i][j] - sum(upper[k][j] * lower[i][k] for k in range(i))
        for i in range(j, n):
            s = sum(upper[k][j] * lower[i][k] for k in range(j))
            lower[i][j] = (a[i][j] - s) / upper[j][j]
    return np.array(lower), np.array(upper)


def arrays_of_numbers(x):
    return np.array([0.0, x[0]]), np.array([1, x[0], x[1]]), np.stack([x[1], 0.0]), np.array([True, x[0]])


def as_many_as_it_says(x):
    return np.zeros(int(x)).size * x


def handed_out_of_two_loops(p, step):
    p = p.copy()
    for _ in range(5):
        for k in range(4):
            p[k % 2] += step
            if step > 1 + k:
                return p
        step = step + 1
    return p * step


def marquardt(x, y, p, damping):
    p = np.array(p, dtype=float)
    r = y - p[0] * np.exp(-p[1] * x)
    cost = r @ r
    for _ in range(8):
        e = np.exp(-p[1] * x)
        J = np.column_stack([e, -p[0] * x * e])
        H, g = J.T @ J, J.T @ r
        refused = True
        while refused:
            dp = np.linalg.solve(H + damping * np.diag(np.diag(H)), g)
            r_new = y - (p[0] + dp[0]) * np.exp(-(p[1] + dp[1]) * x)
            if r_new @ r_new < cost:
                p += dp
                damping *= 0.3
                refused = False
            else:
                damping = 2 * damping + 1e-6
                if not abs(damping) <= 1e6:
                    return p, damping
        r, cost = r_new, r_new @ r_new
    return p, damping


class Cell:
    def __init__(self):
        self.state = self.before = np.zeros(2)


def chained(x, width, height):
    cell = Cell()
    cell.state = cell.before = x + 1.0
    x[0] = cell.state[1] = last = x[2] * 2.0
    position = np.stack([x, x[::-1]], axis=1) + (width, height)
    position += (0.5, 0.25)
    position %= (width, height)
    flat = position * 2.0
    flat.shape = position.size
    a, b = pair = position[0], flat[1]
    return cell.before, last, position, flat, a * b, pair, (1.0, 2.0) * position[:2, 0], position > (1, 2)


def passed_round(u, v, steps):
    w = u
    for _ in range(steps):
        v[0] += w[1]
        u, v = v, u
    return w


def student_affinities(y):
    n = y.shape[0]
    squares = np.sum(np.square(y), 1)
    num = -2.0 * np.dot(y, y.T)
    num = 1.0 / (1.0 + np.add(np.add(num, squares).T, squares))
    num[range(n), range(n)] = 0.0
    return num / np.sum(num), num[range(n - 1), range(1, n)].copy()


class Stump:
    def __init__(self):
        self.threshold = self.weight = None

    def predict(self, x):
        predictions = np.ones(len(x))
        predictions[x < self.threshold] = -1
        return predictions


def boosted(x, y, rounds):
    w = np.full(len(x), 1 / len(x))
    stumps = []
    for _ in range(rounds):
        stump, least = Stump(), float("inf")
        for threshold in x:
            error = sum(w[y != np.where(x < threshold, -1, 1)])
            if error < least:
                stump.threshold, least = threshold, error
        stump.weight = 0.5 * np.log((1 - least) / least)
        w *= np.exp(-stump.weight * y * stump.predict(x))
        w /= np.sum(w)
        stumps.append(stump)
    return np.sign(np.sum([stump.weight * stump.predict(x) for stump in stumps], axis=0))


def delayed_boundary(field, steps):
    waiting = [0, 0]
    for _ in range(steps):
        field[1:] += 0.5 * field[:-1]
        field[0] = waiting.pop(0)
        waiting.append(field[1])
    return field


def filled(image, r, c, new, depth=2):
    if depth == 0 or r < 0 or c < 0 or r >= len(image) or c >= len(image[0]) or image[r, c] == new:
        return
    image[r, c] = new
    filled(image, r + 1, c, new, depth - 1)
    filled(image, r, c - 1, new, depth - 1)


def median_of_neighbours(line):
    out = np.zeros(len(line))
    for i in range(len(line)):
        near = []
        for k in (-1, 0, 1):
            near.append(line[(i + k) % len(line)])
        near.sort()
        out[i] = near[len(near) // 2]
    return out


def ranked(x, n):
    pairs = [(x[k], k, n) for k in range(3)] + [(x[0], 3, n + 1)]
    pairs.sort(key=lambda pair: pair[0], reverse=True)
    numbers = sorted([n, 3, n + 1], key=lambda a: -a), sorted([x[2], x[1]])
    return pairs, sorted(pairs, key=lambda pair: -pair[0]), numbers


def escape_times(left, right, bottom, top, width, height, limit, horizon=2.0):
    X, Y = np.mgrid[0:height, 0:width]
    C = np.linspace(left, right, width)[Y] + np.linspace(bottom, top, height)[X] * 1j
    steps = np.zeros(C.shape, dtype=np.int64)
    values = np.zeros(C.shape, dtype=np.complex128)
    X.shape = Y.shape = C.shape = width * height
    Z = np.zeros(C.shape, np.complex128)
    for i in range(limit):
        if not len(Z):
            break
        np.multiply(Z, Z, Z)
        np.add(Z, C, Z)
        I = abs(Z) > horizon  # noqa: E741
        steps[X[I], Y[I]] = i + 1
        values[X[I], Y[I]] = Z[I]
        np.logical_not(I, I)
        Z = Z[I]
        X, Y = X[I], Y[I]
        C = C[I]
    return values.T, steps.T


_SMALL = np.array([0.5, 1.25, 2.0, 3.5])
_SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]])
CASES = [
    (repeated_items, (_SMALL, 2)),
    (neville, (_SMALL, np.sin(_SMALL), 1.5)),
    (fft, (np.arange(8.0),)),
    (doolittle, (_SQUARE.astype(np.float32),)),
    (arrays_of_numbers, (_SMALL.astype(np.float32),)),
    (arrays_of_numbers, (np.arange(3, dtype=np.uint8),)),
    (as_many_as_it_says, (2.5,)),
    (handed_out_of_two_loops, (_SMALL[:2], 0.5)),
    (handed_out_of_two_loops, (_SMALL[:2], 9.0)),
    (marquardt, (_SMALL, 3 * np.exp(-0.7 * _SMALL) + np.sin(_SMALL), (1.0, 0.5), 0.01)),
    (chained, (_SMALL, 3, 2)),
    (passed_round, (np.ones(3), np.zeros(3), 4)),
    (student_affinities, (np.arange(8.0).reshape(4, 2) ** 1.5,)),
    (boosted, (_SMALL, np.array([-1.0, 1.0, -1.0, 1.0]), 2)),
    (delayed_boundary, (_SMALL, 3)),
    (median_of_neighbours, (_SMALL[::-1] ** 2 % 3,)),
    (ranked, (_SMALL, 2)),
    (filled, (np.eye(3), 0, 1, 1.0)),
    (escape_times, (-2.0, 1.0, -1.0, 1.0, 6, 5, 4)),
    (escape_times, (-2.0, 1.0, -1.0, 1.0, 3, 2, 0)),
]
