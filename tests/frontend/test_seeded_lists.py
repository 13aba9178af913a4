"""Lists that have items before a loop of unknown length appends to them stay lists; `while stack:` with
jumps; an object that holds such a list, returned from inside the loop."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest

import metaphrase as mp


def bounds_of_runs(x):
    starts = [0]
    for i in range(1, len(x)):
        if x[i] != x[i - 1]:
            starts.append(i)
    return starts[1:] + [len(x)], starts


def joined_and_repeated(x):
    kept = [x[0]]
    for i in range(1, len(x)):
        if x[i] != x[i - 1]:
            kept.append(x[i])
    return kept[1:] * 2, kept[:-1] + kept[1:], kept[::-1], kept[1:3], kept[-1], kept[0]


def pairs(x):
    found = [(0, x[0])]
    for i in range(1, len(x)):
        if x[i] > x[i - 1]:
            found.append((i, x[i]))
    return found[-1], x[found[-1][0]], [a for a, b in found], found[1:]


def grown_after_a_slice(x):
    kept = [x[0]]
    for v in x:
        if v > 1.0:
            kept.append(v)
    rest = kept[1:]
    rest.append(x[-1])
    return rest, kept


def asked_for_its_truth(x):
    kept = [x[0]]
    for v in x:
        if v > 2.5:
            kept.append(v)
    return 1.0 if kept[1:] else 2.0


def in_a_dict(x):
    held = {"trace": [x[0]]}
    for v in x:
        if v > 1.0:
            held["trace"].append(v)
    tail = held["trace"][1:]
    return tail, len(tail), sum(tail)


def unwound(x):
    parent = np.array([1, 2, 4, 4, -1])
    k = np.argmin(x)
    path = [k]
    while parent[k] >= 0:
        k = parent[k]
        path.append(k)
    return path[::-1]


def left_by_break(x):
    queue, steps = [0], 0
    while queue:
        k = queue.pop(0)
        steps += 1
        if x[k] > 2.0:
            break
        queue.append(k + 1)
    return steps, k


def left_by_return(x):
    stack, steps = [0], 0
    while stack:
        k = stack.pop()
        steps += 1
        if x[k] > 2.0:
            return steps
        stack.append(k + 1)
    return -steps


def breadth_first(x):
    queue, seen, steps = collections.deque([0]), np.zeros(len(x), bool), 0
    while queue:
        k = queue.popleft()
        steps += 1
        if seen[k]:
            continue
        seen[k] = True
        if x[k] > 2.0:
            break
        queue.append((k + 1) % len(x))
        queue.append((k + 2) % len(x))
    else:
        steps = -1
    return steps, seen


def stack_or_budget(x):
    stack, left, count = [0], 3, 0
    while left > 0 or stack:
        left -= 1
        if left > 0 and stack and x[stack[-1]] < 2.0:
            stack.append(stack[-1] + 1)
        elif stack:
            stack.pop()
        count += 1
    return count


FUNCTIONS = [
    bounds_of_runs,
    joined_and_repeated,
    pairs,
    grown_after_a_slice,
    asked_for_its_truth,
    in_a_dict,
    unwound,
    left_by_break,
    left_by_return,
    breadth_first,
    stack_or_budget,
]
INPUTS = [[1.0, 1.0, 2.0, 3.0, 3.0], [3.0, 0.0, 0.0, 1.0, 2.5], [0.0, 0.5, 1.5, 1.5, 4.0]]


def same(a, b) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(np.array_equal(a, b))


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_python_does(function, native):
    with mp.config(native=native):
        jitted = mp.jit(function)
        for x in map(np.array, INPUTS):
            assert same(jitted(x), function(x))


@dataclasses.dataclass
class Found:
    x: np.ndarray
    value: float
    trace: list
    ok: bool = False


def minimised(x, tolerance):
    x, trace = x.copy(), []
    for _ in range(200):
        if np.linalg.norm(x) < tolerance:
            return Found(x, x.sum(), trace, ok=True)
        x -= 0.5 * x
        trace.append(x.sum())
    return Found(x, x.sum(), trace)


def minimised_anew(x, tolerance):
    trace = []
    while True:
        step = 0.5 * x
        if np.linalg.norm(step) < tolerance:
            return Found(x=x, value=step.sum(), trace=trace)
        x = x - step
        trace.append(x.sum())


@pytest.mark.parametrize("function", [minimised, minimised_anew], ids=lambda f: f.__name__)
def test_an_object_with_the_growing_list_is_returned_from_the_loop(function):
    jitted = mp.jit(function)
    for tolerance in (1e-2, 1.0, 100.0):
        wanted, got = function(np.arange(5.0), tolerance), jitted(np.arange(5.0), tolerance)
        assert type(got) is Found and got.ok == wanted.ok and got.value == wanted.value
        assert np.array_equal(got.x, wanted.x) and np.array_equal(got.trace, wanted.trace)
