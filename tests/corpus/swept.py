"""What programs from control, mechanics, physics and the like asked for, each cut down to a few lines."""

import itertools

import numpy as np


def inputs_joined(x, n):
    """Model predictive control joins the inputs of all steps."""
    inputs = []
    for _ in range(n):
        u = -0.5 * x
        x = x + 0.1 * u
        inputs.append(u)
    joined = np.concatenate(inputs), np.hstack(inputs), np.vstack(inputs)
    return joined, np.column_stack(inputs), np.dstack(inputs)


def blocks_joined(a, n):
    blocks = []
    for k in range(n):
        blocks.append(a * k)
    joined = np.concatenate(blocks, axis=1), np.concatenate(blocks, None)
    return joined, np.hstack(blocks), np.stack(blocks, -1)


def numbers_joined(x, n):
    found = []
    for k in range(n):
        found.append(x * k)
    return np.hstack(found), np.vstack(found), np.dstack(found), np.column_stack(found)


def nothing_to_join(x, n):
    found = []
    for k in range(n):
        found.append(x * k)
    return np.vstack(found)


def grid_of_ranges(n, m):
    x, y = np.meshgrid(range(n), range(1, m, 2))
    return x, y, np.sqrt(range(n)), np.cumsum(range(n)), np.array(range(m)) * 0.5


def ranges_as_axes(x):
    moved = np.moveaxis(x, (2, 0), range(2))
    return moved, np.tensordot(x, x, axes=(range(2), range(2))), np.transpose(x, range(3))


def wave_numbers(x, length):
    """Spectral methods take the sample distance from a grid."""
    d = (x[-1] - x[0]) / (len(x) - 1) * length
    return np.fft.fftfreq(len(x), d=d), np.fft.rfftfreq(len(x), d), np.fft.fftfreq(x.size, 0.5)


def assembled(h, edges):
    """Blocks of a matrix of the graph's sizes, at places that the run knows."""
    for i, j in edges:
        si, sj = slice(3 * i, 3 * i + 3), slice(3 * j, 3 * j + 3)
        h[si, si] += np.eye(3)
        h[si, sj] -= np.ones((3, 3))
        h[sj, sj] *= 2.0
        np.add(h[sj, si], 1.0, out=h[sj, si])
    return h


def robots_part(n, q):
    p = np.zeros((3 + 2 * n, 3 + 2 * n))
    p[:3, :3] += q
    np.add(p[:3, :3], q, out=p[:3, :3])
    return p


def path_or_none(x):
    """A planner gives None where it finds no path."""
    if x < 0:
        return None
    path = []
    while x > 1:
        path.append(x)
        x = x / 2
    return np.array(path), len(path)


def length_of_path(x):
    found = path_or_none(x)
    if found is None:
        return -1.0, 0
    path, count = found
    return float(np.sum(np.diff(path))), count


def masked_or_none(v, x):
    if x < 0:
        return None
    return v[v > x], 3


def list_or_none(x):
    if x < 0:
        return None
    trace = []
    while x > 1:
        trace.append(x)
        x = x / 2
    return trace


def sizes_of_two_kinds(x, n):
    if x < 0:
        return np.ones((1, 2))
    rows = []
    while x > 1:
        rows.append((x, x * x))
        x = x / (1 + 1 / n)
    return np.array(rows)


def kinds_of_sums(x):
    """What Python makes of its own numbers is Python's: dividing by nothing raises."""
    trace = []
    while x > 1:
        trace.append(x)
        x = x / 2
    return sum(trace) / len(trace), max(trace), min(trace), sum(v * v for v in trace)


def kinds_of_counts(n):
    counts = []
    for k in range(n):
        counts.append(k)
    return sum(counts), max(counts), sum(counts, 0.5), sum(counts) / n


def heads(x, n_head):
    parts = list(map(lambda y: np.split(y, n_head, axis=-1), np.split(x, 2, axis=-1)))
    return np.hstack([q @ k.T for q, k in zip(*parts)])


