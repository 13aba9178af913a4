"""What transformed functions are to Python: pickled by name, copied as themselves, shared when made again."""

from __future__ import annotations

import copy
import functools
import gc
import multiprocessing
import pickle
import weakref

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api import staging


@mp.jit
def jitted(x, y=2.0):
    return x * y


def plain(x):
    return x * x + 1.0


def summed_sines(x):
    return np.sum(np.sin(x))


named = mp.grad(plain)
batched = mp.jit(mp.vmap(plain, in_axes=0))


@mp.grad
def decorated(x):
    return np.sin(x)


class Model:
    @staticmethod
    @mp.jit
    def double(x):
        return 2 * x


@pytest.mark.parametrize("function", [jitted, decorated, Model.double], ids=repr)
def test_what_a_module_has_under_its_name_is_pickled_by_name(function):
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    "function, argument",
    [
        (named, 3.0),
        (batched, np.arange(3.0)),
        (mp.value_and_grad(plain), 2.0),
        (mp.hessian(plain), 2.0),
        (mp.jit(plain, static_argnums=0), 2.0),
        (functools.partial(jitted, y=5.0), 2.0),
    ],
    ids=str,
)
def test_others_are_made_again(function, argument):
    again = pickle.loads(pickle.dumps(function))
    assert repr(again) == repr(function)
    np.testing.assert_array_equal(again(argument), function(argument))


def test_static_arguments_stay_static():
    again = pickle.loads(pickle.dumps(mp.jit(plain, static_argnames="x")))
    assert set(again.jitted.static) == {0, "x"}


def test_a_lambda_is_no_more_picklable_than_in_python():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(mp.grad(lambda x: x))


@pytest.mark.parametrize("function", [jitted, named, batched], ids=repr)
def test_copies_are_the_function_itself(function):
    assert copy.copy(function) is function
    assert copy.deepcopy({"f": function})["f"] is function


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_are_given_jitted_functions(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(jitted, [1.0, 2.0]) == [2.0, 4.0]


def test_the_same_transformation_is_the_same_function():
    assert mp.grad(plain) is mp.grad(plain)
    assert mp.grad(plain, [0]) is mp.grad(plain, [0])
    assert mp.vmap(plain, {"a": 0}) is mp.vmap(plain, {"a": 0})
    assert mp.grad(jitted) is mp.grad(jitted)
    assert mp.hessian(plain) is mp.hessian(plain)


def test_other_options_functions_and_settings_are_not():
    assert mp.grad(plain) is not mp.grad(plain, argnums=(0,))
    assert mp.grad(plain) is not mp.value_and_grad(plain)
    assert mp.vmap(plain, 0) is not mp.vmap(plain, None, axis_size=3)
    with mp.config(check=False):
        other = mp.grad(plain)
    assert other is not mp.grad(plain)


def test_a_function_that_wraps_another_has_its_own():
    first = mp.grad(plain)

    @functools.wraps(plain)
    def wrapper(x):
        return 10.0 * plain(x)

    assert mp.grad(wrapper) is not first
    assert mp.grad(wrapper)(3.0) == 60.0 and first(3.0) == 6.0
    assert mp.grad(plain) is first


def test_code_changed_in_place_is_seen():
    def f(x):
        return x * x

    def g(x):
        return x * x * x

    assert mp.grad(f)(2.0) == 4.0
    f.__code__ = g.__code__
    assert mp.grad(f)(2.0) == 12.0


def test_calls_in_a_loop_translate_once(monkeypatch):
    staged = []

    def counted(fun, structure, specs, stage=staging.stage):
        staged.append(fun)
        return stage(fun, structure, specs)

    monkeypatch.setattr(staging, "stage", counted)
    x = np.ones(3)
    for scale in (1.0, 2.0, 3.0):
        out, pullback = mp.vjp(summed_sines, scale * x)
        assert out == np.sum(np.sin(scale * x))
        np.testing.assert_array_equal(pullback(1.0)[0], np.cos(scale * x))
    assert staged == [summed_sines]


def test_a_function_and_what_was_made_of_it_are_freed_together():
    def local(x):
        return x * x

    kept = weakref.ref(mp.grad(local))
    assert mp.grad(local)(1.0) == 2.0
    del local
    gc.collect()
    assert kept() is None
