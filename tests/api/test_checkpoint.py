"""What derivatives keep: `checkpoint`, its policies, `loop_checkpoint` and reports on them, against plain gradients.

In: functions and their checkpointed twins. Out: the same numbers under every transformation, and the arrays that are
kept as the policy says.
"""

from __future__ import annotations

import io
import math
from contextlib import redirect_stdout
from functools import partial

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.ad_checkpoint import checkpoint_name
from metaphrase.astpasses.transforms.replay import next_place
from metaphrase.core.build import trace
from metaphrase.core.evaluate import evaluate
from metaphrase.core.types import Array, i64
from metaphrase.source import DTypeError, SourceError, UnsupportedError

pytestmark = pytest.mark.turns(6)

POLICIES = mp.checkpoint_policies
X = np.random.default_rng(0).normal(size=4)
W = np.random.default_rng(1).normal(size=(4, 4))


def layer(x, w):
    h = checkpoint_name(np.sin(x @ w), "hidden")
    return np.tanh(h * h)


def stack(layer, x, w, n=3):
    for _ in range(n):
        x = layer(x, w)
    return np.sum(x)


def plain(x, w):
    return stack(layer, x, w)


KINDS = [
    None,
    POLICIES.everything_saveable,
    POLICIES.nothing_saveable,
    POLICIES.dots_saveable,
    POLICIES.checkpoint_dots,
    POLICIES.dots_with_no_batch_dims_saveable,
    POLICIES.save_only_these_names("hidden"),
    POLICIES.save_anything_except_these_names("hidden"),
    POLICIES.save_any_names_but_these("other"),
    POLICIES.save_from_both_policies(POLICIES.dots_saveable, POLICIES.save_only_these_names("hidden")),
]


