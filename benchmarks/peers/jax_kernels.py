"""The kernels as a JAX user would write them for speed: no loop that an array operation can say.

In: the arguments of the NumPy programs. Out: the results, then the arrays that the NumPy program changes,
in the order of the arguments. `STATIC` numbers those that must be Python values; `FORMS` has all forms."""

import jax
import jax.numpy as jnp
from jax import lax
from kernels import NAMES


def cholesky(a):
    """Right-looking: a column, then the rest of the lower triangle by one outer product."""
    n = a.shape[0]
    row, column = jnp.arange(n)[:, None], jnp.arange(n)[None, :]

    def step(k, a):
        root = jnp.sqrt(a[k, k])
        below = jnp.where(jnp.arange(n) > k, a[:, k] / root, 0.0)
        a = a - jnp.where(column <= row, below[:, None] * below[None, :], 0.0)
        return a.at[:, k].set(jnp.where(jnp.arange(n) > k, below, a[:, k])).at[k, k].set(root)

    return lax.fori_loop(0, n, step, a)


def conv2d_bias(images, weights, bias):
    out = lax.conv_general_dilated(images, weights, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return out + bias


def conv2d_bias_sum(images, weights, bias):
    """The same as a sum over the window's places of matrix products."""
    k = weights.shape[0]
    rows, columns = images.shape[1] - k + 1, images.shape[2] - k + 1
    out = bias + sum(images[:, i : i + rows, j : j + columns] @ weights[i, j] for i in range(k) for j in range(k))
    return out


def fdtd_2d(ex, ey, hz, source):
    def step(t, fields):
        ex, ey, hz = fields
        ey = ey.at[0, :].set(source[t])
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return ex, ey, hz

    return lax.fori_loop(0, len(source), step, (ex, ey, hz))


def floyd_warshall(path):
    n = path.shape[0]
    return lax.fori_loop(0, n, lambda k, p: jnp.minimum(p, p[:, k, None] + p[k, :]), path)


def gemm(alpha, beta, c, a, b):
    return alpha * a @ b + beta * c


def _heat(a):
    inner = a[1:-1, 1:-1, 1:-1]
    return (
        0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * inner + a[:-2, 1:-1, 1:-1])
        + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * inner + a[1:-1, :-2, 1:-1])
        + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * inner + a[1:-1, 1:-1, :-2])
        + inner
    )


def gray_scott(steps, u, v):
    def spread(x):
        return jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1) - 4.0 * x

    def step(_, state):
        u, v = state
        eaten = u * v * v
        return u + 0.16 * spread(u) - eaten + 0.06 * (1.0 - u), v + 0.08 * spread(v) + eaten - 0.122 * v

    return lax.fori_loop(0, steps, step, (u, v))


def heat_3d(steps, a, b):
    def step(_, state):
        a, b = state
        b = b.at[1:-1, 1:-1, 1:-1].set(_heat(a))
        return a.at[1:-1, 1:-1, 1:-1].set(_heat(b)), b

    return lax.fori_loop(0, steps, step, (a, b))


def jacobi_1d(steps, a, b):
    def step(_, state):
        a, b = state
        b = b.at[1:-1].set(0.33333 * (a[:-2] + a[1:-1] + a[2:]))
        return a.at[1:-1].set(0.33333 * (b[:-2] + b[1:-1] + b[2:])), b

    return lax.fori_loop(0, steps, step, (a, b))


def _five(a):
    return 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])


def jacobi_2d(steps, a, b):
    def step(_, state):
        a, b = state
        b = b.at[1:-1, 1:-1].set(_five(a))
        return a.at[1:-1, 1:-1].set(_five(b)), b

    return lax.fori_loop(0, steps, step, (a, b))


def lu(a):
    n = a.shape[0]

    def step(k, a):
        below = jnp.where(jnp.arange(n) > k, a[:, k] / a[k, k], 0.0)
        right = jnp.where(jnp.arange(n) > k, a[k, :], 0.0)
        a = a.at[:, k].set(jnp.where(jnp.arange(n) > k, below, a[:, k]))
        return a - below[:, None] * right[None, :]

    return lax.fori_loop(0, n, step, a)


