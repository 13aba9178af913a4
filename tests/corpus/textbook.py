"""Textbook programs of lists that branches grow, and of slices whose step only the run knows."""

import numpy as np


class UnionFind:
    def __init__(self, n):
        self.parent = np.arange(n)
        self.rank = np.zeros(n, dtype=int)
        self.count = n

    def find(self, x):
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def union(self, a, b):
        ra, rb = self.find(a), self.find(b)
        if ra == rb:
            return False
        if self.rank[ra] < self.rank[rb]:
            ra, rb = rb, ra
        self.parent[rb] = ra
        if self.rank[ra] == self.rank[rb]:
            self.rank[ra] += 1
        self.count -= 1
        return True


def kruskal(n, edges, weights):
    sets = UnionFind(n)
    total = 0.0
    chosen = []
    for e in np.argsort(weights):
        u, v = edges[e]
        if sets.union(u, v):
            total += weights[e]
            chosen.append(e)
        if len(chosen) == n - 1:
            break
    return total, np.array(chosen), sets.count


def first_positive(x, count):
    out = []
    k = 0
    while k < len(x):
        if x[k] > 0:
            out.append((k, x[k]))
        if len(out) == count:
            break
        k += 1
    return out


def knapsack(values, weights, capacity):
    n = len(values)
    best = [[0 for _ in range(capacity + 1)] for _ in range(n + 1)]
    for i in range(1, n + 1):
        for w in range(1, capacity + 1):
            if weights[i - 1] <= w:
                best[i][w] = max(values[i - 1] + best[i - 1][w - weights[i - 1]], best[i - 1][w])
            else:
                best[i][w] = best[i - 1][w]
    w = capacity
    taken = []
    for i in range(n, 0, -1):
        if best[i][w] != best[i - 1][w]:
            taken.append(i - 1)
            w -= weights[i - 1]
    return best[n][capacity], taken


def polygon_clipped(subject, clip):
    def inside(p, a, b):
        return (b[0] - a[0]) * (p[1] - a[1]) > (b[1] - a[1]) * (p[0] - a[0])

    def crossing(s, e, a, b):
        dc = (a[0] - b[0], a[1] - b[1])
        dp = (s[0] - e[0], s[1] - e[1])
        n1 = a[0] * b[1] - a[1] * b[0]
        n2 = s[0] * e[1] - s[1] * e[0]
        n3 = 1.0 / (dc[0] * dp[1] - dc[1] * dp[0])
        return ((n1 * dp[0] - n2 * dc[0]) * n3, (n1 * dp[1] - n2 * dc[1]) * n3)

    output = [(p[0], p[1]) for p in subject]
    a = clip[-1]
    for b in clip:
        inputs = output
        output = []
        if len(inputs) == 0:
            break
        s = inputs[-1]
        for e in inputs:
            if inside(e, a, b):
                if not inside(s, a, b):
                    output.append(crossing(s, e, a, b))
                output.append(e)
            elif inside(s, a, b):
                output.append(crossing(s, e, a, b))
            s = e
        a = b
    return output


def sieve(n):
    flags = np.ones(n + 1, dtype=bool)
    flags[:2] = False
    p = 2
    while p * p <= n:
        if flags[p]:
            flags[p * p :: p] = False
        p += 1
    return np.flatnonzero(flags)


def slices_of_all_steps(x, steps):
    x = x.copy()
    sums = []
    for k in steps:
        y = x[1:-1:k]
        y[:1] += 10
        x[::k] *= 0.5
        x[-1::-k] += y.sum()
        sums.append(x[k::-k].sum() + x[-2::k].size)
    return x, sums


def slices_beside_other_indices(x, steps):
    x = x.copy()
    for k in steps:
        x[:, ::k] += 1
        x[0, ::k] = 5
        x[::k, 1] -= np.arange(x[::k, 1].size)
        x[::k, ::k] *= 2
        x[[0, 1], ::k] += 100
    return x, x[:, :: steps[0]].T.copy(), x[:: steps[1]].ravel()


def counted_down(n, x):
    left = n
    w = np.zeros(n)
    for v in x:
        if v > 0:
            left -= 1
        w[-1] += left
        w[n - 1] += w.size
    return w, left


def larger_of(n, x):
    w = np.ones(n)
    if x > 0:
        n = n + 3
    return w * n, np.zeros(n) + w.sum()


def convolved_by_transforms(a, b):
    n = len(a) + len(b) - 1
    room = 1
    while room < n:
        room *= 2
    return np.fft.irfft(np.fft.rfft(a, room) * np.fft.rfft(b, room), room)[:n]


def transforms_of_so_many(x, n):
    return np.fft.ifft(x, n), np.abs(np.fft.fft2(x, (n, 3))), np.fft.irfft(x, n, axis=0)


_EDGES = np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4], [1, 4]])
_SQUARE = np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 3.0], [0.0, 3.0]])
_POLYGON = np.array([[1.0, -1.0], [4.0, 1.0], [2.0, 4.0], [-1.0, 2.0]])
_LINE = np.array([0.5, -1.0, 2.0, -0.25, 1.5, 3.0, -2.0])
CASES = [
    (convolved_by_transforms, (np.cos(np.arange(12.0) ** 2), np.array([1.0, -2.0, 0.5]))),
    (convolved_by_transforms, (np.array([1.5]), np.array([2.0]))),
    (transforms_of_so_many, (np.cos(np.arange(12.0) ** 2).reshape(4, 3), 5)),
    (transforms_of_so_many, (np.cos(np.arange(12.0) ** 2).reshape(4, 3), 2)),
    (kruskal, (5, _EDGES, np.array([0.5, 0.25, 0.125, 2.0, 0.75, 1.5]))),
    (counted_down, (3, _LINE)),
    (larger_of, (3, 1.0)),
    (first_positive, (_LINE, 2)),
    (first_positive, (_LINE, 9)),
    (knapsack, (np.array([60, 100, 120]), np.array([1, 2, 3]), 5)),
    (polygon_clipped, (_POLYGON, _SQUARE)),
    (polygon_clipped, (_POLYGON + 9, _SQUARE)),
    (sieve, (30,)),
    (slices_of_all_steps, (_LINE, np.array([1, 2, -3, 5, 3]))),
    (slices_of_all_steps, (_LINE, np.array([1, 0]))),
    (slices_beside_other_indices, (np.arange(12.0).reshape(4, 3), np.array([1, 2, -3]))),
]
