"""How new arrays lie in memory, which says whether a reshape shares with them: as in NumPy, or refused."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError

BY_ROWS = """
x.T.copy()
np.array(x.T, order="C")
np.ascontiguousarray(x.T)
np.zeros_like(x)
np.full(x.shape, 2.0)
x[[0, 2]]
np.take(x, [0, 1], axis=1)
x.T @ x
np.outer(x[0], x[1])
np.broadcast_to(x[0], (3, 5)) * 2.0
np.broadcast_to(x[0][:, None], (5, 3)) * 2.0
x[::-1] * 2.0
x[:, ::-1] - 1.0
x[::2, ::2] * 2.0
x[:, None, :] * 2.0
np.array([[x[0, 0], 1.0], [2.0, x[1, 1]]])
np.cumsum(x, axis=0)
np.diff(x, axis=0)
np.tile(x, (2, 1))
np.hstack([x, x])
np.meshgrid(x[0], x[1])[0]
x[:, :, None] * x[0, :2]
np.einsum("ij->ij", x)
np.multiply(x.T, 2.0, order="C")
np.vectorize(lambda v: v * 2)(x)
np.gradient(x, axis=0)
x * 1.0 if x[0, 0] > 0 else x[::-1] * 2.0
(x[:1].T * 2.0)
x
""".strip().splitlines()
OTHERWISE = """
x.T * 2.0
x.T + x.T
np.copy(x.T)
np.array(x.T)
x.T.astype(np.float32)
x.copy(order="F")
np.array(x, order="F")
np.asfortranarray(x)
np.zeros((3, 5), order="F")
np.ones((len(x), 5), float, "F")
np.zeros_like(x.T)
np.full_like(x.T, 3.0)
x[:, [0, 2]]
x[:, x[0] > -3.0]
np.where(x.T > 0, x.T, 0.0)
np.clip(x.T, 0.0, 1.0)
np.stack([x[0], x[1]], axis=1).T * 1.0
np.vstack([x[0], x[1]]).T + 0.0
np.concatenate([x.T, x.T])
np.sort(x.T, axis=0)
np.swapaxes(x, 0, 1) + 0.0
twice(x.T)
x.T * 2.0 if x[0, 0] > 0 else x.T * 3.0
x.T[:, :, None] * 2.0
np.multiply(x, 2.0, order="F")
np.argwhere(x > -3.0)
np.histogram2d(x[0], x[1], bins=3)[0]
np.einsum("ij,kj->ik", np.asfortranarray(x), x)
np.asfortranarray(x) * 2.0
np.vectorize(lambda v: v * 2)(x.T)
np.gradient(x.T, axis=0)
(x * 2.0)[::-1] if x[0, 0] > 0 else x * 3.0
(x * 2.0)[:, 1:] if x[0, 0] > 0 else x[:, 1:] * 3.0
x * 3.0 if x[0, 0] > 0 else np.asfortranarray(x)
""".strip().splitlines()
USES = {
    "reshape": "g.reshape(-1)[1] = 77.0",
    "ravel": "g.ravel()[1] = 77.0",
    "kept": "w = g.ravel()\n    w[1] = 77.0",
    "read": "w = g.reshape(-1)\n    g[0] = 5.0\n    g = g + w[1]",
}


def made(lines: str):
    text = f"def twice(x):\n    return x * 2.0\n\n\ndef f(x, n):\n    {lines}\n    return g, x\n"
    name = f"<order {lines}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    scope = {"np": np}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]


def arguments() -> tuple:
    return np.arange(15.0).reshape(3, 5) - 4.0, 3


def assert_as_numpy(function) -> None:
    wanted = function(*arguments())
    with mp.config(native=False):
        got = mp.jit(function)(*arguments())
    assert all(np.array_equal(a, b) for a, b in zip(wanted, got, strict=True))


@pytest.mark.turns(4)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("array", BY_ROWS)
def test_a_reshape_of_what_lies_row_after_row_is_a_view(array, use):
    assert_as_numpy(made(f"g = {array}\n    {USES[use]}"))


@pytest.mark.turns(4)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("array", OTHERWISE)
def test_what_may_lie_otherwise_is_not_taken_for_granted(array, use):
    with pytest.raises(SourceError, match="it depends on how the array lies in memory") as caught:
        mp.jit(made(f"g = {array}\n    {USES[use]}"))(*arguments())
    assert caught.value.code == "alias"


@pytest.mark.parametrize("array", OTHERWISE)
def test_it_may_be_read_and_a_copy_of_it_may_be_changed(array):
    assert_as_numpy(made(f"g = {array}\n    g = g + g.reshape(-1)[1] + g.ravel()[2]"))
    assert_as_numpy(made(f"h = {array}\n    g = h.copy()\n    g.reshape(-1)[1] = 77.0\n    g = g + h"))


LOOP = "g = x * 1.0\n    for i in range(n):\n        {}"


@pytest.mark.parametrize(
    "body",
    [
        "g = g * 2.0\n        g.reshape(-1)[i] = 7.0",
        "g.ravel()[i] = 7.0\n        g = g - 1.0",
        "g.ravel()[i] = 7.0\n        g[i] = (x.T @ x)[i]",
        "g = g + g.ravel()[i]\n        g = (g.T * 2.0).T",
    ],
)
def test_what_a_loop_carries(body):
    assert_as_numpy(made(LOOP.format(body)))


@pytest.mark.parametrize(
    "body",
    [
        "g.ravel()[i] = 7.0\n        g = g + (np.copy(g).T * 2.0).T",
        "g.ravel()[i] = 7.0\n        g = twice(np.ones((5, 3)).T)",
    ],
)
def test_what_a_loop_carries_otherwise(body):
    """Only after the store is it known that the next array lies otherwise."""
    with pytest.raises(SourceError, match="it depends on how the array lies in memory"):
        mp.jit(made(LOOP.format(body)))(*arguments())


@pytest.mark.parametrize(
    "body",
    [
        "g.ravel()[i] = 7.0\n        g = np.array(g, order='F')",
        "g.ravel()[i] = 7.0\n        if g[1, 1] > 3.0:\n            g = (g + 1.0)[:, ::-1]",
    ],
)
def test_what_a_loop_carries_with_gaps(body):
    with pytest.raises(SourceError, match="how the array lies in memory, perhaps transposed or with"):
        mp.jit(made(LOOP.format(body)))(*arguments())


@pytest.mark.parametrize(
    "body",
    [
        "g = (g * 2.0)[::-1]",
        "g = (g * 2.0)[::-1]\n        w = g.ravel()[i]",
        "g.ravel()[i] = 7.0\n        g = (g * 2.0)[::-1]",
        "v = g[0] * 1.0\n        for k in range(n):\n            v.ravel()[i] = 7.0\n"
        "            v = (g[1] + 1.0)[::-1]",
    ],
)
def test_what_has_gaps_may_be_read(body):
    """And stored into, where the loop is unrolled and tells each array from the next."""
    assert_as_numpy(made(LOOP.format(body)))


LAYOUTS = {
    "rows": lambda x: x.copy(),
    "gaps": lambda x: np.repeat(np.repeat(x, 2, axis=1), 2, axis=0)[::2, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "columns": lambda x: np.array(x, order="F"),
}
DERIVED = [
    "x * 2.0",
    "np.copy(x)",
    "np.zeros_like(x)",
    "np.cumsum(x, axis=0)",
    "x.sum(axis=0) + x",
    "x.T.ravel()",
    "np.swapaxes(x, 0, 1).reshape(-1)",
    "x if n < 0 else x + 1.0",
    "np.where(x > 0, x, 1.0)",
]


@pytest.mark.turns(4)
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("array", DERIVED)
def test_a_store_relies_on_how_arguments_lie(array, layout, native):
    """As in NumPy, or refused when it is called with what lies otherwise."""
    function = made(f"g = {array}\n    {USES['ravel']}")
    x, n = arguments()
    given, theirs = LAYOUTS[layout](x), LAYOUTS[layout](x)
    wanted = function(theirs, n)
    with mp.config(native=native):
        jitted = mp.jit(function)
        jitted(x.copy(), n)
        try:
            got = jitted(given, n)
        except SourceError as error:
            assert error.code == "layout" and layout in ("gaps", "columns", "backwards"), error
            assert np.array_equal(given, x), "an argument was changed"
        else:
            assert all(np.array_equal(a, b) for a, b in zip(wanted, got, strict=True))
            assert np.array_equal(given, theirs)


@pytest.mark.parametrize("transformed", [mp.grad, lambda f: mp.jit(mp.grad(f)), mp.vmap])
def test_under_transformations_too(transformed):
    def total(x):
        g = x * 2.0
        g.ravel()[1] = 77.0
        return g.sum()

    x = np.ones((2, 3, 5))
    transformed(total)(x)
    with pytest.raises(SourceError, match="does not lie in memory row after row"):
        transformed(total)(np.ones((5, 3, 2)).T)


def test_reading_a_reshape_relies_on_nothing():
    function = made("g = (x * 2.0).ravel()[::2].sum() + x.T.reshape(-1)[1]")
    x, n = arguments()
    for layout in LAYOUTS.values():
        assert mp.jit(function)(layout(x), n)[0] == function(x, n)[0]


def test_flags_say_no_where_it_is_not_known():
    flags = mp.jit(lambda x: (x.flags.c_contiguous, x.T.flags.c_contiguous, (x.T * 2.0).flags.c_contiguous))
    assert flags(np.ones((3, 5))) == (True, False, False)
