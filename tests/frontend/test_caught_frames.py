"""Exceptions that user code catches are kept until staging is over; what their frames hold is let go."""

import gc

import numpy as np

import metaphrase as mp
from metaphrase.astpasses.frontend.flow import loop_aliases


class Stop(Exception):
    pass


def counted(most):
    calls = [0]

    def height(x):
        if calls[0] >= most:
            raise Stop("too many calls")
        calls[0] += 1
        return np.sum(x * x)

    return calls, height


def shrunk(points, most):
    calls, height = counted(most)
    heights = np.array([height(p) for p in points])
    points, turns = points * 1.0, 0
    while calls[0] < most and turns < 20:
        try:
            new = points[0] * 0.5
            if height(new) < heights[-1]:
                points[-1], heights[-1] = new, height(new)
            turns += 1
        except Stop:
            pass
        order = np.argsort(heights)
        points, heights = np.take(points, order, 0), np.take(heights, order, 0)
    return points, heights, turns


def test_caught_exceptions_hold_no_frames(monkeypatch):
    """An array that such a frame held was taken for one that user code still sees."""
    held = []
    check = loop_aliases.check_aliases

    def looking(*args):
        held.extend(thing.__traceback__ is not None for thing in gc.get_objects() if isinstance(thing, Stop))
        return check(*args)

    monkeypatch.setattr("metaphrase.astpasses.frontend.flow.loops.check_aliases", looking)
    points = np.arange(6.0).reshape(3, 2) + 1
    for got, wanted in zip(mp.jit(shrunk)(points, 9), shrunk(points, 9)):
        assert np.allclose(got, wanted)
    assert held and not any(held)
