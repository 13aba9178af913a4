"""A matrix times itself transposed: half of it is computed, the other half is the same to the bit."""

import numpy as np
import pytest
from thread_counts import thread_counts

import metaphrase as mp

random = np.random.default_rng(2)
FORMS = {
    "columns": lambda x: x.T @ x,
    "rows": lambda x: x @ x.T,
    "of a part": lambda x: x[1:, 2:].T @ x[1:, 2:],
    "of a stack": lambda x: np.stack([x, 2 * x]) @ np.stack([x, 2 * x]).transpose(0, 2, 1),
    "of columns of columns": lambda x: x.T.copy().T @ x.T,
    "by einsum": lambda x: np.einsum("ki,kj->ij", x, x),
}


@pytest.mark.turns(6)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8"])
@pytest.mark.parametrize("form", FORMS)
def test_values(form, dtype):
    f = FORMS[form]
    jitted = mp.jit(f)
    for n, m in ((1, 200), (40, 70), (130, 129), (65, 300), (300, 65)):
        x = random.normal(size=(n, m)).astype(dtype)
        if dtype[0] == "c":
            x = x + (1j * random.normal(size=(n, m))).astype(dtype)
        want = f(x)
        tolerance = 1e-3 if dtype in ("f4", "c8") else 1e-10
        for _ in thread_counts(1, 2):
            got = jitted(x)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
            assert got.dtype == want.dtype
            assert dtype[0] == "c" or (got == np.swapaxes(got, -1, -2)).all()


def test_only_what_is_a_square_is_computed_as_one():
    def text(f):
        return mp.source(f, "f64[300, 200]", stage="cython")

    assert "f64_square(" in text(lambda x: x.T @ x) and "f64_square(" in text(lambda x: x @ x.T)
    for f in (lambda x: x.T @ (2 * x), lambda x: x[1:].T @ x[:-1], lambda x: x[:200] @ x[:200]):
        assert "f64_product(" in text(f) and "f64_square(" not in text(f)
