"""A loop taken apart: its operands, parameters and results by role, under their names.

In: a `loop` Let. Out: a `Loop`, the same one each time, so that nothing in it is written to; a rule replaces parts of
it, and `let` or `bind` counts the roles anew.

    loop = Loop.of(let)
    loop.args.rows          # arrays of which each iteration takes a row
    loop.params.rows        # that row, in the body
    loop.results.carries    # what an iteration makes of the carries
    loop.outs.rows          # the rows that the iterations leave, stacked
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, chain, islice
from typing import Any, Generic, TypeVar

from ..late import dataclass, field
from ..source import Span
from .build import Builder, current
from .dims import DimLike, Sym
from .ir import Atom, Function, Let, Roles, Var
from .primitive import Primitive

T = TypeVar("T", covariant=True)
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """Something for each operand of a loop (values, types, marks), or for each result, by role. Operands have no
    segments, results no consts; in order, they are what iteration gives.

    >>> a, b = Parts(consts=("x",), carries=("y", "z")), Parts(carries=("u",), rows=("v",))
    >>> list(a + b)
    ['x', 'y', 'z', 'u', 'v']
    >>> marks = a.map(lambda name: name != "y")
    >>> [list(part) for part in a.parted(marks)]
    [['x', 'z'], ['y']]
    >>> a.like("abc").carries
    ('b', 'c')
    """

    consts: tuple[T, ...] = ()
    carries: tuple[T, ...] = ()
    accumulators: tuple[T, ...] = ()
    rows: tuple[T, ...] = ()
    segments: tuple[T, ...] = ()

    @property
    def groups(self) -> tuple[tuple[T, ...], ...]:
        return self.consts, self.carries, self.accumulators, self.rows, self.segments

    @property
    def state(self) -> Parts[T]:
        """What goes from iteration to iteration: carries and accumulators."""
        return Parts(carries=self.carries, accumulators=self.accumulators)

    @property
    def stacked(self) -> Parts[T]:
        """What each iteration leaves, of results: rows and segments."""
        return Parts(rows=self.rows, segments=self.segments)

    @property
    def asked(self) -> Parts[T]:
        """What a condition is asked about."""
        return Parts(consts=self.consts, carries=self.carries)

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.groups)

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    def __add__(self, other: Parts[S]) -> Parts[T | S]:
        """Those of `other` behind ours, in each role."""
        return Parts(*(a + b for a, b in zip(self.groups, other.groups)))

    def apart(self, first: Parts[Any]) -> tuple[Parts[T], Parts[T]]:
        """The two that were added, of which the first was as long as `first`."""
        groups = list(zip(self.groups, map(len, first.groups)))
        return Parts(*(group[:count] for group, count in groups)), Parts(*(group[count:] for group, count in groups))

    def map(self, function: Callable[..., S], *others: Parts[Any]) -> Parts[S]:
        return self.like(map(function, self, *others))

    def where(self, marks: Parts[bool]) -> Parts[T]:
        """Those that are marked."""
        pairs = zip(self.groups, marks.groups)
        return Parts(*(tuple(x for x, mark in zip(xs, ms, strict=True) if mark) for xs, ms in pairs))

    def parted(self, marks: Parts[bool]) -> tuple[Parts[T], Parts[T]]:
        """Those that are marked, and the others."""
        return self.where(marks), self.where(marks.map(lambda mark: not mark))

    def like(self, items: Iterable[S]) -> Parts[S]:
        """Other things in these roles, one for each, in order; of an iterator just as many are taken."""
        ends = list(accumulate(map(len, self.groups)))
        found = items if isinstance(items, tuple) else tuple(islice(items, ends[-1]))
        assert len(found) >= ends[-1], (self, found)
        return Parts(*(found[begin:end] for begin, end in zip([0, *ends], ends)))

    def renamed(self, names: Mapping[Any, S]) -> Parts[T | S]:
        """With what `names` has for some of them."""
        return self.map(lambda item: names.get(item, item))

    def replace(self, **groups: Iterable[S]) -> Parts[T | S]:
        return replace(self, **{role: tuple(items) for role, items in groups.items()})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Step:
    """What runs in an iteration: the body of a loop, or its condition, whose one result has no role."""

    function: Function
    params: Parts[Var]
    results: Parts[Atom] = Parts()

    @property
    def index(self) -> Var:
        return self.function.params[0]

    @property
    def lets(self) -> tuple[Let, ...]:
        return self.function.lets

    def like(self, function: Function) -> Step:
        """Another function with the same roles."""
        return Step(function, self.params.like(function.params[1:]), self.results.like(function.results))

    def changed(
        self,
        lets: Iterable[Let] | None = None,
        params: Parts[Var] | None = None,
        results: Parts[Atom] | None = None,
        index: Var | None = None,
    ) -> Step:
        """The same with other operations, parameters or results."""
        lets = self.lets if lets is None else tuple(lets)
        given = self.function.results if results is None else tuple(results)
        params = self.params if params is None else params
        function = Function(self.function.name, (index or self.index, *params), lets, given)
        return Step(function, params, self.results if results is None else results)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: `sizes` are its results that name sizes (how many iterations ran, the lengths of segments), `outs` the
    others; `more` are attributes that say how it runs (`size`, `reverse`, `parallel`), how many states its derivative
    keeps (`slots`; of how many steps it keeps at once what they leave: `chunk`), or how many bytes (`limit`)."""

    primitive: Primitive
    args: Parts[Atom]
    body: Step
    condition: Step | None
    length: DimLike | None
    more: Mapping[str, Any] = field(default_factory=dict)
    segment_sizes: tuple[str, ...] = ()
    sizes: tuple[Var, ...] = ()
    outs: Parts[Var] = Parts()
    span: Span | None = None

    @classmethod
    def of(cls, let: Let) -> Loop:
        if let._loop is None:
            object.__setattr__(let, "_loop", cls._of(let))
        return let._loop

    @classmethod
    def _of(cls, let: Let) -> Loop:
        more = dict(let.attributes)
        body, condition, length, roles = (more.pop(key) for key in ("body", "cond", "length", "roles"))
        args = Parts(*roles.parts(let.args))
        stacked = body.results[len(args.state) :]
        cut = len(stacked) - roles.segments
        results = Parts((), args.carries, args.accumulators, stacked[:cut], stacked[cut:]).like(body.results)
        lead = len(let.outs) - len(results)
        return cls(
            let.primitive,
            args,
            Step(body, args.like(body.params[1:]), results),
            None if condition is None else Step(condition, args.asked.like(condition.params[1:])),
            length,
            more,
            more.pop("segment_sizes", ()),
            let.outs[:lead],
            results.like(let.outs[lead:]),
            let.span,
        )

    @property
    def index(self) -> Var:
        return self.body.index

    @property
    def params(self) -> Parts[Var]:
        return self.body.params

    @property
    def results(self) -> Parts[Atom]:
        return self.body.results

    @property
    def reverse(self) -> bool:
        return self.more.get("reverse", False)

    @property
    def parallel(self) -> bool:
        return self.more.get("parallel", False)

    @property
    def trips(self) -> DimLike | None:
        """How many iterations run: what the condition makes of it, or else `length`."""
        return self.length if self.condition is None else Sym(self.more["size"])

    def binder(self, symbol: str) -> Var:
        """The result that binds a size symbol of the loop."""
        return next(v for v in self.sizes if v.type.value == Sym(symbol))

    def attributes(self) -> dict[str, Any]:
        segments = {"segment_sizes": self.segment_sizes} if self.segment_sizes else {}
        return {
            "body": self.body.function,
            "cond": None if self.condition is None else self.condition.function,
            "length": self.length,
            "roles": Roles(*map(len, (self.args + Parts(segments=self.results.segments)).groups)),
            **self.more,
            **segments,
        }

    def let(self) -> Let:
        return Let((*self.sizes, *self.outs), self.primitive, (*self.args,), self.attributes(), self.span)

    def bind(self, builder: Builder | None = None) -> Loop:
        """The loop as the next Let of `builder` (the current one), with results of its own."""
        builder = builder or current()
        assert builder is not None
        outs = builder.bind(self.primitive, (*self.args,), self.attributes())
        lead = len(outs) - len(self.results)
        return replace(self, sizes=outs[:lead], outs=self.results.like(outs[lead:]), span=builder.lets[-1].span)


def with_attribute(function: Function, key: str, value: Any) -> Function:
    """`function` whose loops that carry something say so, at every depth, unless they say so already: how many states
    their derivatives keep (`slots`), or how many bytes (`limit`)."""
    lets = []
    for let in function.lets:
        let = let.with_regions(lambda region: with_attribute(region, key, value))
        if let.primitive.name == "loop" and let.attributes["roles"].carries:
            let = Let(let.outs, let.primitive, let.args, {key: value, **let.attributes}, let.span)
        lets.append(let)
    return Function(function.name, function.params, tuple(lets), function.results)


__all__ = ["Parts", "Step", "Loop", "with_attribute"]
