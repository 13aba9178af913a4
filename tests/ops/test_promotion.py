"""NumPy's promotion and broadcasting at the edge of the library, and the errors it gives."""

import itertools

import numpy as np
import pytest

from metaphrase.core.build import Builder, literal
from metaphrase.core.dims import Sym
from metaphrase.core.evaluate import evaluate
from metaphrase.core.types import Array, CoreTypeError, Size, bool_, c64, c128, f32, f64, i32, i64, u32
from metaphrase.ops.arithmetic import add, div, max_, neg
from metaphrase.ops.compare import and_, lt
from metaphrase.ops.complex_numbers import real
from metaphrase.ops.elementary import floor, sin
from metaphrase.ops.library import LIBRARY
from metaphrase.ops.library_search import take
from metaphrase.ops.library_shapes import reshape
from metaphrase.ops.promotion import Weak, axis_of, broadcast_dims, dim_of, lift, promote, result_type, ufunc
from metaphrase.ops.special import erf
from metaphrase.source import DTypeError, ShapeError, UnsupportedError

N, M = Sym("n"), Sym("m")
DTYPES = [np.dtype(t) for t in ("f8", "f4", "i8", "i4", "u4", "u1", "?", "c16", "c8")]


@pytest.fixture
def builder():
    with Builder("test") as made:
        yield made


def variable(builder, dtype=f64, *dims):
    return builder.parameter("x", Array(np.dtype(dtype), dims))


@pytest.mark.parametrize("function", [np.add, np.true_divide, np.floor_divide, np.power, np.less, np.maximum])
def test_dtypes_are_those_of_numpy(builder, function):
    for a, b in itertools.product(DTYPES, [*DTYPES, 2, 2.5, 1j]):
        x, y = variable(builder, a), variable(builder, b) if isinstance(b, np.dtype) else b
        try:
            want = function(np.ones((), a)[()], np.ones((), b)[()] if isinstance(b, np.dtype) else b).dtype
        except TypeError:
            with pytest.raises(DTypeError):
                ufunc(function, x, y)
            continue
        if np.dtype(want) == np.float16 or want == np.int8:
            continue
        try:
            assert ufunc(function, x, y).type.dtype == want, (function, a, b)
        except CoreTypeError as error:  # complex numbers are not ordered, bools have no quotient
            assert any(word in str(error) for word in ("complex", "order", "real", "bool"))


def test_weak_numbers_take_the_other_dtype(builder):
    x = variable(builder, f32, 3)
    step = Weak(builder.parameter("step", Array(f64)), float)
    assert [v.type.dtype for v in promote(x, 2.5)] == [f32, f32]
    assert ufunc(np.add, x, step).type == Array(f32, (3,))
    assert result_type(x, np.float64(1.0)) == f64
    assert result_type(variable(builder, i32), 1.0) == f64
    assert lift(step) is step.atom


def test_a_weak_number_that_does_not_fit_is_refused(builder):
    with pytest.raises(OverflowError):
        ufunc(np.add, variable(builder, np.uint8), 300)


def test_broadcasting_of_known_sizes():
    assert broadcast_dims((3, 1), (4,)) == (3, 4)
    assert broadcast_dims((N, 1), (1, M), ()) == (N, M)
    with pytest.raises(ShapeError, match=r"\(3,\) and \(4,\)"):
        broadcast_dims((3,), (4,))
    with pytest.raises(ShapeError):
        broadcast_dims((N,), (N + 1,))


def test_sizes_that_may_agree_are_checked_at_run_time():
    with Builder("add") as builder:
        x, y = builder.parameter("x", Array(f64, (N,))), builder.parameter("y", Array(f64, (M,)))
        function = builder.function([ufunc(np.add, x, y)])
    assert function.results[0].type.dims == (N,)
    np.testing.assert_array_equal(evaluate(function, np.ones(3), np.ones(3))[0], np.full(3, 2.0))
    with pytest.raises(ValueError, match="4 and 3"):
        evaluate(function, np.ones(3), np.ones(4))


