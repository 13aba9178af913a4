"""The derivatives of `functions.py` as a person writes them by hand, with NumPy only.

In: what the functions take. Out: what the transformed ones give. The texts that are emitted are compared with
these: the same numbers, and no more than 1.6 times the lines.
"""

import numpy as np


def newton_root(a, x):
    steps = []
    while abs(x * x - a) > 1e-12:
        steps.append(x)
        x = 0.5 * (x + a / x)
    x_bar = 1.0
    a_bar = 0.0
    for x in reversed(steps):
        half = 0.5 * x_bar
        a_bar += half / x
        x_bar = half - half * a / x**2
    return a_bar


def smooth(x, rate):
    states = [x[0]]
    for value in x:
        states.append(rate * value + (1.0 - rate) * states[-1])
    x_bar = np.zeros(len(x))
    rate_bar = 0.0
    state_bar = 0.0
    for i in reversed(range(len(x))):
        state_bar += 2.0 * states[i + 1]
        x_bar[i] = rate * state_bar
        rate_bar += (x[i] - states[i]) * state_bar
        state_bar = (1.0 - rate) * state_bar
    x_bar[0] += state_bar
    return x_bar, rate_bar


def fill(x):
    n = len(x)
    y = np.ones(n)
    for i in range(1, n):
        y[i] = x[i] * y[i - 1] + np.sin(x[i])
    y_bar = np.ones(n)
    x_bar = np.zeros(n)
    for i in reversed(range(1, n)):
        x_bar[i] = y_bar[i] * (y[i - 1] + np.cos(x[i]))
        y_bar[i - 1] += y_bar[i] * x[i]
    return x_bar


def cholesky(a):
    n = len(a)
    a = a.copy()
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = np.sqrt(a[i, i])
    a_bar = np.diag(2.0 / np.diag(a))
    for i in reversed(range(n)):
        a_bar[i, i] *= 0.5 / a[i, i]
        a_bar[i, :i] -= 2.0 * a_bar[i, i] * a[i, :i]
        for j in reversed(range(i)):
            a_bar[i, j] /= a[j, j]
            a_bar[j, j] -= a_bar[i, j] * a[i, j]
            a_bar[j, :j] -= a_bar[i, j] * a[i, :j]
            a_bar[i, :j] -= a_bar[i, j] * a[j, :j]
    return a_bar


def lu(a):
    n = len(a)
    a = a.copy()
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    a_bar = np.diag(1.0 / np.diag(a))
    for k in reversed(range(n)):
        for i in reversed(range(k + 1, n)):
            row_bar = a_bar[i, k + 1 :]
            a_bar[i, k] -= row_bar @ a[k, k + 1 :]
            a_bar[k, k + 1 :] -= a[i, k] * row_bar
            a_bar[i, k] /= a[k, k]
            a_bar[k, k] -= a_bar[i, k] * a[i, k]
    return a_bar


def nbody(place, speed, mass, steps, dt):
    saved = []
    for _ in range(steps):
        gap = place[np.newaxis, :, :] - place[:, np.newaxis, :]
        total = np.sum(gap**2, axis=-1) + 0.01
        saved.append((gap, total))
        force = np.sum(gap * (mass * total**-1.5)[:, :, np.newaxis], axis=1)
        speed = speed + force * dt
        place = place + speed * dt
    place_bar = np.zeros(place.shape)
    speed_bar = mass[:, np.newaxis] * speed
    for gap, total in reversed(saved):
        speed_bar = speed_bar + place_bar * dt
        force_bar = (speed_bar * dt)[:, np.newaxis, :]
        weight_bar = np.sum(gap * force_bar, axis=-1)
        total_bar = weight_bar * mass * -1.5 * total**-2.5
        gap_bar = force_bar * (mass * total**-1.5)[:, :, np.newaxis]
        gap_bar += 2.0 * gap * total_bar[:, :, np.newaxis]
        place_bar = place_bar + np.sum(gap_bar, axis=0) - np.sum(gap_bar, axis=1)
    return place_bar, speed_bar


def softmax_regression(w, b, x, labels):
    n = len(labels)
    scores = x @ w + b
    largest = np.max(scores, axis=1, keepdims=True)
    exponentials = np.exp(scores - largest)
    total = np.sum(exponentials, axis=1, keepdims=True)
    logs_bar = np.zeros(scores.shape)
    logs_bar[np.arange(n), labels] = -1.0 / n
    total_bar = -np.sum(logs_bar, axis=1, keepdims=True) / total
    scores_bar = logs_bar + total_bar * exponentials
    largest_bar = -np.sum(scores_bar, axis=1, keepdims=True)
    mask = scores == largest
    scores_bar += mask * largest_bar / np.sum(mask, axis=1, keepdims=True)
    w_bar = x.T @ scores_bar
    b_bar = np.sum(scores_bar, axis=0)
    return w_bar, b_bar


def chain(a, b, c, x):
    first = np.tanh(a @ x)
    second = np.tanh(b @ first)
    out_bar = 2.0 * (c @ second)
    second_bar = (c.T @ out_bar) * (1.0 - second**2)
    first_bar = (b.T @ second_bar) * (1.0 - first**2)
    return np.outer(first_bar, x), np.outer(second_bar, first), np.outer(out_bar, second)


