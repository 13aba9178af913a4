"""Programs for a GPU run by the emulator: what the tests of this folder have in common.

In: a core Function and flat arguments. Out: its results, made by the kernels that are emitted for it. Example:

    (y,) = run(core("kernels.softmax"), [x])

`SMALL` is a GPU of small blocks on which a handful of iterations is worth a grid, so that small arrays take every way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import stand_in

from metaphrase.astpasses.emit.cuda_text import EmittedCuda, emit_cuda
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.lower import size_symbols
from metaphrase.astpasses.schedule.nest import Program
from metaphrase.astpasses.schedule.target import CUDA, Target
from metaphrase.core.evaluate import bind_argument
from metaphrase.core.ir import Function
from metaphrase.core.types import Array
from metaphrase.runtime.cuda import CheckFailed
from metaphrase.runtime.cuda_load import loaded
from metaphrase.runtime.devices import Device
from metaphrase.runtime.plans import callbacks_of, site_table

SMALL = replace(
    CUDA,
    threads=64,
    blocks=4,
    grid_from=2,
    block_from=2,
    part_from=2,
    wide_from=2,
    warp_most=128,
    rows_from=3,
    tile=4,
    of_a_thread=1,
    apart_from=1,
)
TARGETS = {"large": CUDA, "small": SMALL}


def emitted(function: Function, target: Target = CUDA, checked: bool = False) -> tuple[Program, EmittedCuda]:
    """A program's loops and its text."""
    program = schedule(function, target, checked=checked)
    return program, emit_cuda(program)


def run(
    function: Function, arrays: Sequence[Any], target: Target = CUDA, xp: Any = stand_in, again: bool = False
) -> list[np.ndarray]:
    """The results of a program; failing sites raise, ordered ones print. `xp`: cupy, where there is a GPU. `again`: the
    later runs, as a list of launches and as a graph, have to give them to the bit."""
    program, made = emitted(function, target)
    sizes: dict[str, int] = {}
    given = [bind_argument(p.type, a, sizes) for p, a in zip(function.params, arrays, strict=True)]
    on_device = [xp.asarray(_with_dims(a, p.type)) for p, a in zip(function.params, given)]
    callbacks = callbacks_of(program.sites)

    def effect(site: int, *values: np.ndarray) -> Any:
        ranks = (*program.sites[site].ranks, *(len(values) * (1,)))
        return callbacks[site].function(*(v if rank else v.reshape(())[()] for v, rank in zip(values, ranks)))

    program_there = loaded(xp, Device("gpu", 0), made)
    try:
        values = [sizes[name] for name in size_symbols(function)]
        results = program_there(on_device, values, effect)
        if again and made.same_each_run:
            for _ in range(4):
                later = program_there(on_device, values, effect)
                assert [r.get().tobytes() for r in later] == [r.get().tobytes() for r in results]
                del later
    except CheckFailed as failed:
        site_table(program.sites).raise_site(failed.site, 0, failed.values)
    return [r.get().reshape(r.shape if t.type.dims else ())[()] for r, t in zip(results, function.results)]


def _with_dims(array: Any, type_: Array) -> np.ndarray:
    """Numbers lie in arrays of one element."""
    array = np.asarray(array, type_.dtype)
    return np.ascontiguousarray(array) if type_.dims else array.reshape(1)
