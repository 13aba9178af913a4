"""Lists, dicts and sets that grow: in Python where the trip count is known, gathered where it is not."""

import bisect
import collections

import numpy as np


def append_static(x):
    out = []
    for k in range(5):
        out.append(x * k)
    return out


def append_static_long(x):
    out = []
    for k in range(40):
        x = x * 0.9
        out.append(x + k)
    return np.array(out)


def append_rows(xs):
    out = []
    for x in xs:
        out.append(x * 2 if x > 1 else x)
    return np.array(out)


def append_staged_count(n):
    out = []
    for k in range(n):
        out.append(k * 1.5)
    return np.array(out)


def append_in_while(x):
    trace = []
    while x > 1.0:
        trace.append(x)
        x = x / 2
    return np.array(trace), len(trace)


def append_vectors(n, x):
    out = []
    for k in range(n):
        out.append(x * k)
    return np.array(out), np.stack(out)


def append_in_branch(xs):
    kept = []
    for x in xs:
        if x > 1.5:
            kept.append(x)
    return np.array(kept)


def append_two_lists(n):
    odd, even = [], []
    for k in range(n):
        even.append(2 * k)
        odd.append(2 * k + 1.0)
    return np.array(odd), np.array(even), len(odd)


def append_then_read(x):
    path = [x]
    while x > 1.0:
        x = x / 3
        path.append(x)
    return path[-1], path[0], path[1], len(path), np.array(path[1:]), bool(path)


def append_pairs(x):
    trace = []
    k = 0
    while x > 1.0:
        trace.append((k, x))
        x, k = x / 2, k + 1
    total = 0.0
    for step, value in trace:
        total += step * value
    return np.array(trace), total, trace[-1]


def append_twice(n, x):
    out = []
    for k in range(n):
        out.append(x)
        if k % 2:
            out.append(k * x)
        out += [0.0]
    return np.array(out), sum(out), max(out)


def append_either(xs):
    signs, small = [], []
    for x in xs:
        if x > 2:
            signs.append(1.0)
        else:
            signs.append(-1.0)
            small.append(x)
    return signs, np.array(small), len(small), small == [] if False else bool(small)


def append_in_two_loops(n, m):
    out = [0.5]
    for k in range(n):
        out.append(k * 1.0)
    out.append(-1.0)
    for k in range(m):
        out.append(k * 2.0)
    return np.array(out), len(out), out[0], out[-1]


def append_through_function(n):
    out = []

    def note(v):
        out.append(v * v)

    push = out.append
    for k in range(n):
        note(k)
        push(k)
    return np.array(out)


def gathered_comprehensions(n, xs):
    squares = [k * k for k in range(n)]
    pairs = [(k, v) for k, v in enumerate(xs) if v > 1.5]
    total = sum(v * k for k, v in pairs) if pairs else 0.0
    return np.array(squares), len(pairs), total, np.mean([x for x in xs[:n]])


def gathered_windows(n, xs):
    means = [np.mean(xs[k : k + 2]) for k in range(n)]
    return np.array(means), [m for m in reversed(means)][0] if False else means[0]


def append_then_sum(n):
    terms = []
    for k in range(n):
        terms.append(1.0 / (k + 1))
    return sum(terms), max(terms), min(terms)


def append_then_iterate(n):
    values = []
    for k in range(n):
        values.append(k * k)
    total = 0
    for v in values:
        total += v
    return total


def append_early_stop(xs, limit):
    seen = []
    for x in xs:
        seen.append(x)
        if x > limit:
            break
    return np.array(seen)


def comprehension_staged_count(n):
    return np.array([k * k for k in range(n)])


def comprehension_staged_sum(n):
    return sum([k * 0.5 for k in range(n)]) + len([k for k in range(n)])


def comprehension_filter_staged(xs):
    return np.array([x * 2 for x in xs if x > 1.5])


def pops_and_inserts(x):
    values = [x, 2 * x, 3 * x]
    last = values.pop()
    first = values.pop(0)
    values.insert(0, 9.0)
    values.extend([x, x])
    values.remove(9.0)
    values.reverse()
    return last, first, values, values.index(2 * x) if False else len(values)


def stack_machine(x):
    stack = []
    for op in ("push", "push", "add", "push", "mul"):
        if op == "push":
            stack.append(x)
        elif op == "add":
            stack.append(stack.pop() + stack.pop())
        else:
            stack.append(stack.pop() * stack.pop())
    return stack[-1]


def dict_grows(xs):
    out = {}
    for k in range(3):
        out[f"x{k}"] = xs[k]
    out.setdefault("x0", 0.0)
    out.update(y=xs[0] * 2)
    gone = out.pop("x1")
    return out, gone


def defaultdict_counts(x):
    counts = collections.defaultdict(float)
    for name in ("a", "b", "a"):
        counts[name] += x
    return dict(counts)


def counter_of_static(x):
    return x * collections.Counter("abca")["a"]


def deque_window(xs):
    window = collections.deque(maxlen=2)
    total = 0.0
    for k in range(3):
        window.append(xs[k])
        total += sum(window)
    return total


def sets_of_static(x):
    seen = set()
    for k in (1, 2, 2, 3):
        if k in seen:
            continue
        seen.add(k)
        x = x * k
    return x, len(seen)


def list_of_lists(x):
    grid = [[0.0] * 3 for _ in range(2)]
    grid[1][2] = x
    grid[0] += [x * 2]
    return grid


def list_arithmetic(x):
    return [x] * 3 + [1.0, *[2.0]], (x,) + (1,), len([x] * 3)


