"""What a package refuses is the error that the function itself would raise."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from plans.project import module_of

from metaphrase.aot import compile_module

SOURCE = """
import numpy as np
import metaphrase as mp


@mp.export("f64[n], f64[n]")
def product(x, w):
    return np.dot(x, w)


@mp.export("f64[n, 3], f64[3]")
def times(x, w):
    return x @ w


@mp.export("f64[n], i64")
def store(x, k):
    x[k] = 1.0


@mp.export("{'a': f64[n], 'b': f64}")
def scaled(p):
    return p["a"] * p["b"]


@mp.export("f64[n, n]")
def determinant(a):
    return np.linalg.det(a)


@mp.export("bool, int, f32, c128")
def numbers(b, i, x, z):
    return b, i, x, z
"""
ONES = np.ones(3)
FROZEN = np.ones(3)
FROZEN.flags.writeable = False


@pytest.fixture(scope="module", params=["native", "numpy"])
def package(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("refusing")
    name = f"refusing_{request.param}"
    (place / f"{name}.py").write_text(SOURCE)
    compile_module(module_of(place / f"{name}.py"), place / "out", to=request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(place / "out"))
        yield importlib.import_module(name)


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("function", "call", "error", "message"),
    [
        ("product", (ONES, np.ones(4)), ValueError, r"w is f64\[4\], not f64\[n\] with n = 3"),
        ("product", (ONES, None), TypeError, r"w is None, not f64\[n\]"),
        ("product", (np.ones((3, 3)), ONES), TypeError, r"x is f64\[3, 3\], not f64\[n\]"),
        ("product", (ONES.astype("f4"), np.ones(4)), TypeError, r"x is f32\[3\], not f64\[n\]"),
        ("times", (np.ones((3, 3)), np.ones(4)), ValueError, r"w is f64\[4\], not f64\[3\]"),
        ("times", (np.ones((3, 2)), ONES), ValueError, r"x is f64\[3, 2\], not f64\[n, 3\]"),
        (
            "store",
            (FROZEN, 0),
            ValueError,
            r"for \(f64\[n\], i64\), .*: x is read-only, not an array that may be stored into",
        ),
        ("store", (ONES.copy(), 7), IndexError, "index 7 is out of bounds for axis 0 with size 3"),
        ("scaled", ({"a": ONES},), KeyError, r"p is \{'a': f64\[3\]\}, not \{'a': f64\[n\], 'b': f64\}"),
        ("scaled", ({"a": ONES, "b": 2.0, "c": 1},), TypeError, "p is "),
        ("store", (ONES.copy(), True), TypeError, "k is True, not i64"),
        ("store", (ONES.copy(), np.True_), TypeError, "k is bool, not i64"),
        ("store", (ONES.copy(), np.array(False)), TypeError, r"k is bool, not i64"),
        ("store", (ONES.copy(), 1.0), TypeError, "k is 1.0, not i64"),
        ("store", (ONES.copy(), 2**63), TypeError, "k is 9223372036854775808, not i64"),
        ("scaled", ({"a": ONES, "b": True},), TypeError, r"p\['b'\] is True, not f64"),
        ("scaled", ({"a": ONES, "b": 1j},), TypeError, r"p\['b'\] is 1j, not f64"),
        ("determinant", (np.ones((3, 2)),), ValueError, r"a is f64\[3, 2\], not f64\[n, n\] with n = 3$"),
        ("numbers", (1, 1, 1.0, 1j), TypeError, "b is 1, not bool"),
        ("numbers", (True, True, 1.0, 1j), TypeError, "i is True, not int"),
        ("numbers", (True, 2**63, 1.0, 1j), TypeError, "i is 9223372036854775808, not int"),
        ("numbers", (True, 1.0, 1.0, 1j), TypeError, "i is 1.0, not int"),
        ("numbers", (True, 1, np.float64(1.0), 1j), TypeError, "x is f64, not f32"),
        ("numbers", (True, 1, False, 1j), TypeError, "x is False, not f32"),
        ("numbers", (True, 1, 1.0, True), TypeError, "z is True, not c128"),
    ],
)
def test_the_same_error(package, function, call, error, message):
    with pytest.raises(error, match=message):
        getattr(package, function)(*call)


@pytest.mark.turns(3)
def test_numbers_that_fit(package):
    want = (np.True_, 2, np.float32(1.0), np.complex128(1.0))
    for call in (
        (True, 2, 1.0, 1.0),
        (np.True_, np.int64(2), 1, 1),
        (np.array(True), np.uint8(2), np.float16(1), 1j**4),
    ):
        got = package.numbers(*call)
        assert got == want and [*map(type, got)] == [*map(type, want)]


def test_calls_that_fit(package):
    x = ONES.copy()
    package.store(x, 1)
    assert package.product(ONES, 2 * ONES) == 6.0 and x.tolist() == [1.0, 1.0, 1.0]
    assert package.scaled({"a": ONES, "b": 2.0}).tolist() == [2.0, 2.0, 2.0]
