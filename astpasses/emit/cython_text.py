"""Loop nests as Cython: one `cdef ... noexcept nogil` a function, one entry, no Python object anywhere.

In: a scheduled `Program`. Out: `EmittedText(text, sites, ...)`. The text of y = sin(x), s = sum(y):

    cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:
        cdef f64_p x = <f64_p>buffers[0]
        ...
        for i in range(n):
            s += f64_sin(x[i])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metaphrase.astpasses.schedule.nest import Program, Site
from metaphrase.late import dataclass, field
from metaphrase.source import Span

from .cython_function import FunctionWriter
from .cython_prelude import prelude
from .polls import asked_first

DIRECTIVES = "# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False\n"


@dataclass(frozen=True)
class EmittedText:
    """`text` is a Cython module with one `entry`. `sites[k]`: what the failing or ordered site k is. `places`: its line
    numbers, from 1, to places in the user's source; `also`: to others that have a part in a line."""

    name: str
    text: str
    sites: tuple[Site, ...]
    uses_blas: bool = False  # the context's table must be filled
    in_place: tuple[tuple[int, int], ...] = ()  # results that are made in the storage of a parameter
    places: Mapping[int, Span] = field(default_factory=dict, repr=False)
    also: Mapping[int, tuple[Span, ...]] = field(default_factory=dict, repr=False)


def emit(program: Program, kind: type[FunctionWriter] = FunctionWriter) -> EmittedText:
    """The module of a program, whose functions are written by a `kind` of writer."""
    helpers: set[str] = set()
    abi: set[str] = set()
    routines: dict[str, tuple[str, str]] = {}
    simd: set[str] = set()
    bodies: list[str] = []
    pieces = [(fn, kind.write) for fn in program.fns]
    for fn, write in (*pieces, (program.entry, asked_first), (program.entry, kind.write)):
        writer = kind(program, fn, is_entry=fn is program.entry)
        text = write(writer)
        bodies += [*writer.parts, text]
        helpers |= writer.printer.helpers
        abi |= writer.abi
        simd |= writer.simd
        routines.update(writer.routines)
    head = prelude(
        bodies,
        helpers,
        abi,
        [(b.name, b.data) for b in program.constants],
        [c for c, _ in routines.values()],
        [d for _, d in routines.values()],
        simd,
    )
    start, bodies = DIRECTIVES + head + "\n\n", list(filter(None, bodies))
    text = start + "\n\n".join(bodies)
    places, also = (_shifted(start.count("\n"), bodies, name) for name in ("places", "also"))
    return EmittedText(program.name, text, program.sites, "blas" in abi, program.in_place, places, also)


def _shifted(line: int, bodies: Sequence[str], name: str) -> dict[int, Any]:
    """What the texts of functions know of their lines, which stand behind `line` others and two lines apart."""
    found: dict[int, Any] = {}
    for body in bodies:
        found.update((line + number, known) for number, known in getattr(body, name, {}).items())
        line += body.count("\n") + 2
    return found


__all__ = ["emit", "EmittedText"]
