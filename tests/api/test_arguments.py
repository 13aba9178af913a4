"""Arguments taken apart: forms of leaves, keys, and sizes that become symbols."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api.arguments import Form, generalise, size_name, spec_of, take_apart
from metaphrase.api.types import ArgumentsError, ShapeDtypeStruct, parse_arguments, parse_call, parse_call_of
from metaphrase.core.dims import Sym
from metaphrase.source import SourceError


@pytest.mark.parametrize(
    "leaf, form, text",
    [
        (np.ones((2, 3), np.float32), Form.ARRAY, "f32[2, 3]"),
        (np.array(1), Form.ARRAY, "i64"),
        (np.float64(1), Form.SCALAR, "f64"),
        (np.bool_(True), Form.SCALAR, "bool"),
        (1.5, Form.NUMBER, "float"),
        (3, Form.NUMBER, "int"),
        (1j, Form.NUMBER, "complex"),
        (True, Form.STATIC, "True"),
        ("relu", Form.STATIC, "'relu'"),
        (ShapeDtypeStruct((Sym("n"),), float), Form.ARRAY, "f64[n]"),
        (np.array(["a"]), Form.STATIC, "array(['a'], dtype='<U1')"),
    ],
)
def test_forms(leaf, form, text):
    assert spec_of(leaf).form is form and spec_of(leaf).text() == text


def test_keys_tell_calls_apart_by_structure_dtype_rank_and_static_values():
    def key(*args, **kwargs):
        return take_apart(args, kwargs).key

    same = key(np.ones(3), {"a": 1.0})
    assert same == key(np.zeros(5), {"a": 7.5})
    for other in (
        key(np.ones(3), {"b": 1.0}),
        key(np.ones((3, 1)), {"a": 1.0}),
        key(np.ones(3, np.float32), {"a": 1.0}),
        key(np.ones(3), {"a": 1}),
        key(np.ones(3), {"a": np.float64(1)}),
        key(np.ones(3), a=1.0),
    ):
        assert other != same
    assert key(True) != key(False) and key(True) == key(True) and key(1) == key(2)


def test_static_arguments_stay_whole():
    call = take_apart((np.ones(2), [1, 2]), {"mode": {"a": 1}}, static=(1, "mode"))
    assert [s.form for s in call.specs] == [Form.ARRAY, Form.STATIC, Form.STATIC]
    assert call.leaves[1:] == [[1, 2], {"a": 1}]


def test_sizes_that_change_become_symbols():
    n, m = Sym("n"), Sym("m")
    assert generalise([(3, 4), (3,)], [(5, 4), (5,)]) == ((n, 4), (n,))
    assert generalise([(3, 4), (3,)], [(5, 9), (3,)]) == ((n, m), (3,))
    assert generalise([(n,), (n,)], [(5,), (7,)]) == ((n,), (m,))
    assert generalise([(n,), (n,)], [(7,), (7,)]) == ((n,), (n,))
    assert generalise([(n, n)], [(0, 4)]) == ((0, n),)
    assert generalise([(1,)], [(4,)]) == ((4,),)
    assert size_name(0) == "n" and size_name(10) == "n1" and size_name(0, {"n"}) == "m"


def test_sizes_that_stay_so_far_apart_are_one_symbol():
    n, m, p = Sym("n"), Sym("m"), Sym("p")
    assert generalise([(12, 7), (8, 5)], [(20, 6), (16, 4)]) == ((n + 4, m + 2), (n, m))
    assert generalise([(3, 4, 5)], [(5, 6, 7)]) == ((n, n + 1, n + 2),)
    assert generalise([(30,), (10,)], [(31,), (11,)]) == ((n,), (m,))  # too far apart
    assert generalise([(1,), (3,), (4,)], [(3,), (5,), (6,)]) == ((3,), (n,), (n + 1,))
    assert generalise([(n + 2,), (n,), (7,)], [(8,), (6,), (9,)]) == ((n + 2,), (n,), (m,))
    assert generalise([(n + 2,), (n,), (7,)], [(9,), (6,), (9,)]) == ((n,), (m,), (p,))


def test_text_of_arguments():
    array, tree, flag = parse_arguments("f64[n, 3], {'w': f32, 'b': [i64[2*n + 1]]}, True")
    assert array == ShapeDtypeStruct((Sym("n"), 3), np.float64) and flag is True
    assert tree == {"w": ShapeDtypeStruct((), np.float32), "b": [ShapeDtypeStruct((2 * Sym("n") + 1,), np.int64)]}
    assert parse_arguments("") == ()


def test_text_may_name_arguments():
    number = ShapeDtypeStruct((), np.float64)
    assert parse_call("f64, k=f64") == ((number,), {"k": number}) and parse_call("f64, f64") == ((number, number), {})
    signature = inspect.signature(lambda x, *, k, m=2.0: x)
    assert parse_call_of(signature, "f64, f64") == ((number,), {"k": number})
    assert parse_call_of(signature, "f64, f64, k=3") == ((number,), {"k": 3, "m": number})
    assert mp.source(lambda x, *, k: x * k, "f64, k=f64").endswith("return x * k\n")
    with pytest.raises(ArgumentsError, match="g64 is not a dtype") as caught:
        parse_call("f64, k=g64")
    assert str(caught.value).splitlines()[-1] == "  " + " " * 7 + "^"


@pytest.mark.parametrize(
    "text, message, column",
    [
        ("f64, g64", "g64 is not a dtype", 5),
        ("f64[n", "do not read as Python", 6),
        ("f64[-1]", "a dim is a size", 4),
        ("f64, np.sin", "expected a type like", 5),
    ],
)
def test_text_that_is_wrong(text, message, column):
    with pytest.raises(ArgumentsError) as caught:
        parse_arguments(text)
    first, shown, caret = str(caught.value).splitlines()
    assert message in first and shown.strip() == text and caret == "  " + " " * column + "^"


def test_a_size_that_no_array_tells_is_refused_by_name():
    with pytest.raises(SourceError, match="don't tell the size m, which is in m\\*n"):
        mp.source(lambda x, y: x.sum() + len(y), "f64[n*m], f64[n]")
