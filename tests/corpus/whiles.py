"""Loops of unknown length."""

import math

import numpy as np


def period(e, M):
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def newton_sqrt(x):
    guess = x
    while abs(guess * guess - x) > 1e-10:
        guess = (guess + x / guess) / 2
    return guess


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def break_out(x):
    total = 0.0
    while True:
        total = total + x
        x = x / 2
        if x < 0.01:
            break
    return total


def skip_odd(n):
    i = 0
    total = 0
    while i < n:
        i += 1
        if i % 2:
            continue
        total += i
    return total


def return_inside(x):
    count = 0
    while count < 100:
        x = x * 1.5
        if x > 50:
            return x, count
        count += 1
    return x, -1


def while_else(x):
    k = 0
    while k < 10:
        if x > 20:
            break
        x = x * 1.2
        k += 1
    else:
        x = -1.0
    return x


def nested(n):
    total = 0
    i = 0
    while i < n:
        j = 0
        while j < i:
            total += i * j
            j += 1
        i += 1
    return total


def array_state(x):
    n = 0
    while np.max(np.abs(x)) > 1:
        x = x / 2
        n = n + 1
    return x, n


def in_place_state(x):
    y = x.copy()
    while y[0] < 10:
        y[0] = y[0] + y[1]
        y[1] *= 1.5
    return y


def escape(re, im):
    x = 0.0
    y = 0.0
    n = 0
    while x * x + y * y < 4 and n < 50:
        x, y = x * x - y * y + re, 2 * x * y + im
        n += 1
    return n


def walrus(x):
    n = 0
    while (y := x / 2) > 1:
        x = y
        n += 1
    return x, y, n


def static_count(x):
    i = 0
    while i < 7:
        x = x + i
        i += 1
    return x


def zero_trips(x):
    while x > 100:
        x = x - 1
    return x


def bisect(low, high):
    while high - low > 1e-9:
        middle = (low + high) / 2
        if math.cos(middle) > 0:
            low = middle
        else:
            high = middle
    return low


def first_above(values, limit):
    i = 0
    while i < len(values) and values[i] <= limit:
        i += 1
    return i


def power_iteration(a):
    v = np.ones(a.shape[0])
    old = 0.0
    new = 1.0
    while abs(new - old) > 1e-10:
        w = a @ v
        old = new
        new = np.sqrt((w * w).sum())
        v = w / new
    return new


def until_small(step, tolerance):
    turns = 0
    while np.abs(step) > tolerance and turns < 20:
        step = step / 2
        turns += 1
    return step, turns


def until_either(step, tolerance, most):
    turns = 0
    while True:
        if np.abs(step) <= tolerance or turns >= most:
            break
        step, turns = step * 0.5, turns + 1
    else:
        turns = -1
    return step, turns


def last_of_all(x, tolerance):
    previous, done = 0, False
    while done is False:
        new = x / 2
        if (np.abs(new - previous) <= abs(tolerance) + 1e-9).all():
            done = True
        previous = x = new
    return previous, x.sum()


def last_cosine(x):
    found, going = np.nan, True
    while going:
        found = np.cos(x)
        x = x * 0.5
        going = bool((abs(x) > 0.1).any())
    return found


def at_most(x, most):
    held = None if most > 3 else 1.5
    while most > 0:
        if most == 2:
            held = np.float64(0.5)
        x = x * held if held is not None else x + 1
        most -= 1
    return x


def matrix_of_last(x, tolerance):
    shift, rows = 0.0, np.zeros((3, x.shape[0]))
    tolerance = abs(tolerance) + 1e-3
    for k in range(3):
        before = -1
        while True:
            shift = shift + tolerance
            now = x * (k + 1) / (1 + shift)
            if np.abs(now - before).sum() < tolerance * x.size:
                break
            before = now
        rows[k] = now
    return rows


def rows_of_halves(y):
    n = 1
    k = 0
    while n < y.shape[0] - 1:
        n <<= 1
        k += 1
    rows = {}
    for i in range(1, k + 1):
        rows[i] = y[i] * 2
    return rows[k], n


_A = np.array([3.0, 1.0, 8.0, 2.0])
CASES = [
    *((last_of_all, (x, 1e-3)) for x in (np.ones(3), np.ones((1, 1)), np.zeros(2))),
    (last_cosine, (np.ones(3),)),
    *((at_most, (np.ones(3), most)) for most in (0, 3, 4)),
    (matrix_of_last, (np.arange(3.0), 0.25)),
    *((rows_of_halves, (np.arange(size),)) for size in (3.0, 9.0)),
    (period, (0.3, 1.0)),
    (period, (0.9, 0.1)),
    (collatz, (7,)),
    (collatz, (1,)),
    (newton_sqrt, (2.0,)),
    (gcd, (48, 18)),
    (gcd, (7, 0)),
    (break_out, (1.0,)),
    (skip_odd, (9,)),
    (return_inside, (1.0,)),
    (return_inside, (1e-30,)),
    (while_else, (1.0,)),
    (while_else, (15.0,)),
    (nested, (6,)),
    (array_state, (_A,)),
    (in_place_state, (_A,)),
    (escape, (-0.5, 0.3)),
    (escape, (1.0, 1.0)),
    (walrus, (9.0,)),
    (static_count, (1.0,)),
    (zero_trips, (3.0,)),
    (bisect, (0.0, 3.0)),
    (first_above, (_A, 3.0)),
    (first_above, (_A, 30.0)),
    (power_iteration, (np.array([[2.0, 1.0], [1.0, 3.0]]),)),
    *((until_small, (np.full(dims, 3.0), 0.1)) for dims in ((1,), (1, 1))),
    (until_small, (np.array([-3e9]), 0.1)),
    *((until_either, (np.array([[3.0]]), 0.1, most)) for most in (2, 9)),
]
