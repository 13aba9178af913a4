"""Rounds of sweeps over arrays go block by block: NumPy's numbers, whatever the sizes; and where they must not."""

import re
from dataclasses import replace

import numpy as np
import pytest
from thread_counts import thread_counts

import metaphrase as mp
from metaphrase.astpasses.schedule import target

SIZES = (0, 1, 3, 1023, 1024, 1025, 5000)
random = np.random.default_rng(5)


def newton(a):
    x = a.copy()
    for _ in range(20):
        x = x - (x * x - a) / (2 * x)
    return x


def swing(x, v, steps):
    t = 0.0
    for _ in range(steps):
        v = v + 0.01 * (0.1 * np.cos(t) - np.sin(x))
        x = x + 0.01 * v
        t += 0.01
    return x, v, t


def until(x, end):
    t, rounds = 0.0, 0
    while t < end:
        x = np.where(rounds % 2 == 0, x * 0.5, x + t)
        t += 0.3
        rounds += 1
    return x, rounds


def snapshots(x, v):
    saved = np.zeros((10, len(x)))
    for k in range(10):
        v = v * 0.9 - 0.01 * x
        x = np.tanh(x + v)
        if k % 3 == 0:
            v = 2.0 * v
        saved[k] = x
    return saved, x


def twice(x, outer, inner):
    for i in range(outer):
        x = x + i
        for j in range(inner):
            x = x * 0.9 + j
    return x


def growing(x):
    for k in range(8):
        x[:] = x + k * x
    return x.sum()


def rows(m):
    for k in range(5):
        m = m * 0.5 + np.sin(m) * k
    return m


def halves(x, y):
    for _ in range(4):
        x = np.cos(x)
    y = y + x
    for _ in range(3):
        y = y * x
    return x, y


def by_turns(x, y):
    """A variable has a value in a branch only, and another one of the rounds is wanted behind them."""
    u = 0.5
    for k in range(5):
        u = k * 0.1 + u
        x = np.maximum(x, 0.3 * y)
        if k % 2 == 0:
            y = np.where(y > k * 0.1, x * 0.5, y)
    return x, y, u


def added(x, y):
    """What the rounds leave in a variable is needed by a sweep behind them."""
    t = 0.0
    for _ in range(4):
        x = np.cos(x)
        t += 0.1
    y = y + t
    for _ in range(2):
        y = y * x
    return x, y


def changed(x, h):
    """Each loop has the variable as the one before left it, whether that went round or not."""
    for _ in range(3):
        x = x + h
    for k in range(int(x[0] * 0.0)):
        h = k * 0.5
        x = x * h
    x = x * h
    for k in range(3):
        h = h + k
        x = x - h
    return x, h


def one_by_one(x, v, steps):
    """Loops of the user's over elements, with a variable of an element's own, and one of the rounds."""
    x, v, t = x.copy(), v.copy(), 0.0
    for _ in range(steps):
        for i in range(len(x)):
            pull = x[i] * x[i] * x[i]
            v[i] = v[i] - 0.01 * pull + 0.001 * t
            if v[i] > 1.0:
                v[i] = 1.0
            x[i] = x[i] + 0.01 * v[i]
        t = t + 0.01
    return x, v, t


INSIDE_OUT = {
    one_by_one: lambda n: (random.normal(size=n), random.normal(size=n), 7),
    newton: lambda n: (random.random(n) + 0.5,),
    swing: lambda n: (random.normal(size=n), random.normal(size=n), 7),
    until: lambda n: (random.normal(size=n), 2.0),
    snapshots: lambda n: (random.normal(size=n), random.normal(size=n)),
    twice: lambda n: (random.normal(size=n), 3, 4),
    growing: lambda n: (random.normal(size=n),),
    rows: lambda n: (random.normal(size=(n, 3)),),
    by_turns: lambda n: (random.normal(size=n), random.normal(size=n)),
    added: lambda n: (random.normal(size=n), random.normal(size=n)),
    halves: lambda n: (random.normal(size=n), random.normal(size=n)),
}


def smoothed(x):
    for _ in range(4):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
    return x


def normed(x):
    for _ in range(4):
        x = x / np.sum(x * x)
    return x


def led(x):
    for k in range(4):
        first = x[0] * 0.5
        x = x + first * k
    return x


def reversed_(x):
    for _ in range(3):
        x = x[::-1] + 1.0
    return x


def recorded(x, z):
    """One array is found again in each round, and two rows lie elsewhere each time."""
    out = np.empty_like(z)
    for k in range(len(z)):
        x = x + z[k]
        out[k] = x
    return out


