"""Kernels that NumPy users write in place run in place: no array copy inside a loop, and time linear in the
stores."""

from __future__ import annotations

import numpy as np
import pytest
from corpus.kernels import cholesky_in_place, lu
from differential import check
from programs import PROGRAMS, F, I, V, n, one

from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.explain import copies_in_loops
from metaphrase.astpasses.schedule.nest import Swap, walk
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.build import trace
from metaphrase.core.ir import Roles
from metaphrase.ops.arithmetic import add
from metaphrase.ops.indexing import slice_update
from metaphrase.ops.regions import loop
from metaphrase.ops.shape import broadcast, reshape


def cholesky(A):
    return cholesky_in_place(A.copy())


def jacobi(steps, A, B):
    A, B = A.copy(), B.copy()
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])
    return A, B


def matrix(size):
    a = np.random.default_rng(0).random((size, size))
    return a @ a.T + size * np.eye(size)


KERNELS = [(cholesky, (matrix(40),)), (lu, (matrix(40),)), (jacobi, (np.int64(4), matrix(9), matrix(9)))]


@pytest.mark.parametrize("kernel, arrays", KERNELS, ids=lambda k: getattr(k, "__name__", ""))
def test_numpy_kernels_run_in_place(kernel, arrays):
    function = optimize(stage(kernel, arrays, {}).function, before_transform=False)
    assert copies_in_loops(schedule(function)) == []
    check(function, *arrays, ulps=2**10)


# jacobi on a single array reads what it has yet to overwrite: NumPy makes a temporary too.
@pytest.mark.parametrize("name", ["squares_in_place", "exchange", "update_in_branch", "lu", "accumulate_over_rows"])
def test_programs_have_no_copies_in_loops(name):
    assert copies_in_loops(schedule(PROGRAMS[name][0])) == []


def test_arrays_that_change_places_are_swapped():
    body = schedule(PROGRAMS["exchange"][0]).entry.body
    assert sum(isinstance(s, Swap) for s in walk(body)) == 1


def test_n_stores_and_their_gradient_copy_nothing():
    function = PROGRAMS["squares_in_place"][0]
    backward = optimize(vjp(function, [True]), before_transform=False)
    assert copies_in_loops(schedule(backward)) == []


def test_a_copy_in_a_loop_is_reported():
    """The old array is asked for after the update: it has to be copied, once an iteration."""

    def step(i, x, y):
        stored = slice_update(y, reshape(one(), shape=(1,)), i, step=(1,))
        return add(stored, y), stored

    body = trace("step", step, [("i", I), ("x", V), ("y", V)])
    function = trace(
        "both", lambda x, y: loop(x, y, body=body, cond=None, length=n, roles=Roles(0, 2, 0, 0)), [("x", V), ("y", V)]
    )
    assert len(copies_in_loops(schedule(function))) == 1
    check(function, np.ones(3), np.arange(3.0))
    assert F.dims == () and broadcast is not None
