"""Lists that a loop both changes and reads: adaptive steps, histories, stacks, queues, paths."""

import numpy as np


def adaptive_heun(y0, tol):
    t_end = 2.0
    ts, ys = [0.0], [y0]
    h = 0.1
    while ts[-1] < t_end:
        h = min(h, t_end - ts[-1])
        k1 = -ys[-1] * ts[-1]
        k2 = -(ys[-1] + h * k1) * (ts[-1] + h)
        ynew = ys[-1] + h * (k1 + k2) / 2
        error = abs(h * (k2 - k1) / 2)
        if error < tol:
            ts.append(ts[-1] + h)
            ys.append(ynew)
            h *= 1.5
        else:
            h *= 0.5
    return np.array(ts), np.array(ys)


def adaptive_vector(y0, tol):
    def f(t, y):
        return np.array([y[1], -y[0]])

    t, ts, ys = 0.0, [0.0], [y0]
    h = 0.05
    while t < 1.0:
        if t + h > 1.0:
            h = 1.0 - t
        y = ys[-1]
        k1 = f(t, y)
        k2 = f(t + h, y + h * k1)
        new = y + h / 2 * (k1 + k2)
        err = np.max(np.abs(h / 2 * (k2 - k1)))
        if err <= tol:
            t = t + h
            ts.append(t)
            ys.append(new)
        h = 0.9 * h * min(2.0, max(0.3, (tol / err) ** 0.5))
    return np.array(ts), np.array(ys)


def newton_errors(x):
    errors = []
    for _ in range(100):
        new = x - (x * x - 2) / (2 * x)
        errors.append(abs(new - x))
        x = new
        if len(errors) > 1 and abs(errors[-1] - errors[-2]) < 1e-12:
            break
    return x, np.array(errors)


def newton_while(x, tol):
    errors = []
    while True:
        new = x - (x * x - 2) / (2 * x)
        errors.append(abs(new - x))
        x = new
        if len(errors) > 1 and abs(errors[-1] - errors[-2]) < tol:
            break
    return x, np.array(errors), len(errors)


def secant(x0, x1, tol):
    xs = [x0, x1]
    while abs(xs[-1] - xs[-2]) > tol:
        a, b = xs[-2], xs[-1]
        fa, fb = a**3 - 2, b**3 - 2
        xs.append(b - fb * (b - a) / (fb - fa))
    return xs[-1], len(xs), np.array(xs)


def aitken(x, tol):
    xs = [x]
    acc = []
    while len(xs) < 60:
        xs.append(np.cos(xs[-1]))
        if len(xs) >= 3:
            d1 = xs[-2] - xs[-3]
            d2 = xs[-1] - 2 * xs[-2] + xs[-3]
            acc.append(xs[-3] - d1 * d1 / d2)
            if len(acc) >= 2 and abs(acc[-1] - acc[-2]) < tol:
                break
    return acc[-1], len(xs)


def dfs_order(left, right):
    stack, order = [0], []
    while stack:
        v = stack.pop()
        order.append(v)
        if right[v] >= 0:
            stack.append(right[v])
        if left[v] >= 0:
            stack.append(left[v])
    return np.array(order)


def inorder(left, right):
    stack, order = [], []
    node = 0
    while stack or node != -1:
        while node != -1:
            stack.append(node)
            node = left[node]
        node = stack.pop()
        order.append(node)
        node = right[node]
    return np.array(order)


def flood_fill(grid, r, c):
    grid = grid.copy()
    color = grid[r, c]
    stack = [(r, c)]
    count = 0
    while len(stack) > 0:
        i, j = stack.pop()
        if i < 0 or i >= grid.shape[0] or j < 0 or j >= grid.shape[1]:
            continue
        if grid[i, j] != color:
            continue
        grid[i, j] = -1
        count += 1
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            stack.append((i + di, j + dj))
    return grid, count


def bfs_distances(indptr, indices, source):
    n = len(indptr) - 1
    dist = np.full(n, -1)
    dist[source] = 0
    queue = [source]
    while queue:
        v = queue.pop(0)
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if dist[u] < 0:
                dist[u] = dist[v] + 1
                queue.append(u)
    return dist


def quicksort(a):
    a = a.copy()
    stack = [(0, len(a) - 1)]
    while stack:
        lo, hi = stack.pop()
        if lo >= hi:
            continue
        pivot = a[hi]
        i = lo
        for j in range(lo, hi):
            if a[j] < pivot:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[hi] = a[hi], a[i]
        stack.append((lo, i - 1))
        stack.append((i + 1, hi))
    return a


def path_back(parent, target):
    path = []
    v = target
    while v != -1:
        path.append(v)
        v = parent[v]
    return np.array(path[::-1])


def paths_all(parent):
    n = len(parent)
    flat, lengths = [], []
    for s in range(n):
        path = []
        v = s
        while v != -1:
            path.append(v)
            flat.append(v)
            v = parent[v]
        lengths.append(len(path))
    return np.array(flat), np.array(lengths)


def monotone_stack(prices):
    span = np.zeros(len(prices))
    stack = []
    for i in range(len(prices)):
        while stack and prices[stack[-1]] <= prices[i]:
            stack.pop()
        span[i] = i + 1 if not stack else i - stack[-1]
        stack.append(i)
    return span