def mandelbrot(left, right, bottom, top, width, height, limit):
    c = jnp.linspace(left, right, width) + 1j * jnp.linspace(bottom, top, height)[:, None]

    def step(k, state):
        z, count, inside = state
        z = z * z + c
        escaped = inside & (z.real**2 + z.imag**2 > 4.0)
        return z, jnp.where(escaped, k + 1, count), inside & ~escaped

    start = (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int64), jnp.ones(c.shape, bool))
    return lax.fori_loop(0, limit, step, start)[1]


def mandelbrot_lanes(left, right, bottom, top, width, height, limit):
    """One `while` a point, batched: it ends when the last point does."""

    def point(x, y):
        def more(state):
            re, im, step = state
            return (re * re + im * im <= 4.0) & (step < limit)

        def step(state):
            re, im, k = state
            return re * re - im * im + x, 2 * re * im + y, k + 1

        re, im, k = lax.while_loop(more, step, (0.0, 0.0, 0))
        return jnp.where(re * re + im * im > 4.0, k, 0)

    rows = jax.vmap(jax.vmap(point, (0, None)), (None, 0))
    return rows(jnp.linspace(left, right, width), jnp.linspace(bottom, top, height))


def mlp(x, w1, b1, w2, b2, w3, b3):
    y = jax.nn.relu(x @ w1 + b1)
    y = jax.nn.relu(y @ w2 + b2)
    return jax.nn.softmax(y @ w3 + b3, axis=-1)


def _acceleration(place, mass, softening):
    gap = place[None] - place[:, None]
    inverse = (jnp.sum(gap**2, -1) + softening**2) ** -1.5
    return jnp.sum(gap * (mass * inverse)[:, :, None], 1)


def _energy(place, speed, mass):
    gap = place[None] - place[:, None]
    squared = jnp.sum(gap**2, -1)
    inverse = jnp.where(squared > 0, 1.0 / jnp.sqrt(jnp.where(squared > 0, squared, 1.0)), 0.0)
    return 0.5 * jnp.sum(mass[:, None] * speed**2), -0.5 * jnp.sum(mass[:, None] * mass * inverse)


def nbody(mass, place, speed, steps, dt, softening):
    speed = speed - jnp.sum(mass[:, None] * speed, 0) / jnp.sum(mass)

    def step(state, _):
        place, speed, force = state
        speed = speed + force * dt / 2
        place = place + speed * dt
        force = _acceleration(place, mass, softening)
        speed = speed + force * dt / 2
        return (place, speed, force), _energy(place, speed, mass)

    first = _energy(place, speed, mass)
    start = (place, speed, _acceleration(place, mass, softening))
    (place, speed, _), (kinetic, potential) = lax.scan(step, start, length=steps)
    join = lambda one, rest: jnp.concatenate([one[None], rest])
    return join(first[0], kinetic), join(first[1], potential), place, speed


def nussinov(bases):
    n = len(bases)
    at = jnp.arange(n)

    def cell(j, state):
        table, i = state
        pair = jnp.where((i < j - 1) & (bases[i] + bases[j] == 3), 1, 0)
        best = jnp.maximum(table[i, j - 1], table[i + 1, j])
        best = jnp.maximum(best, table[i + 1, j - 1] + pair)
        split = jnp.where((at > i) & (at < j), table[i] + jnp.roll(table[:, j], -1), 0)
        return table.at[i, j].set(jnp.maximum(best, split.max())), i

    def row(k, table):
        i = n - 1 - k
        return lax.fori_loop(i + 1, n, cell, (table, i))[0]

    return lax.fori_loop(0, n, row, jnp.zeros((n, n), jnp.int64))


def seidel_2d(steps, a):
    n = a.shape[0]

    def row(i, a):
        up, down = a[i - 1], a[i + 1]
        known = a[i, 1:-1] + up[:-2] + up[1:-1] + up[2:] + a[i, 2:] + down[:-2] + down[1:-1] + down[2:]

        def next_(left, here):
            now = (here + left) / 9.0
            return now, now

        return a.at[i, 1:-1].set(lax.scan(next_, a[i, 0], known, unroll=8)[1])

    return (lax.fori_loop(0, steps, lambda _, a: lax.fori_loop(1, n - 1, row, a), a),)


