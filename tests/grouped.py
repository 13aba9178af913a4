"""Many programs in one native library: they share what a compile costs, and the corpus can be compiled whole.

In: core Functions by key. Out: `Compiled`s by key, which run on flat arrays. Example:

    compiled = build({"softmax": f, "lu": g})
    compiled["lu"].run([a])

The text of each function is what the emitter gives; only names at the top level are numbered.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import levels
import numpy as np

from metaphrase.astpasses.emit.cython_function import FunctionWriter
from metaphrase.astpasses.emit.cython_prelude import prelude
from metaphrase.astpasses.emit.cython_text import DIRECTIVES
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.lower import size_symbols
from metaphrase.astpasses.schedule.nest import Program
from metaphrase.core.dims import substitute
from metaphrase.core.evaluate import bind_argument
from metaphrase.core.ir import Function
from metaphrase.core.types import type_symbols
from metaphrase.runtime import cython_build, dispatch
from metaphrase.runtime.plans import callbacks_of, site_table


@dataclass(frozen=True)
class Compiled:
    """A core Function and the address of its native code, in a library that is held."""

    function: Function
    program: Program
    address: int
    library: cython_build.Library

    def run(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """The results; raises what a failing site stands for, prints what an ordered one does."""
        function, sizes = self.function, {}
        for param, array in zip(function.params, arrays, strict=True):
            bind_argument(param.type, array, sizes)
        types = []
        for result in function.results:
            known = type_symbols(result.type.plain) <= sizes.keys()
            dims = tuple(substitute(d, sizes) for d in result.type.dims) if known else len(result.type.dims)
            types.append((result.type.dtype, dims))
        values = [np.asarray(a, p.type.dtype) for a, p in zip(arrays, function.params)]
        made = dispatch.run_entry(
            self.address,
            values,
            types,
            [sizes[n] for n in size_symbols(function)],
            callbacks=callbacks_of(self.program.sites),
            raise_site=site_table(self.program.sites).raise_site,
        )
        return [a if a.ndim else a[()] for a in made]


def build(
    functions: Mapping[Any, Function],
    programs: Mapping[Any, Program] | None = None,
    *,
    contract: bool = False,
    level: str = "",
    flags: tuple[str, ...] = (),
) -> dict[Any, Compiled]:
    """One library of all of them. `programs`: their loops stages, in the same order. `level`: how hard the
    compiler tries, if not as in all groups. `flags`: more of the compiler's."""
    programs = programs or {key: schedule(function) for key, function in functions.items()}
    flags = (level, *flags) if level else flags
    library, addresses = entries([pieces(p) for p in programs.values()], contract, flags=flags)
    return {
        key: Compiled(functions[key], program, address, library)
        for (key, program), address in zip(programs.items(), addresses)
    }


def entries(
    programs: Sequence[Pieces], contract: bool, flags: tuple[str, ...] = ()
) -> tuple[cython_build.Library, list]:
    """One library of several programs, and the addresses of their entries, which hold as long as it does. A flag that
    says how hard the compiler tries is taken in the place of the groups' own."""
    text = joined(programs)
    library = cython_build.build(
        text, name="group", contract=contract, extra_flags=(*levels.level(text, levels.GROUPED), *flags)
    )
    if any("blas" in p.abi for p in programs):
        dispatch.load_blas()
    table = (ctypes.c_void_p * max(len(programs), 1))()
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(library.address)(
        None, table, None
    )
    return library, list(table)[: len(programs)]


@dataclass(frozen=True)
class Pieces:
    """The Cython text of a program in parts; `names`: those at its top level."""

    bodies: tuple[str, ...]
    constants: tuple[tuple[str, Any], ...]
    names: tuple[str, ...]
    helpers: set[str]
    abi: set[str]
    simd: set[str]
    routines: dict[str, tuple[str, str]]


def pieces(program: Program) -> Pieces:
    """A program written."""
    helpers: set[str] = set()
    abi: set[str] = set()
    simd: set[str] = set()
    routines: dict[str, tuple[str, str]] = {}
    bodies = []
    for fn in (*program.fns, program.entry):
        writer = FunctionWriter(program, fn, is_entry=fn is program.entry)
        text = writer.write()
        bodies += [*writer.parts, text]
        helpers |= writer.printer.helpers
        abi |= writer.abi
        simd |= writer.simd
        routines.update(writer.routines)
    fns = re.findall(r"^cdef \w+ (\w+)\(", "\n".join(bodies), re.MULTILINE)
    names = (*fns, *(b.name for b in program.constants))
    constants = tuple((b.name, b.data) for b in program.constants)
    return Pieces(tuple(bodies), constants, names, helpers, abi, simd, routines)


def module(programs: Sequence[Program]) -> tuple[str, bool]:
    """The Cython text of several programs, and whether one needs BLAS."""
    written = [pieces(program) for program in programs]
    return joined(written), any("blas" in p.abi for p in written)


def joined(programs: Sequence[Pieces]) -> str:
    """The Cython text of several programs; its entry fills a table with the addresses of theirs."""
    bodies, constants = [], []
    for k, program in enumerate(programs):
        own = re.compile(rf"\b(?:{'|'.join(map(re.escape, program.names))})\b")
        bodies += [own.sub(lambda name, k=k: f"{name[0]}_of_{k}", body) for body in program.bodies]
        constants += [(f"{name}_of_{k}", data) for name, data in program.constants]
    table = ["cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:"]
    table += [f"    buffers[{k}] = <void*>entry_of_{k}" for k in range(len(programs))]
    bodies.append("\n".join([*table, "    return 0"]) + "\n")
    helpers, abi, simd = (set().union(*(getattr(p, kind) for p in programs)) for kind in ("helpers", "abi", "simd"))
    routines = {name: texts for p in programs for name, texts in p.routines.items()}
    texts, declarations = [c for c, _ in routines.values()], [d for _, d in routines.values()]
    head = prelude(bodies, helpers, abi, constants, texts, declarations, simd)
    return DIRECTIVES + head + "\n\n" + "\n\n".join(bodies)
