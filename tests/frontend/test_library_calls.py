"""User code that calls what only the library of ops knows: staged, it computes what NumPy computes."""

import numpy as np
import pytest
import scipy.special

import metaphrase as mp
from metaphrase.astpasses.frontend.calls.library_calls import library_handler
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.evaluate import evaluate
from metaphrase.source import ShapeError, UnsupportedError


def kron_of_norms(x, y):
    return np.kron(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=0))


def updates(x, y):
    filled = np.concatenate([x, y])
    np.fill_diagonal(filled, 7.0)
    np.put_along_axis(filled, np.array([[0], [1], [2], [3], [0], [1]]), -1.0, 1)
    return filled


def scattered(x, y):
    total = np.zeros(3)
    np.put(total, [0, 2], np.median(x))
    return total + np.diff(y, axis=1)[:, 0]


def several(x, y):
    left, right = np.array_split(x, 2, axis=1)
    whole, rest = np.divmod(np.cumsum(left), 2)
    return np.interp(right, np.linspace(-3.0, 3.0, 7), np.hanning(7)), whole, rest


def interpolated(x, y):
    counts, edges = np.histogram(x, bins=4)
    return counts, np.trapezoid(edges), np.unwrap(y)


CASES = [kron_of_norms, updates, scattered, several, interpolated]
X, Y = np.cos(np.arange(12.0)).reshape(3, 4), np.sin(np.arange(12.0)).reshape(3, 4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_staged_calls(case):
    staged = stage(case, (X, Y))
    used = [a for a, p in zip((X, Y), "xy") if any(v.name == p for v in staged.function.params)]
    got = evaluate(staged.function, *used)
    want = case(X, Y)
    want = want if isinstance(want, tuple) else (want,)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)
        assert np.asarray(g).dtype == w.dtype


def test_an_error_of_the_library_names_the_users_line():
    def wrong(x):
        return np.kron(x, np.linalg.norm(x, axis=5))

    with pytest.raises(ShapeError, match="axis 5 is out of bounds") as caught:
        stage(wrong, (X,))
    assert caught.value.span.file == __file__ and "axis=5" in str(caught.value)


def test_functions_that_the_library_does_not_know_have_no_handler():
    assert library_handler(np.load) is None


WHOLE = np.arange(12).reshape(3, 4)


@pytest.mark.parametrize(
    ("case", "given"),
    [
        (lambda x: np.add(x, 0.5, out=x), WHOLE),
        (lambda x: np.sqrt(x, out=np.zeros((3, 4), int)), X),
        (lambda x: np.multiply(x, 2, where=x, out=np.zeros_like(x)), X > 0),
        (lambda x: np.matmul(x, x.T, out=np.zeros((3, 3))), X + 1j),
        (lambda x: np.clip(x, 0.5, 2.5, out=x), WHOLE),
        (lambda x: np.concatenate([x, x], out=np.zeros((6, 4))), X + 1j),
    ],
)
def test_out_takes_no_results_that_lose_their_kind(case, given):
    """As `ints += floats` is refused, so is `out=ints`."""
    with pytest.raises(TypeError, match="Cannot cast"):
        case(given.copy())
    with mp.config(native=False), pytest.raises(TypeError, match="Cannot cast output of 'out='"):
        mp.jit(case)(given.copy())


def test_astype_takes_no_conversions_that_its_casting_forbids():
    with mp.config(native=False):
        assert mp.jit(lambda x: x.astype(np.float32, casting="same_kind"))(X).dtype == np.float32
        with pytest.raises(TypeError, match="according to the rule 'safe'"):
            mp.jit(lambda x: x.astype(int, casting="safe"))(X)


def test_trim_zeros_takes_capital_letters():
    def trimmed(x):
        return np.trim_zeros(x, "FB"), np.trim_zeros(x, "f")

    with mp.config(native=False):
        for got, want in zip(mp.jit(trimmed)(WHOLE[0]), trimmed(WHOLE[0]), strict=True):
            np.testing.assert_array_equal(got, want)