def behind_the_middle(x):
    """Where a size is halved, the minus stands before the half."""
    half = len(x) // 2
    return np.arange(len(x)) + -half, x - half, -(len(x) % 3) + x, np.roll(x, -half)


def parents_of_each_round(c, s, t):
    """Breadth first, round by round: the list of parents is made anew each time."""
    n, k = len(c), 0
    while True:
        parent = [-1] * n
        parent[s] = s
        queue = [s]
        while queue and parent[t] == -1:
            u = queue.pop(0)
            for v in range(n):
                if parent[v] == -1 and c[u, v] > 0:
                    parent[v] = u
                    queue.append(v)
        if parent[t] == -1:
            return k, c
        v = t
        while v != s:
            c[parent[v], v] -= 1
            v = parent[v]
        k += 1


def new_lists_each_time(xs, t):
    k = 0
    first = xs[:]
    first[0] = first[0] * 2
    while k < 5:
        part, table, zeros = xs[1:], dict.fromkeys(range(3), 0.5), [0.0] * 2
        halves = np.split(np.zeros(4), 2)
        part[0] = part[0] + k
        table[1] = table[1] + k
        zeros[1] = zeros[1] - k
        halves[0] = halves[0] + k
        if part[0] + table[1] + halves[0][0] > t:
            return first, part, zeros, k
        k += 1
    return first, xs[1:], [0.0, 0.0], k


def best_candidate(x, t):
    """A candidate is changed before it is kept; the next one is another list."""
    best = [x, x]
    k = 0
    while k < 70:
        candidate = [x + k, x]
        candidate[1] = 0.5 * k
        if candidate[0] > t:
            best = candidate
            break
        k += 1
    return best, k


def history_of_some(v, t):
    """Forecasts go on from a list of what is left of a series."""
    history = list(v[v > t])
    for _ in range(3):
        history.append(0.5 * history[-1] + 0.25 * history[0])
    return np.array(history), len(history), sum(history)


def season_of_many(v, m):
    season, fitted = list(v[:m] - 1), []
    for k in range(len(v)):
        s = season[k % m]
        season[k % m] = 0.5 * s + v[k]
        fitted.append(s)
    return np.array(fitted), season


def places_as_list(v, t):
    total = 0.0
    places = np.flatnonzero(v > t).tolist()
    while places:
        total = total + v[places.pop()]
    kept = list(np.nonzero(v <= t)[0])
    return total, kept, v[v > t].tolist(), list(v > t)


def empty_places_of_a_list(v, t):
    return v[v > t].tolist(), max(v[v > t].tolist()), 1.0 in v[v > t].tolist()


def pair_energy(q):
    e = 0.0
    for i, j in itertools.combinations(range(len(q)), 2):
        e += 1 / abs(q[i] - q[j])
    return e


def grid_of_indices(n, m):
    out = np.zeros((n, m))
    for i, j in np.ndindex(n, m):
        out[i, j] = 10 * i + j
    total = 0
    for i, j, k in itertools.product(range(n), range(m), range(1, n, 2)):
        total += 100 * i + 10 * j - k
    return out, total


def enumerated(x):
    t = 0.0
    for (i, j), v in np.ndenumerate(x):
        t += v * i - j
    for place in np.ndindex(x.shape):
        x[place] = -x[place] + place[0]
    for row in np.ndindex(*x.shape[:-1]):
        x[row] += x[row].sum()
    return t, x


def best_tour(d):
    best, tour = np.inf, (0, 1, 2, 3)
    for p in itertools.permutations(range(4)):
        length = 0.0
        for k in range(4):
            length += d[p[k], p[(k + 1) % 4]]
        if length < best:
            best, tour = length, p
    return best, tour


