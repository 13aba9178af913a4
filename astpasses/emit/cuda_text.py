"""A program for a GPU as text: kernels in CUDA C, and Python that launches them.

In: a Program scheduled for CUDA. Out: `EmittedCuda`, whose `text` is a Python module. Example of the text:

    KERNELS = r\'\'\'
    extern "C" __global__ void scaled_0(const f64* __restrict__ x, f64* __restrict__ out, i64 n) { ... }
    \'\'\'

    def scaled(c, x, n):
        out = c.empty((n,), "f64")
        c.each("scaled_0", n, 256, x, out, n)
        return (out,)
"""

from __future__ import annotations

from typing import Any

from metaphrase.astpasses.schedule.nest import Program, Site
from metaphrase.late import dataclass, field

from .cuda_host import HostWriter
from .cuda_kernel import KernelWriter
from .cuda_prelude import prelude


@dataclass(frozen=True)
class EmittedCuda:
    """`text`: the module; `kernels`: the CUDA C in it; `entry`: the function in it that is called. `sites[k]`: what the
    failing or ordered site k is. `in_place`: results that are made in the storage of a parameter.
    `sizes`: the numbers that the function takes behind the parameters. `same_each_run`:
    whether the host launches kernels and calls libraries, as its sizes say, and does nothing else."""

    name: str
    entry: str
    text: str
    kernels: str
    sites: tuple[Site, ...]
    constants: tuple[Any, ...] = ()
    in_place: tuple[tuple[int, int], ...] = ()
    may_fail: bool = field(default=False)
    sizes: tuple[str, ...] = ()
    same_each_run: bool = False


def emit_cuda(program: Program) -> EmittedCuda:
    """The module of a program."""
    name = program.name if program.name.isidentifier() else "program"
    kernels = [fn for fn in program.fns if fn.kernel]
    stops = any(fn.fails for fn in kernels)
    helpers: set[str] = set()
    reductions: set[tuple[str, str, str]] = set()
    bodies = []
    for fn in kernels:
        writer = KernelWriter(fn, stops)
        bodies.append(writer.write())
        helpers |= writer.printer.helpers
        reductions |= writer.reductions
    text = "\n".join([prelude(bodies, helpers, reductions), *bodies]) if kernels else ""
    host = HostWriter(program, name)
    whole = f"KERNELS = r'''\n{text}'''\n\n\n{host.whole()}"
    constants = tuple(b.data for b in program.constants)
    return EmittedCuda(
        name,
        name,
        whole,
        text,
        program.sites,
        constants,
        program.in_place,
        may_fail=stops,
        sizes=program.sizes,
        same_each_run=host.same_each_run,
    )


__all__ = ["EmittedCuda", "emit_cuda"]
