"""`collections.deque` with `maxlen`: windows over what a loop runs through."""

from collections import deque

import numpy as np

X = np.array([0.5, -1.25, 2.0, 3.5, -0.75, 1.0, 0.25])


def moving_average(a, k=3):
    window, out = deque(maxlen=k), []
    for v in a:
        window.append(v)
        out.append(sum(window) / len(window))
    return np.array(out)


def full_windows(a):
    window, total = deque(maxlen=3), 0.0
    for v in a:
        window.append(v)
        if len(window) == 3:
            total += window[0] * window[-1] - window[1]
    return total


def filled_before(a):
    window, total = deque([0.0, 1.0, 0.0], maxlen=3), 0.0
    for v in a:
        window.append(v)
        total += max(window) - min(window)
    return total, list(window)


def until_settled(x, tolerance):
    last = deque([x], maxlen=4)
    while len(last) < 4 or max(last) - min(last) > tolerance:
        last.append(0.5 * last[-1] + 1.0)
    return sum(last), len(last)


def fibonacci(n, first):
    last = deque([0.0, first], maxlen=2)
    for _ in range(n):
        last.append(last[0] + last[1])
    return last[-1]


def chosen_ones(a, limit):
    kept = deque(maxlen=2)
    for v in a:
        if v > limit:
            kept.append(v)
    return sum(kept, 0.0) + len(kept)


def from_the_left(a):
    window = deque(maxlen=3)
    for v in a:
        window.appendleft(v)
    window.extend([1.0, 2.0])
    return window[0], window[-1], len(window)


def of_known(x):
    window = deque([1, 2, 3, 4, 5], maxlen=3)
    window.append(x)
    window.extendleft((7, 8))
    window.rotate(1)
    empty = deque([1, 2], maxlen=0)
    empty.append(x)
    return list(window), len(empty)


CASES = [
    (moving_average, (X,)),
    (moving_average, (X, 2)),
    (moving_average, (X, 20)),
    (full_windows, (X,)),
    (full_windows, (X[:2],)),
    (filled_before, (X,)),
    (until_settled, (9.0, 0.25)),
    (fibonacci, (12, 0.5)),
    (chosen_ones, (X, 0.4)),
    (chosen_ones, (X, 9.0)),
    (from_the_left, (X,)),
    (of_known, (0.5,)),
]
