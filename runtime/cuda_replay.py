"""Runs of a program of a GPU that are made again: its steps without the Python between them, launches as CUDA graphs.

In: a program whose host part launches kernels and calls libraries, as its sizes say, and does nothing else
(`EmittedCuda.same_each_run`). Out: what a call gives. Example:

    replays = Replays(program)
    replays.run(arrays, (1000,))      # None: these sizes are new, and the program's text runs
    replays.run(arrays, (1000,))      # runs the text and notes what it does and what memory it asks for
    replays.run(arrays, (1000,))      # does that; temporary arrays lie in one arena, where their lives permit
    replays.run(arrays, (1000,))      # the same addresses as before: launches with no library between them are a graph

A graph holds addresses. In a loop (`w = step(w, x)`) CuPy's pool gives the same ones after a few calls; for others the
launches are made one by one. The arena is a stream's own, whose work is done in order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import groupby, repeat
from threading import get_ident
from typing import Any, Protocol

import numpy as np

from ..core.types import SHORT
from ..late import dataclass, log

MOST_STEPS = 4096  # of a run that is noted
MOST_RECIPES = 8  # of a program: the last sizes and streams that it was called with
MOST_GRAPHS = 16  # of a recipe
ARENA_KEPT = 32 << 20  # bytes: beyond, a call takes its memory from the pool, for others to have between calls
GRAPH_FROM = 2  # launches with no library between them
ALIGNED = 512  # bytes, as CuPy's pool aligns


class Program(Protocol):
    """What is run again: see CudaProgram."""

    xp: Any

    def told(self, arrays: Sequence[Any], sizes: Sequence[int], notes: Notes) -> tuple: ...

    def call(self, site: int, operation: str, reads: tuple, writes: tuple, attributes: dict[str, Any]) -> None: ...


@dataclass
class Note:
    """An array that a run asked for, and the steps that had to do with it first and last."""

    array: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    first: int = -1
    last: int = -1

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@dataclass
class View:
    """A part of an array, for a library: as `Run.view` takes it."""

    array: Any
    base: int
    how: tuple[int, tuple[int, ...], tuple[int, ...]]


@dataclass
class Launch:
    """A kernel, how it is launched, and its arguments: a place in the run's table of arrays, or the argument itself."""

    function: Any
    grid: tuple[int]
    block: tuple[int]
    arguments: tuple[int | Any, ...]


@dataclass
class Call:
    """What a library computes: places of the arrays that it reads and fills."""

    site: int
    operation: str
    reads: tuple[int | Any, ...]
    writes: tuple[int | Any, ...]
    attributes: dict[str, Any]