def near(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("policy", KINDS, ids=str)
def test_gradients_are_those_of_the_function(policy):
    kept = mp.checkpoint(layer, policy=policy)
    f = lambda x, w: stack(kept, x, w)  # noqa: E731
    for transformed in (mp.grad(f, (0, 1)), mp.jit(mp.grad(f, (0, 1)))):
        for got, want in zip(transformed(X, W), mp.grad(plain, (0, 1))(X, W)):
            near(got, want)
    near(f(X, W), plain(X, W))
    near(mp.jvp(f, (X, W), (X, W))[1], mp.jvp(plain, (X, W), (X, W))[1])


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_it_nests_with_all_transformations(prevent_cse):
    f = partial(stack, mp.remat(layer, prevent_cse=prevent_cse))
    lanes = np.stack([X, 2 * X])
    near(mp.hessian(f)(X, W), mp.hessian(plain)(X, W))
    near(mp.jacrev(mp.grad(f))(X, W), mp.hessian(plain)(X, W))
    near(mp.jvp(lambda x: mp.grad(f)(x, W), (X,), (X,))[1], mp.hessian(plain)(X, W) @ X)
    near(mp.vmap(mp.grad(f), in_axes=(0, None))(lanes, W), mp.vmap(mp.grad(plain), in_axes=(0, None))(lanes, W))
    summed = lambda f: mp.grad(lambda x: np.sum(mp.vmap(f, in_axes=(0, None))(x, W)))(lanes)  # noqa: E731
    near(summed(f), summed(plain))
    value, higher = mp.jet(lambda x: f(x, W), (X,), ([X, 0 * X],))
    near(higher[1], X @ mp.hessian(plain)(X, W) @ X)


def kept(f, *args):
    """The names or expressions, and how many numbers of each are kept, without those of arguments."""
    return {r.name: math.prod(r.shape) for r in mp.memory_report(f, *args).residuals if r.span is not None and r.shape}


def test_what_is_kept_is_what_the_policy_says():
    of = lambda policy: kept(lambda x, w, n: stack(mp.checkpoint(layer, policy=policy), x, w, n), X, W, 7)  # noqa: E731
    nothing = {"x": 28}
    assert of(POLICIES.nothing_saveable) == nothing
    assert of(POLICIES.save_only_these_names("hidden")) == {**nothing, "hidden": 28}
    assert of(POLICIES.save_only_these_names("other")) == nothing
    assert len(of(POLICIES.dots_saveable)) == 2
    everything = of(POLICIES.everything_saveable)
    assert everything == kept(lambda x, w, n: stack(layer, x, w, n), X, W, 7)
    assert len(everything) > 2


def test_the_report_names_lines_and_bytes():
    def f(x, n):
        for _ in range(n):
            x = np.sin(x)
        return np.sum(x)

    report = mp.memory_report(f, X, 5)
    row = next(r for r in report.residuals if r.steps == 5)
    assert (row.nbytes, row.shape) == (160, (5, 4))
    assert report.total == sum(r.nbytes for r in report.residuals) >= 160
    with redirect_stdout(io.StringIO()) as out:
        mp.ad_checkpoint.print_saved_residuals(f, X, 5)
    assert out.getvalue() == f"{report}\n" and "32 a step" in str(report) and "x = np.sin(x)" in str(report)
    assert f"keeps {report.total} bytes" in str(report)


def test_the_source_computes_again():
    def f(x):
        return np.sum(mp.checkpoint(lambda x: np.sin(np.sin(x)))(x))

    text = mp.source(mp.grad(f), X)
    assert text.count("np.sin(") == 1 and text.count("np.cos(") == 2
    assert mp.source(f, X) == mp.source(lambda x: np.sum(np.sin(np.sin(x))), X).replace("<lambda>", "f").replace(
        "def function", "def f"
    )


# ---- loops --------------------------------------------------------------------------------------------------------


def swing(x, n, a):
    v = 0.0 * x
    for _ in range(n):
        v = v - 0.01 * np.sin(a * x)
        x = x + 0.01 * v
    return np.sum(x * x)


def growing(x, a):
    k = 0
    while np.sum(x * x) < 10.0:
        x = x + 0.1 * np.sin(a * x) + 0.05
        k += 1
    return np.sum(x) * k


def nested(x, n, m):
    for _ in range(n):
        y = x
        for _ in range(m):
            y = y + 0.1 * np.cos(y * x)
        x = 0.5 * x + 0.3 * y
    return np.sum(x)


def cholesky(a):
    a = a.copy()
    n = len(a)
    for k in range(n):
        a[k, k] = np.sqrt(a[k, k])
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
        for j in range(k + 1, n):
            for i in range(j, n):
                a[i, j] -= a[i, k] * a[j, k]
    return np.sum(np.tril(a))


def rows(xs, h):
    out = np.zeros_like(xs)
    for k in range(len(xs)):
        h = np.tanh(h + xs[k])
        out[k] = h * h
    return np.sum(out * np.arange(len(xs)))


def fixed(x):
    for k in range(30):
        x = x + 0.1 * np.sin(x * k)
    return np.sum(x * x)


def leaving(x, n):
    for _ in range(n):
        if x > 2.0:
            break
        x = x * 1.1
    return x * x


def leaving_rows(w, n):
    x = w[0].copy()
    k = 0
    while k < n:
        if x[0] > 2.0:
            break
        for j in range(len(x)):
            if w[k % 4, j] < -2.0:
                continue
            x[j] = x[j] + np.sin(w[k % 4, j] * x[j])
        k += 1
    return np.sum(x * x)


LOOPS = {
    "for": (swing, (X, 30, 1.3)),
    "no step": (swing, (X, 0, 1.3)),
    "one step": (swing, (X, 1, 1.3)),
    "while": (growing, (np.abs(X), 1.3)),
    "nested": (nested, (X, 5, 4)),
    "stores": (cholesky, (W @ W.T + 4 * np.eye(4),)),
    "rows": (rows, (np.linspace(-1, 1, 7), 0.3)),
    "fixed": (fixed, (X,)),
    "break": (leaving, (0.7, 30)),
    "break of arrays": (leaving_rows, (W, 6)),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("slots", [1, 2, 5])
def test_gradients_of_loops(name, slots):
    f, args = LOOPS[name]
    g = mp.loop_checkpoint(f, slots=slots)
    near(g(*args), f(*args))
    near(mp.grad(g)(*args), mp.grad(f)(*args))
    near(mp.jit(mp.grad(g))(*args), mp.grad(f)(*args))


@pytest.mark.parametrize("name", ["for", "while", "nested", "stores", "rows", "break", "break of arrays"])
def test_loops_nest_with_all_transformations(name):
    f, args = LOOPS[name]
    g = mp.loop_checkpoint(slots=2)(f)
    axes = (0, *[None] * (len(args) - 1))
    lanes = np.stack([args[0], 1.1 * args[0], 0.9 * np.asarray(args[0])])
    each = lambda f: mp.vmap(mp.grad(f), in_axes=axes)(lanes, *args[1:])  # noqa: E731
    near(each(g), each(f))
    summed = lambda f: mp.grad(lambda x: np.sum(mp.vmap(f, in_axes=axes)(x, *args[1:])))(lanes)  # noqa: E731
    near(summed(g), summed(f))
    near(mp.hessian(g)(*args), mp.hessian(f)(*args))
    near(mp.jacrev(mp.grad(g))(*args), mp.hessian(f)(*args))


def test_pullbacks_take_the_states_that_were_kept():
    g = mp.loop_checkpoint(swing, slots=3)
    for n in (0, 7, 40):
        slopes = mp.grad(swing)(X, n, 1.3)
        near(mp.vjp(lambda x: g(x, n, 1.3), X)[1](1.0)[0], slopes)  # noqa: B023
        near(mp.linearize(lambda x: g(x, n, 1.3), X)[1](X), slopes @ X)  # noqa: B023


def test_lanes_may_have_other_numbers_of_steps():
    counts = np.array([3, 17, 0])
    each = mp.vmap(mp.grad(mp.loop_checkpoint(swing, slots=3)), (None, 0, None))(X, counts, 1.3)
    near(each, np.stack([mp.grad(swing)(X, n, 1.3) for n in counts]))


def scanned(xs, h):
    def step(h, x):
        h = np.tanh(h + x)
        return h, h * x

    h, ys = mp.lax.scan(step, h, xs, reverse=True)
    return np.sum(ys * np.cos(ys)) + h


def collected(xs, h):
    ys = []
    while h < 5.0:
        h = h + np.sin(h * xs[0]) * 0.1 + 0.3
        ys.append(h * h)
    return np.sum(np.sin(np.array(ys)))


@pytest.mark.parametrize("f", [scanned, collected])
def test_rows_that_steps_take_and_leave(f):
    xs = np.linspace(-1, 1, 23)
    g = mp.loop_checkpoint(f, slots=2)
    for got, want in zip(mp.grad(g, (0, 1))(xs, 0.3), mp.grad(f, (0, 1))(xs, 0.3)):
        near(got, want)
    near(mp.grad(mp.grad(g, 1), 1)(xs, 0.3), mp.grad(mp.grad(f, 1), 1)(xs, 0.3))


def test_a_loop_keeps_no_row_a_step():
    report = mp.memory_report(mp.loop_checkpoint(swing, slots=3), X, 30, 1.3)
    assert all(r.steps is None for r in report.residuals)
    assert sorted(r.shape for r in report.residuals if r.shape) == [(4,), (4, 4), (4, 4)]  # 4 stretches
    assert any(r.steps == 30 for r in mp.memory_report(swing, X, 30, 1.3).residuals)


class Counting:
    """NumPy that counts the calls of `sin` and `cos`."""

    def __init__(self):
        self.calls = {"sin": 0, "cos": 0}

    def __getattr__(self, name):
        if name in self.calls:
            self.calls[name] += 1
        return getattr(np, name)


def chain(x, n):
    for _ in range(n):
        x = x + 0.01 * np.sin(x)
    return x


def search(x, n):
    while x < n:
        x = x + np.sin(0.0 * x) + 1.0
    return x


def calls(f, slots, n):
    """How often the gradient through n steps runs a step, and the adjoint of one."""
    text = mp.source(mp.grad(mp.loop_checkpoint(f, slots=slots)), 0.0, n)
    space = {"np": Counting()}
    exec(text.replace("import numpy as np\n", ""), space)
    near(space[f"grad_{f.__name__}"](0.0, n), mp.grad(f)(0.0, n))
    return space["np"].calls["sin"], space["np"].calls["cos"]


def replays(slots, stretch, n):
    """How many steps are run besides the run forwards, and that of each chunk of steps whose adjoints come next."""
    return sum(slots * fewest(-(-min(stretch, n - first) // slots), slots) for first in range(0, n, stretch))


@pytest.mark.parametrize(("slots", "n"), [(3, 0), (10, 5), (10, 100), (10, 110), (3, 200), (2, 57), (1, 12)])
def test_steps_run_as_often_as_the_theory_says(slots, n):
    again = replays(slots, max(slots, -(-n // (slots + 1))), n)
    assert (again == 0) == (n <= slots * (slots + 1))
    own = 0 if slots == 1 else n  # a chunk of one step is not run to keep anything
    assert calls(chain, slots, n) == (n + own + again, n)


@pytest.mark.parametrize(("slots", "n"), [(10, 100), (4, 1000)])
def test_a_while_keeps_states_as_it_goes(slots, n):
    stretch = slots
    while n > (slots + 1) * stretch:
        stretch *= 2
    assert calls(search, slots, n) == (2 * n + replays(slots, stretch, n), n)


def test_the_peak_is_what_is_needed_at_once():
    plain = mp.memory_report(swing, np.ones(100), 500, 1.3)
    assert 500 * 800 <= plain.peak <= 2.1 * 500 * 800
    few = mp.memory_report(mp.loop_checkpoint(swing, slots=10), np.ones(100), 500, 1.3)
    assert few.peak <= 800 * (2 * 11 + 2 * 12 + 3 * 10 + 15)  # states of the run, of the way back, residuals, others
    assert few.peak > few.total and f"{few.peak:,d}  at the peak" in str(few)
    with mp.config(native=False):
        traced = mp.memory_report(swing, np.ones(100), 500, 1.3)
    assert 0.8 < traced.peak / plain.peak < 1.5


def test_a_limit_checkpoints_what_would_be_over_it(caplog):
    x = np.ones(100)
    with caplog.at_level("INFO", "metaphrase"), mp.config(residual_limit=100_000):
        near(mp.grad(swing)(x, 500, 1.3), mp.grad(mp.loop_checkpoint(swing, slots=3))(x, 500, 1.3))
        assert mp.memory_report(swing, x, 500, 1.3).peak < 100_000
        near(mp.grad(nested)(X, 30, 40), mp.grad(mp.loop_checkpoint(nested, slots=3))(X, 30, 40))
    said = [r.getMessage() for r in caplog.records if "residual_limit" in r.getMessage()]
    assert any("test_checkpoint.py" in line and "run steps again" in line for line in said)
    caplog.clear()
    with caplog.at_level("INFO", "metaphrase"), mp.config(residual_limit=100_000):
        assert mp.source(mp.grad(fixed), X) == mp.source(mp.grad(fixed), X) and "kept" not in mp.source(
            mp.grad(fixed), X
        )
    assert not any("residual_limit" in r.getMessage() for r in caplog.records)


def cholesky_by_rows(a):
    n = len(a)
    l = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= l[i, k] * l[j, k]
            if i == j:
                l[i, j] = np.sqrt(s)
            else:
                l[i, j] = s / l[j, j]
    return np.sum(l)


def lu(a):
    a = a.copy()
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return np.sum(a)


@pytest.mark.parametrize("factor", [cholesky, cholesky_by_rows, lu])
def test_factors_keep_few_numbers_an_element(factor):
    for n in (20, 40):
        a = np.random.default_rng(n).normal(size=(n, n))
        report = mp.memory_report(factor, a @ a.T + n * np.eye(n))
        assert report.total < 4 * 8 * n**2
        assert report.peak < 7 * 8 * n**2


PLACE = trace("place", lambda s, e, k: next_place(s, e, k), [(n, Array(i64)) for n in ("step", "end", "snaps")])


def steps_run(length: int, slots: int) -> tuple[int, int]:
    """How many steps are run forwards on the way back of so many, and the most states that are kept at once."""
    places, count, most = [0], 0, 0
    for end in range(length, 0, -1):
        while places[-1] < end - 1:
            (place,) = evaluate(PLACE, np.int64(places[-1]), np.int64(end), np.int64(slots + 2 - len(places)))
            count += int(place) - places[-1]
            places.append(int(place))
            if place < end - 1:
                most = max(most, len(places) - 1)
        places.pop()
    return count, most


def fewest(length: int, slots: int) -> int:
    """By dynamic programming, of all ways to place states (Griewank & Walther, 2000, eq. 2.2)."""
    table: dict[tuple[int, int], int] = {}

    def best(length: int, snaps: int) -> int:
        if length <= 1:
            return 0
        if snaps == 1:
            return length * (length - 1) // 2
        if (length, snaps) not in table:
            table[length, snaps] = min(k + best(length - k, snaps - 1) + best(k, snaps) for k in range(1, length))
        return table[length, snaps]

    return best(length, slots + 1)


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
def test_no_choice_of_places_runs_fewer_steps(slots):
    for length in (0, 1, 2, 3, 7, 12, 30, 40):
        count, most = steps_run(length, slots)
        assert count == fewest(length, slots)
        assert most <= slots


# ---- what is refused ----------------------------------------------------------------------------------------------


def test_policies_print_and_compare():
    assert repr(POLICIES.save_only_these_names("a", "b")) == "checkpoint_policies.save_only_these_names('a', 'b')"
    assert POLICIES.checkpoint_dots == POLICIES.dots_saveable != POLICIES.nothing_saveable
    assert len({POLICIES.dots_saveable, POLICIES.checkpoint_dots}) == 1
    with pytest.raises(AttributeError, match="no policy 'save_all'"):
        _ = POLICIES.save_all
    with pytest.raises(TypeError, match="takes no names"):
        POLICIES.dots_saveable("a")


def test_what_is_no_policy_is_refused():
    with pytest.raises(DTypeError, match="none of metaphrase.checkpoint_policies"):
        mp.checkpoint(layer, policy="dots_saveable")
    with pytest.raises(UnsupportedError, match="stays in the memory of the device"):
        _ = POLICIES.offload_dot_with_no_batch_dims
    for slots in (0, 2.0, True):
        with pytest.raises(SourceError, match="at least 1"):
            mp.loop_checkpoint(swing, slots=slots)


def test_an_array_is_kept_rather_than_parts_that_are_as_large():
    def turned(r, p):
        if r @ r == 0.0:
            return p + np.cross(r, p)
        axis = r / np.sqrt(r @ r)
        return p + np.cross(axis, np.cross(axis, p))

    kept = str(mp.memory_report(turned, np.ones(3), np.ones(3)))
    assert "float64[3]" in kept
    assert "float64[1]" not in kept


def test_third_derivatives_of_loops_that_run_again():
    """What the way back keeps of the lanes are rows of their own, not views of the states, which are stored anew."""

    def steps(x):
        for _ in range(6):
            x = x + 0.1 * np.sin(x)
        return x

    second = mp.hessian(mp.loop_checkpoint(steps, slots=2))
    with mp.config(native=False):
        near(mp.linearize(second, 0.9)[1](1.0), mp.grad(mp.grad(mp.grad(steps)))(0.9))
        near(mp.grad(second)(0.9), mp.grad(mp.grad(mp.grad(steps)))(0.9))
