"""Where the first NaN or inf in a program's results was made: by which operation, in which iterations, for which lanes.

In: a Function, arrays, what is looked for. Out: an `Origin`, GIVEN where the arguments had it, or None.

    def f(x: f64[3]) -> f64:
        y: f64[3] = log(x)                  # of [1, -1, 0]: one NaN, at index 1, and one inf
        z: f64 = reduce_sum(y, axes=(0,))   # NaN as well, but an operand was
        return z

The program runs by the NumPy rules under a watch. An operation *makes* a NaN in an element of its result where no
element of its operands that the result depends on is one (the primitive's `dims` say which do). What is made need not
reach the results: `np.where(x > 0, np.log(x), 0.0)` drops it. So what is made after a certain operation is replaced by
a number, and the first operation of which the results still have a NaN is found by bisection: a few runs, two where
the first NaN made is the one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..late import dataclass
from ..source import Span
from .evaluate import evaluate, run_let
from .ir import Function, Let, Literal
from .relation import Dims
from .types import is_inexact

NUMBER = 0.73908513  # what replaces a NaN: of no special meaning to any function
LONGEST = 2  # a run with other numbers may loop for longer: so many times as long, at most


@dataclass(frozen=True)
class Origin:
    """`iterations`: of each loop around the operation its place and the iteration, from 0, the outermost first; None is
    the place of one that was unrolled.
    `lanes`: under vmap, the outermost first. `shown`: the operation on the operands that made `value`. `inf`: what made
    the inf of which a NaN was made."""

    moment: int
    span: Span | None
    shown: str
    value: Any
    iterations: tuple[tuple[Span | None, int], ...]
    lanes: tuple[int, ...]
    inf: Origin | Given | None = None


class Given:
    """The arguments had it."""


GIVEN = Given()


def is_bad(value: Any, kinds: str) -> Any:
    """Which elements are NaN (`kinds` "nan"), infinite ("inf"), or either ("nan inf")."""
    value = np.asarray(value)
    if not is_inexact(value.dtype):
        return np.zeros(value.shape, bool)
    if kinds == "nan":
        return np.isnan(value)
    return np.isinf(value) if kinds == "inf" else ~np.isfinite(value)


def origin(function: Function, args: Sequence[Any], kinds: str, looked: Sequence[int]) -> Origin | Given | None:
    """What made the first one in the results with the numbers `looked`; None if a run by the NumPy rules has none."""
    told: dict[int, tuple] = {}
    found = _origin(function, args, kinds, looked, told)
    if isinstance(found, Origin) and np.isnan(found.value) and "inf" in found.shown:
        return replace(found, inf=_origin(function, args, "inf", looked, told, found.moment))
    return found


def _origin(
    function: Function, args: Sequence[Any], kinds: str, looked: Sequence[int], told: dict[int, tuple], goal: int = 0
) -> Any:
    """`origin`, or what made the one that leads to the NaN made at the moment `goal`."""
    first = _Watch(kinds, looked, goal, told=told)
    if not first.arrives(function, args):
        return None

    def suffices(moment: int) -> bool:
        """Whether it arrives still when what is made after a moment is replaced."""
        return _Watch(kinds, looked, goal, moment, LONGEST * first.moment + 100, told=told).arrives(function, args)

    if any(is_bad(arg, kinds).any() for arg in args) and suffices(0):
        return GIVEN
    if not first.made:
        return None
    last = _Watch(kinds, looked, stop=_least(first.made, suffices), told=told)
    last.arrives(function, args)
    return last.found


def _least(moments: Sequence[int], suffices: Callable[[int], bool]) -> int:
    """The first moment that suffices; the last one does."""
    if suffices(moments[0]):
        return moments[0]
    low, high = 0, len(moments) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(moments[middle]) else (middle, high)
    return moments[high]


class _Ended(Exception):
    """The run need not go on."""


@dataclass
class _Around:
    """A region that is being run, and the iteration, of a loop."""

    let: Let
    iteration: int = 0


class _Watch:
    """Sees each operation of a run: `made` has the moments at which something bad was made. What is made after
    `kept_until` is replaced. At the moment `goal`, if that is one, a NaN is to be made, else the results with the
    numbers `looked` are to be bad. At the moment `stop` what is `found` is kept. `told`: what the world outside has
    given, which is asked once."""

    def __init__(
        self,
        kinds: str,
        looked: Sequence[int],
        goal: int = 0,
        kept_until: float = np.inf,
        most: float = np.inf,
        stop: int = 0,
        *,
        told: dict[int, tuple],
    ):
        self.kinds, self.looked, self.goal, self.stop = kinds, looked, goal, stop
        self.kept_until, self.most = kept_until, most
        self.told = told
        self.moment = 0
        self.made: list[int] = []
        self.around: list[_Around] = []
        self.has_arrived = False
        self.found: Origin | None = None

    def arrives(self, function: Function, args: Sequence[Any]) -> bool:
        """Run; whether what is looked for arrives. A run on replaced numbers may fail or go on where the run did not:
        there nothing arrives."""
        try:
            results = evaluate(function, *args, watch=self)
        except _Ended:
            return self.has_arrived
        except Exception:
            if np.isinf(self.kept_until):
                raise
            return False
        return any(is_bad(results[k], self.kinds).any() for k in self.looked)

    def entered(self, region: Function, args: Sequence[Any]) -> None:
        inner = self.around[-1]
        if inner.let.primitive.name == "loop":
            inner.iteration = int(args[0])

    def __call__(self, let: Let, values: Sequence[Any], sizes: dict[str, int]) -> tuple:
        self.moment += 1
        if self.moment > self.most:
            raise _Ended
        if let.primitive.effect is not None and not let.outs:  # it was printed, it has passed
            return ()
        if let.primitive.effect is not None:
            if self.moment not in self.told:
                self.told[self.moment] = run_let(let, values, sizes)
            return self._looked_at(let, values, self.told[self.moment])
        if let.primitive.region:
            self.around.append(_Around(let))
            outs = run_let(let, values, sizes, self)
            self.around.pop()
            return outs
        return self._looked_at(let, values, run_let(let, values, sizes))

    def _looked_at(self, let: Let, values: Sequence[Any], outs: tuple) -> tuple:
        if self.moment == self.goal:
            self.has_arrived = any(is_bad(out, "nan").any() for out in outs)
            raise _Ended
        bad = [is_bad(out, self.kinds) for out in outs]
        if not any(b.any() for b in bad):
            return outs
        news = [b & ~i for b, i in zip(bad, _inherited(let, values, bad, self.kinds))]
        if not any(new.any() for new in news):
            return outs
        self.made.append(self.moment)
        if self.moment == self.stop:
            k = next(k for k, new in enumerate(news) if new.any())
            self.found = self._origin(let, values, outs[k], tuple(int(i) for i in np.argwhere(news[k])[0]))
            raise _Ended
        return outs if self.moment <= self.kept_until else tuple(map(_replaced, outs, news))

    def _origin(self, let: Let, values: Sequence[Any], out: Any, index: tuple[int, ...]) -> Origin:
        iterations: list[tuple[Span | None, int]] = []
        lanes: list[int] = []
        axes = turned = 0
        for around in [*self.around, _Around(let)]:
            span = around.let.span
            turns = () if span is None else span.turns
            iterations += [(None, turn) for turn in turns[turned:]]
            turned = max(turned, len(turns))
            if around.let.primitive.name == "loop" and span is not None and span.by_lane:
                lanes += [*index[axes : span.lanes], around.iteration]
                axes = span.lanes
            elif around.let.primitive.name == "loop":
                iterations.append((span, around.iteration))
        lanes += index[axes : _lanes_of(let)]
        shown, value = _shown(let, values, out, index), np.asarray(out)[index]
        return Origin(self.moment, let.span, shown, value, tuple(iterations), tuple(lanes))


def _lanes_of(let: Let) -> int:
    """How many axes in front of the results are lanes: an adjoint may add the lanes up."""
    if let.span is None or 0 in let.attributes.get("axes", ()) and let.primitive.name.startswith("reduce_"):
        return 0
    return let.span.lanes


def _replaced(out: Any, new: np.ndarray) -> Any:
    out = np.array(out)
    out[new] = NUMBER
    return out[()]


def _inherited(let: Let, values: Sequence[Any], bad: Sequence[np.ndarray], kinds: str) -> list[np.ndarray]:
    """For each result the elements that depend on a bad element of an operand. A constant of the program is none:
    who reads it makes it bad. An inf is made of finite numbers only."""
    kinds = "nan" if kinds == "nan" else "nan inf"
    given = [np.zeros((), bool) if isinstance(a, Literal) else is_bad(v, kinds) for a, v in zip(let.args, values)]
    if not any(g.any() for g in given):
        return [np.zeros(b.shape, bool) for b in bad]
    dims = let.primitive.dims
    everywhere = [np.ones(b.shape, bool) for b in bad]
    if not isinstance(dims, Dims):
        return everywhere
    operands, results = dims.relation(*(a.type for a in let.args), **let.attributes)
    if any(g.any() for g in given[len(operands) :]):
        return everywhere
    return [_reached(given, operands, factors, b.shape) for factors, b in zip(results, bad)]


def _reached(given: Sequence[np.ndarray], operands: Sequence[Any], factors: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The elements of a result that bad elements of operands reach, along the factors that both have."""
    reached = np.zeros(shape, bool)
    places = {factor: axis for axis, factor in enumerate(factors) if factor is not None}
    for mark, own in zip(given, operands):
        if not mark.any():
            continue
        own = list(own)
        shared = [
            axis for axis, factor in enumerate(own) if factor in places and mark.shape[axis] == shape[places[factor]]
        ]
        mark = np.asarray(mark.any(axis=tuple(axis for axis in range(mark.ndim) if axis not in shared)))
        order = np.argsort([places[own[axis]] for axis in shared]) if shared else ()
        kept = sorted(places[own[axis]] for axis in shared)
        reached |= np.transpose(mark, order).reshape([shape[a] if a in kept else 1 for a in range(len(shape))])
    return reached


def _shown(let: Let, values: Sequence[Any], out: Any, index: tuple[int, ...]) -> str:
    """The operation as a call, of the operands' elements where it is elementwise."""
    shape, shown = np.shape(out), []
    for arg, value in zip(let.args, values):
        if np.shape(value) in ((), shape):
            number = np.asarray(value)[index if np.ndim(value) else ()]
            shown.append(f"{number}")
        else:
            infinite = "with inf in it" if is_bad(value, "inf").any() else ""
            shown.append(f"{arg.type.dtype}{list(np.shape(value))} {infinite}".rstrip())
    return f"{let.primitive.name.rstrip('_')}({', '.join(shown)})"


__all__ = ["GIVEN", "Given", "Origin", "is_bad", "origin"]
