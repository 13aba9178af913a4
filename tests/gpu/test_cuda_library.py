"""What the GPU's library computes is the primitive's NumPy rule: with NumPy in CuPy's place, whose names it has."""

import contextlib
import types
import warnings

import ml_dtypes
import numpy as np
import pytest

import metaphrase as mp
import metaphrase.ops  # noqa: F401 - registers the primitives
from metaphrase.core.native import Lib
from metaphrase.core.primitive import REGISTRY
from metaphrase.ops.samples import SAMPLES, values
from metaphrase.runtime import cuda_library
from metaphrase.runtime.cuda_library import library, told

NAMES = sorted(name for name, primitive in REGISTRY.items() if isinstance(primitive.native, Lib))
CASES = [(name, k) for name in NAMES for k in range(len(SAMPLES[name]))]
NAN = np.nan


def wanted(name, args, attributes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = REGISTRY[name].numpy(*args, **attributes)
    return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))


def strided(x):
    """The same elements, with others between them and the axes the other way round in memory."""
    x = np.asarray(x)
    made = np.full(tuple(2 * d for d in reversed(x.shape)), 1, x.dtype).T
    view = made[(*(slice(0, 2 * d, 2) for d in x.shape), ...)]
    view[...] = x
    return view


def filled(name, args, attributes, xp=np):
    """What `library` puts into results of the right types, strided as its operands."""
    writes = [strided(np.full_like(x, 1)) for x in wanted(name, args, attributes)]
    assert library(xp, name, tuple(map(strided, args)), tuple(writes), **attributes) == 0
    return writes


def agree(name, args, attributes, xp=np):
    for found, expected in zip(filled(name, args, attributes, xp), wanted(name, args, attributes), strict=True):
        tolerance = 1e-5 if expected.dtype in (np.float32, np.complex64) else 1e-12
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_every_primitive_of_a_library_is_there():
    assert set(cuda_library.OPERATIONS) == {REGISTRY[name].native.name for name in NAMES}


@pytest.mark.parametrize("name, k", CASES)
def test_samples(name, k):
    sample = SAMPLES[name][k]
    agree(REGISTRY[name].native.name, sample.args, sample.attributes)


