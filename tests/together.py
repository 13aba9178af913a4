"""Native code of many jitted functions, compiled as a few libraries: a compile costs more than a program does.

In: jitted functions and the arguments of calls. Out: the same functions, whose calls find their code compiled.
Example:

    with Together() as builds:
        with builds.of("a"):
            translate(f, (x,))          # staged and scheduled, and not yet compiled
        with builds.of("b"):
            translate(g, (x, 2.0))
    f(x), g(x, 2.0)                     # native; `builds.broken` names whose code did not compile

How hard the compiler tries tests/levels.py says. `jit` gets an address before there is code: that of a slot,
which jumps to the code. What is called inside of `of` would find an empty slot, and fail.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import os
import tempfile
import weakref
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from grouped import Pieces, entries, pieces
from levels import PARTS

import metaphrase as mp
from metaphrase import config
from metaphrase.api import compile as compiling
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import jitted_of
from metaphrase.astpasses.emit.cython_text import EmittedText
from metaphrase.core.ir import Function
from metaphrase.pipeline import loops
from metaphrase.runtime.compiler import compile_shared, find_compiler, flags
from metaphrase.runtime.cython_build import BuildError, Library

SIZE = 16  # programs in a library
SLOTS = 128  # made at a time
SLOT_TEXT = """
typedef int (*program)(void *, void **, const long long *);
static int empty(void *c, void **buffers, const long long *sizes) { return -1000; }
static program programs[%d];
void fill(int k, program p) { programs[k] = p ? p : empty; }
%s
program slots[] = {%s};
"""


@dataclass(frozen=True)
class Slot:
    """Where one jumps from, and how it is said where to; None: nowhere."""

    address: int
    fill: Callable[[int | None], None]

    def release(self) -> None:
        self.fill(None)
        free.append(self)


free: list[Slot] = []


def free_slot() -> Slot:
    if not free:
        free.extend(more_slots())
    return free.pop()


def more_slots() -> list[Slot]:
    one = "static int slot_{0}(void *c, void **b, const long long *s) {{ return programs[{0}](c, b, s); }}"
    names = ", ".join(f"slot_{k}" for k in range(SLOTS))
    text = SLOT_TEXT % (SLOTS, "\n".join(one.format(k) for k in range(SLOTS)), names)
    with tempfile.TemporaryDirectory() as place:
        source, made = Path(place, "slots.c"), Path(place, "slots.so")
        source.write_text(text)
        compile_shared(find_compiler(), source, made, flags(extra=("-O0",)))
        library = ctypes.CDLL(str(made))
    library.fill.argtypes, library.fill.restype = (ctypes.c_int, ctypes.c_void_p), None
    for k in range(SLOTS):
        library.fill(k, None)
    addresses = (ctypes.c_void_p * SLOTS).in_dll(library, "slots")
    return [Slot(address, functools.partial(library.fill, k)) for k, address in enumerate(addresses)]


@dataclass(frozen=True)
class Waiting:
    """A program that has a slot and no code. `library`: what `jit` holds; the slot is free again when it is
    gone. `contract`: whether its products and sums may be contracted."""

    owner: Hashable
    slot: Slot
    library: Library
    written: Pieces
    contract: bool


class Together:
    """Inside of `with builds.of(owner)` what `jit` compiles waits; at the end of `with` all is compiled."""

    def __init__(self, size: int = SIZE):
        self.size = size
        self.waiting: list[Waiting] = []
        self.libraries = 0  # how many were made
        self.broken: set[Hashable] = set()

    def __enter__(self) -> Together:
        return self

    def __exit__(self, kind: type | None, *_: Any) -> None:
        if kind is None:
            self.compile()

    @contextlib.contextmanager
    def of(self, owner: Hashable) -> Iterator[None]:
        before = compiling.native

        def native(function: Function, name: str, writes: Any = None) -> tuple[Library, EmittedText]:
            if config.fastmath:
                return before(function, name, writes)
            return self.native(owner, function, name, writes)

        compiling.native = native
        try:
            yield
        finally:
            compiling.native = before

    def native(self, owner: Hashable, function: Function, name: str, writes: Any) -> tuple[Library, EmittedText]:
        """In place of the pipeline's `native`."""
        program = loops(function, writes)
        written = pieces(program)
        slot = free_slot()
        library = Library(name, slot.address, Path("nowhere"), "", False, "kernel")
        weakref.finalize(library, slot.release).atexit = False
        self.waiting.append(Waiting(owner, slot, library, written, config.contract))
        blas = "blas" in written.abi
        return library, EmittedText(name, "abi_blas.h" if blas else "", program.sites, blas, program.in_place)

    def compile(self) -> None:
        """Code for all that waits. The owners of what is in a group that does not compile are `broken`."""
        for contract in (False, True):
            alike = [w for w in self.waiting if w.contract == contract]
            for group in (alike[k : k + self.size] for k in range(0, len(alike), self.size)):
                try:
                    library, addresses = entries([w.written for w in group], contract)
                except BuildError:
                    self.broken |= {w.owner for w in group}
                    continue
                self.libraries += 1
                for w, address in zip(group, addresses):
                    object.__setattr__(w.library, "code", library)  # held as long as that is
                    w.slot.fill(address)
        self.waiting = []


def translate(jitted: Callable, args: tuple) -> None:
    """The first half of a call: whatever of it has to be translated is."""
    jit = jitted_of(jitted)
    assert jit is not None
    args, kwargs = jit._user_call(jit.bind(args, {}))
    jit._memo.find(take_apart(args, kwargs, jit.static, jit.in_order))


def jitted(calls: Mapping[Any, tuple[Callable, tuple]]) -> dict[Any, Callable]:
    """`jit` of functions that will be called with such arguments. All but a seventeenth, another one each day,
    are compiled in groups; what can't be translated raises when it is called."""
    functions = {key: mp.jit(function) for key, (function, _) in calls.items()}
    turn = int(os.environ["METAPHRASE_TESTS_DAY"])
    with Together() as builds, np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
        for key, (_, args) in calls.items():
            if (zlib.crc32(repr(key).encode()) + turn) % PARTS:
                with builds.of(key), contextlib.suppress(Exception):
                    translate(functions[key], args)
    assert not builds.broken, f"the code of a group does not compile: {builds.broken}"
    return functions
