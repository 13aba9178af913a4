"""Numerical kernels as people write them with NumPy."""

import numpy as np


def cholesky(a):
    n = a.shape[0]
    l = np.zeros_like(a)
    for j in range(n):
        l[j, j] = np.sqrt(a[j, j] - l[j, :j] @ l[j, :j])
        for i in range(j + 1, n):
            l[i, j] = (a[i, j] - l[i, :j] @ l[j, :j]) / l[j, j]
    return l


def cholesky_in_place(a):
    n = a.shape[0]
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, n):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return a


def lu(a):
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def forward_substitution(l, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - l[i, :i] @ x[:i]) / l[i, i]
    return x


def jacobi(a, b, steps):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return a


def seidel(a, steps):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] + a[i, j]) / 5.0
    return a


def floyd(path):
    n = path.shape[0]
    for k in range(n):
        path[:] = np.minimum(path, np.add.outer(path[:, k], path[k, :]))
    return path


def gram_schmidt(a):
    q = np.zeros_like(a)
    r = np.zeros((a.shape[1], a.shape[1]))
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


def euler(f0, steps, h):
    y = np.array([1.0, 0.0])
    for _ in range(steps):
        y = y + h * np.array([y[1], -f0 * y[0]])
    return y


def runge_kutta(y, t, h, steps):
    def f(t, y):
        return np.array([y[1], -y[0] + 0.1 * np.sin(t)])

    for _ in range(steps):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t = t + h
    return y, t


def heat(u, steps):
    for _ in range(steps):
        new = u.copy()
        new[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = new
    return u


def mandelbrot(re, im, limit):
    count = np.zeros(re.shape, dtype=np.int64)
    x = np.zeros_like(re)
    y = np.zeros_like(re)
    for _ in range(limit):
        inside = x * x + y * y < 4
        count += inside
        x, y = np.where(inside, x * x - y * y + re, x), np.where(inside, 2 * x * y + im, y)
    return count


def longest_common(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    return table[-1, -1]


def nbody(place, speed, mass, steps):
    for _ in range(steps):
        gap = place[None] - place[:, None]
        distance = np.sqrt((gap**2).sum(-1) + 0.01)
        force = (mass[None, :, None] * gap / distance[..., None] ** 3).sum(1)
        speed = speed + 0.01 * force
        place = place + 0.01 * speed
    return place, speed


def adam(x, steps):
    m = np.zeros_like(x)
    v = np.zeros_like(x)
    for t in range(1, steps + 1):
        g = 2 * (x - 3)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        x = x - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return x


def insertion_sort(x):
    x = x.copy()
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


def attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def recurrent(w, u, xs):
    h = np.zeros(w.shape[0])
    for x in xs:
        h = np.tanh(w @ h + u @ x)
    return h


def conjugate_gradient(a, b):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r
    rs = r @ r
    while np.sqrt(rs) > 1e-10:
        ap = a @ p
        alpha = rs / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
    return x


def convolve(x, w):
    out = np.zeros(len(x) - len(w) + 1)
    for i in range(len(out)):
        out[i] = (x[i : i + len(w)] * w).sum()
    return out


_R = np.random.default_rng(0)
_B = _R.normal(size=(4, 4))
_SPD = _B @ _B.T + 4 * np.eye(4)
_G = _R.normal(size=(6, 6))
_X = _R.normal(size=7)
CASES = [
    (cholesky, (_SPD,)),
    (cholesky_in_place, (_SPD,)),
    (lu, (_SPD,)),
    (forward_substitution, (np.tril(_SPD), _SPD[0])),
    (jacobi, (_G, _G.copy(), 3)),
    (seidel, (_G, 2)),
    (floyd, (np.abs(_G),)),
    (gram_schmidt, (_B,)),
    (euler, (1.0, 10, 0.1)),
    (runge_kutta, (np.array([1.0, 0.0]), 0.0, 0.1, 8)),
    (heat, (_X, 6)),
    (mandelbrot, (_X, _X[::-1].copy(), 7)),
    (longest_common, (np.array([1, 2, 3, 4, 2]), np.array([2, 4, 1, 2]))),
    (nbody, (_R.normal(size=(3, 2)), np.zeros((3, 2)), np.ones(3), 5)),
    (adam, (_X, 9)),
    (insertion_sort, (_X,)),
    (attention, (_B, _B + 1, _B)),
    (recurrent, (_B, _B, _R.normal(size=(6, 4)))),
    (conjugate_gradient, (_SPD, _SPD[1])),
    (convolve, (_X, np.array([1.0, -2.0, 1.0]))),
]
