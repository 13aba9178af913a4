"""One staging under way: the regions that are open, what was captured, where we are in the user's source.

In: operations on staged values. Out: Lets in the builder of the innermost region, stamped with the user's
place and named by the user's names. Sessions nest: a transformation called in staged code stages its
function in a new one.
"""

from __future__ import annotations

import os
import sys
import types
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metaphrase.core.array_classes import plain_array
from metaphrase.core.build import Builder, literal
from metaphrase.core.dims import DimLike, Sym, fresh_symbol, product, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.ir import Atom, ConstantArray, Literal, Var
from metaphrase.core.primitive import REGISTRY, Primitive
from metaphrase.core.types import Array, CoreTypeError, dtype_name, i64
from metaphrase.exceptions import FIRST_ROOM, Room
from metaphrase.ops.arrays import as_dim, constant, dim_value
from metaphrase.ops.shape import convert
from metaphrase.ops.weak_integers import check_range, is_narrow
from metaphrase.source import DTypeError, ShapeError, SourceError, Span, UnsupportedError

from ..rewrite.convert import in_users_files
from ..values.phi import read_through
from ..values.sources import AttributeSource, Guard, ObjectSource, Source
from ..values.staged_values import Box, Number, StagedArray, counts
from .decisions import Decisions
from .journal import Journal, KeptLocation, Location
from .layouts import Layouts
from .outer import adopted
from .positions import known_places, place_of
from .reach import reachable
from .under_way import current_session, least_size, sessions

if TYPE_CHECKING:
    from ..calls.nested import Repeated
    from ..flow.attempts import Attempt
    from ..operators.protocols import Began

LIBRARY = os.path.dirname(sys.modules["metaphrase"].__file__ or "")

_INDEX_ARITHMETIC = frozenset("add sub mul neg lt le gt ge eq ne select min max and_ or_ not_".split())


def session() -> Session:
    found = current_session()
    assert found is not None, "no staging is under way"
    return found


class Region:
    """A builder that is being filled. `fresh`: mutable Python objects made inside. `symbols`: sizes bound inside."""

    def __init__(self, name: str, mark: int):
        self.builder, self.mark = Builder(name), mark
        self.fresh: dict[int, Any] = {}
        self.labels: dict[int, tuple] = {}
        self.symbols: set[str] = set()
        self.dims: dict[Atom, DimLike] = {}
        self.numbers: dict[tuple, Atom] = {}


