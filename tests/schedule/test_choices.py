"""Branches in loops that data decide: numbers are chosen, where a branch would be guessed wrong half of the time.

In: loops with branches, over numbers of all kinds. Out: Python's results to the bit; and which branches stay.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.choices import with_choices
from metaphrase.astpasses.schedule.nest import Bind, Buf, Fn, For, If, Index, Load, Op, Store, constant, local, walk
from metaphrase.astpasses.schedule.python_loops import run
from metaphrase.astpasses.schedule.target import CPU
from metaphrase.core.dims import Sym
from metaphrase.pipeline import finished

random = np.random.default_rng(5)


def counted(x, k):
    count, total = 0, -0.0
    for v in x:
        if v > 0.1:
            count += 1
            total += v
    return count, total


def two_sides(x, k):
    up, down = 0.0, -0.0
    for i in range(1, len(x)):
        d = x[i] - x[i - 1]
        if d > 0:
            up += d
        else:
            down -= d
    return up, down


def classes(x, k):
    low = middle = high = 0
    s = 1.0
    for v in x:
        if v < -0.3:
            low += 1
            s += 1.0
        elif v < 0.4:
            middle += 1
            s -= v
        else:
            high += 2
            s = v * v + s
    return low, middle, high, s


def longest_run(x, k):
    best = run = 0
    for v in x:
        if v > 0:
            run += 1
            if run > best:
                best = run
        else:
            run = 0
    return best, run


def states(x, k):
    """An automaton of three states."""
    state, seen, first = 0, False, -1
    for i in range(len(x)):
        if x[i] > 0.5:
            state = (state + 1) & 3
            seen = True
        elif x[i] < -0.5:
            state = state ^ 2
            seen = seen and state > 1
        if k[i] > 0 and first < 0:
            first = i
    return state, seen, first


def wrapped(x, k):
    """Integers that wrap around on the side that is not taken."""
    h, n = 1, 0
    for i in range(len(k)):
        if k[i] & 1:
            h = h * 6364136223846793005 + k[i]
            n += k[i]
        else:
            h = h ^ 0x5DEECE66D
            n -= 3
    return h, n


def one_behind_another(x, k):
    """A side reads what it has just given, and what another variable was; integers may grow too large."""
    a, b, c = 1, 2, 0.0
    for i in range(len(x)):
        if x[i] > 0:
            a = a + 1
            b = b + a
            c += 1.5
        elif k[i] > 0:
            b = a - b
    return a, b, c


def guarded_element(x, k):
    """The branch is what keeps the place inside."""
    s, n = 0.0, 0
    for i in range(len(x)):
        if 0 <= k[i] < len(x):
            s += x[k[i]]
            n += 1
    return s, n


def guarded_division(x, k):
    q, n = 0, 0
    for i in range(len(k)):
        if k[i] != 0:
            q += 100 // k[i]
            n += 1
    return q, n


def sought(x, k):
    best, where = np.inf, -1
    for i in range(len(x)):
        if x[i] < best:
            best = x[i]
            where = i
    return best, where


def exchanged(x, k):
    a, b = 1, 2
    for v in x:
        if v > 0:
            a, b = b, a
    return a, b


CHOSEN = (counted, two_sides, classes, longest_run, states, wrapped, exchanged)
STAYING = (one_behind_another, guarded_element, guarded_division, sought)
X = {
    "normal": random.normal(size=60),
    "specials": random.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 5e-324], 50),
    "one": np.array([0.25]),
    "none": np.zeros(0),
}


def arguments(kind):
    x = X[kind]
    return x, np.asarray(random.integers(-4, 70, len(x)))


@pytest.mark.parametrize("kind", X)
@pytest.mark.parametrize("function", [*CHOSEN, *STAYING], ids=lambda f: f.__name__)
def test_values(function, kind):
    args = arguments(kind)
    with np.errstate(all="ignore"), mp.config(contract=False):
        wanted = function(*args)
        got = mp.jit(function)(*args)
        call = take_apart(args, {})
        core = finished(program_of(function, call.structure, call.specs).function)
        loops = run(schedule(core), *args) if len(core.results) == len(wanted) else got
    for mine, again, theirs in zip(got, loops, wanted, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(again, theirs)
        assert np.isnan(theirs) or np.signbit(mine) == np.signbit(theirs)


def text_of(function):
    return mp.source(function, "f64[n]", "i64[n]", stage="cython").split("cdef int entry")[1]


@pytest.mark.parametrize("function", [*CHOSEN, *STAYING], ids=lambda f: f.__name__)
def test_which_stay(function):
    branches = [line for line in text_of(function).splitlines() if line.strip().startswith(("if ", "else"))]
    assert bool(branches) == (function in STAYING or function is states)


def in_order(x, k):
    x, swaps = x.copy(), 0
    for i in range(len(x)):
        for j in range(len(x) - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swaps += 1
    return x, swaps


def maybe_one_place(x, k):
    """Where k is 0 the two places are one, and the one that is not stored into keeps what the other one was given."""
    x, y = x.copy(), x.copy()
    for i in range(4, len(x) - 4):
        if y[i + k] <= x[i + k]:
            x[i] = y[i + k] + x[i]
        else:
            x[i], x[i + k] = x[i + k], x[i]
        y[i + k] = x[i]
    return x, y


def moved_on(x, k):
    """Both sides store; the second store of one reads what its first one was."""
    x = x.copy()
    for i in range(1, len(x) - 1):
        if x[i] < x[i - 1] + x[i + 1]:
            x[i] = x[i] + 1
            x[i + 1] = x[i] - x[i + 1]
        else:
            x[i + 1] = x[i]
            x[i] = x[i - 1]
    return x


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1"])
@pytest.mark.parametrize("function, stays", [(in_order, False), (maybe_one_place, True), (moved_on, False)])
def test_elements_that_a_branch_stores_into(function, stays, dtype):
    """Of elements that the loop reads whatever happens one of two numbers is stored: they may change places so."""
    x = random.integers(0, 9, 40).astype(dtype)
    for k in (0, 1, 3):
        for mine, theirs in zip(mp.jit(function)(x, k), function(x, k), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    text = mp.source(function, x, 1, stage="cython").split("cdef int entry")[1]
    assert bool(re.search(r" if [xyt]\w*(\[.*)? <", text)) == stays


def test_maxima_of_integers():
    """Branches that choose the larger of two are that, in tables of dynamic programming, say."""

    def f(k, m):
        t = np.zeros(len(k) + 1, dtype=np.int64)
        for i in range(len(k)):
            t[i + 1] = max(t[i] - 1, k[i])
            t[i + 1] = min(t[i + 1], m[i])
        return t

    text = mp.source(f, "i64[n]", "i64[n]", stage="cython")
    assert "i64_max(" in text and "i64_min(" in text and "pick" not in text
    k, m = random.integers(-9, 9, 40), random.integers(0, 9, 40)
    np.testing.assert_array_equal(mp.jit(f)(k, m), f(k, m))


def test_a_sum_on_both_sides():
    def f(x):
        s = -0.0
        for v in x:
            if v > 0.5:
                s += v
            else:
                s -= 2 * v
        return s

    assert "f64_pick(" in mp.source(f, "f64[n]", stage="cython")
    for x in X.values():
        with np.errstate(all="ignore"), mp.config(contract=False):
            np.testing.assert_array_equal(mp.jit(f)(x), f(x))


def test_single_sums_are_left_to_the_compiler():
    def f(x):
        s = 0.0
        for v in x:
            if v > 0.5:
                s += v
        return s

    assert "if x_1 > 0.5:" in mp.source(f, "f64[n]", stage="cython")


@pytest.mark.parametrize("function", [counted, two_sides, classes], ids=lambda f: f.__name__)
def test_gradients(function):
    x, k = random.normal(size=12), np.arange(12)

    def last(x):
        return function(x, k)[-1]

    got, step = mp.jit(mp.grad(last))(x), 1e-6
    for i in range(len(x)):
        d = np.zeros(12)
        d[i] = step
        assert abs(got[i] - (last(x + d) - last(x - d)) / (2 * step)) < 1e-6


def test_random_branches():
    """Loops with three variables of each kind, and branches in branches."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        text = "def f(x, k):\n    a, b, c = 0, 1, 2\n    s, t = 0.0, 1.5\n    for i in range(len(x)):\n"
        text += side(rng, 2, 0) + "    return a, b, c, s, t\n"
        namespace: dict = {}
        mp_file = compile_text(text, seed)
        exec(compile(text, mp_file, "exec"), namespace)
        x, k = rng.normal(size=80), rng.integers(-3, 4, 80)
        with np.errstate(all="ignore"), mp.config(contract=False):
            wanted = namespace["f"](x, k)
            got = mp.jit(namespace["f"])(x, k)
        for mine, theirs in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=text)


