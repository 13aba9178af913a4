"""The rules of the loop-nest tree, looked at after a pass.

In: a `Program`. Out: nothing; `CheckError` says every fault. What can't be shown either way is no fault.

* A symbol has a value where it is read. The index of a loop is bound by that loop only, and read inside it.
* A Buf's name is its own; a place has an entry for each dim, and doesn't surely lie outside. (A branch or loop that may
  never be run has no such places.)
* What is stored has the dtype of where it goes.
* A temporary is stored before it is read.
* Iterations of a loop of kind "par" are independent, and those of kind "red" but for what they combine: no two meet in
  a place that one of them writes, unless each may have a storage of its own (lifetimes.py), or all write one number.

    For("i", n, (Store(y, (i,), Load(y, (i - 1,))),), "par")    iterations of the parallel loop over i meet in y
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from metaphrase.core.check import CheckError
from metaphrase.core.dims import Dim, DimLike, product, symbols, terms_of
from metaphrase.core.facts import Facts
from metaphrase.core.types import i64
from metaphrase.late import module
from metaphrase.locks import cached_property

from .dependence import distance
from .lifetimes import Key, Lifetimes, key_of
from .nest import (
    Bind,
    Buf,
    CallFn,
    Check,
    Combine,
    Const,
    E,
    Effect,
    Fn,
    For,
    Grow,
    If,
    LibraryCall,
    Map,
    Nest,
    Program,
    SetDims,
    Stmt,
    Store,
    Swap,
    View,
    While,
    always,
    bound_inside,
    expression_symbols,
    index_symbols,
    loaded,
    never,
    touched,
    walk,
)

python_loops = module("metaphrase.astpasses.schedule.python_loops")


class _Touch(NamedTuple):
    """What a loop's iteration does with a storage or variable. `monoid`: what it combines by."""

    key: Key
    place: Map
    write: bool
    monoid: str | None = None
    unknown: bool = False  # any part of it, as far as is known here
    always: bool = True  # not in a branch, nor in a loop of which nothing is known
    constant: bytes | None = None  # what is stored, where that is a number


def check(program: Program) -> Program:
    """Raise CheckError unless the tree keeps its rules; returns it, so that checks chain."""
    known = {fn.name: fn for fn in program.fns}
    checkers = [*(_Checker(fn, known) for fn in program.fns), _Checker(program.entry, known, program.entry.sizes)]
    faults = [fault for checker in checkers for fault in checker.run()]
    if faults:
        raise CheckError("\n".join(dict.fromkeys(faults[:20])) + f"\nin\n{python_loops.python_loops(program)}")
    return program


