"""The column for JAX in docs/conventions.md, computed with JAX: prints the rows where the page says something else.

In: the page; `--write` puts what JAX gives into it. Out: those rows, and status 1 if there are any.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).resolve().parents[1] / "docs" / "conventions.md"
HEAD = "import jax.numpy as np\nfrom jax.scipy import special\nfrom jax import nn\n\n"
# What JAX has under another name.
NAMES = {
    "special.softmax": "nn.softmax",
    "special.log_softmax": "nn.log_softmax",
    "math.dist(x, y)": "np.linalg.norm(x - y)",
}


def numbers(value: Any) -> list[float]:
    if isinstance(value, (list, tuple)):
        return [n for v in value for n in numbers(v)]
    return np.ravel(value).tolist()


def text(value: Any) -> str:
    """A derivative as the page writes it, without what rounding left of a 0."""
    scale = max((abs(n) for n in numbers(value) if np.isfinite(n)), default=0.0)

    def one(x: Any) -> str:
        if isinstance(x, (list, tuple)):
            return f"[{', '.join(map(one, x))}]"
        return "0" if abs(x) < 1e-15 * scale or x == 0 else f"{x:.12g}"

    return ", ".join(one(v) for v in value)


def same(one: str, other: str) -> bool:
    names = {"inf": np.inf, "nan": np.nan}
    a, b = (numbers(eval(f"[{cell}]", names)) for cell in (one, other))
    scale = max((abs(n) for n in a if np.isfinite(n)), default=0.0)
    return len(a) == len(b) and np.allclose(a, b, 1e-9, 1e-9 * scale, equal_nan=True)


def of_jax(rows: list[tuple[str, str, int]]) -> list[str]:
    """What JAX gives for (function, point, order of the derivative)."""
    import jax

    jax.config.update("jax_enable_x64", True)
    points = [eval(f"dict({at})", {"inf": np.inf}) for _, at, _ in rows]
    lines = [HEAD]
    for k, ((function, _, _), point) in enumerate(zip(rows, points)):
        for name, other in NAMES.items():
            function = function.replace(name, other)
        lines.append(f"def f{k}({', '.join(point)}):\n    return {function}\n\n")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "rows.py")
        path.write_text("".join(lines))
        spec = importlib.util.spec_from_file_location("rows", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    found = []
    for k, ((_, _, order), point) in enumerate(zip(rows, points)):
        function, which = getattr(module, f"f{k}"), tuple(range(len(point)))
        args = [np.asarray(v, float)[()] for v in point.values()]
        gradient = jax.grad(function, which)
        made = gradient(*args) if order == 1 else jax.jacfwd(gradient, which)(*args)
        found.append(text(jax.tree.map(lambda x: np.asarray(x).tolist(), made, is_leaf=lambda x: hasattr(x, "dtype"))))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put what JAX gives into the page")
    write = parser.parse_args().write
    lines, rows, order = PAGE.read_text().splitlines(), {}, 0
    for k, line in enumerate(lines):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if cells[:2] == ["function", "at"]:
            order = 1 if cells[2] == "derivative" else 2
        elif len(cells) == 5 and cells[0].startswith("`"):
            rows[k] = cells, order
    made = of_jax([(cells[0].strip("`"), cells[1].strip("`"), order) for cells, order in rows.values()])
    wrong = 0
    for (k, (cells, _)), jax in zip(rows.items(), made):
        here, said = cells[2].strip("`"), cells[3].strip("`")
        if not same(here if said == "same" else said or "nan", jax):
            wrong += 1
            print(f"{cells[0]} at {cells[1]}: here {here}, JAX {jax}, the page says {said}")
        lines[k] = " | ".join(
            [f"| {cells[0]}", *cells[1:3], "same" if same(here, jax) else f"`{jax}`", f"{cells[4]} |"]
        )
    if write:
        PAGE.write_text("\n".join(lines) + "\n")
    return int(wrong > 0 and not write)


if __name__ == "__main__":
    raise SystemExit(main())
