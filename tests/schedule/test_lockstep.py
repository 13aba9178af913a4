"""Lanes in lockstep give what each lane gives alone: whiles, their derivatives, branches, limits, edges."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check
from programs import PROGRAMS, F, I, one

from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.nest import For, Store, walk
from metaphrase.astpasses.schedule.target import CPU, ONE_THREAD
from metaphrase.astpasses.transforms.batch import batch
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.build import literal, trace
from metaphrase.core.dims import Sym
from metaphrase.core.ir import Function, Roles
from metaphrase.core.types import i64
from metaphrase.ops.arithmetic import add, mul, neg, sub
from metaphrase.ops.compare import and_, gt, lt
from metaphrase.ops.elementary import sin
from metaphrase.ops.indexing import gather
from metaphrase.ops.regions import cond, loop

LANES = CPU.lanes
random = np.random.default_rng(3)
COUNTS = [0, 1, LANES, 2 * LANES + 5]


def lanes_of(function: Function, marks: list[bool]) -> Function:
    return optimize(batch(function, Sym("lanes"), marks)[0], before_transform=False)


def in_lanes(function: Function) -> bool:
    body = schedule(function, ONE_THREAD).entry.body
    return any(isinstance(s, Store) and s.buf.dims == (LANES,) for s in walk(body))


def escape() -> Function:
    """Two carries, a counter with a limit, a branch behind the loop."""

    def going(i, re, im, x, y):
        return and_(lt(add(mul(x, x), mul(y, y)), one(4.0)), lt(i, literal(50, i64)))

    def step(i, re, im, x, y):
        xy = mul(x, y)
        return add(sub(mul(x, x), mul(y, y)), re), add(add(xy, xy), im)

    def whole(re, im):
        params = [("i", I), ("re", F), ("im", F), ("x", F), ("y", F)]
        trips, x, y = loop(
            re,
            im,
            one(0.0),
            one(0.0),
            body=trace("step", step, params),
            cond=trace("going", going, params),
            length=None,
            roles=Roles(2, 2, 0, 0),
            size="T",
        )
        far = trace("far", lambda x, y: sin(x), [("x", F), ("y", F)])
        near = trace("near", lambda x, y: neg(y), [("x", F), ("y", F)])
        return trips, cond(gt(x, one(0.0)), x, y, branches=(near, far))[0]

    return trace("escape", whole, [("re", F), ("im", F)])


def branching() -> Function:
    """A branch inside the while, on a carried scalar."""

    def step(i, x):
        half = trace("half", lambda x: mul(x, one(0.5)), [("x", F)])
        more = trace("more", lambda x: sub(mul(x, one(0.3)), one(0.01)), [("x", F)])
        return cond(gt(x, one(1.0)), x, branches=(more, half))

    def whole(x):
        params = [("i", I), ("x", F)]
        going = trace("going", lambda i, x: gt(mul(x, x), one(0.01)), params)
        return loop(x, body=trace("step", step, params), cond=going, length=None, roles=Roles(0, 1, 0, 0), size="T")

    return trace("branching", whole, [("x", F)])


@pytest.mark.parametrize("count", COUNTS)
def test_kepler(count):
    function = lanes_of(PROGRAMS["kepler"][0], [True, True])
    assert in_lanes(function)
    check(function, random.uniform(0.0, 0.9, count), random.uniform(0.0, 3.0, count), ulps=64)


@pytest.mark.parametrize("count", COUNTS)
def test_escape(count):
    function = lanes_of(escape(), [True, True])
    assert in_lanes(function)
    check(function, random.uniform(-2, 1, count), random.uniform(-1, 1, count), ulps=2**30)


@pytest.mark.parametrize("count", COUNTS)
def test_branching(count):
    function = lanes_of(branching(), [True])
    assert in_lanes(function)
    check(function, random.uniform(-9, 9, count), ulps=64)


@pytest.mark.parametrize("count", COUNTS)
def test_a_derivative_goes_back_as_far_as_each_lane_got(count):
    backward = optimize(vjp(PROGRAMS["kepler"][0], [True, True]), before_transform=False)
    function = lanes_of(backward, [True, True, True])
    assert in_lanes(function)
    arrays = (random.uniform(0.0, 0.9, count), random.uniform(0.0, 3.0, count), random.normal(size=count))
    check(function, *arrays, ulps=2**12)


def test_lanes_that_never_start_keep_their_values():
    function = lanes_of(branching(), [True])
    check(function, np.where(np.arange(80) % 3 == 0, np.nan, 0.001))


def test_what_does_not_fit_runs_lane_by_lane():
    function = lanes_of(PROGRAMS["collatz"][0], [True])
    assert not in_lanes(function)
    check(function, np.arange(1, 70))


def test_a_gathered_index_does_not_fit():
    def whole(k, x):
        going = trace("going", lambda i, k, x: lt(x, one(3.0)), [("i", I), ("k", I), ("x", F)])
        step = trace("step", lambda i, k, x: add(x, one()), [("i", I), ("k", I), ("x", F)])
        return loop(k, x, body=step, cond=going, length=None, roles=Roles(1, 1, 0, 0), size="T")[1]

    function = lanes_of(trace("counting", whole, [("k", I), ("x", F)]), [True, True])
    check(function, np.arange(70), random.normal(size=70))
    assert any(isinstance(s, For) for s in walk(schedule(function, ONE_THREAD).entry.body)) and gather is not None
