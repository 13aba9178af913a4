"""A program on a GPU: its kernels loaded, and what its host part asks for while it runs.

In: emitted text (emit/cuda_text.py), and `xp`, the module `cupy` or one that has the same names. Out: `CudaProgram`,
which takes arrays of the device and sizes, and gives arrays. Example:

    program = CudaProgram(xp, emitted)
    (y,) = program((x,), (x.shape[0],))

A program whose checks may fail leaves the first failure in a record on the device (`mp_run` in the text). The host
looks at it where it waits for the device anyway, and when the run has ended. Launches are numbered from 1 in each run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..core.types import SHORT
from ..effects import promised
from ..locks import lock
from .cuda_library import library
from .cuda_replay import Notes, Replays, part_of

RECORD = np.dtype(
    [
        ("key", np.int64),
        ("values", np.int64, (16,)),
        ("next", np.uint64),
        ("bytes", np.uint64),
        ("heap", np.uint64),
        ("site", np.int32),
        ("launch", np.int32),
        ("lock", np.int32),
        ("starved", np.int32),
    ]
)
NOTHING_FAILED = np.iinfo(np.int32).max
FIRST_HEAP = 1 << 20  # bytes
WARP = 32  # threads
MOST_AHEAD = 16  # rounds of a loop that are started before the host looks whether they are wanted


class CheckFailed(Exception):
    """What a run stops with: `site` failed, `values` are of its message."""

    def __init__(self, site: int, values: Sequence[int] = ()):
        super().__init__(site, *values)
        self.site, self.values = site, tuple(values)


class Emitted(Protocol):
    """What is loaded: see EmittedCuda."""

    entry: str
    text: str
    kernels: str
    constants: tuple[Any, ...]
    may_fail: bool
    same_each_run: bool


class CudaProgram:
    """One program on one device. `module`: makes functions of CUDA C; a test gives one that runs it without a GPU."""

    def __init__(self, xp: Any, emitted: Emitted, module: Callable[[str], Any], most_blocks: int = 132 * 8):
        self.xp, self.emitted, self.most_blocks = xp, emitted, most_blocks
        self.module = module(emitted.kernels) if emitted.kernels else None
        # An emulator brings libraries of its own.
        self.library: Callable[..., int] = getattr(xp, "metaphrase_library", None) or functools.partial(library, xp)
        self.functions: dict[str, Any] = {}
        self.constants: dict[int, Any] = {}
        self.record: Any = None
        self.heap: Any = None
        self.launches = 0
        self.is_clean = False  # whether the record says nothing of a run before
        self.replays = Replays(self) if emitted.same_each_run else None
        self.lock = lock()  # the record and the heap are of one run at a time
        namespace: dict[str, Any] = {}
        exec(compile(emitted.text, f"<{emitted.entry} on the GPU>", "exec"), namespace)
        self.entry = namespace[emitted.entry]

    def __call__(self, arrays: Sequence[Any], sizes: Sequence[int], effect: Callable[..., Any] | None = None) -> tuple:
        """The results. Raises CheckFailed; an exception of `effect`, which prints and the like call, comes through."""
        with self.lock:
            if self.record is not None and not self.is_clean:
                Run(self).write_record()
            self.is_clean = False
            results = self.replays.run(arrays, sizes) if self.replays is not None else None
            if results is None:
                results = self.told(arrays, sizes, effect=effect)
            if self.emitted.may_fail:
                Run(self).look()
            self.is_clean = True
            return results

    def told(
        self, arrays: Sequence[Any], sizes: Sequence[int], notes: Notes | None = None, effect: Callable | None = None
    ) -> tuple:
        """The results, as the program's text says. `notes`: is told what it launches."""
        self.launches = 0
        return self.entry(Run(self, effect, notes), *arrays, *sizes)

    def call(self, site: int, operation: str, reads: tuple, writes: tuple, attributes: dict[str, Any]) -> None:
        """What a library computes. Raises CheckFailed."""
        status = self.library(operation, reads, writes, **attributes)
        if status:
            if self.emitted.may_fail:
                Run(self).look()
            raise CheckFailed(site + status - 1)

    def function(self, name: str) -> Any:
        """A kernel by its name."""
        if name not in self.functions:
            self.functions[name] = self.module.get_function(name)  # type: ignore[union-attr]
        return self.functions[name]


