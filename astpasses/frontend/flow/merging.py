"""Two values of one variable, one from each side of a branch, as one value after it.

In: pairs of values. Out: for each a function from the results of the `cond` to the joined value; and the
tasks that make the operands of the `cond`, to be run in each side's region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom, Var
from metaphrase.core.types import Array, i64
from metaphrase.ops.arrays import undefined as core_undefined
from metaphrase.ops.compare import le, not_
from metaphrase.ops.effects import check

from ..operators.kinds import WEAK, common_doubts, doubtful, is_number, settled_kinds
from ..rewrite.plain import Undefined
from ..staging.demand import whole_numbers
from ..staging.positions import said
from ..staging.session import Session
from ..staging.signals import TrialOver
from ..values.capacities import capacity, cut, put, same_rank, used
from ..values.layout import keeps_order
from ..values.objects import is_mutable
from ..values.phi import Phi, UnknownAlias, all_of, bind, candidates_of, choices_among, family, paths_of
from ..values.staged_values import Box, Maybe, Number, OneOf, Poison, StagedArray, Truth, Unsized
from ..values.views import Rectangle
from .choices import MOST, choosable, one_of, tag_of, united
from .ends import End
from .gathering import is_gathered
from .joins import constants, describe, either, equal, joined_constants, joined_number, parts, same_static
from .specs import is_missing, is_unset
from .stacks import FULL, Stack, is_stack, item_of_list, joined, several_lengths, stack_like
from .unlike import array_or_number, negated_test

Maker = Callable[[tuple], Any]
_MOST_PATHS = 16  # a store goes all the ways, from choice to choice


class Merger:
    """Collects what the two sides hand over."""

    def __init__(self, here: Session, test: Atom, ends: tuple[End, End]):
        self.here, self.test, self.ends = here, test, ends
        self.sides = tuple(end.region for end in ends)
        self.objects: list[tuple[Any, Any, Any, str]] = []
        self.filled: list[Any] = []
        self.tasks: tuple[list, list] = ([], [])
        self.names: list[str] = []
        self.made: list[tuple[Box, Box, StagedArray, str]] = []
        self.makers: dict[tuple[int, int], Maker] = {}
        self.sizes: dict[tuple[DimLike, DimLike], int] = {}

    def add(self, first: Callable[[], Atom], second: Callable[[], Atom], name: str) -> int:
        self.tasks[0].append(first)
        self.tasks[1].append(second)
        attribute = name.split("'")[1] if name.startswith("attribute '") else "value"
        self.names.append(name if name.isidentifier() else attribute)
        return len(self.tasks[0]) - 1

    def content(self, first: Atom, second: Atom) -> Maker:
        """The content of an array that a side wrote to."""
        if first is second:
            return lambda outs: first
        name = first.name if isinstance(first, Var) else second.name if isinstance(second, Var) else "value"
        k = self.add(lambda: first, lambda: second, name)
        return lambda outs: outs[k]

    def merge(self, a: Any, b: Any, name: str) -> Maker:
        """A function from the results of the `cond` to the joined value."""
        if same_static(a, b):
            return lambda outs: a
        a, b = (self.here.lift(v) if isinstance(v, np.ndarray) else v for v in (a, b))
        if (id(a), id(b)) in self.makers:
            return self.makers[id(a), id(b)]
        if (made := array_or_number(self, a, b, name)) is not None:
            return made
        if isinstance(a, Poison) or isinstance(b, Poison):
            found = a if isinstance(a, Poison) else b  # a truth of one side is none afterwards
            found = Poison(found.reason, found.span, found.roots) if isinstance(found, Truth) else found
            return lambda outs: found
        if isinstance(a, (Undefined, Maybe)) or isinstance(b, (Undefined, Maybe)) or (a is None) != (b is None):
            return self.partial(a, b, name)
        if isinstance(a, StagedArray) and isinstance(b, StagedArray):
            return self.arrays(a, b, name)
        if self.scalar(a) and self.scalar(b):
            return self.numbers(a, b, name)
        first, second = self.ends
        if type(a) is list and type(b) is list:
            one, two = first.look(a, list.copy), second.look(b, list.copy)
            if several_lengths(one, two):
                return self.lists(a, b, one, two, name)
        found, other = first.look(a, parts), second.look(b, parts)
        if found and other and found[0] is other[0] and len(found[1]) == len(other[1]) and equal(found[2], other[2]):
            return self.containers(a, b, name, found, other)
        if choosable(a) and choosable(b) and len(united(a, b)) <= MOST:
            return self.choice(a, b, name)
        return self.poison(a, b, name)

    def choice(self, a: Any, b: Any, name: str) -> Maker:
        """One of several Python values."""
        here, values = self.here, united(a, b)
        k = self.add(lambda: tag_of(here, a, values), lambda: tag_of(here, b, values), name)
        return lambda outs: one_of(values, here.wrap(outs[k], int))

    def containers(self, a: Any, b: Any, name: str, found: tuple, other: tuple) -> Maker:
        """A container (or object) of the joined parts of both."""
        makers = [self.merge(x, y, name) for x, y in zip(found[1], other[1])]
        kind, _, metadata = found

        def make(outs: tuple) -> Any:
            made = self.here.born(kind.unflatten(metadata, [m(outs) for m in makers]))
            if is_mutable(a):
                self.objects.append((a, b, made, name))
            return made

        return self.once(a, b, make)

    def once(self, a: Any, b: Any, make: Maker) -> Maker:
        """Of one pair one thing is made, wherever that pair is met."""
        held: list[Any] = []

        def made(outs: tuple) -> Any:
            if not held:
                held.append(make(outs))
            return held[0]

        return self.makers.setdefault((id(a), id(b)), made)

    def lists(self, a: list, b: list, one: list, two: list, name: str) -> Maker:
        """Lists of which only the run knows how long they are: a Stack with the items of one of them. `one`
        and `two` hold what `a` and `b` did when the sides ended."""
        here = self.here
        try:
            item = joined(here, item_of_list(here, one), item_of_list(here, two))
        except TrialOver:
            return self.poison(a, b, name)
        kept = [v[0].room for v in (two, one) if is_stack(v) and v[0].item == item]
        site = (here.span(), tuple(here.path), "joined", name)
        room = kept[0] if kept else here.room(site, max(len(one), len(two)))
        stacks: dict[int, Stack] = {}

        def part(side: int, k: int) -> Callable[[], Atom]:
            def task() -> Atom:
                if side not in stacks:
                    stacks[side] = stack_like(here, (a, b)[side], item, room, name)
                return here.atom(stacks[side][k], i64 if k < 2 else None)

            return task

        count = 2 + (len(item.dtypes) if item is not None else 0)
        places = [self.add(part(0, k), part(1, k), name) for k in range(count)]

        def make(outs: tuple) -> list:
            numbers = [Number(here, outs[p], int) for p in places[:2]]
            buffers = [StagedArray(Box(here, outs[p])) for p in places[2:]]
            made = here.born([Stack(item, room, (*numbers, *buffers))])
            here.gathers = True
            self.objects.append((a, b, made, name))
            return made

        return self.once(a, b, make)

    def link_objects(self) -> None:
        """An object that is joined of two is one or the other."""
        shared = self.here.journal.shared
        shared.branches += 1
        for a, b, made, name in self.objects:
            for side, thing in enumerate((a, b)):
                shared.join(made, thing, name, self.here.span(), {shared.branches: side})
        self.makers.clear()  # they hold the objects, and this merger
        self.objects.clear()

    def poison(self, a: Any, b: Any, name: str) -> Maker:
        one, two = describe(a), describe(b)
        if one == two:
            one, two = f"one {type(a).__name__}", f"another {type(a).__name__}"
        reason = f"{said(name)} is {one} where the test holds and {two} where it does not"
        span = self.here.users_span()
        roots = whole_numbers(self.here, self.test)
        return lambda outs: Poison(reason, span, roots)

    @staticmethod
    def scalar(value: Any) -> bool:
        return is_number(value) or isinstance(value, StagedArray) and value.ndim == 0

    def numbers(self, a: Any, b: Any, name: str) -> Maker:
        here = self.here
        if type(a) is bool and type(b) is bool:  # they differ: it is what the test says
            return lambda outs: here.wrap(self.test, bool) if a else negated_test(here, self.test)
        pair = settled_kinds((a, b))
        here.mixed += pair[0] is not a or pair[1] is not b
        a, b = pair
        if doubts := common_doubts(a, b):
            known = joined_constants(constants(a), constants(b))
            k = self.add(lambda: here.atom(a, float), lambda: here.atom(b, float), name)
            return lambda outs: doubtful(here, outs[k], float, doubts, known)
        dtype, python = joined_number([a, b])
        here.mixed += dtype.kind != "b" and any(joined_number([v]) != (dtype, python) for v in (a, b))
        among = joined_constants(constants(a), constants(b)) if python in WEAK else None
        k = self.add(lambda: here.atom(a, dtype), lambda: here.atom(b, dtype), name)
        return lambda outs: either(here, outs[k], python, (a, b), among)

    def arrays(self, a: StagedArray, b: StagedArray, name: str) -> Maker:
        here = self.here
        if a.type.dims != b.type.dims or not all(map(here.is_bound, a.type.dims)):
            return self.sized(a, b, name)
        dtype = np.result_type(a.dtype, b.dtype)
        k = self.add(lambda: here.atom(a, dtype), lambda: here.atom(b, dtype), name)
        links = [self.link(array, side, dtype, name) for side, array in enumerate((a, b))]
        total = all(array.box.region in here.regions for array in (a, b))
        writeable = a.writeable if a.writeable == b.writeable else None
        return self.joined_array(
            a,
            b,
            name,
            lambda outs: StagedArray(Box(here, outs[k]), writeable=writeable),
            lambda outs: self.phi([link(outs) for link in links], total, name),
        )

    def joined_array(self, a: StagedArray, b: StagedArray, name: str, joined: Maker, alias: Maker) -> Maker:
        """An array that is `joined` of two, and may be older ones, as `alias` says."""
        ordered = all(map(keeps_order, (a, b)))

        def make(outs: tuple) -> StagedArray:
            made = joined(outs)
            made.box.by_rows = None if ordered else False
            bind(made.box, alias(outs))
            self.made.append((a.box, b.box, made, name))
            return made

        return self.once(a, b, make)

    def sized(self, a: StagedArray, b: StagedArray, name: str) -> Maker:
        """Arrays of two sizes: a buffer for the larger, and how much of it is used."""
        here = self.here
        if not same_rank(a, b):
            return self.poison(a, b, name)
        most: list[Any] = [capacity(here, pair) for pair in zip(a.type.dims, b.type.dims)]
        room: tuple = ("", 0)
        if None in most:
            site = (here.span(), tuple(here.path), "sized", name)
            if site not in here.decisions.roomed:
                unsized = Unsized(site, f"'{name}' has another size on each path", here.users_span())
                return lambda outs: unsized
            room = here.room(site, 1)
            most = [room[1] if d is None else d for d in most]
        dtype, dims = np.result_type(a.dtype, b.dtype), tuple(most)
        sizes = [
            None if p == q and here.is_bound(p) else self.size(p, q, name) for p, q in zip(a.type.dims, b.type.dims)
        ]

        def within(array: StagedArray) -> Atom:
            for have, limit in zip(array.type.dims, dims):
                if limit is room[1] and not here.facts.less_equal(have, limit):
                    fits = here.emit(le, here.dim_atom(have), here.dim_atom(limit))
                    here.emit(check, fits, exception=FULL, message=room[0])
            return put(here, here.atom(array, dtype), dims)

        k = self.add(lambda: within(a), lambda: within(b), name)

        def joined(outs: tuple) -> StagedArray:
            now = tuple(d if at is None else used(here, outs[at], d, self.names[at]) for d, at in zip(dims, sizes))
            return StagedArray(Box(here, cut(here, outs[k], now)))

        def alias(outs: tuple) -> UnknownAlias | None:
            older = [box for box in (*family(a.box), *family(b.box)) if box.region in here.regions]
            return UnknownAlias(older, name, here.span()) if older else None

        return self.joined_array(a, b, name, joined, alias)

    def size(self, first: DimLike, second: DimLike, name: str) -> int:
        """The result that says how much is used; arrays whose sizes go together share it."""
        here = self.here
        if (first, second) not in self.sizes:
            self.sizes[first, second] = self.add(
                lambda: here.dim_atom(first), lambda: here.dim_atom(second), f"{name}_size"
            )
        return self.sizes[first, second]

    def share(self, one: Box, two: Box) -> bool:
        """Whether two arrays of one side are, or may be, one that this side made."""
        others = family(two)
        return one is two or any(b in others and b.region not in self.here.regions for b in family(one))

    def link_twins(self) -> None:
        """Two names that share an array on one side only may share it afterwards."""
        for k, (a, b, one, name) in enumerate(self.made):
            for c, d, two, _ in self.made[:k]:
                if one is not two and (self.share(a, c) or self.share(b, d)):
                    for this, other in ((one.box, two.box), (two.box, one.box)):
                        boxes = [other, *candidates_of(this)]
                        bind(this, UnknownAlias(boxes, name, self.here.span()))

    def link(self, array: StagedArray, side: int, dtype: np.dtype, name: str) -> Callable[[tuple], list]:
        """What an array of one side is, or may be, of those that were there before: a function from the
        results of the `cond` to choices for a `Phi`, with the flag None where nothing says so."""
        here, box = self.here, array.box
        if box.region in here.regions:
            found: list[tuple] | None = [((), box, array.chain)]
        else:
            found = choices_among(box, lambda b: b.region in here.regions)
        makers = []
        for flags, candidate, chain in found or ():
            steps = self.exported(candidate, (*chain, *array.chain) if flags else chain, side, name)
            many = paths_of(candidate) + len(found) > _MOST_PATHS  # type: ignore[arg-type]
            if array.dtype != dtype or steps is None or many:
                found = None
                break
            k = self.flag_of_side(flags, side, name) if flags else None
            makers.append((k, candidate, steps))
        if found is None:
            older = [b for b in family(box) if b.region in here.regions]
            return lambda outs: [(None, b, b.atom, ()) for b in older]

        def choices(outs: tuple) -> list:
            ours = self.test if side == 0 else here.emit(not_, self.test)
            return [
                (ours if k is None else outs[k], box, box.atom, tuple(step(outs) for step in steps))
                for k, box, steps in makers
            ]

        return choices if makers else lambda outs: []

    def flag_of_side(self, flags: tuple, side: int, name: str) -> int:
        """The result that says whether all these flags of one side hold, and that it was this side."""
        tasks = [lambda: all_of(self.here, flags), lambda: literal(False)]
        return self.add(tasks[side], tasks[1 - side], name)

    def of_side(self, atom: Atom, side: int, name: str) -> int:
        """The result that is this atom of one side, and 0 on the other."""
        zero = literal(atom.type.dtype.type(0))
        first, second = (atom, zero) if side == 0 else (zero, atom)
        return self.add(lambda: first, lambda: second, name)

    def exported(self, base: Box, chain: tuple, side: int, name: str) -> list[Callable[[tuple], Any]] | None:
        """The steps to a view, to be taken behind the branch: what they need of one side becomes results.
        None where they can't be: the other side has 0 there, which must be in bounds, too."""
        here, inner = self.here, self.sides[side].builder.lets
        made_here = {out for let in inner for out in let.outs}
        type_, steps = base.atom.type.plain, []
        for step in chain:
            atoms = step.starts if isinstance(step, Rectangle) else getattr(step, "indices", ())
            atoms = tuple(a.type.value if _is_size(here, a) else a for a in atoms)
            own = [atom in made_here for atom in atoms]
            if not all(map(here.is_bound, getattr(step, "shape", ()))):
                return None
            if any(own) and not all(
                here.facts.less_equal(most, dim) for most, dim in zip(reach(step, type_.dims), type_.dims)
            ):
                return None
            places = [self.of_side(atom, side, name) if o else None for atom, o in zip(atoms, own)]
            steps.append(_step_behind(here, step, atoms, places))
            type_ = step.type(type_)
        return steps

    def phi(self, links: list[list], total: bool, name: str) -> Any:
        """Older arrays that the joined one may be; all that it may be, if `total`."""
        choices = [choice for found in links for choice in found]
        if any(flag is None for flag, *_ in choices):
            boxes = [b for _, box, *_ in choices for b in family(box) if b.region in self.here.regions]
            return UnknownAlias(boxes, name, self.here.span())
        return Phi(choices, total) if choices else None

    def partial(self, a: Any, b: Any, name: str) -> Maker:
        """A variable that one side has not bound (or left None)."""
        absent = [v.missing if isinstance(v, Maybe) else v for v in (a, b)]
        absent = [v for v in absent if is_missing(v)]
        if isinstance(a, Undefined) and isinstance(b, Undefined):
            return lambda outs: a
        if all(v is None or is_unset(v) for v in (a, b)):
            return lambda outs: None
        read = [v for v in absent if v is None or v.label is not None]  # our own are not read unbound
        missing = (read or absent)[0]
        if any((v is None) != (missing is None) for v in read):  # one flag does not tell them apart
            return self.poison(a, b, name)
        values = [None if is_missing(v) else v.value if isinstance(v, Maybe) else v for v in (a, b)]
        shape = values[0] if values[0] is not None else values[1]
        filled = [self.filler(shape) if v is None else v for v in values]
        if any(v is None for v in filled):
            return self.poison(a, b, name)
        inner = self.merge(filled[0], filled[1], name)
        if is_unset(missing):
            return inner
        flags = [v.flag if isinstance(v, Maybe) else not is_missing(v) for v in (a, b)]
        flag = self.merge(flags[0], flags[1], f"{name}_bound")
        return lambda outs: Maybe(flag(outs), inner(outs), missing)

    def filler(self, shape: Any) -> Any:
        """Something of the same form, to stand where there is nothing."""
        if type(shape) is list and is_gathered(shape):
            return self.here.born([])
        found = parts(shape)
        if found is not None:
            kind, children, metadata = found
            made = [self.filler(c) for c in children]
            if any(m is None and c is not None for m, c in zip(made, children)):
                return None
            self.filled.append(kind.unflatten(metadata, made))
            return self.filled[-1]
        if isinstance(shape, OneOf):
            return shape.values[0]
        if isinstance(shape, Maybe):
            inner = self.filler(shape.value)
            return None if inner is None else Maybe(False, inner, shape.missing)
        if isinstance(shape, StagedArray):
            bound = tuple(d if self.here.is_bound(d) else 0 for d in shape.type.dims)
            return _Filler(shape.type.dtype, bound, self.here)
        if is_number(shape):
            dtype, python = joined_number([shape])
            return _number_filler(self.here, dtype, python)
        return shape


