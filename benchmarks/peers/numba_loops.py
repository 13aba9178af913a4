"""The kernels as explicit loops, the form Numba likes best; `prange` counts where parallel=True is tried.

In: the same arguments as the NumPy programs, arrays changed in the same way. Out: the same results.
"""

import numpy as np
from numba import prange


def cholesky(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[j, k]
            a[i, j] = s / a[j, j]
        s = a[i, i]
        for k in range(i):
            s -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(s)


def conv2d_bias(images, weights, bias):
    k, _, channels, outputs = weights.shape
    count, height, width, _ = images.shape
    rows, columns = height - k + 1, width - k + 1
    out = np.empty((count, rows, columns, outputs))
    for n in prange(count):
        for i in range(rows):
            for j in range(columns):
                for o in range(outputs):
                    out[n, i, j, o] = bias[o]
                for u in range(k):
                    for v in range(k):
                        for c in range(channels):
                            x = images[n, i + u, j + v, c]
                            for o in range(outputs):
                                out[n, i, j, o] += x * weights[u, v, c, o]
    return out


def fdtd_2d(ex, ey, hz, source):
    nx, ny = hz.shape
    for t in range(len(source)):
        for j in range(ny):
            ey[0, j] = source[t]
        for i in prange(1, nx):
            for j in range(ny):
                ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in prange(nx):
            for j in range(1, ny):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in prange(nx - 1):
            for j in range(ny - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def floyd_warshall(path):
    n = path.shape[0]
    for k in range(n):
        for i in prange(n):
            through = path[i, k]
            for j in range(n):
                path[i, j] = min(path[i, j], through + path[k, j])


def gray_scott(steps, u, v):
    n = u.shape[0]
    for _ in range(steps):
        new_u, new_v = np.empty_like(u), np.empty_like(v)
        for i in prange(n):
            above, below = (i - 1 if i > 0 else n - 1), (i + 1 if i < n - 1 else 0)
            for j in range(n):
                left, right = (j - 1 if j > 0 else n - 1), (j + 1 if j < n - 1 else 0)
                spread_u = u[above, j] + u[below, j] + u[i, left] + u[i, right] - 4.0 * u[i, j]
                spread_v = v[above, j] + v[below, j] + v[i, left] + v[i, right] - 4.0 * v[i, j]
                eaten = u[i, j] * v[i, j] * v[i, j]
                new_u[i, j] = u[i, j] + 0.16 * spread_u - eaten + 0.06 * (1.0 - u[i, j])
                new_v[i, j] = v[i, j] + 0.08 * spread_v + eaten - 0.122 * v[i, j]
        u, v = new_u, new_v
    return u, v


def heat_3d(steps, a, b):
    n = a.shape[0]
    for _ in range(steps):
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    b[i, j, k] = (
                        0.125 * (a[i + 1, j, k] - 2.0 * a[i, j, k] + a[i - 1, j, k])
                        + 0.125 * (a[i, j + 1, k] - 2.0 * a[i, j, k] + a[i, j - 1, k])
                        + 0.125 * (a[i, j, k + 1] - 2.0 * a[i, j, k] + a[i, j, k - 1])
                        + a[i, j, k]
                    )
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    a[i, j, k] = (
                        0.125 * (b[i + 1, j, k] - 2.0 * b[i, j, k] + b[i - 1, j, k])
                        + 0.125 * (b[i, j + 1, k] - 2.0 * b[i, j, k] + b[i, j - 1, k])
                        + 0.125 * (b[i, j, k + 1] - 2.0 * b[i, j, k] + b[i, j, k - 1])
                        + b[i, j, k]
                    )


def jacobi_1d(steps, a, b):
    n = a.shape[0]
    for _ in range(steps):
        for i in prange(1, n - 1):
            b[i] = 0.33333 * (a[i - 1] + a[i] + a[i + 1])
        for i in prange(1, n - 1):
            a[i] = 0.33333 * (b[i - 1] + b[i] + b[i + 1])


def jacobi_2d(steps, a, b):
    n = a.shape[0]
    for _ in range(steps):
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = 0.2 * (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j])


def lu(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[k, j]
            a[i, j] = s / a[j, j]
        for k in range(i):  # the row at once: along rows, not down columns
            through = a[i, k]
            for j in range(i, n):
                a[i, j] -= through * a[k, j]


def mandelbrot(left, right, bottom, top, width, height, limit):
    x = np.linspace(left, right, width)
    y = np.linspace(bottom, top, height)
    count = np.zeros((height, width), dtype=np.int64)
    for i in prange(height):
        for j in range(width):
            re = im = 0.0
            for step in range(limit):
                re, im = re * re - im * im + x[j], 2 * re * im + y[i]
                if re * re + im * im > 4.0:
                    count[i, j] = step + 1
                    break
    return count


def nbody(mass, place, speed, steps, dt, softening):
    n = len(mass)
    total = mass.sum()
    for d in range(3):
        drift = 0.0
        for i in range(n):
            drift += mass[i] * speed[i, d]
        for i in range(n):
            speed[i, d] -= drift / total
    kinetic, potential = np.empty(steps + 1), np.empty(steps + 1)
    force = np.zeros((n, 3))
    for step in range(steps + 1):
        if step > 0:
            for i in range(n):
                for d in range(3):
                    speed[i, d] += force[i, d] * dt / 2
                    place[i, d] += speed[i, d] * dt
        energy = 0.0
        for i in range(n):
            fx = fy = fz = 0.0
            for j in range(n):
                x = place[j, 0] - place[i, 0]
                y = place[j, 1] - place[i, 1]
                z = place[j, 2] - place[i, 2]
                squared = x * x + y * y + z * z
                soft = squared + softening * softening
                inverse = mass[j] / (soft * np.sqrt(soft))
                fx += x * inverse
                fy += y * inverse
                fz += z * inverse
                if squared > 0:
                    energy -= mass[i] * mass[j] / np.sqrt(squared)
            force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz
        moving = 0.0
        for i in range(n):
            for d in range(3):
                if step > 0:
                    speed[i, d] += force[i, d] * dt / 2
                moving += mass[i] * speed[i, d] * speed[i, d]
        kinetic[step], potential[step] = 0.5 * moving, 0.5 * energy
    return kinetic, potential


def nussinov(bases):
    n = len(bases)
    table = np.zeros((n, n), dtype=np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            best = max(table[i, j - 1], table[i + 1, j])
            pair = 1 if i < j - 1 and bases[i] + bases[j] == 3 else 0
            best = max(best, table[i + 1, j - 1] + pair)
            for k in range(i + 1, j):
                best = max(best, table[i, k] + table[k + 1, j])
            table[i, j] = best
    return table


def seidel_2d(steps, a):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] += (
                    a[i - 1, j - 1]
                    + a[i - 1, j]
                    + a[i - 1, j + 1]
                    + a[i, j + 1]
                    + a[i + 1, j - 1]
                    + a[i + 1, j]
                    + a[i + 1, j + 1]
                )
            for j in range(1, n - 1):
                a[i, j] = (a[i, j] + a[i, j - 1]) / 9.0


def softmax_4d(x):
    rows = x.size // x.shape[-1]
    flat = x.reshape(rows, x.shape[-1])
    out = np.empty_like(flat)
    for i in prange(rows):
        largest = flat[i, 0]
        for j in range(flat.shape[1]):
            largest = max(largest, flat[i, j])
        total = 0.0
        for j in range(flat.shape[1]):
            out[i, j] = np.exp(flat[i, j] - largest)
            total += out[i, j]
        for j in range(flat.shape[1]):
            out[i, j] /= total
    return out.reshape(x.shape)


def spmv(starts, columns, values, x):
    y = np.empty(starts.size - 1)
    for i in prange(starts.size - 1):
        s = 0.0
        for k in range(starts[i], starts[i + 1]):
            s += values[k] * x[columns[k]]
        y[i] = s
    return y


def symm(alpha, beta, c, a, b):
    n, m = c.shape
    below = np.empty(m)
    c *= beta
    for i in range(n):
        below[:] = 0.0
        for k in range(i):
            through = a[i, k]
            for j in range(m):
                c[k, j] += alpha * b[i, j] * through
                below[j] += b[k, j] * through
        for j in range(m):
            c[i, j] += alpha * b[i, j] * a[i, i] + alpha * below[j]


def syrk(alpha, beta, c, a):
    for i in prange(a.shape[0]):
        for j in range(i + 1):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * a[j, k]
            c[i, j] = beta * c[i, j] + alpha * s


def convolved(image, weights):
    n, m = image.shape
    out = np.zeros((n - 2, m - 2))
    for i in prange(n - 2):
        for j in range(m - 2):
            s = 0.0
            for p in range(3):
                for q in range(3):
                    s += image[i + p, j + q] * weights[p, q]
            out[i, j] = s
    return out


def huber(residuals, width):
    total, far = 0.0, 0
    for i in prange(len(residuals)):
        r = residuals[i]
        if r > width:
            total += width * (r - 0.5 * width)
            far += 1
        elif r < -width:
            total += -width * (r + 0.5 * width)
            far += 1
        else:
            total += 0.5 * r * r
    return np.array([total, far])


def asian_option(normals, start, strike, rate, volatility, step):
    paths, steps = normals.shape
    total = 0.0
    for i in prange(paths):
        price, mean = start, 0.0
        for j in range(steps):
            price *= np.exp((rate - 0.5 * volatility**2) * step + volatility * np.sqrt(step) * normals[i, j])
            mean += price / steps
        total += max(mean - strike, 0.0)
    return np.exp(-rate * step * steps) * total / paths


def trial_division(n):
    count = 0
    for p in prange(2, n):
        q, prime = 2, True
        while q * q <= p:
            if p % q == 0:
                prime = False
                break
            q += 1
        if prime:
            count += 1
    return count
