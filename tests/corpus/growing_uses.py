"""What else is done to lists in the loops that change them: copies, slices, membership, results."""

import operator
from functools import reduce

import numpy as np


def snapshot_kept(x):
    xs = [x]
    saved = []
    while len(xs) < 6:
        xs.append(xs[-1] * 0.5)
        if len(xs) == 3:
            saved = list(xs)
        if len(xs) == 4:
            xs.pop()
            xs.append(100.0)
    ys = xs[:]
    ys.append(7.0)
    zs = xs + [1.0]
    xs.pop()
    xs.append(-1.0)
    return np.array(xs), np.array(ys), np.array(zs), np.array(saved)


def mean_of_last(x):
    e = [x]
    while np.mean(e[-3:]) > 0.01:
        e.append(e[-1] * 0.7)
    return np.array(e), sum(e[-2:])


def membership(n):
    seen = []
    k = n
    while k not in seen:
        seen.append(k)
        k = (k * k + 1) % 17
    return np.array(seen), seen.index(k) if False else len(seen)


def is_empty_eq(n):
    s = [n]
    c = 0
    while s != []:
        v = s.pop()
        c += 1
        if v > 0:
            s.append(v - 1)
    return c


def iterate_growing(indptr, indices, source):
    order = [source]
    seen = np.zeros(len(indptr) - 1, bool)
    seen[source] = True
    for v in order:
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if not seen[u]:
                seen[u] = True
                order.append(u)
    return np.array(order)


def path_reverse(parent, t):
    path = [t]
    while parent[path[-1]] != -1:
        path.append(parent[path[-1]])
    path.reverse()
    return np.array(path)


def path_reverse2(parent, t):
    path = []
    while t != -1:
        path.append(t)
        t = parent[t]
    path.reverse()
    return np.array(path), path[0]


def path_insert(parent, t):
    path = [t]
    while parent[t] != -1:
        t = parent[t]
        path.insert(0, t)
    return np.array(path)


def path_plus(parent, t):
    path = [t]
    while parent[t] != -1:
        t = parent[t]
        path = path + [t]
    return np.array(path), len(path)


def path_plus_front(parent, t):
    path = [t]
    while parent[t] != -1:
        t = parent[t]
        path = [t] + path
    return np.array(path)


def path_augmented(parent, t):
    path = [t]
    while parent[path[-1]] != -1:
        path += [parent[path[-1]]]
    return np.array(path)


def extend_pairs(n):
    s = [n]
    c = 0
    while s:
        k = s.pop()
        c += 1
        if k > 1:
            s.extend([k // 2, k - k // 2 - 1])
    return c


def best_path(xs, n):
    best = [0.0]
    cost = 100.0
    k = 0
    cur = [xs[0]]
    while k < n:
        cur.append(cur[-1] * 0.5 + xs[k % 3])
        if abs(sum(cur) - 4) < cost:
            cost = abs(sum(cur) - 4)
            best = cur.copy()
        k += 1
    return cost, np.array(best)


def after_loop(x):
    ts = [0.0]
    while ts[-1] < x:
        ts.append(ts[-1] + 0.5)
    ts[-1] = x
    ts.append(x + 1)
    last = ts.pop()
    if x > 1:
        ts.append(9.0)
    t = np.array(ts)
    return np.diff(t), last, len(ts), ts[1]


def cond_append(x, y):
    out = [x]
    if x > y:
        out.append(y)
    return np.array(out), len(out)


def empty_pop(n):
    s = [n]
    while n > 0:
        s.pop()
        n -= 1
    return len(s)


def bad_index(n):
    s = [1.0]
    while n > 0:
        s.append(s[-3])
        n -= 1
    return len(s)


def vectors_read(y, n):
    ys = [y]
    k = 0
    while k < n:
        y = ys[-1]
        ys.append(y + 0.1 * np.array([y[1], -y[0]]))
        k += 1
    Y = np.array(ys)
    return Y[:, 0], ys[-1]


def collatz_lengths(n):
    lengths = []
    k = 1
    while k <= n:
        seq = [k]
        while seq[-1] != 1:
            seq.append(seq[-1] // 2 if seq[-1] % 2 == 0 else 3 * seq[-1] + 1)
        lengths.append(len(seq))
        k += 1
    return np.array(lengths), max(lengths)


def list_as_result(x):
    xs = []
    while x > 1:
        xs.append(x)
        x = x / 2
    return xs


def euler_history(f0):
    t, y = 0.0, f0
    T, Y = [t], [y]
    while t < 1.0 - 1e-12:
        y = y + 0.1 * (-2 * y)
        t = t + 0.1
        T.append(t)
        Y.append(y)
        if abs(Y[-1] - Y[-2]) < 1e-3:
            break
    return T, Y


def merge_intervals(starts, ends):
    out = []
    for k in range(len(starts)):
        s, e = starts[k], ends[k]
        if out and s <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], e))
        else:
            out.append((s, e))
    return np.array(out)


def levels(indptr, indices, source):
    seen = np.zeros(len(indptr) - 1, bool)
    seen[source] = True
    frontier = [source]
    depth = 0
    while frontier:
        nxt = []
        for v in frontier:
            for k in range(indptr[v], indptr[v + 1]):
                u = indices[k]
                if not seen[u]:
                    seen[u] = True
                    nxt.append(u)
        frontier = nxt
        depth += 1
    return depth


def list_of_pairs_as_result(x):
    out = [(0, x)]
    while out[-1][1] > 1.0:
        k, v = out[-1]
        out.append((k + 1, v / 2))
    return out, {"last": out[-1]}


