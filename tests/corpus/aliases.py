"""Who shares memory with whom, through loops, branches, containers, objects and calls.

In: arrays. Out: every name under which one can be seen.
"""

from dataclasses import dataclass

import numpy as np


def swap_in_time_loop(u, steps):
    a = u.copy()
    b = np.zeros_like(u)
    for _ in range(steps):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        b[0] = a[0]
        b[-1] = a[-1]
        a, b = b, a
    return a, b


def three_buffers(u, steps):
    p, q, r = u.copy(), u * 2, np.zeros_like(u)
    for _ in range(steps):
        r[:] = 2 * q - p
        r[0] = 0.0
        p, q, r = q, r, p
    return p, q, r


def swap_in_while(u, tol):
    a, b = u.copy(), u.copy()
    n = 0
    while n < 50:
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a, b = b, a
        n += 1
        if np.max(np.abs(a - b)) < tol:
            break
    return a, n


def swap_by_temporary(u, steps):
    a, b = u.copy(), np.zeros_like(u)
    for _ in range(steps):
        b[:] = a + 1.0
        t = a
        a = b
        b = t
    return a, b


def new_array_each_step(u, steps):
    first = u
    for _ in range(steps):
        u = u * 2.0
        u[0] = 1.0
    return first, u


def alias_before_loop(u, steps):
    v = u
    for k in range(steps):
        v[k] += 1.0
    return u.sum() + v[0]


def alias_made_in_loop(u, steps):
    for k in range(steps):
        v = u
        v[k] += 1.0
        w = v[k:]
        w[0] *= 2.0
    return u


def alias_made_in_branch(u, t):
    v = u.copy()
    if t > 0:
        v = u
    v[0] = 42.0
    return u, v


def alias_of_either(u, v, t):
    w = u if t > 0 else v
    w[0] = 1.0
    w += 1.0
    u[1] = w[0] * 2.0
    return w


def alias_of_either_in_loop(u, v, steps):
    for k in range(steps):
        w = u if k % 2 == 0 else v
        w[k] += 1.0
    return u, v


def largest_row(a):
    best = a[0]
    for i in range(1, a.shape[0]):
        if a[i].sum() > best.sum():
            best = a[i]
    return best.copy()


def list_of_arrays(x):
    rows = [x.copy(), x * 2, x * 3]
    for r in rows:
        r[0] = -1.0
    rows[1][1] = 5.0
    rows.append(rows[0])
    rows[3][2] = 9.0
    return rows


def list_items_replaced(x, steps):
    pair = [x.copy(), x * 2]
    for k in range(steps):
        pair[0][k] += pair[1][k]
        pair[1] = pair[1] * 0.5
    return pair


def list_items_swapped(x, steps):
    pair = [x.copy(), np.zeros_like(x)]
    for _ in range(steps):
        pair[1][:] = pair[0] + 1.0
        pair[0], pair[1] = pair[1], pair[0]
    return pair


def same_array_twice_in_list(x):
    rows = [x] * 2
    rows[0][0] = 3.0
    return rows[1]


def dict_of_arrays(state, steps):
    for _ in range(steps):
        state["p"] -= 0.1 * state["m"]
        state["m"] *= 0.9
        state["count"] = state["count"] + 1
    return state["p"].sum()


def dict_entries_replaced(state, steps):
    for _ in range(steps):
        state["p"] = state["p"] - 0.1 * state["m"]
    state["norm"] = (state["p"] ** 2).sum()
    return state


def dict_made_inside(x, steps):
    s = {"a": x.copy(), "b": np.zeros_like(x)}
    for k in range(steps):
        s["a"][k] = 0.0
        s["b"] += s["a"]
        s["a"], s["b"] = s["b"], s["a"]
    return s


def list_in_argument(parts):
    parts[0][0] = 7.0
    parts[1] += 1.0
    parts[0], parts[1] = parts[1], parts[0]
    return parts


def tuple_of_views(x):
    pair = (x[:2], x[2:])
    pair[0][0] = 5.0
    pair[1][:] = pair[0][0]
    return x


@dataclass
class Field:
    """A grid with its values."""

    values: np.ndarray
    steps: int = 0

    def advance(self, dt):
        self.values[1:-1] += dt * (self.values[2:] - self.values[:-2])
        self.steps += 1

    def replace(self, dt):
        self.values = self.values * (1 - dt)
        self.steps += 1


def object_written(u, n):
    f = Field(u.copy())
    for _ in range(n):
        f.advance(0.1)
    return f.values, f.steps


def object_attribute_replaced(u, n):
    f = Field(u)
    for _ in range(n):
        f.replace(0.1)
    f.values[0] = 5.0
    return f.values, f.steps, u


def object_shares_argument(u):
    f = Field(u)
    f.values[0] = 10.0
    f.advance(0.5)
    return f.values


class Buffers:
    """Two buffers that change places."""

    def __init__(self, n):
        self.now = np.zeros(n)
        self.next = np.zeros(n)

    def step(self, source):
        self.next[:] = 0.5 * self.now
        self.next[0] += source
        self.now, self.next = self.next, self.now


