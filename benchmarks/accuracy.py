"""How exact elementary functions are, and how fast: ours and NumPy's, over the whole domain of each.

In: nothing, or names of functions (`exp log`). Out: a table: the largest error of each in units in the last place of
the exact result, over random bit patterns and over the range where the function bends; nanoseconds an element. What is
exact is told by NumPy's `longdouble` (of f64; where that has no more bits, nothing is said) and by its f64 (of f32).
`--points N` (2,000,000) a dtype and a range; `--markdown` for the table of docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np

import metaphrase as mp

RANGES: dict[str, tuple[tuple[float, float], ...]] = {
    "exp": ((-5, 5),),
    "exp2": ((-5, 5),),
    "expm1": ((-2, 2),),
    "log": ((0.3, 3),),
    "log1p": ((-0.7, 2),),
    "log2": ((0.3, 3),),
    "log10": ((0.3, 3),),
    "cbrt": ((-3, 3),),
    "sin": ((-7, 7),),
    "cos": ((-7, 7),),
    "tan": ((-7, 7),),
    "arcsin": ((-1, 1),),
    "arccos": ((-1, 1),),
    "arctan": ((-3, 3),),
    "arctan2": ((-3, 3), (-3, 3)),
    "sinh": ((-2, 2),),
    "cosh": ((-2, 2),),
    "tanh": ((-1, 1),),
    "arcsinh": ((-3, 3),),
    "arccosh": ((1, 3),),
    "arctanh": ((-1, 1),),
    "hypot": ((-3, 3), (-3, 3)),
    "power": ((0.1, 4), (-6, 6)),
}
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, 20.0, -20.0, 89.0, -104.0, 710.4, -745.13)
PIECE = 1 << 18


def exact_type(dtype: np.dtype) -> np.dtype | None:
    """A dtype that has at least eight bits more, if NumPy has one."""
    wider = np.dtype(np.float64 if dtype == np.float32 else np.longdouble)
    return wider if np.finfo(wider).nmant >= np.finfo(dtype).nmant + 8 else None


def samples(name: str, dtype: np.dtype, points: int, seed: int = 0) -> Iterator[tuple[np.ndarray, ...]]:
    """Operands in pieces: special numbers and the ends of the dtype, random bits, numbers of the function's range."""
    source = np.random.default_rng(seed)
    ranges = RANGES[name]
    limits = np.finfo(dtype)
    edges = np.array([*SPECIAL, limits.max, limits.min, limits.tiny, limits.smallest_subnormal, -limits.tiny], dtype)
    yield tuple(grid.reshape(-1) for grid in np.meshgrid(*(edges for _ in ranges)))
    integers = np.dtype(f"u{dtype.itemsize}")
    for done in range(0, points, PIECE):
        n = min(PIECE, points - done)
        yield tuple(source.integers(0, np.iinfo(integers).max, n, integers).view(dtype) for _ in ranges)
        yield tuple(source.uniform(low, high, n).astype(dtype) for low, high in ranges)


def units(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|result - exact| in units in the last place of the exact result; infinite where only one is no number."""
    limits = np.finfo(result.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(result.dtype)
        size = np.maximum(np.abs(exact), exact.dtype.type(limits.tiny))
        unit = np.exp2(np.floor(np.log2(size)) - limits.nmant)
        error = np.abs(result.astype(exact.dtype) - exact) / unit
        error[(result == rounded) | (np.isnan(result) & np.isnan(exact))] = 0
    return np.where(np.isnan(error), np.inf, error)


def worst(
    call: Callable[..., np.ndarray], name: str, dtype: np.dtype, points: int
) -> tuple[float, tuple[float, ...]] | None:
    """(the largest error of `call` in units in the last place, where it is made), of the NumPy function `name`."""
    wider = exact_type(dtype)
    if wider is None:
        return None
    largest, at = 0.0, ()
    for operands in samples(name, dtype, points):
        with np.errstate(all="ignore"):
            exact = getattr(np, name)(*(x.astype(wider) for x in operands))
        errors = units(np.asarray(call(*operands)), exact)
        k = int(np.argmax(errors))
        if errors[k] > largest:
            largest, at = float(errors[k]), tuple(float(x[k]) for x in operands)
    return largest, at


def duration(call: Callable[..., object], operands: tuple[np.ndarray, ...]) -> float:
    """Seconds of CPU time, the least of many calls."""
    best = np.inf
    for _ in range(60):
        start = time.thread_time()
        call(*operands)
        best = min(best, time.thread_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(RANGES))
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--markdown", action="store_true")
    chosen = parser.parse_args()
    mp.config.num_threads = 1
    kinds = [(np.dtype(dtype), title) for dtype, title in ((np.float64, "f64"), (np.float32, "f32"))]
    head = ["function"]
    for _, title in kinds:
        head += [f"{title}: error, ulp", "NumPy's", "ns", "NumPy's"]
    rows = [head]
    for name in chosen.names:
        function = getattr(np, name)
        row = [name]
        for dtype, _ in kinds:
            ours = mp.jit(
                eval(f"lambda x, y: np.{name}(x, y)" if len(RANGES[name]) == 2 else f"lambda x: np.{name}(x)")
            )
            source = np.random.default_rng(1)
            operands = tuple(source.uniform(low, high, 20_000).astype(dtype) for low, high in RANGES[name])
            for call in (ours, function):
                with np.errstate(all="ignore"):
                    error = worst(call, name, dtype, chosen.points)
                row.append("-" if error is None else f"{error[0]:.2f}")
            row += [f"{duration(call, operands) / 20_000 * 1e9:.2f}" for call in (ours, function)]
        rows.append(row)
        if not chosen.markdown:
            print("  ".join(f"{cell:>12}" for cell in rows[-1]), flush=True)
    if chosen.markdown:
        for k, row in enumerate(rows):
            print("| " + " | ".join(row) + " |")
            if k == 0:
                print("| --- |" + " ---: |" * (len(head) - 1))


if __name__ == "__main__":
    main()