def list_shared(x):
    a = [x]
    b = a
    b.append(2 * x)
    c = list(a)
    c.append(3 * x)
    return a, b, c


def list_compare(x):
    return [1, 2] == [1, 2], (1, 2) < (1, 3), "a" in ["a", x], [] == [x]


def caller_list_grows(values, x):
    values.append(x)
    values[0] = x * 2


def layer_by_layer(layers, x, tolerance):
    k = 0
    while np.sum(x * x) > tolerance and k < len(layers):
        x = np.tanh(layers[k]["w"] @ x + layers[k]["b"])
        k += 1
    return x, k


def item_of_largest(x, offset):
    candidates = [x, x * 2, x * 3.5]
    return candidates[np.argmax(x) - offset]


def pair_of_smallest(pairs, x):
    w, (b, name) = pairs[np.argmin(x)]
    return w * x + b, name, ((1, x), (4, x * 2))[np.argmin(x)]


def steps_through(x, limit):
    stages = [x, x * 2]
    k = 0
    while k < 2 and x[0] < limit:
        y = stages[k]
        stages[1] = y + 1
        k += 1
    return stages


def rows_behind_a_return(n):
    if n == 0:
        return []
    rows = []
    for i in range(n):
        rows.append([1] * (i + 1))
        for j in range(1, i):
            rows[i][j] = rows[i - 1][j - 1] + rows[i - 1][j]
    return rows


def place_of_the_largest(x):
    values, pair = [x[0], x[1], x[2]], (x[1] * 2, x[2])
    return values.index(max(values)), pair[(x[0], x[1]).index(min(x[0], x[1]))], list(x).index(max(x))


def place_of_what_may_be_missing(x, value):
    table = [1.0, 2.0, 5.0, 2.0]
    try:
        place = table.index(value, 1)
    except ValueError:
        place = -1
    return place, x.tolist().count(value), table.count(value), (x[0], 2.0, 1).count(value)


def place_in_a_grown_list(x):
    doubled = []
    for v in x:
        doubled.append(v * 2)
    return doubled.index(max(doubled)), doubled.count(4.0)


def place_among_sorted(x, value):
    grades, squares = [0.0, 1.0, 2.5, 2.5, 7.0], []
    for v in x:
        squares.append(v * v)
    part = bisect.bisect_left(squares, value), bisect.bisect(x, value, 1), bisect.bisect_left(x, value, hi=2)
    return grades[bisect.bisect_right(grades, value) - 1], part, bisect.bisect(list(x[::-1]), -value, key=lambda v: -v)


_X = np.array([1.0, 3.0, 2.0])
_THREE = np.array([0.5, -1.25, 0.75])
_SQUARE = np.arange(9.0).reshape(3, 3) - 4.0
CASES = [
    (place_of_the_largest, (np.array([1.0, 2.0, 3.0]),)),
    (place_of_the_largest, (np.array([3.0, 1.0, 2.0]),)),
    (place_of_what_may_be_missing, (np.array([2.0, 1.0, 2.0]), 2.0)),
    (place_of_what_may_be_missing, (np.array([2.0, 1.0, 2.0]), 1.0)),
    (place_among_sorted, (np.array([0.0, 1.0, 2.0, 3.0]), 2.25)),
    (place_among_sorted, (np.array([0.5, 1.0, 2.0]), 1.5)),
    (place_in_a_grown_list, (np.array([2.0, 3.0, 2.0, 1.0]),)),
    (append_static, (2.0,)),
    (append_static_long, (2.0,)),
    (append_rows, (_X,)),
    (append_staged_count, (4,)),
    (append_staged_count, (0,)),
    (append_in_while, (20.0,)),
    (append_vectors, (4, _X)),
    (append_in_branch, (_X,)),
    (append_two_lists, (4,)),
    (append_then_read, (20.0,)),
    (append_pairs, (20.0,)),
    (append_twice, (5, 2.0)),
    (append_either, (_X,)),
    (append_in_two_loops, (3, 4)),
    (append_through_function, (4,)),
    (gathered_comprehensions, (3, _X)),
    (gathered_windows, (2, _X)),
    (append_then_sum, (4,)),
    (append_then_iterate, (4,)),
    (append_early_stop, (_X, 2.5)),
    (comprehension_staged_count, (4,)),
    (comprehension_staged_sum, (4,)),
    (comprehension_filter_staged, (_X,)),
    (pops_and_inserts, (2.0,)),
    (stack_machine, (2.0,)),
    (dict_grows, (_X,)),
    (defaultdict_counts, (2.0,)),
    (counter_of_static, (2.0,)),
    (deque_window, (_X,)),
    (sets_of_static, (2.0,)),
    (list_of_lists, (2.0,)),
    (list_arithmetic, (2.0,)),
    (list_shared, (2.0,)),
    (list_compare, (2.0,)),
    (caller_list_grows, ([1.0], 2.0)),
    *(
        (layer_by_layer, ([{"w": _SQUARE * k, "b": _THREE / k} for k in (0.3, 1.7, 0.6)], _THREE, tolerance))
        for tolerance in (0.01, 1.9, 99.0)
    ),
    *((item_of_largest, (_THREE, offset)) for offset in (0, 2, 5)),
    (pair_of_smallest, ([(_THREE * k, (_THREE + k, "scale")) for k in (1, 2, 3)], _THREE)),
    (steps_through, (_THREE, 9.0)),
    *((rows_behind_a_return, (n,)) for n in (0, 1, 5)),
]
