"""Running a Program without compiling: its NumPy source, executed at once, and remembered for the next such
call.

In: a callable with `_program(structure, specs)`, and a call. Out: what the call returns. Example:

    run(grad(f), (2.0,), {})      # stages, writes NumPy source, runs it; the second call only runs it
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..astpasses.frontend import numbers_change, sizes_at_least
from ..config import config
from ..core.dims import Dim, DimLike, substitute
from ..exceptions import ListFull, make_room
from ..late import dataclass, field, log, module
from ..locks import lock
from ..pipeline import finished, numpy_text, recording
from ..runtime import dispatch
from ..runtime.devices import Device
from ..runtime.errors import placed
from ..source import SourceError, UnsupportedError
from . import memory as memory
from .arguments import Call, Dims, Form, Spec, generalise
from .captures import broken_guard, captured_values, captures_fit, changed_numbers, guards_hold, read_capture, rooms_of
from .nonfinite import looked_at
from .program import Fixed, Program, Same, Slot, leaf_labels
from .statics import static_key

waiting = module("metaphrase.api.waiting")


@dataclass
class Specialisation:
    """One staging: `dims` of the dynamic leaves it serves, with symbols for those that may differ; `least`:
    the least size that each symbol stands for."""

    dims: tuple[Dims, ...]
    made: Program | Callable[[], Program]  # a function, for one found on disk: it is staged when someone asks
    run: Callable[..., Any]
    extra: dict[str, Any] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    entry: dispatch.CompiledEntry | None = None  # by which the dispatcher runs it, past the Memo
    forget: Callable[[], None] = lambda: None  # called when the Memo has forgotten it
    device: Device | None = None  # None: it runs on the CPU
    used: int = 0
    forgotten: bool = False
    serves: Callable[[Call], bool] = lambda call: False  # of one found on disk, until it is staged

    @property
    def program(self) -> Program:
        if not isinstance(self.made, Program):
            self.made = self.made()
        return self.made

    @property
    def guards(self) -> Sequence[Any]:
        """What the program relies on, where that is known in this process."""
        return self.made.guards if isinstance(self.made, Program) else ()

    def last_used(self) -> int:
        """When it last served a call, as a number that grows."""
        return self.used if self.entry is None else max(self.used, self.entry.used)

    def serves_sizes(self, call: Call) -> bool:
        return match_dims(self.dims, call.dims, self.least) is not None

    def fits(self, call: Call) -> bool:
        """Whether a call of the same key has these dims, the values that staging used, and unchanged
        captures."""
        if not isinstance(self.made, Program):
            return self.serves(call)
        return (
            self.serves_sizes(call)
            and pinned_fit(self.program, call)
            and memory.fits(self.program, call)
            and captures_fit(self.program, self.device is not None)
            and guards_hold(self.program.guards)
        )


def match_dims(
    pattern: Sequence[Dims], actual: Sequence[Dims], least: Mapping[str, int] | None = None
) -> dict[str, DimLike] | None:
    """The sizes of the pattern's symbols; None when it does not fit. Symbols stand for sizes from `least` on,
    or from 2."""
    sizes: dict[str, DimLike] = {}
    for want, have in zip(pattern, actual, strict=True):
        for dim, size in zip(want, have, strict=True):
            if not isinstance(dim, int) and dim.is_sym and dim.name not in sizes and size not in (0, 1):
                sizes[dim.name] = size
    for want, have in zip(pattern, actual, strict=True):
        for dim, size in zip(want, have, strict=True):
            if (dim if isinstance(dim, int) else substitute(dim, sizes)) != size:
                return None
    for name, size in sizes.items():
        if least and isinstance(size, int) and size < least.get(name, 2):
            return None
    return sizes


def pinned_fit(program: Program, call: Call) -> bool:
    """Dynamic leaves whose value staging needed have that value again."""
    for leaf, value, spec in zip(program.leaves, call.leaves, call.specs):
        if isinstance(leaf, Fixed) and spec.dynamic and static_key(leaf.value) != static_key(value):
            return False
    return True


LONG = 2.0  # seconds of a first call, of which the user is told
MANY = 32  # programs of one function, at which the user is told
TRIED_FIRST = 4  # programs of one key that every call tries


class Memo:
    """The specialisations of one callable, by key; made by `make`, newest first. Of more than
    `config.max_programs` the least recently used is forgotten."""

    def __init__(
        self,
        name: str,
        make: Callable[[Call, list[Spec], dict[str, int]], Specialisation],
        names: Sequence[str] = (),
        recall: Callable[[Call], Specialisation | None] = lambda call: None,
    ):
        self.name, self.make, self.names, self.recall = name, make, names, recall
        self.table: dict[tuple, list[Specialisation]] = {}
        self.sized: dict[tuple, str] = {}  # keys of calls whose program depends on the sizes, and why
        self.known: dict[Hashable, Specialisation] = {}  # what served a call like this one before
        self.warned = False
        self.lock = lock()
        self.changing: set[Any] = set()  # captured numbers that changed: they are arguments since
        self.constant: set[Any] = set()  # those of which staging needs the value
        self.hits = self.misses = 0

    def find(self, call: Call) -> Specialisation:
        row = self._found(call)
        if row is not None:
            self.hits += 1
            return row
        with self.lock:
            row = self._found(call)
            if row is not None:
                return row
            self.misses += 1
            row = self.recall(call)
            if row is None:
                row = self._specialise(call)
            else:
                row.used = dispatch.next_moment()
                self.table.setdefault(call.key, []).insert(0, row)
            self._forget_the_oldest()
            return row

    def run(self, call: Call) -> Any:
        """What the call returns."""
        row = self.find(call)
        return looked_at(lambda: row.program, row.run, call, self.names)

    def _found(self, call: Call) -> Specialisation | None:
        """The program that fits a call. Of many with the call's key the newest are tried, then the one that
        served a call like it before, then all."""
        rows = self.table.get(call.key, [])
        row = next((row for row in rows[:TRIED_FIRST] if row.fits(call)), None)
        if row is None and len(rows) > TRIED_FIRST:
            like = self._like(call, rows)
            row = self.known.get(like)
            if row is None or not row.fits(call):
                row = next((row for row in rows[TRIED_FIRST:] if row.fits(call)), None)
                if row is not None:
                    if len(self.known) > 4 * max(MANY, len(rows)):
                        self.known.clear()
                    self.known[like] = row
        if row is not None:
            row.used = dispatch.next_moment()
        return row

    def _like(self, call: Call, rows: Sequence[Specialisation]) -> Hashable:
        """Equal for two calls that one of `rows` serves, as far as arguments and captured values tell; what programs
        found on disk look at is not known."""
        last = next((row.made for row in rows if isinstance(row.made, Program)), None)
        if last is None:
            return call.key, call.dims
        pinned = [
            static_key(value)
            for leaf, value, spec in zip(last.leaves, call.leaves, call.specs)
            if isinstance(leaf, Fixed) and spec.dynamic
        ]
        return call.key, call.dims, tuple(pinned), captured_values(last.guards)

    def _forget_the_oldest(self) -> None:
        limit = config.max_programs
        while 0 < limit < sum(map(len, self.table.values())):
            oldest, key = min(
                ((row, key) for key, rows in self.table.items() for row in rows), key=lambda found: found[0].last_used()
            )
            self.table[key] = [row for row in self.table[key] if row is not oldest]
            if not self.table[key]:
                del self.table[key]
                self.sized.pop(key, None)
            self.known = {like: row for like, row in self.known.items() if row is not oldest}
            oldest.forget()
            if not self.warned:
                self.warned = True
                log.warning(
                    "%s has more than %d programs: the least recently used are forgotten, and translated "
                    "again when they are called for (config.max_programs)",
                    self.name,
                    limit,
                )

    def _specialise(self, call: Call) -> Specialisation:
        rows = self.table.setdefault(call.key, [])
        dims: tuple[Dims, ...] = call.dims
        if rows and call.key not in self.sized:
            dims = generalise(rows[0].dims, dims)  # type: ignore[arg-type]
            tried = any(row.dims == dims and not row.serves_sizes(call) for row in rows)
            if tried or any(not isinstance(d, int) for ds in call.dims for d in ds):
                dims = call.dims
        reason = self.reason(call, rows)
        begun = time.perf_counter()
        changed = set().union(*(changed_numbers(row.guards) for row in rows)) - self.changing
        self.changing |= changed
        with recording(self.name) as record, waiting.waited_for(self.name):
            try:
                with numbers_change(self.changing - self.constant):
                    made = self._made(call, dims, rows)
            except UnsupportedError:
                if not changed - self.constant:
                    raise
                self.constant |= changed  # the program has to know their values
                with numbers_change(self.changing - self.constant):
                    made = self._made(call, dims, rows)
        made.used = dispatch.next_moment()
        self.constant |= self.changing & {g.source.key() for g in made.program.guards if g.kind == "value"}
        rows.insert(0, made)
        if changed - self.constant:
            reason += "; it is read at each call from now on"
        log.info("%s: %s (%s)", self.name, reason, record.report())
        seconds = time.perf_counter() - begun
        if seconds > LONG:
            log.info("%s took %.1f s to be ready; metaphrase build and compile do that ahead", self.name, seconds)
        if sum(map(len, self.table.values())) == MANY:
            log.warning(
                "%s has %d programs by now, each translated and compiled; the last was %s. A number whose "
                "value is needed, and an object that is no pytree and no frozen dataclass, has one for each",
                self.name,
                MANY,
                reason,
            )
        return made

    def _made(self, call: Call, dims: tuple[Dims, ...], rows: Sequence[Specialisation]) -> Specialisation:
        """A program for these dims. Where it can't be had for all sizes from 2 on, one for the sizes from the
        least seen so far on; where it needs the sizes' values, one for the sizes of the call."""
        if dims == call.dims:
            return self.make(call, call.specs, {})
        seen = _least_seen(dims, call.dims, rows[0])
        for least in (dict.fromkeys(seen, 2), seen):
            try:
                with sizes_at_least(least):
                    return self.make(call, call.with_dims(dims), least)
            except SourceError as error:
                problem = str(error).partition("\n")[0]
        made = self.make(call, call.specs, {})  # an error here has the sizes in it
        self.sized[call.key] = problem
        log.info("%s: the program depends on the sizes, and is translated for each: %s", self.name, problem)
        return made

    def reason(self, call: Call, rows: Sequence[Specialisation]) -> str:
        """Why there is something to translate: the first call, or which argument changed, from what to
        what."""
        labels = leaf_labels(call.structure, self.names)
        if rows:
            last = rows[0]
            sizes = match_dims(last.dims, call.dims, last.least)
            if sizes is None:
                changed = []
                position = 0
                for spec, label in zip(call.specs, labels):
                    if spec.dynamic:
                        before = Spec(spec.form, spec.dtype, last.dims[position], spec.python)
                        if match_dims([before.dims], [spec.dims]) is None or before.dims != spec.dims:
                            changed.append(f"{label} changed from {before.text()} to {spec.text()}")
                        position += 1
                return "translated again: " + "; ".join(changed or ["other sizes are equal than before"])
            if not isinstance(last.made, Program):
                return "translated again: something that the program on disk relies on has changed"
            if not memory.fits(last.program, call):
                return "translated again: which arguments share memory has changed"
            for leaf, value, spec, label in zip(last.program.leaves, call.leaves, call.specs, labels):
                if isinstance(leaf, Fixed) and spec.dynamic and static_key(leaf.value) != static_key(value):
                    return (
                        f"translated again: {label}, whose value the program depends on, changed from "
                        f"{leaf.value!r} to {value!r}"
                    )
            return "translated again: " + broken_guard(last.program.guards)
        if self.table and len(self.table) > 1:
            return "translated again: " + self._difference(call, labels)
        return "translated"

    def _difference(self, call: Call, labels: Sequence[str]) -> str:
        """What differs from the most recent call with another key."""
        for key in reversed(self.table):
            structure, leaves, order, device = key
            if key == call.key or not self.table[key]:
                continue
            if structure != call.structure:
                return f"the arguments' structure changed from {structure} to {call.structure}"
            if order != call.key[2]:
                return "the keys of a dict came in another order"
            if device != call.device:
                return f"it runs on {call.device or 'the CPU'} now"
            known = self.table[key][0].program.leaves
            for before, leaf, spec, label in zip(leaves, known, call.specs, labels):
                if before != spec.key():
                    return f"{label} changed from {_key_text(before, leaf)} to {spec.text()}"
        return "another kind of call"

    def clear(self) -> None:
        with self.lock:
            self.table.clear()
            self.sized.clear()
            self.known.clear()


