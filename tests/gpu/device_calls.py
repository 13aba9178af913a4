"""Calls of jitted functions on the emulated device, held against those on the CPU.

In: functions, arrays of the host. Out: an AssertionError where the device gives something else. Example:

    both(lambda x: x * 2, np.arange(3.0))
"""

from __future__ import annotations

import numpy as np
import pytest
import stand_in as cupy

import metaphrase as mp


def put(*arrays):
    return tuple(cupy.asarray(np.asarray(a)) for a in arrays)


def check(got, want, rtol=1e-13, atol=0.0):
    """Arrays of the device with the values, types and shapes of the CPU's; the rest is equal."""
    leaves, structure = mp.tree.flatten(got)
    wanted, same = mp.tree.flatten(want)
    assert structure == same
    for g, w in zip(leaves, wanted):
        if isinstance(w, (np.ndarray, np.generic, float)):
            assert type(g) is cupy.ndarray and g.shape == np.shape(w)
            assert g.dtype == np.asarray(w).dtype
            np.testing.assert_allclose(g.get(), w, rtol=rtol, atol=atol)
        else:
            assert type(g) is type(w) and g == w


def both(f, *arrays, **options):
    """The results on the device are those of the CPU."""
    check(mp.jit(f, **options)(*put(*arrays)), mp.jit(f)(*arrays))


def failure(f, *args):
    with pytest.raises(Exception) as caught:
        f(*args)
    trace = caught.value.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    assert caught.value.__context__ is None
    return type(caught.value), str(caught.value), trace.tb_frame.f_code.co_filename, trace.tb_lineno
