"""nn and lax, run at once on NumPy arrays: the values of JAX, by stored vectors."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from metaphrase import lax, nn

VECTORS = [
    row.split("\t") for row in Path(__file__).with_name("library_vectors.txt").read_text().splitlines()
]


@pytest.mark.parametrize("expression, dtype, dims, text", VECTORS, ids=[row[0] for row in VECTORS])
def test_equals_jax(expression, dtype, dims, text):
    want = np.frombuffer(bytes.fromhex(text), dtype).reshape([int(d) for d in dims.split(",") if d])
    x, i = np.linspace(-4.0, 4.0, 24).reshape(4, 6), np.arange(24).reshape(4, 6)
    with np.errstate(all="ignore"):
        got = np.asarray(eval(expression, {"np": np, "nn": nn, "lax": lax, "x": x, "i": i}))
    assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)


def test_top_k_of_equals_takes_the_first():
    values, places = lax.top_k(np.array([3, 1, 3, 3]), 2)
    assert values.tolist() == [3, 3] and places.tolist() == [0, 2]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: lax.scan(lambda c, x: (c, x), 0, None), "needs xs or a length"),
        (
            lambda: lax.scan(lambda c, x: (c, x), 0, (np.zeros(3), np.zeros(4))),
            r"differ in length: 3 and, at xs\[1\], 4",
        ),
        (lambda: lax.scan(lambda c, x: (c, x), 0, {"a": 1.0}), r"xs\['a'\] has rank 0"),
        (lambda: lax.scan(lambda c, x: (c, x), 0, np.zeros(3), length=4), "length is 4, and xs has 3 rows"),
        (lambda: lax.switch(0, []), "at least one branch"),
        (lambda: lax.select(True, np.zeros(3), np.zeros(4)), r"float64\[3\] and float64\[4\]"),
        (lambda: lax.dynamic_slice(np.zeros((2, 2)), (0,), (1, 1)), "1 starts and 2 sizes"),
        (lambda: nn.glu(np.zeros(3)), "size 3 is odd"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