def known_choices(x):
    names = {(i, j): x * i + j for i, j in itertools.product(range(2), range(5))}
    pairs = list(itertools.combinations(range(5), 2))
    found = itertools.combinations(range(6), 2)
    first = next(found)
    return names, len(pairs), pairs[3], first, sum(x * i - j for i, j in found)


def first_of_pairs(x, y):
    pairs = zip(x, y)
    a, b = next(pairs)
    for p, q in pairs:
        a = a * p + q
    places = enumerate(y)
    next(places)
    return a, b, [k for k, v in places]


_S = np.array([3.0, 1.0, 4.0, 1.5, 5.0])
_V = np.array([1.0, -2.0])
_T = np.arange(24.0).reshape(2, 3, 4)

CASES = [
    (inputs_joined, (_V, 4)),
    (inputs_joined, (_V, 80)),
    (blocks_joined, (_T[0], 3)),
    (numbers_joined, (0.5, 5)),
    (nothing_to_join, (_V, 0)),
    (nothing_to_join, (_V, 3)),
    (grid_of_ranges, (3, 8)),
    (ranges_as_axes, (_T,)),
    (assembled, (np.ones((12, 12)), np.array([[0, 1], [1, 2], [3, 0]]))),
    (assembled, (np.ones((9, 9)), np.array([[0, 1], [1, 2]]))),
    (robots_part, (2, np.ones((3, 3)))),
    (robots_part, (4, np.ones((1, 3)))),
    (path_or_none, (9.0,)),
    (path_or_none, (-1.0,)),
    (path_or_none, (1000.0,)),
    (length_of_path, (9.0,)),
    (length_of_path, (-1.0,)),
    (masked_or_none, (np.arange(4.0), 1.5)),
    (masked_or_none, (np.arange(4.0), -1.5)),
    (list_or_none, (9.0,)),
    (list_or_none, (-9.0,)),
    (sizes_of_two_kinds, (9.0, 2)),
    (sizes_of_two_kinds, (-9.0, 2)),
    (sizes_of_two_kinds, (9.0, 20)),
    (kinds_of_sums, (9.0,)),
    (kinds_of_counts, (5,)),
    (kinds_of_counts, (80,)),
    (heads, (np.arange(24.0).reshape(3, 8), 2)),
    (behind_the_middle, (np.arange(7.0),)),
    (parents_of_each_round, (np.array([[0, 3, 2, 0], [0, 0, 1, 3], [0, 0, 0, 2], [0, 0, 0, 0]]), 0, 3)),
    (parents_of_each_round, (np.array([[0, 3, 2], [0, 0, 1], [0, 0, 0]]), 1, 0)),
    (new_lists_each_time, ([1.0, 2.0, 3.0], 6.0)),
    (new_lists_each_time, ([1.0, 2.0, 3.0], 60.0)),
    (best_candidate, (1.0, 2.5)),
    (best_candidate, (1.0, 99.0)),
    (history_of_some, (_S, 1.2)),
    (history_of_some, (_S, 4.5)),
    (season_of_many, (_S, 2)),
    (season_of_many, (_S, 3)),
    (places_as_list, (_S, 1.2)),
    (empty_places_of_a_list, (_S, 1.2)),
    (empty_places_of_a_list, (_S, 9.0)),
    (pair_energy, (_S,)),
    (pair_energy, (np.linspace(0.0, 1.0, 12),)),
    (pair_energy, (_S[:2],)),
    (grid_of_indices, (3, 4)),
    (grid_of_indices, (0, 4)),
    (enumerated, (_T[0],)),
    (best_tour, (np.abs(np.subtract.outer(_S, _S)) ** 1.5,)),
    (known_choices, (0.5,)),
    (first_of_pairs, (_S, 2 * _S)),
    (wave_numbers, (np.linspace(0.0, 2.0, 8), 1.5)),
    (wave_numbers, (np.linspace(0.0, 2.0, 9), 1.5)),
    (wave_numbers, (np.linspace(0.0, 2.0, 2), 1.5)),
]
