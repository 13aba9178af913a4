"""What a new user does wrong in the first hour: each message names the cause and what to write instead.

In: programs with one mistake. Out: the error's words; it points at this file, and its traceback ends here.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import random
import re
import time
import traceback

import numpy as np
import pytest
import scipy.special

import metaphrase as mp
from metaphrase import lax
from metaphrase.source import SourceError

X = np.arange(1.0, 4.0)
RNG = np.random.default_rng(0)


class Series:
    """Like a column of pandas: a class of another library that holds an array."""

    __module__ = "tables.core"
    shape = (3,)

    def __array__(self, dtype=None, copy=None):
        return X

    def __mul__(self, other):
        return X * other

    __rmul__ = __mul__


class Table(Series):
    __module__ = "tables.core"
    columns = ["a", "b"]

    def __getitem__(self, name):
        return Series()


TABLE = Table()


def two(x, y):
    return x + y


async def waits(x):
    return x


def forgets(x):
    x * 2


def mixed_result(x):
    return {"a": x, 1: x}


DRAW = "draw with metaphrase.random and a key, or draw before and pass the numbers"
CLOCK = "read the clock around the call"
MISTAKES = {
    "a clock": (lambda: mp.jit(lambda x: x * time.time())(X), "time.time gives another value", CLOCK),
    "a timer": (lambda: mp.jit(lambda x: x * time.perf_counter())(X), "time.perf_counter gives", CLOCK),
    "a date": (lambda: mp.jit(lambda x: x * datetime.datetime.now().second)(X), "datetime.now gives", CLOCK),
    "random numbers": (lambda: mp.jit(lambda x: x + np.random.rand(3))(X), "^numpy.random.rand gives", DRAW),
    "a generator": (
        lambda: mp.grad(lambda x: (x * RNG.normal(size=3)).sum())(X),
        "numpy.random.*normal gives another value",
        DRAW,
    ),
    "random of Python": (lambda: mp.jit(lambda x: x + random.random())(X), "^random.random gives", DRAW),
    "a function that draws": (lambda: mp.jit(np.random.rand)(3), "^numpy.random.rand gives", DRAW),
    "a missing argument": (
        lambda: mp.jit(two)(X),
        r"^two\(\) missing a required argument: 'y'; "
        r"its parameters are \(x, y\)$",
        None,
    ),
    "a missing keyword": (lambda: mp.jit(two)(x=X), "^two.* missing a required argument: 'y'", None),
    "an argument too many": (lambda: mp.jit(two)(X, X, X), "^two.* too many positional arguments", None),
    "a wrong keyword": (lambda: mp.jit(two)(X, z=X), r"^two\(\) ", None),
    "missing under grad": (lambda: mp.grad(two)(X), r"two\(\) missing 1 required positional argument", None),
    "missing under vmap": (lambda: mp.vmap(two)(X), r"two\(\) missing 1 required positional argument", None),
    "missing to lower": (lambda: mp.jit(two).lower(X), r"two\(\) missing 1 required positional", None),
    "a column": (lambda: mp.jit(lambda c: c * 2)(Series()), r"^args\[0\] is a Series of tables", "pass np.asarray"),
    "a column by name": (lambda: mp.jit(lambda c: c * 2)(c=TABLE["a"]), "is a Series of tables", "asarray"),
    "a column to grad": (lambda: mp.grad(lambda c: (c * c).sum())(Series()), "is a Series of tables", "np.asarray"),
    "a table": (lambda: mp.jit(lambda t: t["a"] * 2)(TABLE), "is a Table of tables", "its columns as arrays"),
    "a captured table": (
        lambda: mp.jit(lambda x: TABLE["a"] * x)(X),
        "a value is a Table of tables",
        "its columns as arrays",
    ),
    "mixed keys": (
        lambda: mp.jit(lambda d: d["a"])({"a": X, 1: X}),
        "keys of a dict are put in order, and these have none: 'a', 1",
        "keys of one type",
    ),
    "mixed keys to grad": (lambda: mp.grad(lambda d: d["a"])({"a": 1.0, 1: 2.0}), "have none: 'a', 1", "str"),
    "mixed keys in a result": (lambda: mp.jit(mixed_result)(X), "have none: 'a', 1", "keys of one type"),
    "a misspelt method": (
        lambda: mp.jit(lambda x: x.summ())(X),
        "object has no attribute 'summ'$",
        "did you mean 'sum'",
    ),
    "a method of no use": (
        lambda: mp.jit(lambda x: x.byteswap())(X),
        "byteswap.* reads memory",
        "call it on the result",
    ),
    "a function of SciPy": (
        lambda: mp.jit(lambda x: scipy.special.jv(0.5, x))(X),
        "^scipy.special.jv has no translation",
        "functions that have one",
    ),
    "an async function": (lambda: mp.jit(waits)(X), "an async function can't be translated", "write a plain"),
    "no return": (lambda: mp.grad(forgets)(2.0), "grad of forgets, which returns None", "return the loss"),
    "no return of a jitted": (lambda: mp.grad(mp.jit(forgets))(2.0), "returns None", "return the loss"),
    "no tuples": (lambda: mp.jvp(np.sin, 3.0, 1.0), "the primals are a float, not a tuple", r"jvp\(f, \(x"),
    "no tuple": (lambda: mp.jvp(np.sin, (3.0,), X), "the tangents are a ndarray, not a tuple", r"jvp\(f"),
    "a masked array": (lambda: mp.jit(np.sin)(np.ma.array(X)), "^a masked array can't be", "two arrays"),
    "a matrix": (
        lambda: mp.jit(np.sin)(np.ones(3).view(np.matrix)),
        "^an array of class matrix can't be",
        "np.asarray",
    ),
    "another type": (lambda: mp.jit(np.sin).lower(X).compile()(np.ones(5)), "was compiled for", "lower it"),
    "a sleep": (lambda: mp.jit(lambda x: time.sleep(0.1))(X), "time.sleep looks at or", "call it outside"),
    "a seed": (
        lambda: mp.jit(lambda x: np.random.seed(0))(X),
        "numpy.random.seed looks at or changes",
        "take the place of seeds",
    ),
    "a list as a batch": (
        lambda: mp.vmap(lambda x: x)([1.0, 2.0]),
        r"axis 0 of x\[0\], which is float",
        r"np.array\(numbers\)",
    ),
    "a name as a position": (
        lambda: mp.jit(two, static_argnums="y"),
        "static_argnums has 'y', which is not",
        "say static_argnames='y'",
    ),
    "arrays one by one": (
        lambda: mp.jit(lambda x: np.concatenate(x, x))(X),
        "takes the arrays as one list",
        r"np.concatenate\(\[a, b\]\)",
    ),
    "sizes one by one": (lambda: mp.jit(lambda x: np.zeros(2, 3))(X), "Cannot interpret '3'", r"\(\(2, 3\)"),
    "sizes of ones": (lambda: mp.jit(lambda x: np.ones(2, 3) * x)(X), "Cannot interpret '3'", r"\(\(2, 3\)"),
    "JSON of an array": (lambda: mp.jit(lambda x: json.dumps(x.tolist()))(X), "dumps` takes no values", ""),
    "a value for a function": (
        lambda: mp.jit(lambda x: lax.cond(True, x, x))(X),
        r"true_fun of lax.cond\(pred, true_fun.* is a ndarray",
        None,
    ),
    "another order": (
        lambda: lax.while_loop(lambda c: c < 3, 0, lambda c: c + 1),
        r"body_fun of lax.while_loop\(cond_fun, body_fun, init_val\) is a function",
        None,
    ),
    "no body": (lambda: lax.fori_loop(0, 3, 0.0, lambda i, c: c), "body_fun of lax.fori_loop", None),
    "no step": (lambda: lax.scan(0.0, lambda c, x: (c, x), X), "f of lax.scan", None),
    "Numba's name": (lambda: mp.njit, "has no 'njit': it is metaphrase.jit", None),
}


# Raised by Python code of the package that is called directly: its line shows.
OUTSIDE = {"Numba's name", "another order", "no body", "no step"}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_names_the_cause_and_the_remedy(mistake):
    program, cause, remedy = MISTAKES[mistake]
    with pytest.raises((TypeError, ValueError, AttributeError, SourceError)) as caught:
        program()
    error = caught.value
    assert re.search(cause, getattr(error, "message", str(error)))
    if remedy is not None:
        assert re.search(remedy, error.remedy) and error.span.file == __file__
    if mistake not in OUTSIDE:
        assert traceback.extract_tb(error.__traceback__)[-1].filename == __file__


def test_texts_of_numbers_are_read():
    jitted = mp.jit(lambda x: int(str(len(x))) * x + float(f"{len(x)}.5"))
    for n in (3, 4, 5):
        assert jitted(np.ones(n)).tolist() == [2 * n + 0.5] * n


def test_the_remedies_run():
    clock = time.perf_counter()
    assert mp.jit(two)(X, clock).tolist() == (X + clock).tolist()
    assert mp.jit(lambda c: c * 2)(np.asarray(Series())).tolist() == (X * 2).tolist()
    assert mp.jvp(np.sin, (3.0,), (1.0,))[1] == np.cos(3.0)
    assert asyncio.run(waits(1)) == 1
