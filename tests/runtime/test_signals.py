"""Ctrl-C, and other signals whose handler raises, end a native call at once, wherever it is.

In: loops of every kind, long enough for a minute. Out: KeyboardInterrupt in under 0.1 s; handlers that do not
raise change nothing; afterwards all is as it was.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import threading
import time

import numpy as np
import pytest

import metaphrase as mp

BIG = np.random.default_rng(0).random(200_000)


def outer(x):
    return (x[:, None] * np.sin(x)[None, :]).sum()


def scalars(x, n):
    s = 0.0
    for _ in range(n):
        s = s * 0.999999 + x
    return s


def until(x, n):
    i = 0
    while i < n:
        x = x + np.sin(x) * 1e-9
        i += 1
    return x


def triangle(x, n):
    s = 0.0
    for i in range(n):
        for j in range(i):
            s += x[j % 7] * i
    return s


def rows(counts, x):
    y = np.zeros(len(counts))
    for i in range(len(counts)):
        s = 0.0
        for k in range(counts[i]):
            s += x[k % 5]
        y[i] = s
    return y


def arrays(x, n):
    for _ in range(n):
        x = x * 0.5 + 1
    return x


def primes(n):
    count = 0
    for i in range(2, n):
        is_prime = True
        for j in range(2, i):
            if i % j == 0:
                is_prime = False
                break
        if is_prime:
            count += 1
    return count


def products(x, n):
    for _ in range(n):
        x = x @ x
        x = x / np.abs(x).max()
    return x


def sorts(x, n):
    for _ in range(n):
        x = -np.sort(-np.sort(-x))
    return x


def gradient(x):
    return np.exp(-x[:, None] * x[None, :]).sum()


SQUARE = np.random.default_rng(1).random((100, 100))
LOOPS = {
    "broadcast": (outer, (BIG,)),
    "scalars": (scalars, (1.0, 10**11)),
    "while": (until, (1.0, 10**11)),
    "triangle": (triangle, (BIG, 10**6)),
    "rows": (rows, (np.full(30_000, 3 * 10**7), BIG)),
    "arrays": (arrays, (BIG, 10**7)),
    "primes": (primes, (10**8,)),
    "products": (products, (SQUARE, 10**8)),
    "gradient": (mp.grad(gradient), (BIG,)),
    "lanes": (mp.vmap(lambda x: until(x, 10**11)), (BIG[:64],)),
    "sorts": (sorts, (BIG, 10**7)),
    "transform": (lambda x, n: arrays(np.abs(np.fft.fft(np.fft.fft(x))), n), (BIG, 10**7)),
}


class Latency:
    """Sends a signal to this process after a while, and says how long ago that was."""

    def __init__(self, seconds: float, number: int = signal.SIGINT):
        self.timer = threading.Timer(seconds, self.send, (number,))
        self.sent = 0.0

    def send(self, number: int) -> None:
        self.sent = time.monotonic()
        os.kill(os.getpid(), number)

    def __enter__(self) -> Latency:
        self.timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.timer.cancel()  # where the loop ended before
        self.timer.join()

    def seconds(self) -> float:
        return time.monotonic() - self.sent


@pytest.fixture
def interruptible():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in background
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", LOOPS)
def test_ctrl_c_ends_a_long_loop_at_once(interruptible, name):
    function, args = LOOPS[name]
    jitted = mp.jit(function)
    jitted.lower(*args).compile()
    best = float("inf")
    for _ in range(8):  # other processes may hold the processor
        gc.collect()
        is_made = jitted.cache_info().currsize == 1  # before that the signal may come to what makes the program
        with Latency(0.1 if is_made else 0.3) as latency, pytest.raises(KeyboardInterrupt):
            jitted(*args)
        if is_made:
            best = min(best, latency.seconds())
        if best < 0.5:
            break
    assert best < 0.5  # the loops take much longer


def test_a_signal_that_comes_to_another_thread_ends_the_loop(interruptible):
    """The kernel may give a process's signal to any of its threads."""
    function, args = LOOPS[next(iter(LOOPS))]
    jitted = mp.jit(function)
    jitted.lower(*args).compile()

    def strike():
        time.sleep(0.3)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    thread = threading.Thread(target=strike)
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        jitted(*args)
    thread.join()
    assert time.monotonic() - start < 5