ROWS = np.arange(12.0).reshape(3, 4)
NO_SUM, OUTER = (((1,), (0,)), ((), ())), (((), ()), ((), ()))
NONE = {"transposed": False}
EDGES = [
    ("dot_general", (np.zeros((2, 0)), np.zeros((0, 3))), dict(zip(("contract", "batch"), NO_SUM))),
    ("dot_general", (np.arange(3), np.arange(2)), dict(zip(("contract", "batch"), OUTER))),
    ("dot_general", (np.arange(300) > 5, np.arange(300) > 7), {"contract": ((0,), (0,)), "batch": ((), ())}),
    (
        "dot_general",
        (np.arange(6, dtype="i4").reshape(2, 3), ROWS[:, :3].astype("i4")),
        {"contract": ((1,), (0,)), "batch": ((), ())},
    ),
    ("dot_general", (np.ones((2, 3), "f2"), np.ones((3, 2), "f2")), {"contract": ((1,), (0,)), "batch": ((), ())}),
    ("dot_general", (ROWS[None], ROWS[None]), {"contract": ((1, 2), (1, 2)), "batch": ((0,), (0,))}),
    ("sort", (np.array([2.0, NAN, -np.inf, 1.0, NAN, np.inf]),), {"axis": 0}),
    ("sort", (np.array([3, 1, 2], ml_dtypes.bfloat16),), {"axis": 0}),
    ("sort", (np.zeros((2, 0)),), {"axis": 1}),
    ("argsort", (np.array([2.0, NAN, 2.0, 1.0, NAN, 1.0]),), {"axis": 0}),
    ("argsort", (np.array([True, False, True, False]),), {"axis": 0}),
    ("argsort", (np.zeros((0, 3), "i4"),), {"axis": 0}),
    ("nonzero", (np.array([False, True, True, False, True]),), {"axis": 0, "length": 3}),
    ("nonzero", (np.zeros(4, bool),), {"axis": 0, "length": 0}),
    ("nonzero", (np.array([[True, False], [False, True], [True, True]]),), {"axis": 0, "length": 2}),
    ("searchsorted", (np.array([1.0, 2.0, 2.0, NAN]), np.array([2.0, NAN, 0.0, 9.0])), {"right": False}),
    ("searchsorted", (np.array([1.0, 2.0, 2.0, NAN]), np.array([2.0, NAN, 0.0, 9.0])), {"right": True}),
    ("searchsorted", (np.zeros(0), np.array([1.0, 2.0])), {"right": True}),
    ("searchsorted", (np.array([1, 3]), np.asarray(2)), {"right": False}),
    ("fft", (np.zeros((0, 3), complex),), {"axis": 0, "inverse": False}),
    ("fft", (np.zeros((0, 3), complex),), {"axis": 1, "inverse": True}),
    ("solve", (np.zeros((2, 2)), np.ones((2, 1))), NONE),
    ("solve", (np.stack([np.eye(2), np.zeros((2, 2)), 2 * np.eye(2)]), np.ones((3, 2, 1))), NONE),
    ("solve", (np.zeros((2, 2)), np.ones((2, 0))), NONE),
    ("solve", (np.eye(2), np.ones((2, 0))), NONE),
    ("solve", (np.zeros((0, 0)), np.ones((0, 2))), NONE),
    ("solve", (np.full((2, 2), NAN), np.ones((2, 1))), NONE),
    ("triangular_solve", (np.tril(ROWS[:, :3] + np.eye(3)), np.ones((3, 2))), {"lower": True, "transposed": True}),
    ("triangular_solve", (np.zeros((0, 0)), np.ones((0, 2))), {"lower": True, "transposed": True}),
    ("slogdet", (np.zeros((2, 2)),), {}),
    ("slogdet", (np.zeros((3, 0, 0)),), {}),
    ("slogdet", (np.zeros((0, 2, 2)),), {}),
    ("cholesky", (-np.eye(2),), {}),
    ("cholesky", (np.stack([4 * np.eye(2), -np.eye(2)]),), {}),
    ("cholesky", (np.zeros((0, 0)),), {}),
    ("qr", (np.zeros((0, 2)),), {"full": True}),
    ("qr", (np.zeros((3, 0)),), {"full": True}),
    ("qr", (np.zeros((3, 0)),), {"full": False}),
    ("eigh", (np.zeros((0, 0)),), {}),
    ("eigh", (np.zeros((0, 2, 2)),), {}),
    ("eigh", (np.array([[2.0, NAN], [0.0, 3.0]]),), {}),  # the upper triangle is not read
    ("svd", (np.zeros((2, 0)),), {"full": True}),
    ("svd", (np.zeros((2, 0)),), {"full": False}),
    ("svd", (np.full((2, 3), NAN),), {"full": True}),
    ("svd", (np.stack([np.eye(2), np.full((2, 2), NAN)]),), {"full": False}),
    ("eig", (np.zeros((0, 0)),), {}),
    ("eig", (np.stack([np.diag([1.0, 2.0]), np.full((2, 2), np.inf)]),), {}),
]


@pytest.mark.parametrize("name, args, attributes", EDGES)
def test_edges(name, args, attributes):
    agree(name, args, attributes)


@pytest.mark.parametrize("bad", [NAN, np.inf])
@pytest.mark.parametrize("name, attributes", [("eigh", {}), ("svd", {"full": False})])
def test_what_iterates_is_not_given_what_it_may_not_end_on(name, attributes, bad):
    a = np.stack([np.diag([1.0, 2.0, 3.0]), np.diag([1.0, bad, 3.0])])
    writes = [np.zeros(x.shape, x.dtype) for x in wanted(name, (np.stack([np.eye(3)] * 2),), attributes)]
    seen = []

    def checked(function):
        return lambda x, *rest: seen.append(x) or function(x, *rest)

    linalg = types.SimpleNamespace(eigh=checked(np.linalg.eigh), svd=checked(np.linalg.svd))
    xp = types.SimpleNamespace(**{**vars(np), "linalg": linalg, "__name__": "numpy"})
    assert library(xp, name, (a,), tuple(writes), **attributes) == 0
    assert all(np.isfinite(x).all() for x in seen) and len(seen) == 1
    *results, flag = writes
    assert list(flag) == [False, name == "svd" and bool(np.isnan(bad))]
    assert all(np.isfinite(x[0]).all() and np.isnan(x[1]).all() for x in results)


def test_in_place():
    x = np.array([3.0, 1.0, 2.0])
    assert library(np, "sort", (x,), (x,), axis=0) == 0 and list(x) == [1, 2, 3]
    line = np.array([[3.0, 9.0], [1.0, 9.0]])[:, 0]
    assert library(np, "sort", (line,), (line,), axis=0) == 0 and list(line) == [1, 3]


def test_a_line_knows_how_many_places_it_has():
    """A call on a line is not told the length of the whole result."""
    out = np.zeros(2, "i8")
    assert library(np, "nonzero", (np.array([False, True, True]),), (out,), axis=0) == 0
    assert list(out) == [1, 2]