def _least_seen(dims: Sequence[Dims], now: Sequence[Dims], last: Specialisation) -> dict[str, int]:
    """For each symbol of `dims` the least size that stood in its place, now or in an earlier program."""
    least: dict[str, int] = {}
    for pattern, sizes, before in zip(dims, now, last.dims, strict=True):
        for dim, size, old in zip(pattern, sizes, before, strict=True):
            if isinstance(dim, Dim) and isinstance(size, int):
                known = old if isinstance(old, int) else last.least.get(str(old), 2)
                least[str(dim)] = min(least.get(str(dim), size), size, known)
    return least


def _key_text(key: tuple, leaf: Any) -> str:
    if isinstance(leaf, Fixed) and key[0] is Form.STATIC:
        return repr(leaf.value)
    form, dtype, rank, python = key
    return python.__name__ if python else f"{dtype} of rank {rank}"


def numpy_specialisation(
    program: Program, dims: tuple[Dims, ...], least: dict[str, int], at_first: bool = False
) -> Specialisation:
    """A Program ready to run as NumPy source. `at_first`: only till native code is there, and simplified in haste."""
    from ..astpasses.emit.numpy_source import compile_numpy

    function = finished(program.function, in_haste=at_first)
    text = numpy_text(function, program.name)
    compiled = compile_numpy(text)

    def run(call: Call, captures: Sequence[Any] | None = None) -> Any:
        return call_numpy(program, compiled, call, captures)

    return Specialisation(dims, program, run, {"text": text, "compiled": compiled}, least)


