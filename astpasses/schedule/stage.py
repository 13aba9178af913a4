"""The loops stage: core in, a scheduled Program out.

schedule(f)               lower, fuse, shrink, fold, merge twins, promote, columns as rows, late checks,
                          lockstep, outline, lanes, place
schedule(f, fuse=False)   the same without fusion: the standing oracle (METAPHRASE_FUSE=0)
schedule(f, writes={1: 0})    result 1 is the new value of parameter 0, and may be made in its storage
schedule(f, bounds=False)     indices are not checked
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from metaphrase.core.dims import symbols
from metaphrase.core.facts import Facts
from metaphrase.core.ir import Function

from . import lapack, library, lower_arrays, lower_regions  # noqa: F401 - they register their rules
from .columns import columns_as_rows
from .expand import expand
from .fold import fold
from .fuse import fuse_block
from .lanes import in_lanes
from .late_checks import late_checks
from .lockstep import lockstep
from .lower import lower
from .nest import Fn, Program
from .outline import outline
from .place import make_room, promote, temporaries
from .rename import name_indices, names_in_use
from .shrink import shrink
from .twins import merge_twins
from .values import Names


def schedule(
    function: Function, *, fuse: bool = True, writes: Mapping[int, int] | None = None, bounds: bool = True
) -> Program:
    """Loop nests over buffers for `function`. `Program.in_place` says which of `writes` are made in place."""
    program = lower(expand(function), writes or {}, bounds)
    facts: Facts = program.facts
    body = fuse_block(program.entry.body, facts, fuse)
    if fuse:
        body = shrink(body)
    body = fold(body)
    if fuse:
        body = merge_twins(body)
    body = promote(body, program.names)
    body = fold(body)
    if fuse:
        body = columns_as_rows(body, program.names)
        seen = frozenset(program.params) | {program.results[result] for result, _ in program.in_place}
        body = late_checks(body, program.names, seen)
        body = lockstep(body, program.names)
    body, fns = outline(body)
    body = in_lanes(body, program.names, facts)
    known = frozenset().union(frozenset(), *(symbols(d) for p in program.params for d in p.dims))
    body = make_room(body, known)
    body = name_indices(body, names_in_use(program, body))
    entry = replace(program.entry, body=body, temps=temporaries(body))
    return replace(program, entry=entry, fns=tuple(_finished(f) for f in fns))


def _finished(fn: Fn) -> Fn:
    """An outlined function through the last steps."""
    names = Names()
    for buf in fn.bufs:
        names.fresh(buf.name)
    body = in_lanes(fn.body, names, Facts())
    taken = frozenset(b.name for b in fn.bufs) | frozenset(fn.sizes)
    body = name_indices(body, taken)
    return replace(fn, body=body, temps=tuple(b for b in temporaries(body) if b not in fn.bufs))