def compile_text(text, seed):
    """The name of a file that linecache knows, so that the function has a source."""
    import linecache

    name = f"<choices {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    return name


def side(rng, depth, level):
    """The statements of a side."""
    conditions = ("x[i] > 0.2", "k[i] > 0", "x[i] < -0.4", "k[i] == i % 3", "a > b", "k[i] & 1")
    given = ("a += 1", "a = b - a", "b = a + k[i]", "b ^= 5", "c = max(c, a)", "c -= 2", "s += x[i]", "s -= 2 * x[i]")
    given += ("t += 0.25", "t = t + x[i] * x[i]", "c = k[i]")
    pad, text = "    " * depth, ""
    for _ in range(rng.integers(1, 3 if level else 4)):
        if level < 3 and rng.random() < (0.75 if level == 0 else 0.3):
            text += f"{pad}if {rng.choice(conditions)}:\n" + side(rng, depth + 1, level + 1)
            if rng.random() < 0.6:
                text += f"{pad}else:\n" + side(rng, depth + 1, level + 1)
        else:
            text += f"{pad}{rng.choice(given)}\n"
    return text


def test_elements_of_small_arrays():
    """A few elements of an array are variables in a loop, which branches choose between."""

    def quarters(x, k):
        h = np.zeros(4)
        for v in x:
            if v < -0.5:
                h[0] += 1
            elif v < 0:
                h[1] += 1
            elif v < 0.5:
                h[2] += 1
            else:
                h[3] += 1
        return h

    assert "if" not in text_of(quarters)
    for kind in X:
        x, k = arguments(kind)
        np.testing.assert_array_equal(mp.jit(quarters)(x, k), quarters(x, k))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex128, np.int8, np.uint32, bool])
