"""Functions that call themselves are staged as deep as Python runs them."""

import sys
import threading

import pytest

from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.evaluate import evaluate


def below(k):
    return 0.0 if k == 0 else 1.0 + below(k - 1)


def deep(x):
    return x + below(850)


def endless(x):
    return endless(x) + 1


def test_as_deep_as_python():
    limit = sys.getrecursionlimit()
    (got,) = evaluate(stage(deep, (2.0,)).function, 2.0)
    assert got == 852.0 and sys.getrecursionlimit() == limit


def test_in_a_thread_beside_another():
    found = []

    def run():
        found.append(evaluate(stage(deep, (2.0,)).function, 2.0)[0])

    threads = [threading.Thread(target=run) for _ in range(3)]
    limit = sys.getrecursionlimit()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [852.0] * 3 and sys.getrecursionlimit() == limit


def test_a_recursion_without_end_says_so():
    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError, match="while translating 'endless'"):
        stage(endless, (1.0,))
    assert sys.getrecursionlimit() == limit