def test_a_single_product_ends_before_the_signal_is_looked_at(interruptible):
    """BLAS and LAPACK take locks and memory of their own: such a call is not left in the middle."""
    x = np.random.default_rng(2).random((1500, 1500))
    jitted = mp.jit(lambda x: (x @ x).sum())
    jitted(x)
    start = time.monotonic()
    with Latency(0.01) as latency, pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            jitted(x)
    assert latency.seconds() < 2 and time.monotonic() - start < 20


def test_a_handler_that_does_not_raise_changes_nothing(interruptible):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(float(np.sum(other(np.ones(3))))))
    other, jitted = mp.jit(lambda x: x * 2), mp.jit(scalars)
    assert other(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    wanted = jitted(1.0, 10**8)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.002)
        assert jitted(1.0, 10**8) == wanted
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) > 5 and set(seen) == {6.0}  # a jitted function in the handler, too


class TooLong(Exception):
    pass


def test_an_alarm_whose_handler_raises(interruptible):
    def stop(*_):
        raise TooLong("that was too long")

    before = signal.signal(signal.SIGALRM, stop)
    jitted = mp.jit(outer)
    jitted.lower(BIG).compile()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        start = time.monotonic()
        with pytest.raises(TooLong, match="that was too long"):
            jitted(BIG)
        assert time.monotonic() - start < 2
    finally:
        signal.signal(signal.SIGALRM, before)


def action_of(number: int) -> int:
    """The address of the C function that a signal comes to."""
    libc, action = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    assert libc.sigaction(number, None, action) == 0
    return int.from_bytes(action.raw[:8], "little")


def test_the_signals_actions_are_pythons_again_after_a_call(interruptible):
    before = action_of(signal.SIGINT)
    jitted = mp.jit(scalars)
    jitted(1.0, 10)
    during = []
    timer = threading.Timer(0.1, lambda: during.append(action_of(signal.SIGINT)))
    timer.start()
    jitted(1.0, 2 * 10**8)
    timer.join()
    assert during and during[0] != before == action_of(signal.SIGINT)
    with Latency(0.2), pytest.raises(KeyboardInterrupt):
        jitted(1.0, 10**11)
    assert action_of(signal.SIGINT) == before


def test_interrupts_in_the_midst_of_memory_and_callbacks(interruptible):
    """Signals at random moments: of thirty calls none is wrong, hangs or crashes."""

    def grows(x, n):
        kept = []
        for i in range(n):
            kept.append(np.sort(x[: i % 50]).sum())
        return np.array(kept)

    jitted = mp.jit(grows)
    x = BIG[:64]
    wanted = jitted(x, 300_000)
    interrupted = 0
    random = np.random.default_rng(3)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(30):
            try:
                signal.setitimer(signal.ITIMER_REAL, float(random.uniform(0.001, 0.05)))
                jitted(x, 300_000)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(jitted(x, 300_000), wanted)
    assert interrupted > 5


def test_other_threads_go_on_and_the_loop_of_one_is_not_interrupted(interruptible):
    """Python's handlers run on the main thread; a loop of another thread ends by itself."""
    jitted = mp.jit(scalars)
    wanted = jitted(1.0, 2 * 10**8)
    results = []
    thread = threading.Thread(target=lambda: results.append(jitted(1.0, 2 * 10**8)))
    thread.start()
    with Latency(0.1) as latency, pytest.raises(KeyboardInterrupt):
        while True:
            time.sleep(0.001)
    assert latency.seconds() < 0.5  # the main thread was free
    thread.join()
    assert results == [wanted]
