"""Size programs compute what the dims mean, in C as in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaphrase.core.dims import Dim, Sym, dim_max, dim_min, floordiv, mod, substitute
from metaphrase.runtime import entry as E
from metaphrase.runtime.dispatch import Dispatcher

n, m = Sym("n"), Sym("m")

dims = st.recursive(
    st.one_of(st.just(n), st.just(m), st.integers(-4, 9)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] - pair[1]),
        st.tuples(inner, st.integers(1, 5)).map(lambda pair: floordiv(*pair)),
        st.tuples(inner, st.integers(1, 5)).map(lambda pair: mod(*pair)),
        st.tuples(inner, inner).map(lambda pair: dim_max(*pair)),
        st.tuples(inner, inner).map(lambda pair: dim_min(*pair)),
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def dispatcher_of():
    from metaphrase.runtime import abi, cython_build

    library = cython_build.build(
        abi.DECLARATIONS + "cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) "
        "noexcept nogil:\n    return 0\n",
        name="nothing",
    )

    def make(dim):
        call = Dispatcher(None, ("n", "m"))
        call.add(
            E.Entry(
                library.address,
                (E.Root(E.Position(0), E.SizeLeaf(n)), E.Root(E.Position(1), E.SizeLeaf(m))),
                symbols=("n", "m"),
                results=(E.Fresh("i1", (dim,)),),
                output=E.Result(0),
            )
        )
        return call

    return make


@settings(max_examples=200, deadline=None)
@given(dims, st.integers(2, 40), st.integers(2, 40))
def test_programs_mean_what_dims_mean(dispatcher_of, dim, n_value, m_value):
    expected = substitute(dim, {"n": n_value, "m": m_value})
    call = dispatcher_of(dim * dim if isinstance(dim, Dim) else abs(dim))  # a shape can't be negative
    out = call(n_value, m_value) if abs(expected) < 1000 else None
    if out is not None:
        assert out.shape == ((expected * expected,) if isinstance(dim, Dim) else (abs(expected),))


def test_a_negative_dim_is_an_error(dispatcher_of):
    with pytest.raises(ValueError, match="negative"):
        dispatcher_of(n - m)(2, 5)
    assert np.array_equal(dispatcher_of(n - m)(5, 2).shape, (3,))


def test_division_rounds_down(dispatcher_of):
    for a, b in ((7, 2), (2, 7), (9, 3)):
        assert dispatcher_of(10 + floordiv(n - m, 4))(a, b).shape == (10 + (a - b) // 4,)
        assert dispatcher_of(mod(n - m, 4))(a, b).shape == ((a - b) % 4,)


def test_symbols_must_be_known():
    with pytest.raises(ValueError, match="the size m is not among the symbols n"):
        E.size_program(n + m, {"n": 0})


def test_too_deep_an_expression():
    deep = n
    for _ in range(100):
        deep = dim_max(floordiv(deep, 2) * 3, m)
    with pytest.raises(ValueError, match="too deep"):
        E.size_program(deep, {"n": 0, "m": 1})