def variation(x):
    n = len(x)
    mean = np.mean(x)
    deviation = np.sqrt(np.mean((x - mean) ** 2))
    deviation_bar = 1.0 / mean
    mean_bar = -deviation / mean**2
    centred_bar = (x - mean) / n * deviation_bar / deviation
    mean_bar -= np.sum(centred_bar)
    largest = x == np.max(x)
    return centred_bar + mean_bar / n + largest / np.sum(largest)


def spectrum(x, kernel):
    n = len(x)
    wave = np.fft.rfft(x)
    power = wave * kernel
    power_bar = 2.0 * np.conj(power)
    x_bar = np.fft.fft(power_bar * kernel, n).real
    kernel_bar = (power_bar * wave).real
    return x_bar, kernel_bar


def ridge(a, strength):
    unit = np.eye(a.shape[1])
    gram = a.T @ a + strength * unit
    gram_bar = np.linalg.inv(gram).T
    a_bar = a @ (gram_bar + gram_bar.T)
    return a_bar, np.trace(gram_bar)


def huber(x):
    if abs(x) < 1.0:
        return x
    return np.sign(x)


def escape(c, limit):
    z = 0.0
    k = 0
    saved = []
    while k < limit:
        saved.append(z)
        z = z * z + c
        if z > 2.0:
            break
        k += 1
    z_bar = 1.0
    c_bar = 0.0
    for z in reversed(saved):
        c_bar += z_bar
        z_bar = 2.0 * z * z_bar
    return c_bar


def rnn(w, h, xs):
    saved = [h]
    for x in xs:
        saved.append(np.tanh(w @ saved[-1] + x))
    w_bar = np.zeros(w.shape)
    h_bar = np.zeros(h.shape)
    for before, h in zip(saved[-2::-1], saved[:0:-1]):
        inner_bar = (h_bar + 2.0 * h) * (1.0 - h**2)
        w_bar += np.outer(inner_bar, before)
        h_bar = w.T @ inner_bar
    return w_bar


def heat(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    u_bar = 2.0 * u
    for _ in range(steps):
        change = 0.1 * u_bar[1:-1]
        u_bar[2:] += change
        u_bar[1:-1] -= 2.0 * change
        u_bar[:-2] += change
    return u_bar


def paths(cost):
    n, m = cost.shape
    best = np.zeros((n, m))
    for i in range(1, n):
        for j in range(1, m):
            up = np.exp(-best[i - 1, j])
            left = np.exp(-best[i, j - 1])
            best[i, j] = cost[i, j] - np.log(up + left)
    cost_bar = np.zeros((n, m))
    best_bar = np.zeros((n, m))
    best_bar[-1, -1] = 1.0
    for i in reversed(range(1, n)):
        for j in reversed(range(1, m)):
            up = np.exp(-best[i - 1, j])
            left = np.exp(-best[i, j - 1])
            cost_bar[i, j] += best_bar[i, j]
            total_bar = best_bar[i, j] / (up + left)
            best_bar[i - 1, j] += total_bar * up
            best_bar[i, j - 1] += total_bar * left
    return cost_bar


def through_view(x):
    top = x**2
    bottom = np.zeros(len(x))
    bottom[1:] = top[:-1] * x[1:]
    top_bar = np.cos(top)
    bottom_bar = np.cos(bottom)
    top_bar[:-1] += bottom_bar[1:] * x[1:]
    x_bar = 2.0 * x * top_bar
    x_bar[1:] += bottom_bar[1:] * top[:-1]
    return x_bar


def mixture(x, centre, width):
    z = (x - centre) / width
    return z / width


def rosenbrock(x):
    n = len(x)
    inner = x[:-1]
    hessian = np.zeros((n, n))
    k = np.arange(n - 1)
    hessian[k, k] = 1200.0 * inner**2 - 400.0 * x[1:] + 2.0
    hessian[k + 1, k + 1] += 200.0
    hessian[k, k + 1] = -400.0 * inner
    hessian[k + 1, k] = -400.0 * inner
    return hessian


def projectile(angle, speed):
    x, y = 0.0, 0.0
    vx, vy = speed * np.cos(angle), speed * np.sin(angle)
    saved = []
    while y >= 0.0:
        saved.append((vx, vy))
        drag = 0.01 * np.sqrt(vx * vx + vy * vy)
        vx -= 0.01 * drag * vx
        vy -= 0.01 * (9.81 + drag * vy)
        x += 0.01 * vx
        y += 0.01 * vy
    vx_bar, vy_bar = 0.0, 0.0
    for vx, vy in reversed(saved):
        size = np.sqrt(vx * vx + vy * vy)
        drag = 0.01 * size
        vx_bar += 0.01
        drag_bar = -0.01 * (vx_bar * vx + vy_bar * vy)
        vx_bar -= 0.01 * drag * vx_bar
        vy_bar -= 0.01 * drag * vy_bar
        vx_bar += 0.01 * drag_bar * vx / size
        vy_bar += 0.01 * drag_bar * vy / size
    angle_bar = speed * (vy_bar * np.cos(angle) - vx_bar * np.sin(angle))
    speed_bar = vx_bar * np.cos(angle) + vy_bar * np.sin(angle)
    return angle_bar, speed_bar