class Run:
    """One run of a program: the `c` of its text."""

    def __init__(self, program: CudaProgram, effect: Callable[..., Any] | None = None, notes: Notes | None = None):
        self.program, self.xp, self.effect_of, self.notes = program, program.xp, effect, notes

    # --- memory -----------------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], kind: str) -> Any:
        """An array on the device, of which nothing is given yet."""
        shape = tuple([max(int(n), 0) for n in shape])
        array = self.xp.empty(shape, SHORT[kind])
        if self.notes is not None:
            self.notes.allocated(array, shape, kind)
        return array

    def constant(self, number: int) -> Any:
        """A table of the program."""
        known = self.program.constants
        if number not in known:
            known[number] = self.xp.asarray(np.ascontiguousarray(self.program.emitted.constants[number]))
            self.xp.cuda.get_current_stream().synchronize()  # other streams will find it there
        return known[number]

    def grow(self, array: Any, shape: tuple[int, ...], kind: str) -> Any:
        """An array of at least so many rows; those so far are kept."""
        if array is not None and array.shape[0] >= shape[0] and array.shape[1:] == tuple(shape[1:]):
            return array
        made = self.empty((2 * shape[0] + 14, *shape[1:]), kind)
        if array is not None and array.shape[1:] == made.shape[1:]:
            made[: array.shape[0]] = array
        return made

    def view(self, array: Any, offset: int, extents: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """A part of an array for a library; offset and strides in elements."""
        part = part_of(self.xp, array, offset, extents, strides)
        if self.notes is not None:
            self.notes.viewed(part, array, offset, extents, strides)
        return part

    def read(self, array: Any) -> Any:
        """The one element of an array, as Python's number: the host waits for it."""
        value = array.get()
        if self.program.emitted.may_fail:
            self.look()
        return value.reshape(-1)[0].item()

    def rounds(self, one: Callable[..., tuple], answer: Any, state: tuple) -> tuple:
        """The rounds of a loop, `one(*state)` each, until one leaves False in `answer`. The host starts more and more
        of them before it looks: those behind the last one do nothing. What `state` is behind the last one."""
        program, ahead = self.program, 1
        if not self.read(answer):
            return state
        while True:
            if program.launches >= NOTHING_FAILED // 2:
                self.write_record()
            states, ends = [state], []
            for _ in range(ahead):
                states.append(one(*states[-1]))
                ends.append(program.launches)
            record = self._record()
            if record["launch"] != NOTHING_FAILED:
                if record["site"] >= 0:
                    self.look()
                self.write_record()
                return states[ends.index(record["launch"]) + 1]
            state, ahead = states[-1], min(2 * ahead, MOST_AHEAD)

    @staticmethod
    def floordiv(a: int, b: int) -> int:
        """a // b; 0 where b is 0, as on the device: a check behind says so."""
        return a // b if b else 0

    @staticmethod
    def mod(a: int, b: int) -> int:
        """a % b; 0 where b is 0."""
        return a % b if b else 0

    # --- launches ---------------------------------------------------------------------------------

    def each(self, name: str, count: int, threads: int, *args: Any) -> None:
        """A kernel each of whose threads does iterations of its own."""
        self._each(name, count, threads, args)

    def rows(self, name: str, count: int, threads: int, *args: Any) -> None:
        """A kernel each of whose blocks does iterations of its own."""
        self._launch(name, count, threads, args)

    def one(self, name: str, threads: int, *args: Any) -> None:
        """A kernel of one block."""
        self._launch(name, 1, threads, args)

    def each_checked(self, name: str, count: int, threads: int, *args: Any) -> None:
        """As `each`, of a program that may fail."""
        self._each(name, count, threads, (*self._checks(), *args))

    def rows_checked(self, name: str, count: int, threads: int, *args: Any) -> None:
        """As `rows`, of a program that may fail."""
        self._launch(name, count, threads, (*self._checks(), *args))

    def one_checked(self, name: str, threads: int, *args: Any) -> None:
        """As `one`, of a program that may fail."""
        self._launch(name, 1, threads, (*self._checks(), *args))

    def each_growing(self, name: str, kept: tuple, count: int, threads: int, *args: Any) -> None:
        """As `each`, with arrays that grow. `kept`: those to be given back what they held where it has to run again."""
        self._growing(kept, lambda: self.each_checked(name, count, threads, *args))

    def rows_growing(self, name: str, kept: tuple, count: int, threads: int, *args: Any) -> None:
        """As `rows`, with arrays that grow."""
        self._growing(kept, lambda: self.rows_checked(name, count, threads, *args))

    def one_growing(self, name: str, kept: tuple, threads: int, *args: Any) -> None:
        """As `one`, with arrays that grow."""
        self._growing(kept, lambda: self.one_checked(name, threads, *args))

    def _each(self, name: str, count: int, threads: int, args: Sequence[Any]) -> None:
        """Blocks are small where larger ones would leave multiprocessors with nothing to do."""
        while threads > WARP and count < threads * self.program.most_blocks // 16:
            threads //= 2
        self._launch(name, -(-count // threads), threads, args)

    def _launch(self, name: str, blocks: int, threads: int, args: Sequence[Any]) -> None:
        if blocks > 0:
            given = tuple([np.int64(a) if isinstance(a, int) else a for a in args])
            function, grid = self.program.function(name), (min(blocks, self.program.most_blocks),)
            function(grid, (threads,), given)
            if self.notes is not None:
                self.notes.launched(function, grid, (threads,), given)

    def _checks(self) -> tuple[Any, np.int32]:
        program = self.program
        if program.record is None or program.launches >= NOTHING_FAILED - 1:
            self.write_record()
        program.launches += 1
        return program.record, np.int32(program.launches)

    def _growing(self, kept: tuple, launch: Callable[[], None]) -> None:
        program = self.program
        held = [array.copy() for array in kept]
        while True:
            if program.heap is None:
                program.heap = self.xp.empty((FIRST_HEAP,), np.uint8)
            self.write_record()
            launch()
            record = self._record()
            if not record["starved"]:
                return
            for array, before in zip(kept, held):
                array[...] = before
            program.heap = self.xp.empty((4 * program.heap.size,), np.uint8)

    # --- failures ---------------------------------------------------------------------------------

    def write_record(self) -> None:
        """Nothing has failed."""
        program, record = self.program, np.zeros((), RECORD)
        record["launch"] = NOTHING_FAILED
        if program.heap is not None:
            record["heap"], record["bytes"] = program.heap.data.ptr, program.heap.size
        program.launches = 0
        if program.record is None:
            program.record = self.xp.empty((RECORD.itemsize,), np.uint8)
        program.record.set(np.frombuffer(record.tobytes(), np.uint8))

    def _record(self) -> Any:
        return self.program.record.get().view(RECORD)[0]

    def look(self) -> None:
        """Raise CheckFailed if a check has failed."""
        if self.program.record is None:
            return
        record = self._record()
        if record["launch"] != NOTHING_FAILED:
            self.write_record()
            self.program.is_clean = True
            raise CheckFailed(int(record["site"]), record["values"].tolist())

    # --- the host's -------------------------------------------------------------------------------

    def library(self, site: int, operation: str, reads: tuple, writes: tuple, **attributes: Any) -> None:
        """What one of CuPy's libraries computes."""
        self.program.call(site, operation, reads, writes, attributes)
        if self.notes is not None:
            self.notes.called(site, operation, reads, writes, attributes)

    def effect(self, site: int, *values: Any, into: Sequence[Any] = ()) -> None:
        """What Python does with arrays, in the order of the program, and what it gives."""
        if self.program.emitted.may_fail:
            self.look()
        if self.effect_of is not None:
            made: Sequence[Any] = self.effect_of(site, *(value.get() for value in values)) or ()
            for there, given in zip(into, made):
                host = promised(given, there.dtype, _shape_of(there, given))
                there[...] = self.xp.asarray(host.reshape(there.shape))


def _shape_of(there: Any, given: Any) -> tuple[int, ...]:
    """The shape that a result is to have: of rank 0 it lies in an array of one element."""
    return () if there.shape == (1,) and np.shape(given) == () else tuple(there.shape)


__all__ = ["CheckFailed", "CudaProgram", "Run"]