class Shaped:
    """Of an array that is too large to be here, what is asked before it is worked on."""

    def __init__(self, *shape):
        self.shape, self.ndim = shape, len(shape)


def test_sizes_above_what_the_libraries_count_fail_at_the_first_site():
    huge = 1 << 31
    for name in sorted(cuda_library.COUNTED):
        assert library(np, name, (Shaped(huge, huge),), ()) == 1
        assert told(name, (Shaped(huge, huge),)) == (huge, huge)
    matrices = {"contract": ((1,), (0,)), "batch": ((), ())}
    operands = (Shaped(3, huge), Shaped(huge, 4))
    assert library(np, "dot_general", operands, (), **matrices) == 1
    assert told("dot_general", operands, **matrices) == (3, huge, 4)


def test_what_no_library_has_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="no library of the GPU computes cumsum"):
        library(np, "cumsum", (), ())


def cupy_like(monkeypatch, **linalg):
    """A module that calls itself cupy: its linear algebra raises only where `cupyx.errstate` says so."""
    asked = []

    @contextlib.contextmanager
    def errstate(*, linalg):
        asked.append(linalg)
        yield
        asked.append("ignore")

    def quiet(name):
        def function(*args):
            if asked and asked[-1] == "raise":
                return linalg.get(name, getattr(np.linalg, name))(*args)
            return np.linalg.pinv(args[0]) @ args[1]  # garbage

        return function

    def triangular(a, b, *, lower, trans, check_finite):
        half = np.tril(a) if lower else np.triu(a)
        return np.linalg.solve(half.T if trans == "T" else half, b)

    scipy = types.SimpleNamespace(linalg=types.SimpleNamespace(solve_triangular=triangular))
    cupyx = types.SimpleNamespace(errstate=errstate, scipy=scipy)
    monkeypatch.setattr(cuda_library, "_cupyx", lambda: cupyx)
    names = {name: quiet(name) for name in ("solve", "cholesky", "eigh", "svd", "eig")}
    namespace = types.SimpleNamespace(**{**vars(np.linalg), **names})
    return types.SimpleNamespace(**{**vars(np), "linalg": namespace, "__name__": "cupy"})


def test_cupy_is_asked_to_tell_of_failures(monkeypatch):
    xp = cupy_like(monkeypatch)
    agree("solve", (np.stack([np.eye(2), np.zeros((2, 2))]), np.ones((2, 2, 1))), NONE, xp)
    agree("cholesky", (-np.eye(2),), {}, xp)
    agree("triangular_solve", (np.triu(ROWS[:, 1:]) + np.eye(3), ROWS), {"lower": False, "transposed": True}, xp)


def test_an_old_cusolver_has_no_eig(monkeypatch):
    def eig(a):
        raise RuntimeError("geev is not available")

    xp = cupy_like(monkeypatch, eig=eig)
    with pytest.raises(NotImplementedError, match="this cuSOLVER has no eig"):
        library(xp, "eig", (np.eye(2),), (np.zeros(2, complex), np.zeros((2, 2), complex), np.zeros((), bool)))


def test_bfloat16_products_are_rounded_once():
    a = values(-3, 3, (4, 5)).astype(ml_dtypes.bfloat16)
    b = values(-3, 3, (5, 3), seed=1).astype(ml_dtypes.bfloat16)
    out = np.zeros((4, 3), ml_dtypes.bfloat16)
    library(np, "dot_general", (a, b), (out,), contract=((1,), (0,)), batch=((), ()))
    exact = (a.astype("f4") @ b.astype("f4")).astype(ml_dtypes.bfloat16)
    assert (out == exact).all()


@pytest.mark.parametrize(
    "function, types",
    [
        (lambda x: np.fft.fft(x, axis=0), ("c128[30, 40]",)),
        (mp.vmap(np.sort), ("f64[n, 50]",)),
        (mp.vmap(mp.vmap(lambda x: np.argsort(x))), ("f32[4, n, 50]",)),
        (np.linalg.solve, ("f64[100, 3, 3]", "f64[100, 3, 2]")),
        (np.linalg.cholesky, ("f64[5, n, 3, 3]",)),
        (lambda a: np.linalg.eigh(a)[0], ("f64[100, 3, 3]",)),
    ],
)
def test_a_batch_is_one_call(function, types):
    text = mp.source(function, *types, stage="cuda")
    host = text[text.rindex("\ndef ") :]
    assert host.count("c.library(") == 1 and " for " not in host
