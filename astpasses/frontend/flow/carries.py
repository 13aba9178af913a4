"""What a rolled loop carries, found by staging its body until nothing changes.

In: values at the loop's entry, and what the body made of them. Out: a `Plan` by path (a variable, an item,
an array's content; and paths into containers), which only ever widens.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.ir import Atom, Literal, Var
from metaphrase.core.types import Array, i64
from metaphrase.ops.arrays import undefined as core_undefined
from metaphrase.ops.compare import or_

from ..operators.kinds import is_doubtful, is_number
from ..rewrite.plain import Undefined
from ..staging.demand import sizes_of
from ..staging.positions import said
from ..staging.session import Session
from ..staging.signals import PeelFirst, TrialOver
from ..values.layout import keeps_order
from ..values.objects import is_mutable
from ..values.phi import all_of, choices_among
from ..values.staged_values import Box, Maybe, Number, OneOf, Poison, StagedArray
from .carried_numbers import Numbers
from .carried_sizes import Sizes
from .choices import MOST, choosable, one_of, tag_of, united
from .foreseen import Foreseen, has_come_true
from .joins import describe, have_one_form, joined_number, makers, nonnegative, parts, same_static
from .specs import ArraySlot, Carried, Carry, Path, Spec, is_missing, is_or_none, is_unset, maybe
from .stacks import fit_stack


class Pass:
    """One staging of the body under the present plan. `plan` is shared by all passes and widens."""

    def __init__(self, here: Session, plan: dict[Path, Spec], label: Callable[[Path], str], foreseen: Foreseen):
        self.here, self.plan, self.label, self.foreseen = here, plan, label, foreseen
        self.entered: dict[Path, Any] = {}  # what stands for variables that are first bound in the body
        # What has one type from the second iteration on, and is carried with another that it has before.
        self.turns = ""
        self.carries: list[Carry] = []
        self.by_path: dict[Path, Carry] = {}
        self.changed = False
        self.branch = 0  # the number of that between the objects that may be carried, see loop_objects.py
        # Mutable objects carried by their parts: (path, before the loop, in the body); what is at its end.
        self.objects: list[tuple[Path, Any, Any]] = []
        self.left: dict[Path, Any] = {}
        self.rebuilt: dict[int, Any] = {}
        self.sizes = Sizes(self)
        self.numbers = Numbers(self)
        self.arrays: dict[Path, ArraySlot] = {}
        self.finals: dict[int, StagedArray] = {}
        self.told: dict[Path, bool] = {}  # of an array with such a flag: whether it can be told
        self.stayed: dict[int, Any] = {}  # and what the flag is after the loop

    def forget(self) -> None:
        """What makes the first values refers to all this again, and would keep the objects of a pass."""
        self.carries.clear()
        self.by_path.clear()

    def kept(self) -> Iterator[Any]:
        """What is held here, once for each reference."""
        for _, entry, made in self.objects:
            yield entry
            yield made
        yield from self.left.values()
        yield from self.rebuilt.values()

    # --- entering ---

    def enter(self, path: Path, entry: Any) -> Any:
        """The value inside the body for a value at the loop's entry."""
        spec = self.plan.get(path)
        if spec is None or spec.kind == "held" and is_number(entry):  # in another staging it was an array
            spec = self.plan[path] = self.first_spec(path, entry)
        entry = self.staged(entry)
        if spec.kind == "held":
            return entry
        if spec.kind == "number":
            if is_number(entry):  # it may be another one than when the plan was made
                self.numbers.enter(spec, entry)
            initial = (
                (lambda: literal(0, spec.dtype))
                if isinstance(entry, Undefined)
                else (lambda: self.here.atom(entry, spec.dtype))
            )
            made: Any = self.numbers.carry(path, spec, initial, entry)
            self.by_path[path].entry = entry
            return made
        if spec.kind == "array":
            if isinstance(entry, StagedArray):
                self.sizes.refresh(spec, entry.type.dims)
            return self.array(path, spec, lambda: self.here.atom(entry, spec.dtype), entry)
        if spec.kind == "one_of":
            return self.one_of(path, spec, entry)
        if spec.kind == "tree":
            kind, children, metadata = parts(entry)  # type: ignore[misc]
            made = [self.enter((*path, k), c) for k, c in enumerate(children)]
            return self.object(path, entry, kind.unflatten(metadata, made))
        return self.absent(path, spec, entry)

    def staged(self, value: Any) -> Any:
        """A constant array that user code holds in a container, as the array that it is in the program."""
        return self.here.lift(value) if isinstance(value, np.ndarray) else value

    def object(self, path: Path, entry: Any, made: Any) -> Any:
        """Note a container of the body that stands for one before the loop."""
        if is_mutable(made):
            self.objects.append((path, entry, made))
        return self.here.born(made)

    def first_spec(self, path: Path, entry: Any) -> Spec:
        """Numbers are carried at once; tuples are looked into; all else is held until it changes."""
        if is_doubtful(entry) and entry.weak is not bool:
            entry = entry.as_pythons()
        if is_number(entry):
            dtype, python = joined_number([entry])
            low = python is int and nonnegative(self.here, entry)
            return Spec("number", dtype, python=python, low=low, carried=Carried())
        if isinstance(entry, Maybe):
            return maybe(entry.value, entry.missing)
        if isinstance(entry, OneOf):
            return Spec("one_of", template=entry.values)
        if self.foreseen.array(self.here, path, entry):
            return Spec("array", entry.dtype, entry.type.dims, entry=entry.type.dims, foreseen=True)
        if self.foreseen.container(path, entry):
            return Spec("tree", foreseen=True)
        found = parts(entry)
        if found is not None and isinstance(entry, tuple):
            return Spec("tree")
        return Spec("held")

    def carry(self, path: Path, type_: Array, initial: Callable[[], Atom]) -> Var:
        if not all(map(self.here.is_bound, type_.dims)):
            raise TrialOver(
                f"'{self.label(path)}' has a size that is only known inside the loop",
                self.here.span(),
                "give it one size before the loop",
            )
        made = Carry(path, Var(self.label(path), type_), initial)
        self.carries.append(made)
        self.by_path[path] = made
        self.here.origins[made.param] = ("carry", made.param)
        return made.param

    def array(self, path: Path, spec: Spec, initial: Callable[[], Atom], entry: Any) -> StagedArray:
        if any(number is not None for number in spec.sizes):
            made = self.sizes.enter(path, spec, initial)
        else:
            made = StagedArray(Box(self.here, self.carry(path, Array(spec.dtype, spec.dims), initial)))
        spec.apart = spec.apart or isinstance(entry, StagedArray) and not keeps_order(entry)
        made.box.by_rows = False if spec.apart else None
        if spec.kept:
            self.carry((*path, "kept"), Array(np.dtype(bool)), lambda: literal(True))
        self.arrays[path] = ArraySlot(path, entry, made)
        return made

    def one_of(self, path: Path, spec: Spec, entry: Any) -> OneOf:
        """One of several Python values: its number is carried."""
        values = spec.template
        first = entry if choosable(entry) else values[0]
        param = self.carry(path, Array(i64), lambda: tag_of(self.here, first, values))
        return OneOf(values, Number(self.here, param, int))

    def absent(self, path: Path, spec: Spec, entry: Any) -> Any:
        """A value that is not there in every iteration."""
        here, missing = self.here, spec.missing
        if isinstance(entry, Maybe):
            first, present, given = entry.flag, entry.value, entry.value
            missing = entry.missing
        else:
            first, present, given = not is_missing(entry), spec.template, entry
            missing = entry if missing is ... else missing
        inside = self.template((*path, "value"), present, given)
        if spec.kind == "unset":
            return inside
        bound = self.carry((*path, "bound"), Array(np.dtype(bool)), lambda: here.atom(first, np.dtype(bool)))
        return Maybe(Number(here, bound, bool), inside, missing)

    def template(self, path: Path, shape: Any, entry: Any) -> Any:
        """Carried values in the structure of `shape`; first values from `entry`, or undefined."""
        found = parts(shape)
        given = parts(entry)
        if found is not None:
            kind, children, metadata = found
            entries = given[1] if given is not None else [entry] * len(children)
            made = [self.template((*path, k), c, e) for k, (c, e) in enumerate(zip(children, entries))]
            return self.object(path, entry, kind.unflatten(metadata, made))
        if isinstance(shape, OneOf) or path in self.plan and self.plan[path].kind == "one_of":
            spec = self.plan.setdefault(path, Spec("one_of", template=united(shape)))
            return self.one_of(path, spec, entry)
        if isinstance(shape, Maybe):
            return self.absent(path, self.plan.setdefault(path, maybe(shape.value, shape.missing)), entry)
        if isinstance(shape, StagedArray):
            spec = self.plan.setdefault(path, self.sizes.template(shape))
            if isinstance(entry, StagedArray):
                self.sizes.refresh(spec, entry.type.dims)
            return self.array(path, spec, lambda: self.first(spec, entry), entry)
        if is_number(shape):
            dtype, python = joined_number([shape])
            spec = self.plan.setdefault(path, Spec("number", dtype, python=python, carried=Carried()))
            return self.numbers.carry(path, spec, lambda: self.first(spec, entry), entry)
        self.plan.setdefault(path, Spec("held"))
        return shape

    def first(self, spec: Spec, entry: Any) -> Atom:
        if isinstance(entry, Undefined) or entry is None:
            return self.here.emit(core_undefined, dtype=spec.dtype, shape=spec.dims)
        return self.here.atom(entry, spec.dtype)

    # --- leaving ---

    def leave(self, path: Path, entry: Any, inside: Any, out: Any) -> None:
        """Compare what the body made with the plan: take its atoms, or widen the plan."""
        spec = self.plan[path]
        if type(entry) is list and type(out) is list and out is not inside:
            fit_stack(self.here, entry, out)
        if isinstance(out, Poison):
            name = said(self.label(path))
            told = out.reason if out.reason.startswith(name) else f"{name}: {out.reason}"
            raise PeelFirst(told, out.span)
        if spec.foreseen and not has_come_true(self.plan, path, entry, inside, out):
            self.changed = True
            return
        if spec.kind == "held":
            if out is not inside and not same_static(out, inside):
                self.widen(path, spec, entry, out)
        elif spec.kind == "number":
            self.leave_number(path, spec, entry, inside, out)
        elif spec.kind == "array":
            self.leave_array(path, spec, out)
        elif spec.kind == "one_of":
            self.leave_one_of(path, spec, entry, out)
        elif spec.kind == "tree":
            if not have_one_form(out, inside):
                raise self.mismatch(path, entry, out)
            self.left[path] = out
            children: Any = map(parts, (entry, inside, out))
            for k, (e, i, o) in enumerate(zip(*(found[1] for found in children))):
                self.leave((*path, k), e, i, o)
        else:
            self.leave_absent(path, spec, entry, inside, out)

    def widen(self, path: Path, spec: Spec, entry: Any, out: Any) -> None:
        before, self.changed = self.changed, True
        entry, out = self.staged(entry), self.staged(out)
        if is_missing(entry):
            missing = None if is_unset(entry) and is_or_none(out) else entry
            self.plan[path] = maybe(out.value if isinstance(out, Maybe) else out, missing)
            unread = isinstance(entry, Undefined) and not entry.was_read
            if unread and len(path) == 1 and not isinstance(out, Maybe):
                self.changed = before
                self.entered[path] = self.enter(path, entry)
                self.leave(path, entry, self.entered[path], out)
        elif is_missing(out):
            self.plan[path] = maybe(entry, out)
        elif isinstance(out, Maybe):
            self.plan[path] = maybe(out.value, out.missing)
        elif isinstance(entry, StagedArray) and isinstance(out, StagedArray):
            dtype = np.result_type(entry.dtype, out.dtype)
            spec = self.plan[path] = Spec("array", dtype, entry.type.dims, entry=entry.type.dims)
            if out.type.dims != entry.type.dims and not self.sizes.widen(spec, out):
                raise self.mismatch(path, entry, out)
        elif choosable(entry) and choosable(out):
            self.plan[path] = Spec("one_of", template=united(entry, out))
        elif (a := parts(entry)) and (b := parts(out)) and a[0] is b[0] and len(a[1]) == len(b[1]):
            self.plan[path] = Spec("tree")
        else:
            raise self.mismatch(path, entry, out)

    def mismatch(self, path: Path, entry: Any, out: Any) -> TrialOver:
        was, now = describe(entry), describe(out)
        text = f"{said(self.label(path))} is {was} before the loop and {now} after an iteration"
        remedy = "give it one type from the start"
        other = isinstance(out, StagedArray) != isinstance(entry, StagedArray)
        over = (PeelFirst if other else TrialOver)(text, self.here.span(), remedy, makers(self.here, entry, out))
        over.sizes = sizes_of(self.here, entry, out)
        return over

    def leave_one_of(self, path: Path, spec: Spec, entry: Any, out: Any) -> None:
        values = united(*spec.template, out) if choosable(out) else ()
        if not 0 < len(values) <= MOST:
            raise self.mismatch(path, entry, out)
        if len(values) > len(spec.template):
            spec.template, self.changed = values, True
        else:
            self.by_path[path].final = tag_of(self.here, out, values)

    def leave_number(self, path: Path, spec: Spec, entry: Any, inside: Any, out: Any) -> None:
        if isinstance(out, StagedArray) and out.ndim == 0:
            out = self.here.wrap(out.read())
        if is_missing(out) or isinstance(out, Maybe):
            self.widen(path, spec, entry, out)
            return
        if not is_number(out):
            raise self.mismatch(path, entry, out)
        self.numbers.leave(path, spec, inside, out)

    def foresee(self, path: Path, entry: Any, out: Any) -> None:
        """A place that was held, and that the next pass carries: of a kind that has room for both values."""
        spec = self.plan[path] = self.first_spec(path, entry)
        if spec.kind == "number" and is_number(out):
            self.numbers.fits(spec, entry, out)

    def leave_array(self, path: Path, spec: Spec, out: Any) -> None:
        self.arrays[path].outside = out if isinstance(out, StagedArray) else None
        if isinstance(out, StagedArray) and not spec.apart and not keeps_order(out):
            spec.apart = self.changed = True
            return
        if isinstance(out, StagedArray) and (spec.sizes or out.type.dims != spec.dims):
            if self.sizes.leave(path, spec, out):
                return
            if spec.changes:
                text = "'{}' is an array {} before the loop and an array {} after an iteration"
                text = text.format(self.label(path), *spec.changes)
                remedy = "make it as large as it gets before the loop, and store into it"
                over = TrialOver(text, self.here.span(), remedy, makers(self.here, self.by_path[path].initial(), out))
                over.sizes = sizes_of(self.here, self.arrays[path].entry, out)
                raise over
        if not isinstance(out, StagedArray) or out.type.dims != spec.dims:
            raise TrialOver(
                f"'{self.label(path)}' is an array {Array(spec.dtype, spec.dims)} and becomes {describe(out)}",
                self.here.span(),
                "keep one shape, or use another name",
                makers(self.here, self.by_path[path].initial(), out),
            )
        dtype = np.result_type(spec.dtype, out.dtype)
        if dtype != spec.dtype:
            spec.dtype, self.changed = dtype, True
            return
        self.turns = self.turns or "array" * (out.dtype != spec.dtype)
        self.by_path[path].final = self.here.atom(out, spec.dtype)
        self.leave_kept(path, spec, out)

    def leave_kept(self, path: Path, spec: Spec, out: StagedArray) -> None:
        """Whether an array that others can see is still what it was before the loop: a branch may say."""
        inside, entry = self.arrays[path].inside.box, self.arrays[path].entry
        choices = [((), inside, ())] if out.box is inside else choices_among(out.box, lambda b: b is inside)
        told = choices is not None and not out.chain and not any(chain for _, _, chain in choices)
        if choices and told and not spec.kept and out.box is not inside and isinstance(entry, StagedArray):
            spec.kept = entry.box.origin is not None or entry.box.phi is not None
            self.changed |= spec.kept
        carry = self.by_path.get((*path, "kept"))
        if carry is not None:
            self.told[path] = told
            flags = [all_of(self.here, flags) for flags, _, _ in choices or ()]
            same = functools.reduce(lambda a, b: self.here.emit(or_, a, b), flags or [literal(False)])
            carry.final = all_of(self.here, (same, carry.param)) if told else carry.param

    def leave_absent(self, path: Path, spec: Spec, entry: Any, inside: Any, out: Any) -> None:
        value_path = (*path, "value")
        if spec.kind == "maybe":
            missing = inside.missing
            gone = out is None if missing is None else isinstance(out, Undefined)
            flag = out.flag if isinstance(out, Maybe) else not gone
            self.by_path[(*path, "bound")].final = self.here.atom(flag, np.dtype(bool))
            value, inside_value = (out.value if isinstance(out, Maybe) else out), inside.value
            if gone:
                value = inside_value
        elif is_or_none(out) or out is None and spec.template is not None:
            present = out.value if spec.template is None else spec.template
            self.plan[path], self.changed = maybe(present, None), True
            return
        else:
            value, inside_value = (out.value if isinstance(out, Maybe) else out), inside
            if isinstance(out, Undefined):
                value = inside_value
        self.leave_template(value_path, inside_value, value)

    def leave_template(self, path: Path, inside: Any, out: Any) -> None:
        was, found = parts(inside), parts(out)
        if was is not None:
            if found is None or found[0] is not was[0] or len(found[1]) != len(was[1]):
                raise self.mismatch(path, inside, out)
            self.left[path] = out
            for k, (i, o) in enumerate(zip(was[1], found[1])):
                self.leave_template((*path, k), i, o)
        elif self.plan[path].kind in ("maybe", "unset"):
            self.leave_absent(path, self.plan[path], None, inside, out)
        elif self.plan[path].kind == "held":
            if not same_static(inside, out) and not (choosable(inside) and choosable(out)):
                raise self.mismatch(path, inside, out)
            if not same_static(inside, out):
                self.plan[path], self.changed = Spec("one_of", template=united(inside, out)), True
        elif self.plan[path].kind == "one_of":
            self.leave_one_of(path, self.plan[path], inside, out)
        elif self.plan[path].kind == "array":
            self.leave_array(path, self.plan[path], out)
        else:
            self.leave_number(path, self.plan[path], inside, inside, out)

    # --- after the loop ---

    def after(self, inside: Any, results: dict[Any, Any]) -> Any:
        """The value after the loop: parameters replaced by the loop's results (or by values that stayed)."""
        here = self.here
        if isinstance(inside, Number):
            found = results.get(inside._atom)
            if found is None or not isinstance(found, (Var, Literal)):
                return inside if found is None else found
            return self.numbers.after(inside, found)
        if isinstance(inside, StagedArray):
            if (sized := self.sizes.after(inside, results)) is not None:
                self.finals[id(inside)] = sized
                sized.box.by_rows = inside.box.by_rows
                return sized
            atom = inside.box.atom
            if inside.chain or atom not in results:
                return inside
            slot = next((s for s in self.arrays.values() if s.inside is inside), None)
            if slot is not None and self.told.get(slot.path):
                flag = self.by_path[(*slot.path, "kept")]
                self.stayed[id(inside)] = results[flag.param]
            self.finals[id(inside)] = StagedArray(Box(here, results[atom]))
            self.finals[id(inside)].box.by_rows = inside.box.by_rows
            return self.finals[id(inside)]
        if isinstance(inside, OneOf):
            tag = self.after(inside.tag, results)
            return inside if tag is inside.tag else one_of(inside.values, tag)
        if isinstance(inside, Maybe):
            there = self.after(inside.flag, results)
            if isinstance(there, Number) and isinstance(there._atom, Literal):
                there = bool(there._atom.value)
            if isinstance(there, bool):
                return self.after(inside.value, results) if there else inside.missing
            return Maybe(there, self.after(inside.value, results), inside.missing)
        found = parts(inside)
        if found is None:
            return inside
        kind, children, metadata = found
        made = [self.after(c, results) for c in children]
        if all(m is c for m, c in zip(made, children)):
            return inside
        self.rebuilt[id(inside)] = here.born(kind.unflatten(metadata, made))
        return self.rebuilt[id(inside)]
