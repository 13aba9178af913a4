"""Deques: queues of searches and windows."""

import collections
from collections import deque

import numpy as np


def bfs_deque(indptr, indices, source):
    n = len(indptr) - 1
    dist = np.full(n, -1)
    dist[source] = 0
    queue = collections.deque([source])
    while queue:
        v = queue.popleft()
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if dist[u] < 0:
                dist[u] = dist[v] + 1
                queue.append(u)
    return dist


def grid_bfs(grid):
    rows, cols = grid.shape
    dist = -np.ones(grid.shape, dtype=int)
    q = deque()
    q.append((0, 0))
    dist[0, 0] = 0
    while len(q) != 0:
        r, c = q.popleft()
        for dr, dc in [(0, 1), (1, 0), (0, -1), (-1, 0)]:
            i, j = r + dr, c + dc
            if 0 <= i < rows and 0 <= j < cols and grid[i, j] == 0 and dist[i, j] == -1:
                dist[i, j] = dist[r, c] + 1
                q.append((i, j))
    return dist


def deque_static(x):
    q = deque([x, 2 * x])
    q.appendleft(3.0)
    q.extendleft([4.0, 5.0])
    q.append(1.0)
    a = q.popleft()
    b = q.pop()
    return a, b, list(q), len(q), isinstance(q, deque), isinstance(q, list), q[0]


def zero_one(weights, n):
    q = deque([0])
    dist = np.full(n, 1000)
    dist[0] = 0
    while q:
        v = q.popleft()
        for u in (v - 1, v + 1):
            if 0 <= u < n:
                w = weights[u]
                if dist[v] + w < dist[u]:
                    dist[u] = dist[v] + w
                    if w == 0:
                        q.appendleft(u)
                    else:
                        q.append(u)
    return dist


def sliding_max(xs, w):
    q = deque()
    out = []
    for i in range(len(xs)):
        while q and xs[q[-1]] <= xs[i]:
            q.pop()
        q.append(i)
        if q[0] <= i - w:
            q.popleft()
        if i >= w - 1:
            out.append(xs[q[0]])
    return np.array(out)


_IP = np.array([0, 2, 4, 6, 8, 9, 9])
_IX = np.array([1, 2, 0, 3, 0, 3, 1, 4, 3])
CASES = [
    (bfs_deque, (_IP, _IX, 0)),
    (grid_bfs, (np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]]),)),
    (deque_static, (2.0,)),
    (zero_one, (np.array([0, 1, 0, 0, 1]), 5)),
    (sliding_max, (np.array([1.0, 3.0, 2.0, 0.0, 5.0]), 2)),
]
