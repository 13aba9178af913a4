"""Simulators, bandits, filters and statistics that keep None, numbers in lists, and lists of tests."""

import math

import numpy as np


class Controller:
    def __init__(self, kp, ki, kd):
        self.kp, self.ki, self.kd = kp, ki, kd
        self.integral = 0.0
        self.last = None

    def update(self, error, dt):
        self.integral += error * dt
        derivative = 0.0 if self.last is None else (error - self.last) / dt
        self.last = error
        return self.kp * error + self.ki * self.integral + self.kd * derivative


def controlled(gains, wanted, steps):
    controller = Controller(*gains)
    x, v = 0.0, 0.0
    log = np.zeros((steps, 2))
    for k in range(steps):
        u = controller.update(wanted - x, 0.05)
        v += (u - 0.2 * v) * 0.05
        x += v * 0.05
        log[k] = x, u
    return log, controller.integral, controller.last


def none_in_items(x):
    seen = [None, None]
    total = 0.0
    for v in x:
        k = 0 if v > 0 else 1
        if k == 0:
            if seen[0] is None or v > seen[0]:
                seen[0] = v
        else:
            total += v if seen[1] is None else v - seen[1]
            seen[1] = v
    return total, seen[0] is None


def counted(picks):
    counts = [0] * 4
    sums = [0.0] * 4
    for k in picks:
        counts[k] += 1
        sums[k] += (1.5 - sums[k]) / counts[k]
    return counts, sums


def stored_at(values, x, places):
    values[places[0]] = x[0]
    values[places[1]] = 7.0
    return values[places[2]] + 1


MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]


def walked(steps, r, c):
    for k in steps:
        dr, dc = MOVES[k]
        r += dr
        c += dc
    return r, c, (2.5, 1.0, 4.0)[steps[0]]


def merged_heights(d):
    n = d.shape[0]
    d = d.copy()
    np.fill_diagonal(d, np.inf)
    sizes = [1] * n
    heights = []
    active = n
    while active > 1:
        i, j = np.unravel_index(np.argmin(d), d.shape)
        heights.append(d[i, j] / 2)
        for k in range(n):
            if k != i and k != j:
                d[i, k] = d[k, i] = (sizes[i] * d[i, k] + sizes[j] * d[j, k]) / (sizes[i] + sizes[j])
        sizes[i] += sizes[j]
        d[j, :] = d[:, j] = np.inf
        active -= 1
    return heights, sizes


def theil_sen(x, y):
    n = len(x)
    slopes = [(y[j] - y[i]) / (x[j] - x[i]) for i in range(n) for j in range(i + 1, n) if x[j] != x[i]]
    m = np.median(slopes)
    return m, np.median(y - m * x)


def peaks(x, height):
    return [i for i in range(1, len(x) - 1) if x[i - 1] < x[i] >= x[i + 1] and x[i] > height]


def pairs_in_python(x, n):
    pairs = [(i, j) for i in range(3) for j in range(3) if i < j]
    names = {(i, j): f"{i}{j}" for i, j in pairs}
    return sum(x[i] * x[j] * len(names[i, j]) for i, j in pairs), [i * n for i in range(2) for _ in range(n)]


def spectrogram(x, n, hop):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)
    frames = [x[i : i + n] * window for i in range(0, len(x) - n + 1, hop)]
    return np.abs(np.fft.rfft(frames, axis=1)) ** 2


def unscented(x, gain):
    best = [v if v > gain else None for v in x]
    return best, math.sqrt(gain)


def smoothed(y, window, order):
    half = window // 2
    powers = np.array([[k**i for i in range(order + 1)] for k in range(-half, half + 1)])
    weights = np.linalg.pinv(powers.astype(float))[0]
    return np.convolve(weights[::-1], y, mode="valid")