def reach(step: Any, dims: tuple) -> list[DimLike]:
    """How large the dims of the base must be for a step whose starts or indices are 0."""
    if isinstance(step, Rectangle):
        return [length if s == 1 else dim + 1 for length, s, dim in zip(step.shape, step.step, dims)]
    return [1 if k in step.axes else dim for k, dim in enumerate(dims)]


def _is_size(here: Session, atom: Atom) -> bool:
    """Whether an atom is a size that is known wherever the program is."""
    return isinstance(atom, Var) and atom.type.value is not None and here.is_bound(atom.type.value)


def _step_behind(here: Session, step: Any, atoms: tuple, places: list) -> Callable[[tuple], Any]:
    """The step with those of its atoms replaced that became results, and sizes read again."""
    field = "starts" if isinstance(step, Rectangle) else "indices"
    if not atoms:
        return lambda outs: step

    def made(outs: tuple) -> Any:
        now = tuple(a if k is None else outs[k] for a, k in zip(atoms, places))
        return replace(step, **{field: tuple(a if isinstance(a, Atom) else here.dim_atom(a) for a in now)})

    return made


class _Filler(StagedArray):
    """An array without a value: reading it makes `undefined` in the region that reads."""

    __slots__ = ("_type",)

    def __init__(self, dtype: np.dtype, dims: tuple, here: Session):
        held = Box.__new__(Box)
        held.session, held.origin, held.phi, held.handles, held.known = here, None, None, [], None
        held.by_rows, held.version, held.label = None, 0, ()
        held.atom = held.region = None  # type: ignore[assignment]
        super().__init__(held, (), Array(dtype, dims))

    def read(self) -> Atom:
        return self.session.emit(core_undefined, dtype=self.type.dtype, shape=self.type.dims)


def _number_filler(here: Session, dtype: np.dtype, python: type | None) -> Any:
    class Absent(Number):
        __slots__ = ()

        @property
        def atom(self) -> Atom:
            return here.emit(core_undefined, dtype=dtype, shape=())

        @property
        def dtype(self) -> np.dtype:
            return dtype

    return Absent(here, None, python)