def list_of_vectors_as_result(y):
    ys = [y]
    while np.sum(ys[-1]) < 20.0:
        ys.append(ys[-1] * 1.5)
    return ys


def argument_grows(values, x):
    while values[-1] > x:
        values.append(values[-1] / 2)
    return len(values)


def argument_shrinks(values, x):
    total = 0.0
    while len(values) > 1 and values[-1] < x:
        total += values.pop()
    values[0] = total
    return values[-1]


def cleared_again(n):
    xs, total, k = [0], 0, 0
    while k < n:
        xs.append(xs[-1] + k)
        if len(xs) > 3:
            total += xs[0] + xs[-1]
            xs.clear()
            xs.append(k)
        k += 1
    return total, xs


def two_names_for_a_list(x):
    a = [x]
    b = a
    while a[-1] > 1:
        b.append(a[-1] / 2)
    return len(a), b[-1], a is b


def gathered_as_result(t):
    out = []
    while t > 1:
        out.append(t)
        t = t / 2
    return out


def one_sided_append(x):
    out = []
    if x > 0:
        out.append(x)
    return out


def read_in_for(n):
    out = [1.0]
    for _ in range(n):
        out.append(out[-1] / 2)
    return sum(out)


def nested_append(n):
    out = []
    for k in range(n):
        for j in range(k):
            out.append(j)
    return sum(out)


def pop_of_gathered(x):
    values = []
    while x > 1:
        values.append(x)
        x = x / 2
    values.pop()
    return np.array(values)


def sorted_in_place(n):
    values = []
    k = 3
    while len(values) < n:
        values.append(k)
        k = k * 5 % 7
    values.sort()
    low = values[0]
    values.sort(reverse=True)
    return values, low


_P = np.array([-1, 0, 1, 2, 3])
_IP = np.array([0, 2, 4, 6, 8, 9, 9])
_IX = np.array([1, 2, 0, 3, 0, 3, 1, 4, 3])


def spread_and_sorted(x, limit):
    return [*filter(lambda v: v > limit, x)], sorted(v for v in x if v > limit)


def turned(a, b):
    turns = []
    if a:
        turns.append(np.array([[a, 1.0], [0.0, 1.0]]))
    if b:
        turns.append(np.array([[1.0, b], [0.0, 1.0]]))
    return reduce(np.dot, turns[::-1]) if turns else np.eye(2)


def folded(x):
    above = [v for v in x if v > 0]
    least = reduce(min, (v for v in x if v < 1))
    return reduce(operator.mul, above), least, reduce(lambda s, v: 2 * s - v, above, 1.5)


def list_or_another(x, limit):
    """`or` and `and` of lists whose lengths only the run knows are the lists, and have their truth."""
    above = [v for v in x if v > limit]
    below = [(v, 1.0) for v in x if v <= limit]
    either, both = above or [x[0]], above and [x[1], x[2]]
    pairs = 0
    left = above[:]
    while left and below:
        left.pop()
        below.pop()
        pairs += 1
    total = 0.0
    for v in left or [x[0], x[1]]:
        total += v
    return either, len(both), pairs, total, above or None


CASES = [
    *((list_or_another, (np.array([1.0, -2.0, 0.5, 4.0]), limit)) for limit in (0.0, 0.8, 3.0, 9.0, -9.0)),
    *((turned, turns) for turns in ((0.3, 0.2), (0.0, 0.2), (0.3, 0.0), (0.0, 0.0))),
    (folded, (np.array([1.0, -2.0, 0.5, 4.0]),)),
    (spread_and_sorted, (np.array([0.5, -1.25, 2.0, 3.5, -0.75]), 0.0)),
    (argument_grows, ([9.0, 8.0], 1.0)),
    (argument_shrinks, ([9.0, 2.0, 1.0], 5.0)),
    (cleared_again, (9,)),
    (two_names_for_a_list, (9.0,)),
    (gathered_as_result, (9.0,)),
    (one_sided_append, (9.0,)),
    (one_sided_append, (-9.0,)),
    (read_in_for, (5,)),
    (nested_append, (5,)),
    (pop_of_gathered, (8.0,)),
    (sorted_in_place, (5,)),
    (snapshot_kept, (1.0,)),
    (mean_of_last, (1.0,)),
    (membership, (3,)),
    (is_empty_eq, (4,)),
    (iterate_growing, (_IP, _IX, 0)),
    (path_reverse, (_P, 4)),
    (path_reverse2, (_P, 4)),
    (path_insert, (_P, 4)),
    (path_plus, (_P, 4)),
    (path_plus_front, (_P, 4)),
    (path_augmented, (_P, 4)),
    (extend_pairs, (9,)),
    (best_path, (np.array([1.0, 0.5, 0.2]), 6)),
    (after_loop, (2.2,)),
    (cond_append, (1.0, 0.5)),
    (cond_append, (1.0, 2.5)),
    (empty_pop, (3,)),
    (bad_index, (3,)),
    (vectors_read, (np.array([1.0, 0.0]), 4)),
    (collatz_lengths, (7,)),
    (list_as_result, (20.0,)),
    (euler_history, (1.0,)),
    (merge_intervals, (np.array([1.0, 2.0, 8.0, 9.0]), np.array([3.0, 6.0, 10.0, 11.0]))),
    (levels, (_IP, _IX, 0)),
    (list_of_pairs_as_result, (20.0,)),
    (list_of_vectors_as_result, (np.array([1.0, 2.0]),)),
]
