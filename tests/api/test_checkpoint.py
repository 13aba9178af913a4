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


def leaving(x, n):
    for _ in range(n):
        if x > 2.0:
            break
        x = x * 1.1
    return x * x


LOOPS = {
    "for": (swing, (X, 30, 1.3)),
    "no step": (swing, (X, 0, 1.3)),
    "one step": (swing, (X, 1, 1.3)),
    "while": (growing, (np.abs(X), 1.3)),
    "nested": (nested, (X, 5, 4)),
    "stores": (cholesky, (W @ W.T + 4 * np.eye(4),)),
    "rows": (rows, (np.linspace(-1, 1, 7), 0.3)),
    "break": (leaving, (0.7, 30)),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("slots", [1, 2, 5])
def test_gradients_of_loops(name, slots):
    f, args = LOOPS[name]
    g = mp.loop_checkpoint(f, slots=slots)
    near(g(*args), f(*args))
    near(mp.grad(g)(*args), mp.grad(f)(*args))
    near(mp.jit(mp.grad(g))(*args), mp.grad(f)(*args))


@pytest.mark.parametrize("name", ["for", "while", "nested", "stores", "rows", "break"])
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


def test_a_loop_keeps_no_row_a_step():
    assert [r.steps for r in mp.memory_report(mp.loop_checkpoint(swing, slots=3), X, 30, 1.3).residuals] == [None] * 4
    assert any(r.steps == 30 for r in mp.memory_report(swing, X, 30, 1.3).residuals)


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
