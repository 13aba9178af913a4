"""Sizes that depend on the path: of arrays that a branch makes, and of arrays that a loop shrinks.

In: arrays. Out: arrays of a size that is known when the program has run, and what they are reduced to.
"""

import numpy as np


def shrinking_while(c):
    z = np.zeros_like(c)
    alive = np.arange(len(c))
    count = np.zeros(len(c), dtype=int)
    n = 0
    while len(alive) > 0 and n < 30:
        z[alive] = z[alive] ** 2 + c[alive]
        count[alive] += 1
        alive = alive[np.abs(z[alive]) <= 2]
        n += 1
    return count, n


def shrinking_together(c):
    out = np.zeros(len(c), dtype=int)
    k, z, w = np.arange(len(c)), np.zeros_like(c), c.copy()
    for n in range(20):
        if len(k) == 0:
            break
        z = z * z + w
        keep = np.abs(z) <= 2
        out[k[~keep]] = n
        k, z, w = k[keep], z[keep], w[keep]
    return out


def shrinking_mask(x):
    y = x[x > 0]
    while y.sum() > 4.5:
        y = y[y < y.max()]
    return y, len(y)


def eratosthenes(n):
    numbers = np.arange(2, n)
    primes = np.zeros(n, dtype=bool)
    while numbers.size > 0:
        p = numbers[0]
        primes[p] = True
        numbers = numbers[numbers % p != 0]
    return np.flatnonzero(primes)


def branch_of_sizes(x, t):
    if t > 0:
        y = x[x > 0]
    else:
        y = x[x < 0]
    return y.sum()


def branch_returns_sizes(x, t):
    y = x
    if t > 0:
        y = x[x > 0]
    return y


def ternary_of_sizes(x, t):
    y = x[x > 0] if t > 0 else x[:2]
    return len(y), y.sum(), y * 2


def early_return_of_sizes(x, t):
    if t > 0:
        return x[x > 0]
    return x[x < 0] * 2


def shrinking_for(x, n):
    for k in range(n):
        x = x[x > k * 0.5]
    return x, x.sum(), len(x)


def shrinking_rows(a, n):
    for _ in range(n):
        keep = a[:, 0] < a[:, 0].max()
        a = a[keep]
    return a, a.shape[0]


def one_of_three(x, k):
    if k == 0:
        y = x[x > 0]
    elif k == 1:
        y = np.zeros(2)
    else:
        y = x * 2.0
    y[0] = 7.0
    return y, len(y)


def sizes_go_together(x, t):
    m = x > 0
    if t > 0:
        a, b = x[m], np.sin(x)[m]
    else:
        a, b = x[~m], np.cos(x)[~m]
    return a * b, np.abs(a) @ np.abs(b)


def merge_sort(x):
    width = 1
    n = len(x)
    while width < n:
        for start in range(0, n, 2 * width):
            left = x[start : start + width].copy()
            right = x[start + width : start + 2 * width].copy()
            i = j = 0
            k = start
            while i < len(left) and j < len(right):
                if left[i] <= right[j]:
                    x[k] = left[i]
                    i += 1
                else:
                    x[k] = right[j]
                    j += 1
                k += 1
            while i < len(left):
                x[k] = left[i]
                i += 1
                k += 1
            while j < len(right):
                x[k] = right[j]
                j += 1
                k += 1
        width *= 2
    return x


def worklist(a):
    seen = np.zeros(a.shape[0], dtype=bool)
    front = np.array([0])
    steps = 0
    while front.size > 0:
        seen[front] = True
        reached = a[front].any(axis=0) & ~seen
        front = np.flatnonzero(reached)
        steps += 1
    return seen, steps


_X = np.array([1.0, -2.0, 3.0, 0.5, 4.0, 2.5])
_C = np.array([0.1 + 0.2j, 1.0 + 1.0j, -1.0 + 0.1j, 0.4 + 0.4j, -0.7 + 0.3j])


def shrinking_inside_a_loop(x, y, n):
    x = x[x > -9]
    total = 0.0
    for _ in range(n):
        while len(x) > 2:
            x = x[:-1] * 0.5
        total += x.sum()
        y = y[: len(x) + 2]
        while len(y) > len(x):
            y = y[1:]
    return x, y, total


def refilled_inside_a_loop(x, n):
    total = 0.0
    for k in range(n):
        front = x[x > k]
        while front.size > 1:
            front = front[::2] + 1.0
        total += front.sum()
    return total


_G = np.array([[0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0]]) > 0
CASES = [
    (shrinking_inside_a_loop, (_X, _X * 2, 3)),
    (shrinking_inside_a_loop, (_X, _X * 2, 0)),
    (refilled_inside_a_loop, (_X, 5)),
    (shrinking_for, (_X, 4)),
    (shrinking_for, (_X, 0)),
    (shrinking_rows, (np.array([[1.0, 2.0], [3.0, 4.0], [2.0, 7.0], [5.0, 6.0]]), 2)),
    (one_of_three, (_X, 0)),
    (one_of_three, (_X, 1)),
    (one_of_three, (_X, 2)),
    (sizes_go_together, (_X, 1.0)),
    (sizes_go_together, (_X, -1.0)),
    (merge_sort, (np.array([3.0, 1.0, 2.0, 9.0, -1.0, 4.0, 4.0]),)),
    (worklist, (_G,)),
    (shrinking_while, (_C,)),
    (shrinking_together, (_C,)),
    (shrinking_mask, (_X,)),
    (eratosthenes, (30,)),
    (branch_of_sizes, (_X, 1.0)),
    (branch_of_sizes, (_X, -1.0)),
    (branch_returns_sizes, (_X, 1.0)),
    (branch_returns_sizes, (_X, -1.0)),
    (ternary_of_sizes, (_X, 1.0)),
    (ternary_of_sizes, (_X, -1.0)),
    (early_return_of_sizes, (_X, 1.0)),
    (early_return_of_sizes, (_X, -1.0)),
]