def call_numpy(
    program: Program, compiled: Callable[..., Any], call: Call, captures: Sequence[Any] | None = None
) -> Any:
    """Run the flat NumPy function on the leaves of a call and put the output together."""
    inputs: list[Any] = list(captures) if captures is not None else [read_capture(c) for c in program.captures]
    captured = list(inputs)
    memory.check(program, call)
    inputs += [call.leaves[position] for position in memory.leaf_positions(program)]
    try:
        with np.errstate(all="ignore"):
            results = compiled(*map(_scalar, inputs))
    except ListFull as full:
        if captures is not None:
            raise
        make_room(rooms_of(program), full)
        return call_numpy(program, compiled, call)
    except Exception as error:
        raise at_user_line(error, compiled) from error.__cause__
    if len(program.function.results) == 1:
        results = (results,)
    elif not program.function.results:
        results = ()
    return finish(program, call, owned(results, inputs), captured)


def _scalar(value: Any) -> Any:
    """An array of rank 0 as a number: what NumPy source adds to by `+=` must not be the caller's array."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def at_user_line(error: Exception, compiled: Any) -> BaseException:
    """What NumPy source raised, with a traceback that ends at the user's line that its line came from."""
    trace, span = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == compiled.file:
            span = compiled.places.get(trace.tb_lineno, span)
        trace = trace.tb_next
    return error if span is None else placed(error, (span,))


