"""The numbers that a rolled loop carries: of which type, and whether they are Python's or NumPy's.

In: what a number is before the loop, and at the end of an iteration. Out: what it is in the body, and whether the plan
had to be widened. A number that is Python's before the loop may be NumPy's in it (`t = 0.0`, `t = t + x[i]`): whose it
is stays in doubt (see `values/doubts.py`), and a pass whose body does not depend on it need not be done again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from metaphrase.core.dims import Sym, fresh_symbol
from metaphrase.core.ir import Atom
from metaphrase.core.types import Array

from ..operators.kinds import WEAK, doubtful, is_doubtful, is_of_two_types, is_strong, weak_type
from ..values.doubts import Doubt
from ..values.staged_values import Number
from .joins import constants, either, joined_number, nonnegative, number_of
from .specs import Path, Spec

if TYPE_CHECKING:
    from .carries import Pass


class Numbers:
    """Those of one pass."""

    def __init__(self, work: Pass):
        self.work, self.here = weakref.proxy(work), work.here  # no cycle, as in carried_sizes.py
        self.doubts: set[Doubt] = set()
        self.waiting: list[tuple[Doubt, Path, Spec, Any, Any]] = []  # left as what only the whole pass tells

    def enter(self, spec: Spec, entry: Any) -> None:
        """Widen the plan for what a number is before the loop: it may be another one than when the plan was made."""
        dtype, python = spec.dtype, spec.python
        if is_doubtful(entry) and entry.weak is python:
            spec.carried.learn(constants(entry))
            entry = entry.as_pythons()
        else:
            self.take(spec, entry)
        spec.python = python if spec.dtype == dtype else spec.python
        spec.low = spec.low and nonnegative(self.here, entry)

    def carry(self, path: Path, spec: Spec, initial: Callable[[], Atom], entry: Any) -> Number:
        """The number in the body."""
        param = self.work.carry(path, Array(spec.dtype), initial)
        dim = None
        if spec.python is int:
            name = fresh_symbol(param.name + "#")
            self.here.facts.learn(name, 0 if spec.low else None, None)
            dim = Sym(name)
        if spec.python in (int, float):
            spec.doubt = Doubt(entry.doubts if is_doubtful(entry) else frozenset())
            self.doubts.add(spec.doubt)
            return doubtful(self.here, param, spec.python, frozenset([spec.doubt]), (spec.carried,), dim)
        made = Number(self.here, param, spec.python, dim)
        made.among = (spec.carried,)
        return made

    def leave(self, path: Path, spec: Spec, inside: Any, out: Any) -> None:
        """Take what a number is at the end of an iteration."""
        doubt, spec.doubt = spec.doubt, None
        if doubt is not None and is_doubtful(out) and out.weak is spec.python and (out is inside or out.weak is float):
            self.waiting.append((doubt, path, spec, inside, out))
            return
        if doubt is not None and not doubt.asked and is_strong(out, spec.dtype):
            doubt.strong, spec.python = True, None  # and nothing in the body depends on what it was before
        self.end(path, spec, inside, out)

    def settle(self) -> None:
        """Once all is left: a float is NumPy's if it is made of one that is, or as what loops around carry."""
        while found := [w for w in self.waiting if w[-1].is_strong]:
            self.waiting = [w for w in self.waiting if w not in found]
            for doubt, path, spec, inside, out in found:
                if not doubt.asked:
                    doubt.strong, spec.python = True, None
                self.end(path, spec, inside, out.either())
        more = True
        while more:
            more = False
            for doubt, *_, out in self.waiting:
                around = doubt.within.union(*(d.within if d in self.doubts else (d,) for d in out.doubts))
                more |= around != doubt.within
                doubt.within = around
        for _, path, spec, _, out in self.waiting:
            self.work.changed |= spec.carried.learn(constants(out))
            self.work.by_path[path].final = self.here.atom(out, spec.dtype)
        self.waiting.clear()

    def end(self, path: Path, spec: Spec, inside: Any, out: Any) -> None:
        if weak_type(out) is None and joined_number([out]) != (spec.dtype, spec.python):
            self.work.turns = "number"
        if self.fits(spec, inside, out):
            self.work.by_path[path].final = self.here.atom(out, spec.dtype)

    def fits(self, spec: Spec, inside: Any, out: Any) -> bool:
        """Whether a number is of the kind that is carried; else the spec is widened."""
        fits = self.take(spec, out)
        if spec.low and spec.python is int and out is not inside:
            if not nonnegative(self.here, out):
                spec.low = fits = False
        self.work.changed |= not fits
        return fits

    def take(self, spec: Spec, value: Any) -> bool:
        """Whether a number is of the kind that is carried, and nothing else; the spec is widened."""
        if is_doubtful(value) and spec.python is None and value.dtype == spec.dtype:
            value = value.either()
        before, learned = (spec.dtype, spec.python), False
        spec.dtype, spec.python = joined_number([number_of(spec.dtype, spec.python, (spec.carried,)), value])
        if weak_type(value) is None and before[1] in WEAK and spec.dtype == value.dtype and not is_of_two_types(value):
            spec.python = None  # it is Python's before the first iteration only
        spec.low = spec.low and spec.python is int
        if weak_type(value) is not None:
            learned = spec.carried.learn(constants(value))
        return (spec.dtype, spec.python) == before and not learned

    def after(self, inside: Number, found: Atom) -> Any:
        """The number after the loop."""
        if is_doubtful(inside) and inside.weak is float and not inside.is_strong:
            (doubt,) = inside.doubts
            if doubt.within:
                return doubtful(self.here, found, float, doubt.within, inside.among)
        return either(self.here, found, inside.kind, (inside,), inside.among)