def test_an_index_out_of_range_raises_at_run_time():
    with Builder("pick") as builder:
        x, i = builder.parameter("x", Array(f64, (N,))), builder.parameter("i", Array(i64, (2,)))
        function = builder.function([take(x, i)])
    np.testing.assert_array_equal(evaluate(function, np.arange(4.0), np.array([-1, 1]))[0], [3.0, 1.0])
    for bad in (4, -5):
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for axis 0 with size 4"):
            evaluate(function, np.arange(4.0), np.array([0, bad]))


def test_a_known_index_out_of_range_is_refused(builder):
    with pytest.raises(ShapeError, match="index 3 is out of bounds for axis 0 with size 3"):
        take(variable(builder, f64, 3), np.array([0, 3]))


def test_sizes(builder):
    assert dim_of(3) == 3 and dim_of(np.int32(3)) == 3 and dim_of(N + 1) == N + 1
    assert dim_of(literal(4)) == 4
    assert dim_of(builder.parameter("n", Size(N))) == N
    bound = dim_of(builder.parameter("count", Array(i64)))
    assert bound.is_sym and builder.lets[-1].primitive.name == "as_dim"
    for bad in (2.0, True, "three", builder.parameter("x", Array(f64))):
        with pytest.raises(DTypeError):
            dim_of(bad)


def test_axes():
    assert axis_of(-1, 3) == 2
    with pytest.raises(ShapeError, match="axis 3 is out of bounds for an array of 3 dimensions"):
        axis_of(3, 3)
    with pytest.raises(DTypeError):
        axis_of(1.0, 3)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: reshape(x, (5, 2)), ShapeError),
        (lambda x: LIBRARY[np.concatenate]([x, LIBRARY[np.zeros]((2, 3))], axis=1), ShapeError),
        (lambda x: LIBRARY[np.stack]([x, LIBRARY[np.zeros](4)]), ShapeError),
        (lambda x: LIBRARY[np.squeeze](x, 0), ShapeError),
        (lambda x: LIBRARY[np.matmul](x, x), ShapeError),
        (lambda x: LIBRARY[np.einsum]("ij,jk", x, x), ShapeError),
        (lambda x: LIBRARY[np.einsum]("ij->ik", x), ShapeError),
        (lambda x: LIBRARY[np.sum](x, axis=2), ShapeError),
        (lambda x: LIBRARY[np.max](LIBRARY[np.zeros]((0, 2))), ShapeError),
        (lambda x: LIBRARY[np.add](x, x, where=x), UnsupportedError),
        (lambda x: LIBRARY[np.invert](x), DTypeError),
        (lambda x: LIBRARY[np.reshape](x, 7), ShapeError),
    ],
)
def test_refusals(builder, call, error):
    with pytest.raises(error):
        call(variable(builder, f64, 3, 4))


@pytest.mark.parametrize(
    "primitive, types",
    [
        (neg, [Array(bool_)]),
        (add, [Array(f64), Array(f32)]),
        (add, [Array(f64, (3,)), Array(f64, (4,))]),
        (div, [Array(i64), Array(i64)]),
        (sin, [Array(i64)]),
        (floor, [Array(c128)]),
        (max_, [Array(c64), Array(c64)]),
        (lt, [Array(c128), Array(c128)]),
        (and_, [Array(f64), Array(f64)]),
        (real, [Array(f64)]),
        (erf, [Array(np.dtype("float16"))]),
    ],
)
def test_type_rules_refuse(primitive, types):
    with pytest.raises(CoreTypeError):
        primitive.type(*types)


def test_core_types_print_in_the_message():
    with pytest.raises(CoreTypeError, match=r"f64\[n\], u32\[n\]"):
        add.type(Array(f64, (N,)), Array(u32, (N,)))
