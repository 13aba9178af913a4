"""Heaps of the module `heapq` whose order only the run knows."""

import heapq
from heapq import heappop, heappush

import numpy as np

X = np.array([0.5, -1.25, 2.0, 3.5, -0.75, 1.0, 0.25])
ROADS = np.array(
    [
        [1.0, 4.0, 1.0, 9.5, 9.0],
        [4.0, 1.0, 2.5, 5.25, 9.75],
        [1.0, 2.0, 1.0, 8.5, 9.25],
        [9.0, 5.5, 8.0, 1.0, 3.0],
        [9.125, 9.0, 9.0, 3.0, 1.0],
    ]
)


def dijkstra(w):
    n = len(w)
    dist = np.full(n, np.inf)
    dist[0] = 0.0
    heap = [(0.0, 0)]
    while heap:
        d, u = heappop(heap)
        if d > dist[u]:
            continue
        for v in range(n):
            if d + w[u, v] < dist[v]:
                dist[v] = d + w[u, v]
                heappush(heap, (dist[v], v))
    return dist


def heap_sort(a):
    heap = []
    for v in a:
        heapq.heappush(heap, v)
    out = []
    while heap:
        out.append(heapq.heappop(heap))
    return np.array(out)


def heapified(a):
    heap = list(a)
    heapq.heapify(heap)
    least = heapq.heappop(heap)
    return least, heapq.heappop(heap), heapq.heapreplace(heap, least), heapq.heappushpop(heap, 9.0)


def of_few(x, y):
    heap = [3.0, 1.0, 2.0]
    heapq.heapify(heap)
    heapq.heappush(heap, x)
    return heapq.heappop(heap), heapq.heappushpop(heap, y), len(heap), heap[0]


def of_known(x):
    heap = [5, 2, 7, 1]
    heapq.heapify(heap)
    total = 0.0
    while heap:
        total = total * x + heapq.heappop(heap)
    return total


def largest_three(a):
    kept = []
    for k in range(len(a)):
        if len(kept) < 3:
            heapq.heappush(kept, a[k])
        else:
            heapq.heappushpop(kept, a[k])
    return sum(kept), kept[0]


def merged_pairs(a):
    """Huffman's merging: the two least weights become one."""
    heap = [(v * v, k) for k, v in enumerate(a)]
    heapq.heapify(heap)
    cost = 0.0
    while len(heap) > 1:
        first, k = heapq.heappop(heap)
        second, _ = heapq.heapreplace(heap, (first + heap[0][0], k))
        cost += first + second
    return cost


def with_counter(a):
    heap = []
    count = 0
    for v in a:
        heapq.heappush(heap, (abs(v), count, v * 2))
        count += 1
    return heapq.heappop(heap)[2], heapq.heappop(heap)[2]


def several(a):
    far = heapq.nsmallest(1, a, key=lambda v: -v * v)
    return sum(heapq.nsmallest(2, a)), heapq.nlargest(3, a)[-1], far[0]


CASES = [
    (dijkstra, (ROADS,)),
    (heap_sort, (X,)),
    (heapified, (X,)),
    (of_few, (1.5, 0.5)),
    (of_few, (9.0, 9.5)),
    (of_known, (0.5,)),
    (largest_three, (X,)),
    (merged_pairs, (X,)),
    (with_counter, (X,)),
    (several, (X,)),
]
