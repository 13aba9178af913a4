"""Programs of biology, finance, geometry, astronomy and statistics as their books have them: each once gave
something else than Python, crashed, or was refused."""

import numpy as np


def size_in_a_branch(k, flag):
    s = 0.0
    if flag > 0:
        s = np.zeros(k).sum()
    if k < 0:
        return -1.0
    return s + 1.0


def size_in_a_loop_that_may_not_run(k, m):
    s = 0.0
    for _ in range(m):
        s += np.ones(k).sum()
    return s, k < 0, max(k, 0), abs(k)


def queens(n):
    cols = np.full(n, -1)
    row = 0
    solutions = 0
    while row >= 0:
        cols[row] += 1
        while cols[row] < n:
            ok = True
            for r in range(row):
                if cols[r] == cols[row] or abs(cols[r] - cols[row]) == row - r:
                    ok = False
                    break
            if ok:
                break
            cols[row] += 1
        if cols[row] < n:
            if row == n - 1:
                solutions += 1
            else:
                row += 1
                cols[row] = -1
        else:
            row -= 1
    return solutions


def made_again_at_the_same_size(x, k):
    w = np.ones(k)
    if x[0] > 0:
        w = np.zeros(k)
    for _ in range(100):
        if w.sum() > 5:
            break
        w = w + np.ones((len(x), k)).sum(axis=0)
    return w


def gaussian_mixture(x, k, means, tol=1e-6):
    n, d = x.shape
    weights = np.ones(k) / k
    covs = np.array([np.cov(x.T) for _ in range(k)])
    means = means.copy()
    old = -np.inf
    history = []
    for _ in range(100):
        resp = np.zeros((n, k))
        for j in range(k):
            diff = x - means[j]
            power = -0.5 * np.sum(diff @ np.linalg.inv(covs[j]) * diff, axis=1)
            resp[:, j] = weights[j] * np.exp(power) / np.sqrt((2 * np.pi) ** d * np.linalg.det(covs[j]))
        total = resp.sum(axis=1, keepdims=True)
        ll = np.log(total).sum()
        history.append(ll)
        if abs(ll - old) < tol:
            break
        old = ll
        resp /= total
        counts = resp.sum(axis=0)
        weights = counts / n
        for j in range(k):
            means[j] = (resp[:, j : j + 1] * x).sum(0) / counts[j]
            diff = x - means[j]
            covs[j] = (resp[:, j] * diff.T) @ diff / counts[j] + 0.3 * np.eye(d)
    return weights, means, covs, history


_NEAR = [[0.1, 0.4], [0.6, -0.3], [-0.5, 0.2], [0.3, 0.9]]
_POINTS = np.array(_NEAR + [[1.2, 0.1], [1.4, 1.6], [2.0, 0.9]])
CASES = [
    (size_in_a_branch, (3, 1.0)),
    (size_in_a_branch, (-3, 0.0)),
    (size_in_a_branch, (-3, 1.0)),
    (size_in_a_loop_that_may_not_run, (3, 2)),
    (size_in_a_loop_that_may_not_run, (-3, 0)),
    (queens, (5,)),
    (made_again_at_the_same_size, (np.ones(3), 2)),
    (gaussian_mixture, (_POINTS, 2, _POINTS[[0, 4]], 0.5)),
]