class _Checker:
    """`sizes`: the symbols that stand for lengths of arguments."""

    def __init__(self, fn: Fn, known: dict[str, Fn], sizes: tuple[str, ...] = ()):
        self.fn, self.known, self.sizes = fn, known, sizes
        self.faults: list[str] = []
        self.body = _in_loops(fn.body)
        self.scratch = {key_of(buf) for buf in fn.bufs if buf.name in fn.scratch}
        indices = {s.index for s in walk(self.body) if isinstance(s, For)}
        ranges = fn.facts.ranges.items()
        bounds = ((name, [b for b in bound if b is not None]) for name, bound in ranges)
        # The names of indices are used again from loop to loop: what says something by them says it of one loop.
        steady = {name for name, found in bounds if not any(symbols(b) & indices for b in found)}
        self.facts = Facts({name: bound for name, bound in ranges if name in steady})
        self.stored: set[Key] = {key_of(buf) for buf in fn.bufs if buf.space != "out" or fn.kernel}
        self.bound: set[str] = {*fn.sizes, *(b.name for b in fn.bufs if not b.dims and b.dtype == i64)}
        self.indices: list[str] = []
        self.around: list[Stmt] = []
        self.variables = {s.binds for s in walk(self.body) if s.binds is not None and not isinstance(s, For)}
        self.named: dict[str, Buf] = {}
        self.reachable = True  # for sure, as far as is known here: no check before it always fails
        self.failed = False  # for sure: a check before it in its block always fails, so no run comes here

    @cached_property
    def lifetimes(self) -> Lifetimes:
        return Lifetimes(self.body)

    def fault(self, text: str, stmt: Stmt) -> None:
        where = f" ({stmt.span})" if stmt.span else ""
        self.faults.append(f"{self.fn.name}: {text}{where}")

    def run(self) -> list[str]:
        for buf in self.fn.bufs:
            self.name(buf, Grow((), 0))
        self.block(self.body)
        return self.faults

    # --- statements -------------------------------------------------------------------------------

    def block(self, block: tuple[Stmt, ...]) -> list[_Touch]:
        before = self.reachable, self.failed
        rows: list[_Touch] = []
        for stmt in block:
            rows += self.statement(stmt)
        self.reachable, self.failed = before
        return rows

    def statement(self, stmt: Stmt) -> list[_Touch]:
        if isinstance(stmt, For):
            return self.loop(stmt)
        if isinstance(stmt, While):
            self.bound.add(stmt.counter)
            self.around.append(stmt)
            touches = [_Touch(stmt.counter, (), True), *self.block(stmt.before), *self.read(stmt)]
            reachable, self.reachable = self.reachable, False
            touches += self.block(stmt.body)
            self.reachable = reachable
            self.around.pop()
            return [t._replace(always=False) for t in touches]
        touches = self.read(stmt)
        if isinstance(stmt, If):
            self.around.append(stmt)
            then = () if never(stmt.condition) else stmt.then  # what no run comes to may be anything
            orelse = () if always(stmt.condition) else stmt.orelse
            before, reachable = (set(self.stored), set(self.bound)), self.reachable
            self.reachable = reachable and always(stmt.condition)
            touches += [t._replace(always=False) for t in self.block(then)]
            after = self.stored, self.bound
            self.stored, self.bound = before
            self.reachable = reachable and never(stmt.condition)
            touches += [t._replace(always=False) for t in self.block(orelse)]
            self.reachable = reachable
            self.stored, self.bound = self.stored | after[0], self.bound | after[1]
            self.around.pop()
        elif isinstance(stmt, Check) and never(stmt.ok):
            self.reachable, self.failed = False, True
        return touches + self.write(stmt)

    def loop(self, loop: For) -> list[_Touch]:
        touches = self.read(loop)
        if loop.index in self.indices or loop.index in self.variables or loop.index in self.fn.sizes:
            self.fault(f"the index {loop.index} of a loop is bound elsewhere, too", loop)
        if self.facts.less_equal(loop.extent, 0):
            return touches
        before, reachable = self.facts.ranges.get(loop.index), self.reachable
        self.reachable = reachable and self.has_iterations(loop.extent)
        self.facts.learn(loop.index, 0, loop.extent - 1)
        self.indices.append(loop.index)
        self.around.append(loop)
        inside = self.block(loop.body)
        self.reachable = reachable
        self.around.pop()
        self.indices.pop()
        if before is not None:
            self.facts.learn(loop.index, *before)
        else:
            del self.facts.ranges[loop.index]
        if loop.kind != "seq" and loop.extent != 1:
            self.independent(loop, inside)
        own = {loop.index}
        return touches + [t for t in inside if t.key not in own]

    def has_iterations(self, extent: DimLike) -> bool:
        """Whether a loop has some for sure, or at sizes that a caller may well give: a length that is computed from
        values may turn out to be 0 at each call, as in `range(max(0, k - 3))` where k is at most 3."""
        given = all(atom.kind == "sym" and atom.name in self.sizes for m, _ in terms_of(extent) for atom, _ in m)
        return given or self.facts.less_equal(1, extent)

    # --- what a statement reads and writes ----------------------------------------------------------

    def read(self, stmt: Stmt) -> list[_Touch]:
        """Look at the expressions of a statement itself."""
        touches = []
        names = frozenset().union(*map(expression_symbols, stmt.expressions), *map(symbols, stmt.extents))
        places = (access.index for access in stmt.accesses)
        for name in names.union(*map(index_symbols, places)):
            if name not in self.bound and name not in self.indices:
                self.fault(f"{name} has no value here", stmt)
            if name not in self.indices:
                touches.append(_Touch(name, (), False))
        for load in loaded(stmt):
            touches.append(_Touch(key_of(load.buf), load.index, False))
            self.place(load.buf, load.index, stmt)
            self.held(load.buf, stmt)
        if isinstance(stmt, (LibraryCall, Combine, CallFn, Effect, Swap)):
            for access in stmt.accesses:
                if not access.write:
                    touches.append(_Touch(key_of(access.buf), access.index, False, None, isinstance(stmt, CallFn)))
                    self.held(access.buf, stmt)
        return touches

    def write(self, stmt: Stmt) -> list[_Touch]:
        """Look at the places that a statement itself writes."""
        for buf in touched(stmt):
            self.name(buf, stmt)
        if isinstance(stmt, Bind):
            return self.bind(stmt)
        if isinstance(stmt, Store):
            return self.store(stmt)
        if isinstance(stmt, Swap):
            if stmt.a.dtype != stmt.b.dtype or len(stmt.a.dims) != len(stmt.b.dims):
                self.fault(f"{stmt.a} and {stmt.b} change places", stmt)
            self.stored |= {stmt.a, stmt.b} if {stmt.a, stmt.b} & self.stored else set()
        elif isinstance(stmt, LibraryCall):
            for view in (*stmt.reads, *stmt.writes):
                self.view(view, stmt)
        elif isinstance(stmt, CallFn):
            self.arguments(stmt)
        if isinstance(stmt, (LibraryCall, Combine, CallFn, Effect, Swap)):
            for access in stmt.accesses:
                if access.write:
                    self.keep(access.buf)
        elif isinstance(stmt, (Grow, SetDims)):
            return []
        unknown = isinstance(stmt, CallFn)  # which part of its arguments a function writes
        monoid = stmt.monoid if isinstance(stmt, Combine) else self.combined(stmt) if isinstance(stmt, CallFn) else None
        writes = (a for a in stmt.accesses if a.write)
        return [_Touch(key_of(a.buf), a.index, True, monoid, unknown and bool(a.buf.dims)) for a in writes]

    def bind(self, stmt: Bind) -> list[_Touch]:
        self.bound.add(stmt.name)
        if stmt.value.dtype != i64:
            self.fault(f"{stmt.name} is bound to a {stmt.value.dtype}", stmt)
        return [_Touch(stmt.name, (), True)]

    def store(self, stmt: Store) -> list[_Touch]:
        if stmt.monoid:
            self.held(stmt.buf, stmt)
        if stmt.value.dtype != stmt.buf.dtype:
            self.fault(f"a {stmt.value.dtype} is stored into {stmt.buf}", stmt)
        self.place(stmt.buf, stmt.index, stmt)
        self.keep(stmt.buf)
        constant = stmt.value.value.tobytes() if isinstance(stmt.value, Const) and not stmt.monoid else None
        return [_Touch(key_of(stmt.buf), stmt.index, True, stmt.monoid, constant=constant)]

    def arguments(self, call: CallFn) -> None:
        fn = self.known.get(call.fn)
        if fn is None:
            self.fault(f"there is no function {call.fn}", call)
        elif [(b.dtype, len(b.dims)) for b in fn.bufs] != [(b.dtype, len(b.dims)) for b in call.bufs]:
            self.fault(f"{call.fn} takes {', '.join(map(str, fn.bufs))}, not {', '.join(map(str, call.bufs))}", call)
        elif len(fn.sizes) != len(call.sizes):
            self.fault(f"{call.fn} takes {len(fn.sizes)} sizes, not {len(call.sizes)}", call)

    def combined(self, call: CallFn) -> str | None:
        """By what a function combines what it is given into what it gives back, if it does."""
        fn = self.known.get(call.fn)
        if fn is None or call.result not in call.bufs:
            return None
        stores = (s for s in walk(fn.body) if isinstance(s, Store | Combine))
        monoids = {s.monoid for s in stores if any(a.buf is fn.result and a.write for a in s.accesses)}
        return monoids.pop() if len(monoids) == 1 else None

    def keep(self, buf: Buf) -> None:
        self.stored.add(key_of(buf))
        if not buf.dims and buf.dtype == i64:
            self.bound.add(buf.name)

    def held(self, buf: Buf, stmt: Stmt) -> None:
        if buf.space not in ("const", "arg") and key_of(buf) not in self.stored and not self.failed and not buf.unbound:
            is_empty = any(self.facts.less_equal(d, 0) for d in buf.dims)
            if not is_empty and not self.may_be_later(key_of(buf)):
                self.fault(f"{buf.name} is read before anything is stored in it", stmt)

    def may_be_later(self, key: Key) -> bool:
        """Whether the statement may first be reached in a later iteration than one that stores."""
        kept_away = False
        for around in reversed(self.around):
            if kept_away and isinstance(around, (For, While)) and self.lifetimes.writes(key, around):
                return True
            varies = isinstance(around, For) and bool(symbols(around.extent) & (set(self.indices) | self.variables))
            kept_away = kept_away or varies or isinstance(around, (If, While))
        return False

    def name(self, buf: Buf, stmt: Stmt) -> None:
        if self.named.setdefault(buf.name, buf) is not buf:
            self.fault(f"two storages are called {buf.name}", stmt)

    def place(self, buf: Buf, index: Map, stmt: Stmt) -> None:
        """Whether a place may lie in a Buf."""
        self.name(buf, stmt)
        if len(index) != len(buf.dims):
            self.fault(f"{len(index)} indices for {buf}", stmt)
            return
        if not self.reachable or buf.space == "arg" and 0 in buf.dims:
            return  # nothing comes here
        for d, (entry, extent) in enumerate(zip(index, buf.dims)):
            if isinstance(entry, E):
                if entry.dtype.kind not in "iu":
                    self.fault(f"an index of {buf.name} is a {entry.dtype}", stmt)
            elif d or buf.space != "stack":
                self.inside(buf, entry, extent, stmt)

    def inside(self, buf: Buf, entry: DimLike, extent: DimLike, stmt: Stmt) -> None:
        if isinstance(entry, Dim) and entry.is_sym and self.facts.ranges.get(entry.name) == (0, extent - 1):
            return
        if self.facts.less(entry, 0) or self.facts.less_equal(extent, entry):
            self.fault(f"{entry} is no index of an axis of {extent} of {buf.name}", stmt)

    def view(self, view: View, stmt: Stmt) -> None:
        if len(view.index) != len(view.buf.dims) or len(view.extents) != len(view.strides):
            self.fault(f"a view of {view.buf} has {len(view.index)} indices and {len(view.strides)} strides", stmt)
            return
        sizes = (*view.buf.dims, *view.extents, *view.strides, *view.index)
        unknown = view.buf.space == "stack" or view.buf.space == "arg" and view.buf.dims[:1] == (0,)
        if self.reachable and not unknown and all(isinstance(d, int) for d in sizes):
            offset = 0
            for entry, extent in zip(view.index, view.buf.dims):
                offset = offset * extent + entry  # type: ignore[operator, assignment]
            last = offset + sum((e - 1) * s for e, s in zip(view.extents, view.strides))  # type: ignore[operator, misc]
            if 0 not in view.extents and not 0 <= last < max(product(view.buf.dims), 1):  # type: ignore[type-var, operator]
                self.fault(f"a view of {view.buf} reaches element {last}", stmt)

    # --- loops side by side -------------------------------------------------------------------------

    def independent(self, loop: For, touches: Iterable[_Touch]) -> None:
        """Whether two iterations of a parallel loop meet where one of them writes."""
        by_key: dict[Key, dict[_Touch, None]] = defaultdict(dict)
        for touch in touches:
            by_key[touch.key].setdefault(touch)
        inner = frozenset(s.index for s in walk(loop.body) if isinstance(s, For))
        data = bound_inside(loop) - inner - {loop.index}
        for key, found in by_key.items():
            writes = [t for t in found if t.write]
            if any(self.meet(loop, a, b, inner, data) for a in writes for b in found):
                own = _is_own(key) or key in self.scratch
                if not (own and self.lifetimes.private(key, loop) and self.declared(key, loop)):
                    name = key if isinstance(key, str) else key.name
                    self.fault(f"iterations of the {loop.kind} loop over {loop.index} meet in {name}", loop)
        stores = [s for s in loop.body if isinstance(s, Store)]
        for buf, monoid in loop.partials:
            if loop.kind != "red" or any(s.buf is buf and s.monoid != monoid for s in stores):
                self.fault(f"{buf.name} is no partial {monoid} of the loop over {loop.index}", loop)
        for buf in loop.private or ():
            if not self.lifetimes.private(key_of(buf), loop):
                self.fault(f"{buf.name} is not private to iterations of the loop over {loop.index}", loop)

    def declared(self, key: Key, loop: For) -> bool:
        """Whether a loop says that a temporary is private. Before all are placed, a GPU's loops name arrays alone."""
        unplaced = isinstance(key, str) and key in self.named and self.named[key].space == "temp"
        return loop.private is None or unplaced or key in {*self.variables, *self.scratch, *map(key_of, loop.private)}

    def meet(self, loop: For, a: _Touch, b: _Touch, inner: frozenset[str], data: frozenset[str]) -> bool:
        """Whether a place that one iteration writes is surely touched by another."""
        if loop.kind == "red" and a.monoid is not None and a.monoid == b.monoid:
            return False
        if a.unknown or b.unknown or a.constant is not None and a.constant == b.constant:
            return False
        extent = loop.extent
        if isinstance(extent, Dim) and extent.is_sym:  # of a part of a loop it is known how long it may be
            _, longest = self.facts.ranges.get(extent.name, (None, None))
            extent = longest if isinstance(longest, int) else extent
        found = distance(a.place, b.place, loop.index, extent, inner, data)
        if found is None or not found.sure or found.at == 0:
            return False
        if found.at and not self.sizes and not isinstance(extent, int):
            return False  # a function's loop may never be as long
        return not a.place or a.always and b.always


def _is_own(key: Key) -> bool:
    """Whether it may be one of several: not the caller's."""
    return isinstance(key, str) or key.is_temporary


def _as_loops(nest: Nest) -> tuple[Stmt, ...]:
    """A nest as loops: those that `first` runs in, then the others."""
    outer = [a for a in nest.axes if a.kind == "par" or not nest.first]
    inner = [a for a in nest.axes if a not in outer]
    body: tuple[Stmt, ...] = nest.body
    for axis in reversed(inner):
        body = (For(axis.name, axis.extent, body, axis.kind, nest.span),)
    body = (*nest.first, *body)
    for axis in reversed(outer):
        body = (For(axis.name, axis.extent, body, axis.kind, nest.span),)
    return body


def _in_loops(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A block with loops in the place of nests."""
    if not any(isinstance(s, Nest) for s in walk(block)):
        return block
    inside = (
        s.with_blocks(tuple(map(_in_loops, s.blocks))) if s.blocks and not isinstance(s, Nest) else s for s in block
    )
    return tuple(row for s in inside for row in (_as_loops(s) if isinstance(s, Nest) else (s,)))


__all__ = ["CheckError", "check"]