def neighbours_joined(d):
    d = d.copy()
    labels = np.arange(len(d))
    joins = []
    while d.shape[0] > 2:
        r = d.shape[0]
        total = d.sum(axis=1)
        q = (r - 2) * d - total[:, None] - total[None, :]
        np.fill_diagonal(q, np.inf)
        i, j = divmod(int(q.argmin()), r)
        length = 0.5 * d[i, j] + (total[i] - total[j]) / (2 * (r - 2))
        joins.append((labels[i], labels[j], length, d[i, j] - length))
        u = 0.5 * (d[i] + d[j] - d[i, j])
        keep = [k for k in range(r) if k != i and k != j]
        new = np.zeros((r - 1, r - 1))
        new[:-1, :-1] = d[np.ix_(keep, keep)]
        new[-1, :-1] = new[:-1, -1] = u[keep]
        labels = np.append(labels[keep], 10 + r)
        d = new
    return joins, d[0, 1]


def k_means(x, k, rounds=100):
    centres = x[:k].copy()
    for _ in range(rounds):
        d = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        labels = d.argmin(axis=1)
        new = np.array([x[labels == j].mean(axis=0) if np.any(labels == j) else centres[j] for j in range(k)])
        if np.allclose(new, centres):
            break
        centres = new
    return centres, labels


def thinned(image):
    """Lines of an image one element wide, by Zhang and Suen's two conditions in turn."""
    image = image.copy()
    changed = True
    while changed:
        changed = False
        for step in (0, 1):
            marked = []
            for i in range(1, image.shape[0] - 1):
                for j in range(1, image.shape[1] - 1):
                    if image[i, j] != 1:
                        continue
                    n, e, s, w = image[i - 1, j], image[i, j + 1], image[i + 1, j], image[i, j - 1]
                    ne, se = image[i - 1, j + 1], image[i + 1, j + 1]
                    sw, nw = image[i + 1, j - 1], image[i - 1, j - 1]
                    around = [n, ne, e, se, s, sw, w, nw]
                    rises = sum(a == 0 and b == 1 for a, b in zip(around, around[1:] + around[:1]))
                    if step == 0:
                        free = n * e * s == 0 and e * s * w == 0
                    else:
                        free = n * e * w == 0 and n * s * w == 0
                    if 2 <= sum(around) <= 6 and rises == 1 and free:
                        marked.append((i, j))
            for i, j in marked:
                image[i, j] = 0
                changed = True
    return image


_X = np.array([0.5, -1.0, 2.0, 2.0, -0.25, 1.5, 3.0, -2.0])
_DISTANCES = np.abs(np.subtract.outer(_X, 2 * _X)) + np.abs(np.subtract.outer(2 * _X, _X))
_BLOCK = np.pad(np.ones((4, 4), int), ((2, 2), (3, 2)))
_BLOCK[4, 5] = 0

CASES = [
    (thinned, (_BLOCK,)),
    (controlled, ((2.0, 0.5, 0.1), 1.0, 20)),
    (none_in_items, (_X,)),
    (none_in_items, (-abs(_X),)),
    (counted, (np.array([1, 3, 2, -1, 1]),)),
    (counted, (np.array([1, 4]),)),
    (stored_at, ([1.0, 2.0, 3.0], _X, np.array([-1, 1, 2]))),
    (walked, (np.array([1, 3, 2, -1, 1]), 0, 5)),
    (merged_heights, (_DISTANCES[:4, :4],)),
    (theil_sen, (np.arange(5.0) ** 1.5, _X[:5])),
    (theil_sen, (np.array([0.0, 1.0, 1.0]), _X[:3])),
    (peaks, (_X, 0.75)),
    (pairs_in_python, (_X, 3)),
    (spectrogram, (_X, 4, 2)),
    (smoothed, (_X, 5, 2)),
    (neighbours_joined, (_DISTANCES[:4, :4],)),
    (k_means, (_DISTANCES[:7, :2], 2)),
    (unscented, (_X[:3], 0.75)),
]
