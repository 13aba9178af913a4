"""Exported functions of bfloat16, which NumPy has by ml_dtypes alone.

In: a module whose functions take, give and read arrays of it. Out: what the module itself gives, and what is said where
ml_dtypes is missing.
"""

from __future__ import annotations

import importlib
import sys

import ml_dtypes
import numpy as np
import pytest
from plans.project import module_of

import metaphrase as mp
from metaphrase.aot import compile_module

SOURCE = """
import ml_dtypes
import numpy as np

import metaphrase as mp

W = np.arange(3).astype(ml_dtypes.bfloat16)


@mp.export("bf16[n], f16[n]")
def doubled(x, y):
    return x * 2, y * 3


@mp.export("bf16")
def number(x):
    return x * 2


@mp.export("f32")
def weighed(x):
    return x * W
"""
B = ml_dtypes.bfloat16


@pytest.mark.parametrize("to", ["native", "numpy"])
def test_packages_take_and_give_bfloat16(to, tmp_path, monkeypatch):
    name = f"halves_{to}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    own = module_of(tmp_path / f"{name}.py")
    package = compile_module(own, tmp_path / "out", to=to)
    assert package.needs_ml_dtypes
    monkeypatch.syspath_prepend(str(tmp_path / "out"))
    made = importlib.import_module(name)
    x = np.array([1.5, 3.0], B)
    for call in (
        lambda m: m.doubled(x, x.astype("f2")),
        lambda m: (m.number(B(1.5)),),
        lambda m: (m.weighed(np.float32(0.5)),),
    ):
        for got, want in zip(call(made), call(own), strict=True):
            assert type(got) is type(want) and got.dtype == want.dtype and np.array_equal(got, want)
    with pytest.raises(TypeError, match=r"x is f64\[2\], not bf16\[n\]"):
        made.doubled(np.ones(2), np.ones(2, "f2"))
    for known in [known for known in sys.modules if known.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match="ml_dtypes"):
        importlib.import_module(name).number(x[0])


def test_a_file_takes_bfloat16(tmp_path):
    mp.jit(lambda x: x * 2).lower("bf16[n]").compile().save(tmp_path / "f.mp")
    made = mp.load(tmp_path / "f.mp")(np.array([1.5, 3.0], B))
    assert made.dtype == B and made.tolist() == [3.0, 6.0]
