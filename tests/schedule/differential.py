"""Running one core Function four ways: by NumPy's rules, as Python loops (fused and not), natively (fused
and not).

In: a Function and arrays. Out: nothing; an AssertionError says which way differs from `evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from grouped import build

from metaphrase.astpasses.emit.cython_text import emit
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.astpasses.schedule.nest import Program
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.runtime import cython_build, dispatch


def run_program(program: Program, arrays: list, results: list, sizes: list) -> list[np.ndarray]:
    """Run a Program natively; `results`: (dims or rank, dtype) each."""
    library = cython_build.build(emit(program).text, name=program.name)
    values = [np.asarray(a, b.dtype) for a, b in zip(arrays, program.params)]
    return dispatch.run_entry(library.address, values, [(dtype, dims) for dims, dtype in results], sizes)


def close(got: Any, want: Any, ulps: int) -> bool:
    """Equal within `ulps` of the dtype, NaN equal to NaN; integers and bools exactly."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if want.dtype.kind not in "fcV":
        return bool(np.array_equal(got, want))
    if want.dtype.kind == "V":
        got, want = got.astype(np.float32), want.astype(np.float32)
        return bool(np.allclose(got, want, rtol=2e-2, atol=1e-2, equal_nan=True))
    eps = np.finfo(want.dtype).eps
    scale = np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)), initial=0) if want.dtype.kind == "c" else 0
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(
                got, want, rtol=ulps * eps, atol=ulps * eps * scale * 0.5 + np.finfo(want.dtype).tiny, equal_nan=True
            )
        )


def check(function: Function, *arrays: Any, ulps: int = 8, native: bool = True) -> None:
    """Every way of running `function` gives what `evaluate` gives."""
    check_all([(function, arrays)], ulps, native)


def check_all(cases: Sequence[tuple[Function, tuple]], ulps: int = 8, native: bool = True) -> None:
    """`check` of several, whose native code is one library."""
    keys = [(k, fuse) for k in range(len(cases)) for fuse in (True, False)]
    programs = {(k, fuse): schedule(cases[k][0], fuse=fuse) for k, fuse in keys}
    compiled = build({key: cases[key[0]][0] for key in keys}, programs, contract=True) if native else {}
    for (k, fuse), program in programs.items():
        function, arrays = cases[k]
        want = evaluate(function, *arrays)
        ways = {"loops": python_loops.run(program, *arrays)}
        if native:
            ways["native"] = compiled[k, fuse].run(arrays)
        for way, got in ways.items():
            for n, (g, w) in enumerate(zip(got, want, strict=True)):
                assert close(g, w, ulps), (
                    f"{function.name}: result {n} of the {way} stage (fuse={fuse}) is\n{g!r}\nnot\n{w!r}\n\n"
                    f"{function}\n"
                    f"{python_loops.text(program)}"
                )