def softmax_4d(x):
    return jax.nn.softmax(x, axis=-1)


def spmv(starts, columns, values, x):
    rows = jnp.repeat(jnp.arange(starts.size - 1), jnp.diff(starts), total_repeat_length=values.size)
    y = jax.ops.segment_sum(values * x[columns], rows, starts.size - 1, indices_are_sorted=True)
    return y


def symm(alpha, beta, c, a, b):
    """As one matrix product with the whole symmetric matrix."""
    lower = jnp.tril(a)
    return alpha * (lower + jnp.tril(a, -1).T) @ b + beta * c


def syrk(alpha, beta, c, a):
    """As one matrix product of which the lower triangle is kept."""
    lower = jnp.tril(jnp.ones(c.shape, bool))
    return jnp.where(lower, alpha * (a @ a.T) + beta * c, c)


def asian_option(normals, start, strike, rate, volatility, step):
    paths, steps = normals.shape
    growth = (rate - 0.5 * volatility**2) * step + volatility * jnp.sqrt(step) * normals
    mean = start * jnp.exp(jnp.cumsum(growth, axis=1)).sum(axis=1) / steps
    return jnp.exp(-rate * step * steps) * jnp.maximum(mean - strike, 0.0).sum() / paths


def random_walk(turns):
    angle = 2 * jnp.pi * turns
    x, y = jnp.cumsum(jnp.cos(angle)), jnp.cumsum(jnp.sin(angle))
    return jnp.array([jnp.sqrt(jnp.max(x * x + y * y)), x[-1], y[-1]])


def trial_division(n):
    """Numbers side by side, each until the last of them is done."""

    def prime(p):
        def divides(state):
            q, found = state
            return q + 1, found | (p % q == 0)

        return ~lax.while_loop(lambda state: (state[0] ** 2 <= p) & ~state[1], divides, (2, False))[1]

    return jax.vmap(prime)(jnp.arange(2, n)).sum()


def comb_sort(x):
    return jnp.sort(x)


def sieve(n):
    """A number is crossed out at each prime up to its root: places are computed, not stored."""
    numbers = jnp.arange(n + 1)

    def cross_out(p, prime):
        return prime & ~((numbers % p == 0) & (numbers >= p * p) & prime[p])

    return lax.fori_loop(2, int(n**0.5) + 1, cross_out, numbers > 1).sum()


STATIC = {"mandelbrot": (4, 5, 6), "nbody": (3,), "sieve": (0,), "trial_division": (0,)}


def convolved(image, weights):
    return lax.conv_general_dilated(image[None, None], weights[None, None], (1, 1), "VALID")[0, 0]


def convolved_sum(image, weights):
    """As a sum of slices."""
    n, m = image.shape
    return sum(image[p : n - 2 + p, q : m - 2 + q] * weights[p, q] for p in range(3) for q in range(3))


def huber(residuals, width):
    size = jnp.abs(residuals)
    loss = jnp.where(size > width, width * (size - 0.5 * width), 0.5 * residuals * residuals)
    return jnp.array([loss.sum(), (size > width).sum()])


def metropolis(spins, where, chances, beta):
    n = round(len(spins) ** 0.5)

    def step(k, grid):
        i, j = where[k] // n, where[k] % n
        s = grid[i, j]
        around = grid[(i + 1) % n, j] + grid[(i - 1) % n, j] + grid[i, (j + 1) % n] + grid[i, (j - 1) % n]
        change = 2 * s * around
        turned = (change <= 0) | (chances[k] < jnp.exp(-beta * change))
        return grid.at[i, j].set(jnp.where(turned, -s, s))

    return lax.fori_loop(0, len(where), step, spins.reshape(n, n))


FORMS = {name: [globals()[name]] for name in NAMES}
FORMS["conv2d_bias"].append(conv2d_bias_sum)
FORMS["convolved"].append(convolved_sum)
FORMS["mandelbrot"].append(mandelbrot_lanes)