class Session:
    """See the head of this file."""

    def __init__(self, name: str, decisions: Decisions):
        self.decisions, self.facts = decisions, Facts()
        self.journal = Journal(self.span, self.before_write, lambda wanted: reachable(self, wanted))
        self.holders: list[Callable[[], Iterable[Any]]] = []  # see holding()
        self.regions = [Region(name, 0)]
        self.alive: weakref.WeakSet[Region] = weakref.WeakSet(self.regions)
        self.region.builder.is_decided = self.is_decided
        self.captures: dict[Any, tuple[Any, Var]] = {}
        self.boxes: dict[Any, Any] = {}
        self.guards: dict[Any, Any] = {}
        self.roots: dict[int, tuple[Any, Any]] = {}
        self.origins: dict[Var, tuple] = {}
        self.path: list[tuple] = []
        self.again: Counter = Counter()  # how often a function called itself deep under tests
        self.repeated: dict[tuple, Repeated] = {}  # calls of functions, by the kinds of their arguments
        self.newest: dict[tuple, Any] = {}
        self.attempts: list[Attempt] = []
        self.planned: Attempt | None = None
        self.done: dict[tuple | None, tuple[Var, ...]] = {}  # what a `try` around computed before it forked
        self.unrolling: list[int] = []
        self.unrolled: list[tuple] = []  # the `for` loops among them
        self.rolling: list[tuple] = []  # the loops that trials under way roll
        self.guarded: set[Any] = set()  # functions and classes
        self.unsourced: set[types.CodeType] = set()  # called as they are: no source was found
        self.tests: list[Any] = []
        self.outer_cells: list[types.CellType] = []
        self.relations: dict[Any, tuple] = {}
        self.parts: dict[Any, tuple] = {}
        self.truths: dict[Any, bool] = {}
        self.tries: list[Began] = []  # where the `try`s with `finally` began
        self.raises = 0  # how often user code raises what the program raises when it runs
        self.gathers = False  # whether some list holds rows
        self.gathers_few = decisions.rolls_few  # whether one does that could have its items apart
        self.mixed = 0  # how many joins made numbers of two types one
        self.compared: list[tuple[Any, Any]] = []  # arrays and containers of which it was asked whether they are one
        self.growing: list[list] = []  # lists that the loops around append to
        self.filling: list[list] = []  # lists that comprehensions are making
        self.list_names: dict[int, tuple[str, list]] = {}
        self.deques: dict[int, list] = {}  # lists that user code takes for deques
        self.bounds: dict[int, int] = {}  # the `maxlen` of some
        self.rooms: dict[tuple, tuple[str, DimLike]] = {}
        self.kept: dict[int, Box] = {}  # arrays that a list holds copies of, where Python holds themselves
        self.items: dict[int, Box] = {}  # what stands for arrays in a list, made anew as they are read
        self.argument_sizes: set[str] = set()
        self.argument_counts: set[DimLike] = set()  # of their elements
        self.layouts = Layouts()
        self.given: dict[int, Any] = {}
        self.left: dict[int, tuple] = {}  # iterators over which a loop ran that was left on a staged test
        self.replaced: list[tuple[Location, Any]] = []  # places that hold staged values until the end

    # --- the stack of sessions and regions ---

    def __enter__(self) -> Session:
        sessions().append(self)
        self.regions[0].builder.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.regions[0].builder.__exit__()
        while self.replaced:
            location, old = self.replaced.pop()
            location.write(old)
        innermost = sessions().pop()
        assert innermost is self

    def before_write(self, location: Location) -> None:
        """What stood in a place before its first write is made known: see numbers.py."""
        from .numbers import before_write

        before_write(self, location)

    def is_written(self, key: Hashable) -> bool:
        """Whether a place holds what a staging under way has put there."""
        return any(key in here.journal.places for here in sessions())

    @property
    def region(self) -> Region:
        return self.regions[-1]

    @contextmanager
    def inside(self, region: Region) -> Iterator[Region]:
        """Record into `region` for a while."""
        from ..flow.attempts import in_reach

        self.regions.append(region)
        self.alive.add(region)
        region.builder.is_decided, region.builder.done = self.is_decided, self.done
        with region.builder:
            try:
                yield region
            except Exception as error:
                if self.attempts:
                    in_reach(self, error)
                raise
            finally:
                innermost = self.regions.pop()
                assert innermost is region

    @contextmanager
    def holding(self, *keep: Callable[[], Iterable[Any]]) -> Iterator[None]:
        """While a branch or loop keeps what each of `keep` gives, once for each reference: see reach.py."""
        self.holders += keep
        try:
            yield
        finally:
            del self.holders[len(self.holders) - len(keep) :]

    def rely_on(self, source: Source, kind: str, expected: Any) -> None:
        """The program holds while this is so: see Guard."""
        guard = Guard(source, kind, expected)
        self.guards.setdefault(guard.key(), guard)

    def in_region(self) -> bool:
        return len(self.regions) > 1

    def is_fresh(self, thing: Any, depth: int) -> bool:
        """Whether a mutable object was made inside the region at `depth` (or one inside that)."""
        return any(id(thing) in region.fresh for region in self.regions[depth:])

    def born(self, thing: Any) -> Any:
        """Note a mutable object made by user code."""
        self.region.fresh[id(thing)] = thing
        if type(thing) is list and (name := self.place()[1]):
            self.list_names[id(thing)] = (name, thing)
        return thing

    def label(self, box: Box) -> tuple:
        """A key for the box last made at a place of the program, the same each time a loop body is staged again."""
        label = (self.span(), tuple(self.path))
        self.newest[label] = box
        return label

    def constructed(self, thing: Any) -> Any:
        """Note an object that user code makes; it is found again as an array is."""
        if hasattr(thing, "__weakref__"):
            label = self.region.labels[id(thing)] = ("object", self.span(), tuple(self.path))
            self.newest[label] = weakref.ref(thing)
        return self.born(thing)

    # --- places ---

    def place(self) -> tuple[Span | None, str | None]:
        """Where the user's program is, and the name that the value being made will have."""
        frame: types.FrameType | None = sys._getframe(1)
        without: Span | None = None  # a place in a function without source, if there is no better one
        while frame is not None and id(code := frame.f_code) not in in_users_files:
            if self.unsourced and without is None and code in self.unsourced:
                without = Span(code.co_filename, frame.f_lineno, function=code.co_name)
            frame = frame.f_back
        if frame is None:
            return without, None
        key = (id(frame.f_code), frame.f_lasti)  # converted code is kept: its identity is its own
        found = known_places.get(key)
        if found is None:
            found = known_places[key] = place_of(frame)
        return found

    def span(self) -> Span | None:
        return self.place()[0]

    def span_in_turn(self) -> Span | None:
        """The span of what is recorded: it says the iterations of unrolled loops, too."""
        span, turns = self.span(), self.unrolling
        return replace(span, turns=tuple(count - 2 for count in turns)) if turns and span is not None else span

    def users_span(self) -> Span | None:
        """Where the user called the library of ours (`lax`, `nn`) that is being run; else the span."""
        spans = (self.span(), *(call for _, call in reversed(self.path)))
        return next((s for s in spans if s is not None and not s.file.startswith(LIBRARY)), spans[0])

    # --- recording ---

    def emit(self, primitive: Primitive, *args: Any, **attributes: Any) -> Any:
        """Bind one Let in the innermost region; a Var, or a tuple of them."""
        span = self.span_in_turn()
        atoms = tuple(a if isinstance(a, (Var, Literal)) else literal(a) for a in args)
        numbered = self.numbered(primitive, atoms, attributes)
        if numbered is not None and (found := self.done_before(numbered)) is not None:
            return found
        try:
            outs = self.region.builder.bind(primitive, atoms, attributes, span=span)
        except CoreTypeError as error:
            raise self.core_error(error, span) from None
        if numbered is not None:
            self.region.numbers[numbered] = outs[0]
        return outs if primitive.multiple else outs[0]

    @staticmethod
    def numbered(primitive: Primitive, atoms: tuple, attributes: dict) -> tuple | None:
        """What makes two computations of an index or a size the same: `x[i + 1:]` twice has one size."""
        if primitive.name not in _INDEX_ARITHMETIC or attributes or not atoms:
            return None
        if any(a.type.dims or a.type.dtype.kind not in "iub" for a in atoms):
            return None
        return (primitive.name, *atoms)

    def done_before(self, numbered: tuple) -> Atom | None:
        for region in self.regions:
            if region.numbers and (found := region.numbers.get(numbered)) is not None:
                return found
        return None

    def is_decided(self, args: tuple, attributes: Any) -> bool:
        """Whether a check is known to pass; in the body of a `try` that is settled now."""
        if not self.attempts:
            return False
        from ..flow.attempts import is_decided

        return is_decided(self, args, attributes)

    @contextmanager
    def stamped(self) -> Iterator[None]:
        """Calls of primitives (not through `emit`) get the user's place."""
        builder = self.region.builder
        before, builder.span = builder.span, self.span_in_turn()
        try:
            yield
        except CoreTypeError as error:
            raise self.core_error(error, builder.span) from None
        finally:
            builder.span = before

    def core_error(self, error: CoreTypeError, span: Span | None) -> SourceError:
        if error.remedy:
            return DTypeError(str(error), span, remedy=error.remedy, code="dtype")
        return self.shape_error(str(error), span)

    def shape_error(self, message: str, span: Span | None = None, remedy: str = "", code: str = "shape") -> SourceError:
        return ShapeError(message, span or self.span(), remedy=remedy, code=code)

    def dtype_error(self, message: str, remedy: str = "") -> SourceError:
        return DTypeError(message, self.span(), remedy=remedy, code="dtype")

    def unsupported(self, message: str, remedy: str, code: str = "no-translation") -> UnsupportedError:
        return UnsupportedError(message, self.span(), remedy=remedy, code=code)

    def wrap(self, atom: Atom, kind: type | None = None, dim: DimLike | None = None, among: tuple | None = None) -> Any:
        """What user code sees of a core value."""
        self.name(atom)
        if atom.type.dims:
            return StagedArray(Box(self, atom))
        made = Number(self, atom, kind, atom.type.value if dim is None else dim)
        made.among = among
        return made

    def array(self, atom: Atom) -> StagedArray:
        """A new array object (of rank 0, too) that holds `atom`."""
        self.name(atom)
        return StagedArray(Box(self, atom))

    def name(self, atom: Atom) -> None:
        """Give a value the user's name; what a loop or branch leaves has one."""
        if isinstance(atom, Var) and atom.name in REGISTRY and (hint := self.place()[1]):
            atom.name = hint

    # --- values to atoms ---

    def atom(self, value: Any, dtype: Any = None) -> Atom:
        """The core value of a staged or concrete value, converted to `dtype` if given."""
        found = self._atom(value, dtype)
        if dtype is not None and found.type.dtype != dtype:
            if isinstance(found, Literal):
                return Literal(found.value.astype(dtype))
            if isinstance(value, Number) and found.type.dtype == i64 and is_narrow(np.dtype(dtype)) and counts(value):
                with self.stamped():
                    check_range(found, dtype)
            return self.emit(convert, found, dtype=np.dtype(dtype))
        return found

    def _atom(self, value: Any, dtype: Any) -> Atom:
        if isinstance(value, (Var, Literal)):
            return value
        if isinstance(value, StagedArray):
            return value.read()
        if isinstance(value, Number):
            return value.atom if value.session is self else adopted(self, value).atom
        if isinstance(value, (bool, int, float, complex)):
            if isinstance(value, complex) and dtype is not None and np.dtype(dtype).kind != "c":
                needed = dtype_name(np.dtype(dtype))
                raise self.dtype_error(f"a complex value where {needed} is needed", remedy="take its .real")
            return literal(value, dtype)
        if isinstance(value, np.generic) and dtype_name(value.dtype):
            return literal(value)
        if isinstance(value, np.ndarray):
            return self.lift(value).read()
        if isinstance(value, (list, tuple)):
            from ..calls.creation import array_from

            return array_from(value).read()
        raise self.dtype_error(f"a {type(value).__name__} is not a number or an array")

    def lift(self, value: np.ndarray) -> StagedArray:
        """A concrete array that no capture accounts for: a constant of the program."""
        key = ("constant", id(value))
        if key in self.boxes:
            return self.boxes[key][0]
        plain_array(value, self.span())
        try:
            dtype_name(value.dtype)
        except CoreTypeError as error:
            raise self.dtype_error(str(error), error.remedy) from None
        atom: Atom | None = literal(value[()]) if value.ndim == 0 else None
        if atom is None:
            held = {"value": ConstantArray(value)}
            (atom,) = self.regions[0].builder.bind(constant, (), held, span=self.span())
        box = Box(self, atom)
        box.known = value
        made = StagedArray(box)
        self.boxes[key] = (made, value)
        return made

    def read_view(self, view: StagedArray) -> Atom:
        """The present value of a view: its box's content through its steps."""
        if (here := session()) is not self:
            return adopted(here, view).read()
        self.refresh(view.box)
        if not view.chain:
            return view.box.atom
        version, region, atom = view._cache
        if version == view.box.version and region in self.regions:
            return atom
        atom = read_through(self, view.box.atom, view.chain)
        view._cache = (view.box.version, self.region, atom)
        return atom

    def refresh(self, box: Box) -> None:
        """Bring a box that may be one of several up to date with those."""
        if box.phi is not None:
            box.phi.refresh(self, box)

    def know_symbols(self, type_: Array) -> None:
        """Size symbols of a parameter's type are bound for the whole program."""
        self.argument_counts.add(product(type_.dims))
        for name in dict.fromkeys(name for dim in type_.dims for name in sorted(symbols(dim))):
            self.regions[0].symbols.add(name)
            self.argument_sizes.add(name)
            if (least := least_size(name)) is not None:
                self.facts.learn(name, least, None)

    # --- sizes ---

    def size(self, dim: DimLike) -> Any:
        """A dim as user code sees it: a Python int, or a staged int that knows its dim."""
        return dim if isinstance(dim, int) else Number(self, None, int, dim)

    def dim_atom(self, dim: Any) -> Atom:
        if isinstance(dim, int):
            return literal(dim)
        return self.emit(dim_value, dim=dim)

    def room(self, key: tuple, least: int) -> tuple[str, DimLike]:
        """Room for the items of a list: the name of the hidden argument, and the size that it gives."""
        if key not in self.rooms:
            room = Room("room" if not self.rooms else f"room_{len(self.rooms) + 1}")
            while room.size < 2 * least:
                room.grow()
            source, outermost = AttributeSource(ObjectSource(room, room.name), "size"), self.regions[0]
            param = Var(room.name, Array(np.dtype("int64")))
            self.captures[("captured", source.key())] = (source, param)
            name = fresh_symbol(room.name)
            outermost.builder.bind(as_dim, (param,), {"size": name, "counted": True}, span=self.span())
            outermost.symbols.add(name)
            self.facts.learn(name, max(FIRST_ROOM, 2 * least), None)
            self.rooms[key] = (room.name, Sym(name))
        return self.rooms[key]

    def keep_items(self, leaves: list) -> None:
        """Arrays of which a list holds copies must stay as they are, or the copies would differ."""
        for leaf in leaves:
            box = leaf.box if isinstance(leaf, StagedArray) else leaf
            if isinstance(box, Box) and id(box) not in self.kept:
                self.journal.note(KeptLocation(box, self.kept))
                self.kept[id(box)] = box

    def refuse_kept(self) -> SourceError:
        return self.unsupported(
            "an array that a list holds is changed in place, and the list has a copy of it",
            "append a copy: values.append(x.copy()), or change a copy of the item",
            code="alias",
        )

    def is_bound(self, dim: DimLike) -> bool:
        """Whether types may mention this expression here."""
        if isinstance(dim, int):
            return True
        return symbols(dim) <= self.known_symbols()

    def settled_outside(self, dim: DimLike) -> bool:
        """Whether a size is known outside of the innermost region."""
        return symbols(dim) <= self.known_symbols(-1)

    def known_symbols(self, inner: int | None = None) -> set[str]:
        """The symbols that types may mention here, or outside of the regions from `inner` on."""
        return set().union(*(r.symbols for r in self.regions[:inner]))

    def size_of(self, atom: Atom) -> DimLike | None:
        """The size that was made of a staged integer, so that it is one size wherever it is used."""
        return next((r.dims[atom] for r in reversed(self.regions) if atom in r.dims), None)

    def as_dim(self, value: Any, what: str = "a size", base: str = "") -> DimLike:
        """A size given by user code as a dim; a staged one is bound to a new symbol."""
        if isinstance(value, (int, np.integer, np.bool_)):
            return int(value)
        if isinstance(value, StagedArray) and value.ndim == 0:
            value = self.wrap(value.read())
        if not isinstance(value, Number) or value.dtype.kind not in "iu":
            raise self.dtype_error(f"{what} must be an integer, not {value!r}")
        if value.dim is not None and self.is_bound(value.dim):
            return value.dim
        atom = self.atom(value)
        if isinstance(atom, Literal):
            return int(atom.value)
        if (known := self.size_of(atom)) is not None:
            return known
        base = base or (atom.name if isinstance(atom, Var) and atom.name.isidentifier() else "n")
        name = fresh_symbol(base)
        self.emit(as_dim, atom, size=name)
        self.region.symbols.add(name)
        self.region.dims[atom] = Sym(name)
        if value.dim is not None:
            self.facts.learn(name, value.dim, value.dim)
        return Sym(name)
