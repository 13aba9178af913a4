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
    covs = np.array([np.cov(x.T) + 0.3 * np.eye(d) for _ in range(k)])
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


def larger_root(a, b, c):
    d = b * b - 4 * a * c
    if d < 0:
        return None
    return (-b + np.sqrt(d)) / (2 * a)


def roots_or_none(a, b, c):
    r = larger_root(a, b, c)
    if r is None:
        return 0.0, None, [None]
    return r + 0.0, (r + 1, {"k": None if r > 0 else r}), [r]


def truth_of_what_may_be_none(a):
    r = larger_root(a, 1.0, 1.0)
    if r and r > -1.0:
        return 1
    if not r:
        return 2
    return 3 if r or a > 2 else 4


def clipped(x0, y0, x1, y1, xmin, ymin, xmax, ymax):
    def code(x, y):
        c = 0
        if x < xmin:
            c |= 1
        elif x > xmax:
            c |= 2
        if y < ymin:
            c |= 4
        elif y > ymax:
            c |= 8
        return c

    c0, c1 = code(x0, y0), code(x1, y1)
    accept = False
    while True:
        if not (c0 | c1):
            accept = True
            break
        elif c0 & c1:
            break
        out = c0 or c1
        if out & 8:
            x, y = x0 + (x1 - x0) * (ymax - y0) / (y1 - y0), ymax
        elif out & 4:
            x, y = x0 + (x1 - x0) * (ymin - y0) / (y1 - y0), ymin
        elif out & 2:
            x, y = xmax, y0 + (y1 - y0) * (xmax - x0) / (x1 - x0)
        else:
            x, y = xmin, y0 + (y1 - y0) * (xmin - x0) / (x1 - x0)
        if out == c0:
            x0, y0 = x, y
            c0 = code(x0, y0)
        else:
            x1, y1 = x, y
            c1 = code(x1, y1)
    if accept:
        return x0, y0, x1, y1
    return None


def closest_pair(points):
    best = np.inf
    pair = None
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            d = np.hypot(*(points[i] - points[j]))
            if d < best:
                best = d
                pair = (i, j)
    return best, pair


def sphere_hit(origin, direction, centre, radius):
    to = origin - centre
    b, c = direction @ to, to @ to - radius**2
    if b * b - c < 0:
        return None
    t = -b - np.sqrt(b * b - c)
    return (t, origin + t * direction) if t > 0 else None


def shaded(origin, directions, centres, light):
    image = np.zeros(len(directions))
    for k, d in enumerate(directions):
        nearest = None
        for c in centres:
            hit = sphere_hit(origin, d, c, 1.0)
            if hit and (nearest is None or hit[0] < nearest[0]):
                nearest = hit
        if nearest:
            image[k] = nearest[1] @ light
    return image


def differences_around(u, steps):
    k = 0
    while k < steps:
        ring = np.concatenate([u[-2:], u, u[:2]])
        flux = ring[1:-2]
        u = u - (flux[1:] - flux[:-1])
        k += 1
    return u


_NEAR = [[0.1, 0.4], [0.6, -0.3], [-0.5, 0.2], [0.3, 0.9]]
_POINTS = np.array(_NEAR + [[1.2, 0.1], [1.4, 1.6], [2.0, 0.9]])
_CENTRES = np.array([[0.0, 0.5, 3.0], [0.5, 0.0, 2.5]])
_DIRECTIONS = np.array([[0.0, 0.1, 1.0], [0.1, 0.0, 1.0], [0.9, 0.0, 0.1]])
CASES = [
    (size_in_a_branch, (3, 1.0)),
    (size_in_a_branch, (-3, 0.0)),
    (size_in_a_branch, (-3, 1.0)),
    (size_in_a_loop_that_may_not_run, (3, 2)),
    (size_in_a_loop_that_may_not_run, (-3, 0)),
    (queens, (5,)),
    (made_again_at_the_same_size, (np.ones(3), 2)),
    (gaussian_mixture, (_POINTS, 2, _POINTS[[0, 4]], 0.5)),
    (larger_root, (1.0, 0.0, -4.0)),
    (larger_root, (1.0, 0.0, 4.0)),
    (roots_or_none, (1.0, 0.0, -4.0)),
    (roots_or_none, (1.0, 3.0, 2.0)),
    (roots_or_none, (1.0, 0.0, 4.0)),
    (truth_of_what_may_be_none, (1.0,)),
    (truth_of_what_may_be_none, (0.1,)),
    (truth_of_what_may_be_none, (0.25,)),
    (clipped, (-1.0, -1.0, 3.0, 2.5, 0.0, 0.0, 2.0, 2.0)),
    (clipped, (5.0, 5.0, 6.0, 6.0, 0.0, 0.0, 2.0, 2.0)),
    (closest_pair, (_POINTS,)),
    (closest_pair, (_POINTS[:1],)),
    (differences_around, (np.arange(4.0), 2)),
    (differences_around, (np.ones(1), 0)),  # one element would be none after a step
    (shaded, (np.zeros(3), _DIRECTIONS, _CENTRES, np.array([0.5, 0.5, -0.7]))),
]