def test_dtypes(dtype):
    def f(x, y):
        s = y[0]
        n = 0
        for i in range(1, len(x)):
            if x[i] > 0:
                s = s + y[i]
                n += 1
            else:
                s = s - y[i] if dtype is not bool else s ^ y[i]
        return s, n

    x, y = random.normal(size=30), random.integers(0, 9, 30).astype(dtype)
    for mine, theirs in zip(mp.jit(f)(x, y), f(x, y), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def of_tree(between, result=False):
    """A loop that reads x[j], may change j, and then chooses by what was read, as choices have it."""
    f64, n = np.dtype("float64"), Sym("n")
    x, t, s, last = Buf("x", f64, (n,), "arg", 0), local("t", f64), local("s", f64), local("last", np.dtype("int64"))
    branch = (Store(s, (), Op("add", (Load(s), Load(x, (Sym("j"),))), f64)), Store(last, (), Index(Sym("i"))))
    condition = Op("gt", (Load(t), constant(0.0, f64)), np.dtype(bool))
    rows = (Store(t, (), Load(x, (Sym("j"),))), *between, If(condition, branch))
    body = (Bind("j", Index(0)), Store(s, (), constant(0.0, f64)), Store(last, (), Index(0)), For("i", n, rows))
    fn = Fn(
        "f", (x,), ("n",), (*body, Store(Buf("out", f64, (), "out", 0), (), Load(s))), result=last if result else None
    )
    made = tuple(walk(with_choices(fn, CPU)))
    return any(isinstance(s, If) for s in made), [s.buf.name for s in made if isinstance(s, Store)]


def test_an_element_that_may_lie_outside_is_read_in_the_branch_alone():
    assert of_tree(())[0] is False
    assert of_tree((Bind("j", Index(Sym("j") + 1)),))[0] is True


def test_what_a_function_returns_is_given_its_value():
    assert of_tree((), result=False)[1].count("last") == 1  # before the loop: nobody reads it
    assert of_tree((), result=True)[1].count("last") == 2
