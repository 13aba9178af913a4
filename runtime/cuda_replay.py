"""Runs of a program of a GPU that are made again: the launches without the Python between them, then one CUDA graph.

In: a program whose host part does nothing but launch kernels, as its sizes say (`EmittedCuda.launches_only`). Out: what
a call gives. Example:

    replays = Replays(program)
    replays.run(arrays, (1000,))      # None: these sizes are new, and the program's text runs
    replays.run(arrays, (1000,))      # runs the text and notes what it launches and what memory it asks for
    replays.run(arrays, (1000,))      # launches that; temporary arrays lie in one arena, where their lives permit
    replays.run(arrays, (1000,))      # the same addresses as before: one graph

A graph holds addresses. In a loop (`w = step(w, x)`) CuPy's pool gives the same ones after a few calls; for others the
launches are made one by one. The arena is a stream's own, whose work is done in order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.types import SHORT
from ..late import dataclass, log

if TYPE_CHECKING:
    from .cuda import CudaProgram

MOST_LAUNCHES = 4096  # of a run that is noted
MOST_RECIPES = 8  # of a program: the last sizes and streams that it was called with
MOST_GRAPHS = 16  # of a recipe
ARENA_KEPT = 32 << 20  # bytes: beyond, a call takes its memory from the pool, for others to have between calls
GRAPH_FROM = 2  # launches
ALIGNED = 512  # bytes, as CuPy's pool aligns


@dataclass
class Note:
    """An array that a run asked for, and the launches that it was first and last an argument of."""

    array: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    first: int = -1
    last: int = -1


@dataclass
class Launch:
    """A kernel, how it is launched, and its arguments: a place in the run's table of arrays, or the argument itself."""

    function: Any
    grid: tuple[int]
    block: tuple[int]
    arguments: tuple[int | Any, ...]


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
    """What a run launches and asks for, noted while it runs. Arrays are numbered: those that are given, then those that
    it asks for; what else a kernel is given is the same in each run."""

    def __init__(self, arrays: Sequence[Any]):
        self.given = [array.view() for array in arrays]  # one that is given twice stands at two places
        self.places = {id(array): k for k, array in enumerate(self.given)}
        self.made: list[Note] = []
        self.launches: list[Launch] = []

    def allocated(self, array: Any, shape: tuple[int, ...], kind: str) -> None:
        self.places[id(array)] = len(self.given) + len(self.made)
        self.made.append(Note(array, shape, np.dtype(SHORT[kind])))

    def launched(self, function: Any, grid: tuple[int], block: tuple[int], arguments: Sequence[Any]) -> None:
        if len(self.launches) > MOST_LAUNCHES:
            return
        slots = tuple(self.places.get(id(a), a) if not isinstance(a, np.generic) else a for a in arguments)
        for slot in slots:
            if isinstance(slot, int) and slot >= len(self.given):
                note = self.made[slot - len(self.given)]
                note.first = len(self.launches) if note.first < 0 else note.first
                note.last = len(self.launches)
        self.launches.append(Launch(function, grid, block, slots))


class Recipe:
    """The launches of a run for certain sizes, and the memory that they need."""

    def __init__(self, xp: Any, notes: Notes, results: list[int], stream: Any):
        self.xp, self.launches, self.results = xp, notes.launches, results
        self.stream = stream  # as long as it is there no other one has its address
        count = len(notes.given)
        self.fresh = [k for k in dict.fromkeys(self.results) if k >= count]
        self.made = notes.made
        self.count = count
        self.temporaries = [k + count for k, note in enumerate(notes.made) if k + count not in self.fresh]
        self.temporaries.sort(key=lambda k: notes.made[k - count].first)
        lives = [self._life(k) for k in self.temporaries]
        self.places, self.bytes = arena_of(lives)
        self.table: list[Any] = [None] * (count + len(notes.made))
        if self.bytes <= ARENA_KEPT:
            self._lay_out(self.table)
        self.graphs: dict[tuple[int, ...], Any] | None = {}
        if self.bytes > ARENA_KEPT or len(self.launches) < GRAPH_FROM:
            self.graphs = None
        for note in notes.made:
            note.array = None

    def _life(self, k: int) -> tuple[int, int, int]:
        note = self.made[k - self.count]
        return note.first, note.last, int(np.prod(note.shape, dtype=np.int64)) * note.dtype.itemsize

    def _lay_out(self, table: list[Any]) -> None:
        """The temporary arrays, in one piece of memory."""
        arena = self.xp.empty((max(self.bytes, 1),), np.uint8)
        for k, begin in zip(self.temporaries, self.places):
            _, _, nbytes = self._life(k)
            note = self.made[k - self.count]
            table[k] = arena[begin : begin + nbytes].view(note.dtype).reshape(note.shape)

    def run(self, arrays: Sequence[Any]) -> tuple:
        """The results for other arrays."""
        table = self.table.copy()
        table[: self.count] = arrays
        for k in self.fresh:
            note = self.made[k - self.count]
            table[k] = self.xp.empty(note.shape, note.dtype)
        if self.bytes > ARENA_KEPT:
            self._lay_out(table)
        if self.graphs is None or not self._as_graph(table):
            self._launch(table)
        return tuple([table[k] for k in self.results])

    def _launch(self, table: Sequence[Any]) -> None:
        for launch in self.launches:
            arguments = tuple([table[slot] if slot.__class__ is int else slot for slot in launch.arguments])
            launch.function(launch.grid, launch.block, arguments)

    def _as_graph(self, table: Sequence[Any]) -> bool:
        """Launch the graph of these addresses, which is made when they come for the second time; whether it was."""
        assert self.graphs is not None
        key = tuple([table[k].data.ptr for k in (*range(self.count), *self.fresh)])
        graph = self.graphs.get(key, False)
        if graph is False:
            if len(self.graphs) >= MOST_GRAPHS:
                del self.graphs[next(iter(self.graphs))]
            self.graphs[key] = None
            return False
        if graph is None:
            graph = self._captured(table)
            if graph is None:
                self.graphs = None  # nor will others be
                return False
            self.graphs[key] = graph
        graph.launch()
        return True

    def _captured(self, table: Sequence[Any]) -> Any:
        """The launches as a graph; None where the driver makes none."""
        stream = self.xp.cuda.Stream(non_blocking=True)
        try:
            with stream:
                stream.begin_capture()
                try:
                    self._launch(table)
                finally:
                    graph = stream.end_capture()
            return graph
        except RuntimeError as error:  # those of CuPy are, too
            log.info("launches are made one by one: %s", error)
            return None


class Replays:
    """The recipes of a program."""

    def __init__(self, program: CudaProgram):
        self.program = program
        self.recipes: dict[tuple, Recipe | None] = {}  # None: seen once, or too long

    def run(self, arrays: Sequence[Any], sizes: Sequence[int]) -> tuple | None:
        """The results; None where the program's text has to run."""
        stream = self.program.xp.cuda.get_current_stream()
        key = (stream.ptr, *sizes)
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
        if len(notes.launches) <= MOST_LAUNCHES and -1 not in places:
            self.recipes[key] = Recipe(self.program.xp, notes, places, stream)
        return tuple(arrays[k] if 0 <= k < len(arrays) else r for k, r in zip(places, results))


__all__ = ["Replays", "arena_of"]
