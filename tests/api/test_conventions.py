"""docs/conventions.md: each row of its tables is computed, in both modes, by NumPy source and by native code.

The page is the one source: a row's function is staged, differentiated at the row's point, and compared with what the
row says. The column for JAX is filled by benchmarks/conventions.py, which needs JAX.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from together import Together, translate

import metaphrase as mp

PAGE = (Path(__file__).parents[2] / "docs" / "conventions.md").read_text()
HEAD = (
    "import math\nimport numpy as np\nimport metaphrase as mp\nfrom scipy import special\nfrom metaphrase import nn\n\n"
)


@dataclass(frozen=True)
class Row:
    """`order`: 1, or 2 where the row has second derivatives."""

    function: str
    at: str
    here: str
    order: int

    @property
    def point(self) -> dict[str, Any]:
        return eval(f"dict({self.at})", {"inf": np.inf})

    @property
    def want(self) -> list[float]:
        return numbers(eval(f"[{self.here}]", {"inf": np.inf, "nan": np.nan}))

    def args(self, dtype: Any = np.float64, python: bool = False) -> tuple:
        """The point: arrays of `dtype`, and numbers, Python's if asked for."""
        made = [np.asarray(value, dtype)[()] for value in self.point.values()]
        return tuple(float(x) if python and not np.ndim(x) else x for x in made)

    @property
    def fits_float32(self) -> bool:
        """Whether point and derivative are numbers of float32, neither too large nor too small."""
        values = np.abs([*numbers(list(self.point.values())), *self.want])
        return bool(np.all((values == 0) | ~np.isfinite(values) | (values > 1e-30) & (values < 1e30)))


def numbers(value: Any) -> list[float]:
    """All numbers of nested lists, tuples and arrays."""
    if isinstance(value, (list, tuple)):
        return [n for v in value for n in numbers(v)]
    return np.ravel(value).tolist()


def _rows() -> list[Row]:
    found, order = [], 0
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if cells[:2] == ["function", "at"]:
            order = {"derivative": 1, "second derivatives": 2}[cells[2]]
        elif len(cells) > 2 and cells[0].startswith("`"):
            found.append(Row(*(cell.strip("`") for cell in cells[:3]), order))
    return found


ROWS = _rows()
OF = {1: {"reverse": "grad", "forward": "jacfwd"}, 2: {"reverse": "hessian", "forward": "jacfwd_of_jacfwd"}}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The rows as functions f0, f1, ..., their derivatives in each mode, and `by_turns`, which takes those of
    all."""
    text = HEAD + "def jacfwd_of_jacfwd(f, argnums):\n    return mp.jacfwd(mp.jacfwd(f, argnums), argnums)\n\n"
    text += "grad, jacfwd, hessian = mp.grad, mp.jacfwd, mp.hessian\n\n"
    for k, row in enumerate(ROWS):
        text += f"def f{k}({', '.join(row.point)}):\n    return {row.function}\n\n"
    modes = ("reverse", "forward")
    calls = {m: [f"{OF[r.order][m]}(f{k}, {tuple(range(len(r.point)))})" for k, r in enumerate(ROWS)] for m in modes}
    text += "".join(f"{mode} = [{', '.join(calls[mode])}]\n" for mode in modes)
    turns = [calls[modes[(k + int(os.environ["METAPHRASE_TESTS_DAY"])) % 2]][k] for k in range(len(ROWS))]
    text += f"def by_turns(points):\n    return [{', '.join(f'{c}(*points[{k}])' for k, c in enumerate(turns))}]\n"
    path = tmp_path_factory.mktemp("conventions") / "rows.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("rows_of_conventions", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def by_turns(items: list) -> list:
    """One half of the items, the other one tomorrow."""
    return items[int(os.environ["METAPHRASE_TESTS_DAY"]) % 2 :: 2]


def differences(found: list, rows: list[Row], rtol: float) -> list[str]:
    wrong = []
    for row, got in zip(rows, map(numbers, found), strict=True):
        scale = max((abs(w) for w in row.want if np.isfinite(w)), default=0.0)
        if len(got) != len(row.want) or not np.allclose(got, row.want, rtol, rtol * scale, equal_nan=True):
            wrong.append(f"{row.function} at {row.at}: {row.here}, got {got}")
    return wrong


def test_the_page_has_its_tables():
    assert len(ROWS) > 100 and {row.order for row in ROWS} == {1, 2}
    assert sum(row.fits_float32 for row in ROWS) > 90
    topics = "abs maximum clip norm hypot std arctan2 ** sort det interp prod logaddexp xlogy sinc expit"
    assert all(any(topic in row.function for row in ROWS) for topic in topics.split())


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_rows_of_python_numbers(module, mode):
    """NumPy source is given floats: where they would raise, NumPy's numbers have to be in their place."""
    rows = list(zip(getattr(module, mode), ROWS))
    rows = rows if mode == "reverse" else by_turns(rows)
    with mp.config(native=False), np.errstate(all="ignore"):
        found = [derive(*row.args(python=True)) for derive, row in rows]
    assert differences(found, [row for _, row in rows], 1e-9) == []


def test_rows_of_float32(module):
    rows = by_turns([(derive, row) for derive, row in zip(module.reverse, ROWS) if row.fits_float32])
    with mp.config(native=False), np.errstate(all="ignore"):
        found = [derive(*row.args(np.float32)) for derive, row in rows]
    assert differences(found, [row for _, row in rows], 1e-4) == []


def _in_a_loop(x):
    total = 0.0
    for _ in range(3):
        total = total + x * x
    return np.log(total)


def _in_a_branch(x):
    y = x * x if x > 1 else x * x * x
    return np.log(y)


NUMBERS = [
    lambda x: np.log(x**3),
    lambda x: np.sqrt(x * x * x),
    lambda x: np.log1p(x * x - 1),
    lambda x: np.log(np.where(x > 0, x, x * x)),
    lambda x: np.log(max(x, 0.0)),
    _in_a_loop,
    _in_a_branch,
]


@pytest.mark.parametrize("function", NUMBERS)
def test_derivatives_of_python_numbers_raise_nothing(function):
    with mp.config(native=False), np.errstate(all="ignore"):
        assert function(np.float64(0.0)) in (0.0, -np.inf)
        slopes = [mp.grad(function)(0.0), mp.jacfwd(function)(0.0), mp.grad(function)(np.float64(0.0))]
    assert np.array_equal(slopes, [slopes[2]] * 3, equal_nan=True) and not np.isfinite(slopes).any()


@pytest.mark.turns(4)
def test_rows_in_native_code(module):
    """Each day one half of the rows in reverse mode, and the other one in forward mode."""
    derive: Callable = mp.jit(module.by_turns)
    points = [row.args() for row in ROWS]
    with Together() as builds, builds.of("rows"):
        translate(derive, (points,))
    assert differences(derive(points), ROWS, 1e-9) == []