def convex_hull(points):
    order = np.argsort(points[:, 0])
    hull = []
    for k in range(len(points)):
        p = points[order[k]]
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            cross = (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])
            if cross <= 0:
                hull.pop()
            else:
                break
        hull.append(p)
    return np.array(hull)


def fibonacci_upto(n):
    f = [0, 1]
    while f[-1] < n:
        f.append(f[-1] + f[-2])
    return np.array(f), f[-1]


def collatz(n):
    seq = [n]
    while seq[-1] != 1:
        if seq[-1] % 2 == 0:
            seq.append(seq[-1] // 2)
        else:
            seq.append(3 * seq[-1] + 1)
    return np.array(seq), max(seq), len(seq)


def primes(n):
    found = [2]
    k = 3
    while len(found) < n:
        is_prime = True
        for p in found:
            if p * p > k:
                break
            if k % p == 0:
                is_prime = False
                break
        if is_prime:
            found.append(k)
        k += 2
    return np.array(found)


def adaptive_simpson(a, b, tol):
    def f(x):
        return np.exp(-x * x)

    stack = [(a, b, tol)]
    total = 0.0
    while stack:
        lo, hi, eps = stack.pop()
        m = (lo + hi) / 2
        h = hi - lo
        whole = h / 6 * (f(lo) + 4 * f(m) + f(hi))
        left = h / 12 * (f(lo) + 4 * f((lo + m) / 2) + f(m))
        right = h / 12 * (f(m) + 4 * f((m + hi) / 2) + f(hi))
        if abs(left + right - whole) < 15 * eps:
            total += left + right
        else:
            stack.append((lo, m, eps / 2))
            stack.append((m, hi, eps / 2))
    return total


def gradient_descent(x, rate):
    history = [x]
    while len(history) < 50:
        g = 2 * (history[-1] - np.array([1.0, 2.0]))
        new = history[-1] - rate * g
        history.append(new)
        if np.linalg.norm(history[-1] - history[-2]) < 1e-4:
            break
    return history[-1], len(history)


def adams_bashforth(y, n):
    fs = [-y]
    y = y + 0.1 * fs[0]
    for _ in range(n):
        fs.append(-y)
        y = y + 0.1 * (1.5 * fs[-1] - 0.5 * fs[-2])
    return y


def memo_staged_index(n):
    values = [1.0, 1.0]
    k = 2
    while k < n:
        values.append(values[k - 1] + 0.5 * values[k - 2])
        k += 1
    return values[k - 1], np.array(values)


def rejection(xs):
    kept = [xs[0]]
    for x in xs:
        if x > kept[-1]:
            kept.append(x)
    return np.array(kept)


def bracket_depth(codes):
    stack = []
    worst = 0
    for c in codes:
        if c > 0:
            stack.append(c)
        elif not stack or stack.pop() != -c:
            return -1
        worst = max(worst, len(stack))
    return worst if not stack else -1


class Pile:
    def __init__(self):
        self.items = []

    def push(self, v):
        self.items.append(v)

    def pop(self):
        return self.items.pop()

    def __len__(self):
        return len(self.items)


def object_stack(left, right):
    s = Pile()
    s.push(0)
    total = 0
    while len(s) > 0:
        v = s.pop()
        total = total * 3 + v
        if left[v] >= 0:
            s.push(left[v])
        if right[v] >= 0:
            s.push(right[v])
    return total


_L = np.array([1, 3, -1, -1, -1, -1])
_R = np.array([2, 4, 5, -1, -1, -1])
_IP = np.array([0, 2, 4, 6, 8, 9, 9])
_IX = np.array([1, 2, 0, 3, 0, 3, 1, 4, 3])
_X = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 4.5])
CASES = [
    (adaptive_heun, (1.0, 1e-2)),
    (adaptive_vector, (np.array([1.0, 0.0]), 1e-3)),
    (newton_errors, (1.5,)),
    (newton_while, (1.5, 1e-12)),
    (secant, (1.0, 2.0, 1e-10)),
    (aitken, (0.5, 1e-3)),
    (dfs_order, (_L, _R)),
    (inorder, (_L, _R)),
    (flood_fill, (np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]), 0, 0)),
    (bfs_distances, (_IP, _IX, 0)),
    (quicksort, (_X,)),
    (path_back, (np.array([-1, 0, 1, 2]), 3)),
    (paths_all, (np.array([-1, 0, 1, 2]),)),
    (monotone_stack, (_X,)),
    (convex_hull, (np.array([[0.0, 0.0], [1.0, 0.2], [2.0, 0.0], [1.5, 1.0], [0.5, 1.2], [3.0, 0.5]]),)),
    (fibonacci_upto, (100,)),
    (collatz, (6,)),
    (primes, (20,)),
    (adaptive_simpson, (0.0, 1.0, 1e-6)),
    (gradient_descent, (np.array([0.0, 0.0]), 0.2)),
    (adams_bashforth, (1.0, 10)),
    (memo_staged_index, (8,)),
    (rejection, (_X,)),
    (bracket_depth, (np.array([1, 2, -2, -1, 3, -3]),)),
    (object_stack, (_L, _R)),
]
