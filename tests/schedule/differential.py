"""Running one core Function four ways: by NumPy's rules, as Python loops (fused and not), natively (fused
and not).

In: a Function and arrays. Out: nothing; an AssertionError says which way differs from `evaluate`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.astpasses.emit.cython_text import emit
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.astpasses.schedule.lower import size_symbols
from metaphrase.astpasses.schedule.nest import Program
from metaphrase.core.dims import substitute
from metaphrase.core.evaluate import bind_argument, evaluate
from metaphrase.core.ir import Function
from metaphrase.runtime import cython_build, dispatch
from metaphrase.runtime.entry import CallbackSite


def sizes_of(function: Function, arrays: tuple) -> dict[str, int]:
    """The values of the size symbols of the parameter types."""
    sizes: dict[str, int] = {}
    for param, array in zip(function.params, arrays):
        bind_argument(param.type, array, sizes)
    return sizes


def run_native(function: Function, program: Program, arrays: tuple) -> list[np.ndarray]:
    """Build the program's Cython and call its entry."""
    emitted = emit(program)
    library = cython_build.build(emitted.text, name=function.name)
    if emitted.uses_blas:
        dispatch.load_blas()
    sizes = sizes_of(function, arrays)
    types = []
    for result in function.results:
        dims = tuple(substitute(d, sizes) for d in result.type.dims)
        types.append((result.type.dtype, dims if all(isinstance(d, int) for d in dims) else len(dims)))
    values = [np.asarray(a, p.type.dtype) for a, p in zip(arrays, function.params)]
    sites = [CallbackSite(lambda *operands: None, tuple(zip(s.dtypes, s.ranks))) for s in program.sites]
    return dispatch.run_entry(
        library.address, values, types, [sizes[n] for n in size_symbols(function)], callbacks=sites
    )


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
    scale = (
        np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)), initial=0) if want.dtype.kind == "c" else 0
    )
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(
                got,
                want,
                rtol=ulps * eps,
                atol=ulps * eps * scale * 0.5 + np.finfo(want.dtype).tiny,
                equal_nan=True,
            )
        )


def check(function: Function, *arrays: Any, ulps: int = 8, native: bool = True, loops: bool = True) -> None:
    """Every way of running `function` gives what `evaluate` gives."""
    want = evaluate(function, *arrays)
    for fuse in (True, False):
        program = schedule(function, fuse=fuse)
        ways = {}
        if loops:
            ways["loops"] = python_loops.run(program, *arrays)
        if native:
            ways["native"] = run_native(function, program, arrays)
        for name, got in ways.items():
            for k, (g, w) in enumerate(zip(got, want, strict=True)):
                assert close(g, w, ulps), (
                    f"{function.name}: result {k} of the {name} stage (fuse={fuse}) is\n{g!r}\nnot\n{w!r}\n\n"
                    f"{function}\n"
                    f"{python_loops.text(program)}"
                )
