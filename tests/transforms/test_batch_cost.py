"""What batching may cost: linear in the depth of `while`s in one another.

In: nests of whose tests all lanes think alike. Out: how many bodies are batched, and results.
"""

import numpy as np
import pytest
from corpus import alike

from metaphrase.astpasses.frontend import stage
from metaphrase.astpasses.transforms import batch as batching
from metaphrase.core.evaluate import evaluate


def two(x, n):
    total = 0.0
    i = 0
    while i < n:
        i += 1
        total += x[0]
        j = 0
        while j < n:
            j += 1
            total += x[1]
    return total


def four(x, n):
    total = 0.0
    i = 0
    while i < n:
        i += 1
        total += x[0]
        j = 0
        while j < n:
            j += 1
            total += x[1]
            k = 0
            while k < n:
                k += 1
                total += x[2]
                m = 0
                while m < n:
                    m += 1
                    total += x[3]
    return total


@pytest.mark.parametrize("function, loops", [(two, 2), (four, 4)])
def test_each_body_is_batched_once(function, loops, monkeypatch):
    bodies = []
    plain = batching.with_settled_state
    monkeypatch.setattr(batching, "with_settled_state", lambda *given: bodies.append(given) or plain(*given))
    program = stage(function, (np.ones(4), 3)).function
    batched, marks = batching.batch(program, 5, [True, False])
    assert marks == [True] and len(bodies) == loops
    x = np.random.default_rng(1).uniform(size=(5, 4))
    assert alike(evaluate(batched, x, np.int64(3))[0], np.array([function(row, 3) for row in x]), 1e-12)
