"""One function run in several ways; each way's outcome is caught whole: result, exception, arguments, print.

In: a user's function and arguments, or a core Function and arrays. Out: `Outcome`s; how far apart they are.
The corpus is run without contraction, so that what should be exact is exact. Example:

    want = python(f, args)
    assert_same(want, native(f, args), bound=0, what="native")     # 0: bit for bit
"""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from corpus import fresh
from stages import CASES, staged

import metaphrase as mp
from metaphrase import tree_util
from metaphrase.astpasses.schedule import python_loops
from metaphrase.astpasses.schedule.target import CPU
from metaphrase.core.ir import Function, Let
from metaphrase.core.native import Gather, Iota, Move, Put
from metaphrase.runtime import threads
from metaphrase.runtime.plans import callbacks_of, site_table

# Loops over a few numbers have several parts, and rounds of sweeps over them several blocks.
SMALL_PARTS = replace(CPU, a_part=20, few=2, block=2)


@contextlib.contextmanager
def several_threads() -> Iterator[None]:
    """Three threads, whatever the machine has."""
    before = threads.use(3)
    try:
        yield
    finally:
        threads.use(before)


@dataclass
class Outcome:
    """What a call did. `error`: the exception's type; `said`: its message."""

    result: Any = None
    args: Any = None
    error: type | None = None
    said: str = ""
    printed: str = ""


def caught(run: Callable[..., Any], args: tuple) -> Outcome:
    """Call `run` on a copy of the arguments."""
    given, printed = fresh(args), io.StringIO()
    with np.errstate(all="ignore"), contextlib.redirect_stdout(printed):
        try:
            result, error, said = run(*given), None, ""
        except Exception as problem:
            result, error, said = None, type(problem), str(problem)
    return Outcome(result, given, error, said, printed.getvalue())


# ---- ways --------------------------------------------------------------------------------------------------


def python(function: Callable, args: tuple) -> Outcome:
    """As Python runs it."""
    return caught(function, args)


def native(function: Callable, args: tuple, **settings: Any) -> Outcome:
    """Through `jit`, without contraction; never the fall-back."""
    with mp.config(**{"contract": False, **settings}):
        jitted = mp.jit(function)
        outcome = caught(jitted, args)
        rows = [row for rows in jitted.jitted._memo.table.values() for row in rows]
    assert rows and all("library" in row.extra for row in rows), "no native code was made"
    return outcome


def evaluated(name: str, run: Callable[[Sequence[Any]], Sequence[Any]]) -> Outcome:
    """A case of the corpus through `run`, which computes its core program on flat arguments."""
    case = staged(name)
    return caught(lambda *given: case.result(run(case.arguments(given)), given), CASES[name][1])


def run_loops(program: Any, arrays: Sequence[Any]) -> tuple:
    """The loops stage on flat arguments; failing sites raise, ordered ones print."""

    callbacks = callbacks_of(program.sites)

    def effect(site: int, *values: Any) -> None:
        callbacks[site].function(*values)

    try:
        return python_loops.run(program, *arrays, effect=effect)
    except python_loops.Failed as failed:
        site_table(program.sites).raise_site(failed.site, 0, tuple(map(_bits, failed.values)))


def _bits(value: Any) -> int:
    """A value as an error record holds it."""
    if np.asarray(value).dtype.kind in "iub":
        return int(value)
    return struct.unpack("=q", struct.pack("=d", float(np.real(value))))[0]


# ---- how far apart -----------------------------------------------------------------------------------------


def leaves(tree: Any) -> list[Any]:
    """The leaves of a result; objects that are no pytrees by their attributes."""
    found = []
    for leaf in tree_util.tree_leaves(tree, is_leaf=lambda x: x is None):
        found += leaves(vars(leaf)) if hasattr(leaf, "__dict__") and not callable(leaf) else [leaf]
    return found


def distance(got: Any, want: Any) -> float:
    """The largest difference of two results in units of the last place of each array's largest element.

    0: the same bits (any NaN is NaN). inf: another structure, type, shape, integer, NaN or infinity.
    """
    a, b = leaves(got), leaves(want)
    if len(a) != len(b) or tree_util.tree_structure(got) != tree_util.tree_structure(want):
        return np.inf
    return max(map(_leaf_distance, a, b), default=0.0)


def _leaf_distance(got: Any, want: Any) -> float:
    if not isinstance(want, (np.ndarray, np.generic, bool, int, float, complex)):
        return 0.0 if type(got) is type(want) and (got is want or got == want) else np.inf
    if isinstance(got, np.ndarray) != isinstance(want, np.ndarray):
        return np.inf  # a Python number joined with a NumPy scalar may be either
    x, y = np.asarray(got), np.asarray(want)
    if x.dtype != y.dtype or x.shape != y.shape:
        return np.inf
    if x.dtype.kind not in "fcV":
        return 0.0 if np.array_equal(x, y) else np.inf
    if x.dtype.kind == "c":
        x, y = (np.stack([v.real, v.imag]) for v in (x, y))
    width = np.dtype(f"u{x.dtype.itemsize}")
    same = (np.ascontiguousarray(x).view(width) == np.ascontiguousarray(y).view(width)).reshape(x.shape)
    if x.dtype.kind == "V":
        return 0.0 if same.all() else np.inf
    same |= np.isnan(x) & np.isnan(y)
    if same.all():
        return 0.0
    finite = np.isfinite(x) & np.isfinite(y)
    if not (same | finite).all():
        return np.inf
    scale = np.max(np.abs(y[finite]))
    unit = np.finfo(x.dtype).eps * max(scale, np.finfo(x.dtype).tiny)
    return max(float(np.max(np.abs(x - y)[~same]) / unit), 1e-3)  # -0.0 for 0.0 is no zero distance


def failures(names: Iterable[str], test: Callable[[str], None]) -> str:
    """`test` of every name; the messages of those that fail."""
    found = []
    for name in names:
        try:
            test(name)
        except Exception as problem:
            found.append(f"{name}: {type(problem).__name__}: {problem}")
    return "\n\n".join(found)


def assert_same(want: Outcome, got: Outcome, bound: float, what: str) -> None:
    """The same exception with the same words, the same prints, results and arguments within `bound`."""
    assert got.error == want.error, f"{what}: {got.error} {got.said!r}, not {want.error} {want.said!r}"
    assert got.printed == want.printed, what
    if want.error is not None:
        assert got.said == want.said, f"{what} says {got.said!r}, not {want.said!r}"
        return
    apart = distance(got.result, want.result), distance(got.args, want.args)
    assert max(apart) <= bound, f"{what}: {apart} apart\n{got}\nnot\n{want}"


# ---- what must be exact ------------------------------------------------------------------------------------

# Operations on floating-point numbers whose result IEEE arithmetic fixes, or that pick one of their operands.
EXACT = frozenset(
    "add sub mul div neg abs sqrt square sign max min floor ceil trunc rint copysign select convert clip "
    "real imag complex conj reduce_max reduce_min cummax cummin sort undefined".split()
)


def is_exact(function: Function) -> bool:
    """Whether every way has to give the same bits: no elementary function, no sum in another order."""
    return all(_exact(let) for let in function.lets)


def _exact(let: Let) -> bool:
    regions = list(let.regions())
    if regions:
        return all(map(is_exact, regions))
    if all(out.type.dtype.kind not in "fcV" for out in let.outs):
        return True
    if isinstance(let.primitive.native, Move | Iota | Put | Gather):
        return True
    return let.primitive.name in EXACT and not any(o.type.dtype.kind == "c" for o in let.outs)
