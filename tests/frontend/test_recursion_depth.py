"""Functions that call themselves are staged as deep as Python runs them."""

import gc
import subprocess
import sys
import threading

import pytest

from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.evaluate import evaluate
from metaphrase.interpreter import deep_calls


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


def test_nothing_changes_for_other_threads():
    """While one thread is deep in a stage another has the limit and the thresholds that it had."""
    seen, done = [], threading.Event()

    def watch():
        while not done.is_set():
            seen.append((depth(0), sys.getrecursionlimit(), gc.get_threshold()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    while not seen:
        pass
    for _ in range(3):
        stage(deep, (2.0,))
    done.set()
    watcher.join()
    assert len(seen) > 3 and len(set(seen)) == 1


def depth(n):
    """How much deeper a function may call itself."""
    try:
        return depth(n + 1)
    except RecursionError:
        return n


def test_this_thread_is_as_before():
    before = depth(0)
    stage(deep, (2.0,))
    with pytest.raises(RecursionError):
        stage(endless, (1.0,))
    assert depth(0) == before


def test_the_limit_may_be_set_in_between():
    """A program that sets the limit while something is staged keeps what it set."""
    limit, before = sys.getrecursionlimit(), depth(0)
    try:
        with deep_calls():
            assert depth(0) > 10 * before
            sys.setrecursionlimit(limit + 7)
        assert sys.getrecursionlimit() == limit + 7 and depth(0) == before + 7
    finally:
        sys.setrecursionlimit(limit)
    stage(deep, (2.0,))
    assert sys.getrecursionlimit() == limit and depth(0) == before


SMALL = """
import sys
import threading

from metaphrase.astpasses.frontend.staging.stage import stage


def below(k):
    return 0.0 if k == 0 else 1.0 + list(map(below, [k - 1]))[0]


def run():
    for depth in (10, 10**6):
        try:
            stage(lambda x: x + below(depth), (2.0,))
            print("staged")
        except RecursionError:
            print("too deep")


threading.stack_size(int(sys.argv[1]) * 1024)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("kilobytes", [256, 512, 1024])
def test_a_thread_with_a_small_stack_is_refused_and_does_not_crash(kilobytes, tmp_path):
    path = tmp_path / "small.py"
    path.write_text(SMALL)
    command = [sys.executable, "-P", str(path), str(kilobytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["staged", "too deep"]
