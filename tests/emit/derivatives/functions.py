"""Twenty functions of several kinds, as users write them, whose derivative texts people read.

In: nothing. Out: `CASES`, for each function how it is transformed and arguments. Its golden is beside this
file, and an adjoint written by hand is in `adjoints.py`.
"""

import numpy as np

import metaphrase as mp


def newton_root(a, x):
    """A square root by Newton's rule."""
    # halve the distance until it is small
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def smooth(x, rate):
    """An exponential moving average, summed."""
    state = x[0]
    total = 0.0
    for value in x:
        state = rate * value + (1.0 - rate) * state
        total = total + state**2
    return total


def fill(x):
    """A recurrence, stored element by element."""
    y = np.ones(len(x))
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1] + np.sin(x[i])
    return np.sum(y)


def cholesky(a):
    """The Cholesky factor by loops; returns the logarithm of the determinant."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            # the row above is ready
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = np.sqrt(a[i, i])
    return 2.0 * np.sum(np.log(np.diag(a)))


def lu(a):
    """Gaussian elimination without pivots; the logarithm of the determinant."""
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return np.sum(np.log(np.diag(a)))


def nbody(place, speed, mass, steps, dt):
    """Kinetic energy after some steps of the leapfrog rule."""
    for _ in range(steps):
        gap = place[np.newaxis, :, :] - place[:, np.newaxis, :]
        inverse = (np.sum(gap**2, axis=-1) + 0.01) ** -1.5
        force = np.sum(gap * (mass * inverse)[:, :, np.newaxis], axis=1)
        speed = speed + force * dt
        place = place + speed * dt
    return 0.5 * np.sum(mass[:, np.newaxis] * speed**2)


def softmax_regression(w, b, x, labels):
    """The mean cross entropy of a linear classifier."""
    scores = x @ w + b
    scores = scores - np.max(scores, axis=1, keepdims=True)  # no overflow
    logs = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
    return -np.mean(logs[np.arange(len(labels)), labels])


def chain(a, b, c, x):
    """A chain of matrix products with a nonlinearity."""
    hidden = np.tanh(a @ x)
    hidden = np.tanh(b @ hidden)
    out = c @ hidden
    return np.sum(out**2)


def variation(x):
    """The coefficient of variation, with the largest element."""
    mean = np.mean(x)
    deviation = np.sqrt(np.mean((x - mean) ** 2))
    return deviation / mean + np.max(x)


def spectrum(x, kernel):
    """The power that is left behind a filter."""
    power = np.fft.rfft(x) * kernel
    return np.sum(np.abs(power) ** 2)


def ridge(a, strength):
    """The logarithm of the determinant of a matrix with a ridge."""
    gram = a.T @ a + strength * np.eye(a.shape[1])
    return np.linalg.slogdet(gram)[1]


def huber(x):
    """Quadratic near zero, linear away from it."""
    if abs(x) < 1.0:
        return 0.5 * x * x
    return abs(x) - 0.5


def escape(c, limit):
    """How far an orbit gets before it leaves."""
    z = 0.0
    k = 0
    while k < limit:
        z = z * z + c
        if z > 2.0:
            break
        k += 1
    return z


def rnn(w, h, xs):
    """A recurrent network over rows."""
    total = 0.0
    for x in xs:
        h = np.tanh(w @ h + x)
        total += np.sum(h**2)
    return total


def heat(u, steps):
    """Explicit steps of the heat equation, stored into the inner part."""
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def paths(cost):
    """The cheapest way through a grid, softly."""
    n, m = cost.shape
    best = np.zeros((n, m))
    for i in range(1, n):
        for j in range(1, m):
            up = np.exp(-best[i - 1, j])
            left = np.exp(-best[i, j - 1])
            best[i, j] = cost[i, j] - np.log(up + left)
    return best[-1, -1]


def through_view(x):
    """Stores through views of a buffer."""
    buffer = np.zeros((2, len(x)))
    top, bottom = buffer
    top[:] = x**2
    bottom[1:] = top[:-1] * x[1:]
    return np.sum(np.sin(buffer))


def mixture(x, centre, width):
    """The log density of one point, for many points at once."""
    z = (x - centre) / width
    return -0.5 * z * z - np.log(width)


def rosenbrock(x):
    """The banana function."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def projectile(angle, speed):
    """How far a ball flies with drag."""
    x, y = 0.0, 0.0
    vx, vy = speed * np.cos(angle), speed * np.sin(angle)
    while y >= 0.0:
        drag = 0.01 * np.sqrt(vx * vx + vy * vy)
        vx -= 0.01 * drag * vx
        vy -= 0.01 * (9.81 + drag * vy)
        x += 0.01 * vx
        y += 0.01 * vy
    return x