def test_out_takes_what_numpy_puts_there():
    def stored(x):
        whole, narrow = np.zeros((3, 4), int), np.zeros((3, 4), np.float32)
        np.divide(x, 2, out=whole, casting="unsafe")
        np.mean(x, axis=0, out=whole[0])
        return whole, np.add(x, 0.5, out=narrow), np.clip(x, 0.5, 2.5, out=narrow[:, ::-1])

    with mp.config(native=False):
        for got, want in zip(mp.jit(stored)(X * 9), stored(X * 9), strict=True):
            assert got.dtype == want.dtype and np.array_equal(got, want)


def test_each_result_of_several_has_an_array_to_go_to():
    def stored(x):
        first, second, third = np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((3, 4))
        whole, rest = np.divmod(x, 2, out=(first, None))
        np.modf(x, second, third)
        return first, second, third, whole, rest

    with mp.config(native=False):
        for got, want in zip(mp.jit(stored)(X * 9), stored(X * 9), strict=True):
            np.testing.assert_array_equal(got, want)


def test_rot90_needs_two_axes_of_the_array():
    for axes in ((0, 0), (0, 2), (1, -1)):
        with pytest.raises(ValueError):
            np.rot90(X, axes=axes)
        with mp.config(native=False), pytest.raises(ValueError):
            mp.jit(lambda x, axes=axes: np.rot90(x, axes=axes))(X)


def test_indices_of_triangles_that_are_not_square():
    def places(x):
        rows, columns = len(x), x.shape[1]
        return np.triu_indices(rows, 0, columns), np.tril_indices(rows, -1, columns), np.triu_indices_from(x, k=1)

    with mp.config(native=False):
        jitted = mp.jit(places)  # the first sizes are known, later ones are numbers of the program
        for shape in ((3, 4), (5, 7), (7, 5), (2, 9), (1, 4)):
            x = np.zeros(shape)
            for got, want in zip(jitted(x), places(x), strict=True):
                np.testing.assert_array_equal(got, want)
        with pytest.raises(ValueError, match="input array must be 2-d"):
            mp.jit(np.triu_indices_from)(np.zeros((2, 3, 3)))


@pytest.mark.parametrize("last", [np.uint8(5), np.int16(7), np.float16(4), np.float32(6.5), np.uint64(9), 5])
def test_arange_of_narrow_numbers_is_wide(last):
    """NumPy's is of its default integer at least, which a product with a byte does not leave."""

    def ranges(n):
        return np.arange(n), np.arange(1, n) * n, np.arange(0, n, 2), np.arange(0.5, n), np.arange(n, dtype=np.float32)

    with mp.config(native=False):
        for got, want in zip(mp.jit(ranges)(last), ranges(last), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("function", [scipy.special.softmax, scipy.special.log_softmax])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.int64, np.float32])
def test_softmax_of_narrow_integers_is_as_narrow_as_scipys(function, dtype):
    x = np.array([[1, 2, 3], [7, 0, 3]], dtype)
    want, got = function(x, axis=1), mp.jit(lambda x: function(x, axis=1))(x)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-2 if want.dtype == np.float16 else 1e-6)


def test_logsumexp_of_nothing_and_softmax_of_bools():
    assert mp.jit(scipy.special.logsumexp)(np.zeros(0)) == -np.inf
    with pytest.raises(TypeError, match="subtract"):
        mp.jit(scipy.special.softmax)(np.array([True, False]))


def test_dot_takes_no_out_of_another_dtype():
    def dot(x, out):
        np.dot(x, x, out=out)
        return out

    assert mp.jit(dot)(np.ones((2, 2)), np.zeros((2, 2))).dtype == float
    with pytest.raises(TypeError, match="out="):
        mp.jit(dot)(np.ones((2, 2)), np.zeros((2, 2), np.float32))


@pytest.mark.parametrize(
    "function, what",
    [
        (lambda a, k: np.concatenate([a, a], axis=k), "an axis"),
        (lambda a, k: np.linalg.norm(a, ord=k), "the order of a norm"),
    ],
)
def test_an_axis_or_order_must_be_a_python_int(function, what):
    assert np.array_equal(mp.jit(function)(np.ones((2, 3)), 1), function(np.ones((2, 3)), 1))
    with pytest.raises(UnsupportedError, match=f"needs {what} here"):
        mp.jit(function)(np.ones((2, 3)), np.int64(1))
