"""docs/numpy-support.md is what the registry says, and every public name of NumPy stands in it."""

import pathlib

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.numpy import support
from metaphrase.source import UnsupportedError

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "numpy-support.md"


def test_the_document_is_the_table():
    renewed = "python -m metaphrase.numpy.support > docs/numpy-support.md"
    assert DOCUMENT.read_text() == support.table(), renewed


def test_every_public_name_is_accounted_for():
    assert support.unknown() == []
    assert sum(row.status == "yes" for row in support.rows(np)) > 350
    assert all(row.notes for row in [*support.rows(np), *support.attribute_rows()] if row.status == "no")


def test_keywords_are_those_that_are_taken():
    found = {row.name: row.keywords for row in support.rows(np)}
    assert found["sum"] == "axis, dtype, out, keepdims, initial, where"
    assert "weights" not in found["quantile"] and found["add"] == "dtype, out, where"


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.savetxt("x.txt", x),
        lambda x: np.roots(x),
        lambda x: np.packbits(x),
        lambda x: np.shares_memory(x, x),
        lambda x: np.random.normal(x),
    ],
)
def test_what_the_table_refuses_is_refused(call):
    with pytest.raises(UnsupportedError) as caught:
        mp.jit(call)(np.arange(3.0))
    assert caught.value.remedy and caught.value.span.file == __file__


def test_random_numbers_point_to_keys():
    with pytest.raises(UnsupportedError, match="another value at each call") as caught:
        mp.jit(lambda: np.random.rand(3))()
    assert "metaphrase.random" in caught.value.remedy