def arena_of(lives: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Where each of some arrays begins in one piece of memory, and its size. `lives`: (first, last, bytes) of each, by
    `first`; arrays that live at one time lie apart.

    >>> arena_of([(0, 1, 600), (1, 2, 100), (2, 3, 512)])
    ([0, 1024, 0], 1536)
    """
    places: list[int] = []
    free: list[tuple[int, int]] = []  # (begin, end), by place
    ends: list[tuple[int, int, int]] = []  # (last, begin, end) of those that live
    size = 0
    for first, last, nbytes in lives:
        while ends and ends[0][0] < first:
            _, begin, end = heapq.heappop(ends)
            free = _joined([*free, (begin, end)])
        length = -(-nbytes // ALIGNED) * ALIGNED
        fitting = [room for room in free if room[1] - room[0] >= length]
        if fitting:
            begin, end = min(fitting, key=lambda room: room[1] - room[0])
            free.remove((begin, end))
            if begin + length < end:
                free = _joined([*free, (begin + length, end)])
        elif free and free[-1][1] == size:  # what is free at the end is made longer
            begin = free.pop()[0]
            size = begin + length
        else:
            begin, size = size, size + length
        places.append(begin)
        heapq.heappush(ends, (last, begin, begin + length))
    return places, size


def _joined(rooms: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pieces of memory by place, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(rooms):
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined


class Notes:
    """What a run does and asks for, noted while it runs. Arrays are numbered: those that are given, then those that it
    asks for and parts of them; what else a step is given is the same in each run."""

    def __init__(self, arrays: Sequence[Any]):
        self.given = [array.view() for array in arrays]  # one that is given twice stands at two places
        self.places = {id(array): k for k, array in enumerate(self.given)}
        self.made: list[Note | View] = []
        self.steps: list[Launch | Call] = []

    def allocated(self, array: Any, shape: tuple[int, ...], kind: str) -> None:
        self._number(Note(array, shape, np.dtype(SHORT[kind])))

    def viewed(self, part: Any, array: Any, *how: Any) -> None:
        if id(array) in self.places:
            self._number(View(part, self.places[id(array)], how))  # type: ignore[arg-type]

    def _number(self, made: Note | View) -> None:
        self.places[id(made.array)] = len(self.given) + len(self.made)
        self.made.append(made)

    def launched(self, function: Any, grid: tuple[int], block: tuple[int], arguments: Sequence[Any]) -> None:
        if len(self.steps) <= MOST_STEPS:
            self.steps.append(Launch(function, grid, block, self._slots(arguments)))

    def called(self, site: int, operation: str, reads: tuple, writes: tuple, attributes: dict[str, Any]) -> None:
        if len(self.steps) <= MOST_STEPS:
            self.steps.append(Call(site, operation, self._slots(reads), self._slots(writes), attributes))

    def _slots(self, arguments: Sequence[Any]) -> tuple[int | Any, ...]:
        slots = tuple(a if isinstance(a, np.generic) else self.places.get(id(a), a) for a in arguments)
        for slot in slots:
            while isinstance(slot, int) and slot >= len(self.given):
                made = self.made[slot - len(self.given)]
                if isinstance(made, Note):
                    made.first = len(self.steps) if made.first < 0 else made.first
                    made.last = len(self.steps)
                    break
                slot = made.base
        return slots


class Recipe:
    """The steps of a run for certain sizes, and the memory that they need."""

    def __init__(self, program: Program, notes: Notes, results: list[int], stream: Any):
        self.program, self.xp, self.results = program, program.xp, results
        self.stream = stream  # as long as it is there no other one has its address
        self.count = count = len(notes.given)
        self.arrays = {k: made for k, made in enumerate(notes.made, count) if isinstance(made, Note)}
        self.fresh = [k for k in dict.fromkeys(results) if k >= count]
        self.temporaries = sorted(self.arrays.keys() - set(self.fresh), key=lambda k: self.arrays[k].first)
        self.places, self.bytes = arena_of(
            [(a.first, a.last, a.nbytes) for a in map(self.arrays.get, self.temporaries) if a]
        )
        views = {k: made for k, made in enumerate(notes.made, count) if isinstance(made, View)}
        kept = self.bytes <= ARENA_KEPT
        self.views = {k: view for k, view in views.items() if not kept or view.base not in self.temporaries}
        self.table: list[Any] = [None] * (count + len(notes.made))
        if kept:
            self._lay_out(self.table)
            self._take_parts(self.table, {k: view for k, view in views.items() if k not in self.views})
        # Launches with no library between them are a stretch.
        self.stretches = [list(group) for _, group in groupby(notes.steps, lambda step: isinstance(step, Launch))]
        as_graph = kept and any(isinstance(s[0], Launch) and len(s) >= GRAPH_FROM for s in self.stretches)
        self.graphs: dict[tuple[int, ...], list[Any] | None] | None = {} if as_graph else None
        for made in notes.made:
            made.array = None

    def _lay_out(self, table: list[Any]) -> None:
        """The temporary arrays, in one piece of memory."""
        arena = self.xp.empty((max(self.bytes, 1),), np.uint8)
        for k, begin in zip(self.temporaries, self.places):
            array = self.arrays[k]
            table[k] = arena[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)

    def _take_parts(self, table: list[Any], views: dict[int, View]) -> None:
        for k, view in views.items():
            table[k] = part_of(self.xp, table[view.base], *view.how)

    def run(self, arrays: Sequence[Any]) -> tuple:
        """The results for other arrays."""
        table = self.table.copy()
        table[: self.count] = arrays
        for k in self.fresh:
            table[k] = self.xp.empty(self.arrays[k].shape, self.arrays[k].dtype)
        if self.bytes > ARENA_KEPT:
            self._lay_out(table)
        self._take_parts(table, self.views)
        for stretch, graph in zip(self.stretches, self._graphs(table) or repeat(None)):
            if graph is not None:
                graph.launch()
            else:
                self._do(stretch, table)
        return tuple([table[k] for k in self.results])

    def _do(self, steps: Sequence[Launch | Call], table: Sequence[Any]) -> None:
        def given(slots: tuple) -> tuple:
            return tuple([table[slot] if slot.__class__ is int else slot for slot in slots])

        for step in steps:
            if isinstance(step, Launch):
                step.function(step.grid, step.block, given(step.arguments))
            else:
                self.program.call(step.site, step.operation, given(step.reads), given(step.writes), step.attributes)

    def _graphs(self, table: Sequence[Any]) -> list[Any] | None:
        """The graphs of these addresses, one for each stretch of several launches; they are made when the addresses
        come for the second time."""
        if self.graphs is None:
            return None
        key = tuple([table[k].data.ptr for k in (*range(self.count), *self.fresh)])
        if key not in self.graphs:
            if len(self.graphs) >= MOST_GRAPHS:
                del self.graphs[next(iter(self.graphs))]
            self.graphs[key] = None
            return None
        if self.graphs[key] is None:
            try:
                self.graphs[key] = [self._captured(stretch, table) for stretch in self.stretches]
            except RuntimeError as error:  # those of CuPy are, too
                log.info("launches are made one by one: %s", error)
                self.graphs = None  # nor will others be
                return None
        return self.graphs[key]

    def _captured(self, steps: Sequence[Launch | Call], table: Sequence[Any]) -> Any:
        """The launches as a graph; None where they are few, or a library's calls."""
        if isinstance(steps[0], Call) or len(steps) < GRAPH_FROM:
            return None
        stream = self.xp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                self._do(steps, table)
            finally:
                graph = stream.end_capture()
        return graph


def part_of(xp: Any, array: Any, offset: int, extents: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A part of an array; offset and strides in elements."""
    flat = array.reshape(-1)[offset:]
    size = array.dtype.itemsize
    return xp.lib.stride_tricks.as_strided(flat, extents, tuple([s * size for s in strides]))


PER_THREAD = 2  # the address that CUDA gives the default stream of each thread


def stream_key(stream: Any) -> tuple[int, int]:
    """What tells a stream from others whose work is not done in order with its own."""
    return stream.ptr, get_ident() if stream.ptr == PER_THREAD else 0


class Replays:
    """The recipes of a program."""

    def __init__(self, program: Program):
        self.program = program
        self.recipes: dict[tuple, Recipe | None] = {}  # None: seen once, or too long

    def run(self, arrays: Sequence[Any], sizes: Sequence[int]) -> tuple | None:
        """The results; None where the program's text has to run."""
        stream = self.program.xp.cuda.get_current_stream()
        key = (*stream_key(stream), *sizes)
        if key not in self.recipes:
            if len(self.recipes) >= MOST_RECIPES:
                del self.recipes[next(iter(self.recipes))]
            self.recipes[key] = None
            return None
        recipe = self.recipes[key]
        if recipe is not None:
            return recipe.run(arrays)
        notes = Notes(arrays)
        results = self.program.told(notes.given, sizes, notes)
        places = [notes.places.get(id(result), -1) for result in results]
        if len(notes.steps) <= MOST_STEPS and -1 not in places:
            self.recipes[key] = Recipe(self.program, notes, places, stream)
        return tuple(arrays[k] if 0 <= k < len(arrays) else r for k, r in zip(places, results))


__all__ = ["Notes", "Replays", "arena_of", "part_of", "stream_key"]