def owned(results: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Results that alias neither an input nor each other."""
    seen = {id(x) for x in inputs}
    out = []
    for value in results:
        if isinstance(value, np.ndarray) and (value.base is not None or id(value) in seen):
            value = value.copy()
        seen.add(id(value))
        out.append(value)
    return out


def finish(program: Program, call: Call, results: Sequence[Any], captured: Sequence[Any] | None = None) -> Any:
    """The output from the results; what the function writes to is written."""
    if program.writes:
        return program.origin.result(results, call.args, call.kwargs)
    out = []
    for slot in program.slots:
        if isinstance(slot, Slot):
            out.append(shaped(results[slot.index], program.forms[slot.index]))
        elif isinstance(slot, Same):
            out.append(call.leaves[slot.leaf])
        elif isinstance(slot, Fixed):
            out.append(slot.value)
        else:
            out.append(captured[slot.index] if captured is not None else read_capture(program.captures[slot.index]))
    return program.out.unflatten(out)


def shaped(value: Any, form: str) -> Any:
    """A result as the user sees it: an array that owns its data, a NumPy scalar, or a Python number."""
    if isinstance(value, np.ndarray) and value.ndim:
        return value
    if form == "array":
        return np.asarray(value)
    value = np.asarray(value)[()]
    return value.item() if form == "python" else value