def object_with_two_buffers(u, steps):
    b = Buffers(len(u))
    for k in range(steps):
        b.step(u[k])
    return b.now, b.next


def objects_in_a_list(u):
    fields = [Field(u.copy()), Field(u * 2)]
    for f in fields:
        f.advance(0.25)
        f.values[0] = f.steps
    return [f.values for f in fields]


def closure_writes_array(x):
    total = np.zeros(3)

    def add(k, v):
        total[k % 3] += v

    for k in range(len(x)):
        add(k, x[k])
    return total


def closure_rebinds(x):
    state = x.copy()

    def step():
        nonlocal state
        state = state * 0.5
        state[0] = 1.0

    for _ in range(4):
        step()
    return state


def function_returns_its_argument(x):
    def same(v):
        return v

    y = same(x)
    y[0] = 4.0
    return x


def function_returns_view(a):
    def row(m, i):
        return m[i]

    for i in range(3):
        row(a, i)[i] = 0.0
    return a


def default_not_shared(x):
    def collect(v, into=None):
        if into is None:
            into = np.zeros(2)
        into[0] += v
        return into

    return collect(x[0]), collect(x[1])


def result_twice(x):
    y = x + 1.0
    y[0] = 0.0
    return y, y


def argument_and_view_returned(x):
    x[0] = 2.0
    return x, x[1:], x.T


def early_return_after_store(x, t):
    x[0] = 1.0
    if t > 0:
        return x.sum()
    x[1] = 2.0
    return x.sum()


def store_until_break(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            break
        x[i] = 0.0
    else:
        x[0] = -1.0
    return i


def store_in_while(x):
    i = 0
    while i < len(x) and x[i] > 0:
        x[i] = -x[i]
        i += 1
    return i


def nested_loops_with_views(a):
    for i in range(a.shape[0]):
        row = a[i]
        for j in range(1, a.shape[1]):
            row[j] += row[j - 1]
            if row[j] > 20.0:
                row[j] = 20.0
    return a


def gauss_elimination(a, b):
    n = len(b)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
            b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def insertion_sort(x):
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key


def bubble_rows(a):
    for i in range(a.shape[0] - 1):
        for j in range(a.shape[0] - 1 - i):
            if a[j, 0] < a[j + 1, 0]:
                t = a[j].copy()
                a[j] = a[j + 1]
                a[j + 1] = t


_X = np.array([1.0, -2.0, 3.0, 0.5, 4.0, 2.5])
_P = np.array([3.0, 1.0, 2.0, -1.0])
_A = np.array([[2.0, 1.0, 4.0], [6.0, 3.5, 1.0], [1.0, 5.0, 2.0]])


CASES = [
    (swap_in_time_loop, (_X, 5)),
    (three_buffers, (_X, 4)),
    (swap_in_while, (_X, 0.3)),
    (swap_by_temporary, (_X, 3)),
    (new_array_each_step, (_X, 3)),
    (new_array_each_step, (_X, 0)),
    (alias_before_loop, (_X, 3)),
    (alias_made_in_loop, (_X, 3)),
    (alias_made_in_branch, (_X, 1.0)),
    (alias_made_in_branch, (_X, -1.0)),
    (alias_of_either, (_X, _X * 2, 1.0)),
    (alias_of_either, (_X, _X * 2, -1.0)),
    (alias_of_either_in_loop, (_X, _X * 2, 5)),
    (largest_row, (_A,)),
    (list_of_arrays, (_X,)),
    (list_items_replaced, (_X, 3)),
    (list_items_swapped, (_X, 3)),
    (same_array_twice_in_list, (_X,)),
    (dict_of_arrays, ({"p": _X, "m": _X * 0.1, "count": 0}, 3)),
    (dict_entries_replaced, ({"p": _X, "m": _X * 0.1}, 3)),
    (dict_made_inside, (_X, 3)),
    (list_in_argument, ([_X, _X * 2],)),
    (tuple_of_views, (_X,)),
    (object_written, (_X, 3)),
    (object_attribute_replaced, (_X, 3)),
    (object_shares_argument, (_X,)),
    (object_with_two_buffers, (_X, 4)),
    (objects_in_a_list, (_X,)),
    (closure_writes_array, (_X,)),
    (closure_rebinds, (_X,)),
    (function_returns_its_argument, (_X,)),
    (function_returns_view, (_A,)),
    (default_not_shared, (_X,)),
    (result_twice, (_X,)),
    (argument_and_view_returned, (_X,)),
    (early_return_after_store, (_X, 1.0)),
    (early_return_after_store, (_X, -1.0)),
    (store_until_break, (_X, 2.0)),
    (store_until_break, (_X, 9.0)),
    (store_in_while, (_X,)),
    (nested_loops_with_views, (_A,)),
    (gauss_elimination, (_A, _P[:3].copy())),
    (insertion_sort, (_X,)),
    (bubble_rows, (_A,)),
]