_rng = np.random.default_rng(7)
_normal = _rng.standard_normal
_root = _normal((5, 5))
_matrix = _root @ _root.T + 5.0 * np.eye(5)

# name: (function, how it is transformed, the types its text is for, arguments)
CASES = {
    "newton_root": (newton_root, mp.grad, "f64, f64", (2.0, 1.0)),
    "smooth": (smooth, lambda f: mp.grad(f, argnums=(0, 1)), "f64[n], f64", (_normal(6), 0.3)),
    "fill": (fill, mp.grad, "f64[n]", (_normal(6),)),
    "cholesky": (cholesky, mp.grad, "f64[n, n]", (_matrix,)),
    "lu": (lu, mp.grad, "f64[n, n]", (_matrix,)),
    "nbody": (
        nbody,
        lambda f: mp.grad(f, argnums=(0, 1)),
        "f64[n, 3], f64[n, 3], f64[n], i64, f64",
        (_normal((4, 3)), _normal((4, 3)), _rng.uniform(1.0, 2.0, 4), 3, 0.01),
    ),
    "softmax_regression": (
        softmax_regression,
        lambda f: mp.grad(f, argnums=(0, 1)),
        "f64[k, m], f64[m], f64[n, k], i64[n]",
        (_normal((3, 4)), _normal(4), _normal((5, 3)), np.array([0, 1, 3, 2, 1])),
    ),
    "chain": (
        chain,
        lambda f: mp.grad(f, argnums=(0, 1, 2)),
        "f64[k, m], f64[n, k], f64[p, n], f64[m]",
        (_normal((4, 3)), _normal((5, 4)), _normal((2, 5)), _normal(3)),
    ),
    "variation": (variation, mp.grad, "f64[n]", (_rng.uniform(1.0, 2.0, 6),)),
    "spectrum": (spectrum, lambda f: mp.grad(f, argnums=(0, 1)), "f64[8], f64[5]", (_normal(8), _normal(5))),
    "ridge": (ridge, lambda f: mp.grad(f, argnums=(0, 1)), "f64[m, n], f64", (_normal((6, 3)), 0.5)),
    "huber": (huber, mp.grad, "f64", (0.7,)),
    "escape": (escape, mp.grad, "f64, i64", (0.3, 20)),
    "rnn": (rnn, mp.grad, "f64[k, k], f64[k], f64[n, k]", (_normal((3, 3)), _normal(3), _normal((4, 3)))),
    "heat": (heat, mp.grad, "f64[n], i64", (_normal(7), 3)),
    "paths": (paths, mp.grad, "f64[n, m]", (_normal((4, 5)),)),
    "through_view": (through_view, mp.grad, "f64[n]", (_normal(5),)),
    "mixture": (
        mixture,
        lambda f: mp.vmap(mp.grad(f, argnums=1), in_axes=(0, None, None)),
        "f64[n], f64, f64",
        (_normal(5), 0.3, 0.8),
    ),
    "rosenbrock": (rosenbrock, mp.hessian, "f64[n]", (_normal(4),)),
    "projectile": (projectile, lambda f: mp.grad(f, argnums=(0, 1)), "f64, f64", (0.7, 10.0)),
}