def along(x):
    """A loop of the user's whose elements see their neighbours."""
    x = x.copy()
    for _ in range(4):
        for i in range(1, len(x)):
            x[i] = 0.5 * (x[i] + x[i - 1])
    return x


def counted(x):
    """And one that leaves a sum."""
    x, total = x.copy(), 0.0
    for _ in range(4):
        for i in range(len(x)):
            x[i] = 0.5 * x[i] + 0.1
            total = total * 0.9 + x[i]
    return x, total


AS_IT_WAS = {
    along: lambda n: (random.normal(size=n),),
    counted: lambda n: (random.normal(size=n),),
    smoothed: lambda n: (random.normal(size=n),),
    normed: lambda n: (random.normal(size=n) + 2.0,),
    led: lambda n: (random.normal(size=n),),
    reversed_: lambda n: (random.normal(size=n),),
    recorded: lambda n: (random.normal(size=n), random.normal(size=(6, n))),
}


def is_inside_out(function, arguments) -> bool:
    """Whether a loop over blocks has the rounds in it."""
    text = mp.source(function, *arguments, stage="loops")
    return bool(re.search(r"count\w* = i64\(min\(", text))


def same(got, want):
    for g, w in zip(mp.tree_util.tree_leaves(got), mp.tree_util.tree_leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-13, atol=1e-13)


@pytest.mark.turns(4)
@pytest.mark.parametrize("function", INSIDE_OUT, ids=lambda f: f.__name__)
def test_numbers(function):
    jitted = mp.jit(function)
    for size in SIZES:
        arguments = INSIDE_OUT[function](size)
        want = function(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments))
        same(jitted(*arguments), want)
    assert (
        is_inside_out(function, ["f64[n]" if isinstance(a, np.ndarray) else a for a in arguments]) or function is rows
    )


@pytest.mark.turns(4)
@pytest.mark.parametrize("function", INSIDE_OUT, ids=lambda f: f.__name__)
def test_in_a_large_program(function, monkeypatch):
    """Whose loops are functions."""
    monkeypatch.setattr(target, "CPU", replace(target.CPU, whole=0, call=0, block=4))
    arguments = INSIDE_OUT[function](13)
    mp.source(function, *arguments, stage="loops")  # which looks at the rules of the tree
    want = function(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments))
    same(mp.jit(function)(*arguments), want)


def test_a_variable_that_several_loops_need():
    for size in (1, 5000):
        x = random.normal(size=size)
        same(mp.jit(changed)(x, 0.3), changed(x, 0.3))


@pytest.mark.parametrize("function", AS_IT_WAS, ids=lambda f: f.__name__)
def test_what_elements_need_of_one_another_stays(function):
    arguments = AS_IT_WAS[function](3000)
    assert not is_inside_out(function, [f"f64[{', '.join(['t', 'n'][-a.ndim :])}]" for a in arguments])
    want = function(*map(np.copy, arguments))
    same(mp.jit(function)(*arguments), want)


def energy(x, v):
    return np.sum(swing(x, v, 40)[0] ** 2)


def test_the_way_back_keeps_a_block():
    text = mp.source(mp.grad(energy), "f64[n]", "f64[n]", stage="loops")
    kept = re.findall(r"(\w+) = empty\((\(.*?,\)), f64\)", text)
    assert [dims for _, dims in kept if "40," in dims] == ["(40, 512,)"]
    x, v, step = random.normal(size=1500), random.normal(size=1500), random.normal(size=1500)
    slope = mp.jit(mp.grad(energy, argnums=(0, 1)))(x, v)
    above, below = (energy(x + h * step, v + h * step) for h in (1e-6, -1e-6))
    assert np.vdot(step, slope[0] + slope[1]) == pytest.approx((above - below) / 2e-6, rel=1e-6)


def test_threads_share_all_rounds_at_once():
    a, jitted = random.random(50_000) + 0.5, mp.jit(newton)
    runs = [jitted(a) for _ in thread_counts(1, 2, 3)]
    assert all(run.tobytes() == runs[0].tobytes() for run in runs)
    text = mp.source(newton, "f64[n]", stage="loops")
    assert re.search(r"def part_0\(.*\n(.*\n)*?        for j in range\(20\):", text), text


def test_a_short_array_is_one_block():
    assert not is_inside_out(newton, ["f64[1024]"]) and is_inside_out(newton, ["f64[1025]"])
    assert "1024" not in mp.source(newton, "f64[n]", stage="cuda")
