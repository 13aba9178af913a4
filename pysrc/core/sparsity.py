"""Which elements of the parameters each element of a linear program's results depends on.

In: a Function that is linear in some parameters (the tangents of a jvp program), and of the others the values that are
known. Out: for each result, for each of its elements, a set of numbers of elements of those parameters. Example, of
`y_dot = add(slice(x_dot, 1, shape=(2,)), slice(x_dot, 0, shape=(2,)))`:

    [{0, 1}, {1, 2}]

The program is run on sets in the place of numbers: a sum of two is their union, a product with a number that is known
to be zero is empty. What moves and adds numbers does so with sets, by its own NumPy rule; of any other operation `dims`
says which parts depend on which. Where a value decides that is not known, the answer is the union of all that may be.
(Griewank & Walther, Evaluating Derivatives, ch. 7: index domains.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from ..late import dataclass, field
from ..source import UnsupportedError
from .dims import Dim, substitute, symbols
from .evaluate import run_let
from .ir import Atom, Function, Let, Literal, Var
from .loops import Loop, Parts
from .native import Gather, Point
from .relation import Dims, Factors
from .types import Array, has_tangent, type_symbols

SMALL = 32  # unions of at most so many elements are made at once
STEPS = 300_000  # operations that run iteration by iteration; a loop of more is taken to a fixpoint


class Reads:
    """What a number depends on: a set, or two of these whose union is made when it is asked for."""

    __slots__ = ("own", "parts")

    def __init__(self, own: frozenset[int] | None, parts: tuple[Reads, ...] = ()):
        self.own, self.parts = own, parts

    def __add__(self, other: Any) -> Reads:
        if not isinstance(other, Reads) or other is self:
            return self
        a, b = self.own, other.own
        if a is None or b is None or len(a) + len(b) > SMALL:
            return Reads(None, (self, other))
        return self if b <= a else other if a <= b else Reads(a | b)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Reads):
            return self + other
        return self if other != 0 else 0.0

    __rmul__ = __mul__

    def indices(self) -> frozenset[int]:
        if self.own is None:
            found: set[int] = set()
            seen, pending = {id(self)}, [self]
            while pending:
                reads = pending.pop()
                found.update(reads.own or ())
                fresh = [part for part in reads.parts if id(part) not in seen]
                seen.update(map(id, fresh))
                pending += fresh
            self.own, self.parts = frozenset(found), ()
        return self.own


@dataclass(frozen=True)
class Value:
    """What is known of a value: itself, or what its elements depend on (an array of `Reads`, and of numbers where an
    element depends on nothing), or nothing."""

    known: Any = None
    reads: np.ndarray | None = None


UNKNOWN = Value()


def dependencies(function: Function, wrt: Sequence[int], known: Mapping[int, Any]) -> list[list[frozenset[int]]]:
    """See the head of this file. The elements of the parameters `wrt` are numbered from 0, one parameter behind
    another; `known` has values of other parameters. Raises UnsupportedError where a size is not known."""
    run = _Run()
    values, count = [], 0
    for k, param in enumerate(function.params):
        if k not in wrt:
            values.append(Value(known.get(k)))
            continue
        shape = run.shape(param.type, None)
        size = int(np.prod(shape, dtype=np.int64))
        reads = np.empty(size, object)
        reads[:] = [Reads(frozenset([count + j])) for j in range(size)]
        values.append(Value(reads=reads.reshape(shape)))
        count += size
    found = run.function(function, values)
    nothing: frozenset[int] = frozenset()
    return [
        [each.indices() if isinstance(each, Reads) else nothing for each in run.reads_of(value, result.type).ravel()]
        for value, result in zip(found, function.results)
    ]


@dataclass
class _Run:
    """One run of a program on sets. `sizes`: of the symbols that are known by now. Of those in `open` values decide
    that are not known: such a dim has one element here, which stands for all."""

    sizes: dict[str, int] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    steps: int = 0

    def function(self, function: Function, values: Sequence[Value]) -> list[Value]:
        env: dict[Var, Value] = dict(zip(function.params, values, strict=True))

        def of(atom: Atom) -> Value:
            return Value(atom.value) if isinstance(atom, Literal) else env[atom]

        for let in function.lets:
            self.steps += 1
            for var, value in zip(let.outs, self.let(let, [of(a) for a in let.args])):
                env[var] = value
                size = var.type.value
                if isinstance(size, Dim) and size.is_sym and value.known is not None:
                    self.sizes[size.name] = int(value.known)
        return [of(r) for r in function.results]

    def mentions_open(self, let: Let) -> bool:
        named = (let.uses_symbols(), *(type_symbols(arg.type) for arg in let.args))
        return any(not self.open.isdisjoint(symbols) for symbols in named)

    def shape(self, type_: Array, let: Let | None) -> tuple[int, ...]:
        found = [substitute(dim, self.sizes) for dim in type_.dims]
        if not all(isinstance(dim, int) for dim in found):
            raise UnsupportedError(
                f"which elements depend on which can't be told: the size of {type_.plain} is known only when it runs",
                let.span if let is not None else None,
                code="sparsity",
                remedy="give the pattern as sparsity=, a boolean matrix",
            )
        return tuple(found)  # type: ignore[arg-type]

    def reads_of(self, value: Value, type_: Array, let: Let | None = None) -> np.ndarray:
        """What the elements depend on, as an array of objects."""
        return np.zeros(self.shape(type_, let), object) if value.reads is None else value.reads

    def let(self, let: Let, operands: list[Value]) -> Sequence[Value]:
        if not let.outs:
            return ()
        if let.primitive.region:
            return _REGIONS[let.primitive.name](self, let, operands)
        stands_for_all = bool(self.open) and self.mentions_open(let)
        if all(value.reads is None for value in operands):
            return [UNKNOWN] * len(let.outs) if stands_for_all else self.evaluated(let, operands)
        if isinstance(let.primitive.native, Point):
            found: Sequence[Any] = [self.point(let, operands)]
        else:
            found = (not stands_for_all and self.by_rule(let, operands)) or self.by_dims(let, operands)
        return [Value(reads=r) if has_tangent(out.type) else UNKNOWN for r, out in zip(found, let.outs)]

    def evaluated(self, let: Let, operands: list[Value]) -> Sequence[Value]:
        """The results where they depend on nothing: known if the operands are."""
        if all(value.known is not None for value in operands):
            try:
                with np.errstate(all="ignore"):
                    return [Value(found) for found in run_let(let, [v.known for v in operands], self.sizes)]
            except (ArithmeticError, IndexError, TypeError, ValueError):
                pass  # an operation that a check stands before
        return [UNKNOWN] * len(let.outs)

    def point(self, let: Let, operands: list[Value]) -> np.ndarray:
        """Of an elementwise operation: a union, but for operands whose factor is known to be zero."""
        total: Any = np.zeros(self.shape(let.out.type, let), object)
        settled = all(v.known is not None or v.reads is not None for v in operands)
        for k, (value, arg) in enumerate(zip(operands, let.args)):
            if value.reads is None:
                continue
            reads = value.reads
            if settled and _linear_in(let, k) and all(arg.type.dtype.kind != "c" for arg in let.args):
                used = self.slope(let, k, operands, 0) | self.slope(let, k, operands, 1)
                if not np.all(used):
                    reads = np.where(used, reads, 0.0)
            total = np.add(total, reads)
        return np.asarray(total, object)

    def slope(self, let: Let, k: int, operands: list[Value], others: int) -> np.ndarray:
        """Where the result of an elementwise operation depends on operand k, if the others that depend on something
        are that number. (A product of two does not depend on one where the other is zero; the solver of a linear
        equation has such products.)"""
        found = []
        for number in (0, 1):
            args = [v.known for v in operands]
            for j, value in enumerate(operands):
                if value.reads is not None:
                    args[j] = np.full(value.reads.shape, number if j == k else others, let.args[j].type.dtype)[()]
            with np.errstate(all="ignore"):
                found.append(np.asarray(run_let(let, args, self.sizes)[0]))
        return found[0] != found[1]

    def by_rule(self, let: Let, operands: list[Value]) -> Sequence[np.ndarray] | None:
        """The NumPy rule of the operation, run on sets; numbers that are not known are ones."""
        args: list[Any] = []
        for value, arg in zip(operands, let.args):
            if value.reads is not None:
                args.append(value.reads[()])
            elif not has_tangent(arg.type):
                args.append(value.known)
            elif value.known is not None:
                args.append(np.asarray(value.known).astype(object)[()])
            else:
                args.append(np.ones(self.shape(arg.type, let)).astype(object)[()])
        if let.primitive.native == Gather("gather"):
            self.anywhere(let, args)
        if let.primitive.multiple or any(arg is None for arg in args):
            return None
        try:
            return [np.asarray(run_let(let, args, self.sizes)[0], object)]
        except (AttributeError, TypeError):
            return None  # a routine of a library, which computes with floats alone

    def anywhere(self, let: Let, args: list[Any]) -> None:
        """Where an index is not known, all along its axis may be picked: their union, which is at 0."""
        for axis, (k, index) in zip(let.attributes["axes"], enumerate(let.args[1:], 1)):
            if args[k] is None:
                args[0] = np.asarray(np.add.reduce(args[0], axis=axis, keepdims=True), object)
                args[k] = np.zeros(self.shape(index.type, let), np.int64)

    def by_dims(self, let: Let, operands: list[Value]) -> Sequence[np.ndarray]:
        """What `dims` says: elements of equal factors depend on each other, all of what is needed whole."""
        dims = let.primitive.dims
        types = [arg.type.with_dims(self.shape(arg.type, let)) for arg in let.args]
        shapes = [self.shape(out.type, let) for out in let.outs]
        if isinstance(dims, Dims):
            mine, others = dims.relation(*types, **let.attributes)
        else:
            mine, others = [[None] * t.ndim for t in types], [[None] * len(shape) for shape in shapes]
        found = []
        for factors, shape in zip(others, shapes):
            total: Any = np.zeros(shape, object)
            for k, value in enumerate(operands):
                if value.reads is not None:
                    own: Factors = mine[k] if k < len(mine) else [None] * value.reads.ndim
                    total = np.add(total, _spread(value.reads, own, factors))
            found.append(np.asarray(total, object))
        return found

    # ---- regions --------------------------------------------------------------------------------------------

    def call(self, let: Let, operands: list[Value]) -> Sequence[Value]:
        return self.function(let.attributes["function"], operands)

    def cond(self, let: Let, operands: list[Value]) -> Sequence[Value]:
        branches = let.attributes["branches"]
        index, *rest = operands
        if index.known is not None:
            return self.function(branches[min(max(int(index.known), 0), len(branches) - 1)], rest)
        found = [self.function(branch, rest) for branch in branches]
        return [reduce(self.joined, several) for several in zip(*found)]

    def joined(self, a: Value, b: Value) -> Value:
        """What is known of a value that is one of two."""
        if a.reads is None and b.reads is None:
            same = a.known is not None and b.known is not None and np.array_equal(a.known, b.known)
            return a if same else UNKNOWN
        return Value(reads=reduce(_union, [v.reads for v in (a, b) if v.reads is not None]))

    def loop(self, let: Let, operands: list[Value]) -> Sequence[Value]:
        """Iteration by iteration as far as it is known whether there is one more, and all others at once."""
        loop = Loop.of(let)
        args = loop.args.like(operands)
        length: Any = loop.length
        if isinstance(length, Dim):
            length = None if self.open & symbols(length) else substitute(length, self.sizes)
        stacked: list[list[Value]] = [[] for _ in loop.results.stacked]
        trips, ended = 0, False
        for i in self.iterations(loop, length) if loop.condition is not None or length is not None else ():
            going = True if loop.condition is None else self.asked(loop, i, args)
            if not going:
                ended = going is False
                break
            results = self.iteration(loop, np.int64(i), args)
            args = args.replace(carries=results.carries, accumulators=results.accumulators)
            for rows, row in zip(stacked, results.stacked):
                rows.append(row)
            trips += 1
        else:
            ended = trips == length
        if not ended:
            return self.settled(let, loop, args, stacked)
        if loop.reverse:
            stacked = [rows[::-1] for rows in stacked]
        outs = [self.stack(rows, result.type, let) for rows, result in zip(stacked, loop.results.stacked)]
        sizes = [Value(np.int64(trips))] if loop.condition is not None else []
        if loop.segment_sizes:
            self.refuse_segments(let)
        return [*sizes, *args.state, *outs]

    def iterations(self, loop: Loop, length: Any) -> Iterator[int]:
        """The iterations that are run one by one."""
        most = max(STEPS - self.steps, 0) // (len(loop.body.lets) + 1)
        if length is None:
            yield from range(most)
        elif isinstance(length, int) and (length <= most or loop.condition is not None):
            yield from list(range(length))[:: -1 if loop.reverse else 1][:most]

    def asked(self, loop: Loop, i: int, args: Parts[Value]) -> bool | None:
        """Whether there is another iteration; None where values decide that are not known."""
        assert loop.condition is not None
        (answer,) = self.function(loop.condition.function, [Value(np.int64(i)), *args.asked])
        return None if answer.known is None else bool(answer.known)

    def iteration(self, loop: Loop, i: Any, args: Parts[Value]) -> Parts[Value]:
        """What one iteration gives; `i` None: any of them, which may read any row."""
        rows = [_row(value, i) for value in args.rows]
        return loop.results.like(self.function(loop.body.function, [Value(i), *args.replace(rows=rows)]))

    def settled(self, let: Let, loop: Loop, args: Parts[Value], before: list[list[Value]]) -> Sequence[Value]:
        """The state joined to a fixpoint over all iterations that are left."""
        while True:
            results = self.iteration(loop, None, args)
            state = [self.joined(a, b) for a, b in zip(args.state, results.state)]
            settled = all(map(_equal, args.state, state))
            args = args.replace(carries=state[: len(args.carries)], accumulators=state[len(args.carries) :])
            if settled:
                break
        if loop.segment_sizes:
            self.refuse_segments(let)
        for var in let.outs[: len(loop.sizes)]:
            if isinstance(var.type.value, Dim):
                self.open.add(var.type.value.name)
                self.sizes[var.type.value.name] = 1
        outs = []
        for rows, row, out in zip(before, results.stacked, let.outs[-len(before) :] if before else ()):
            joined = reduce(self.joined, rows, row)
            if joined.reads is None:
                outs.append(UNKNOWN)
                continue
            shape = self.shape(out.type, let)
            outs.append(Value(reads=np.broadcast_to(joined.reads, shape)))
        return [*(UNKNOWN for _ in loop.sizes), *args.state, *outs]

    def stack(self, rows: list[Value], type_: Array, let: Let) -> Value:
        if rows and all(row.known is not None for row in rows):
            return Value(np.stack([row.known for row in rows]))
        if all(row.reads is None for row in rows):
            return UNKNOWN
        return Value(reads=np.stack([self.reads_of(row, type_, let) for row in rows]))

    def refuse_segments(self, let: Let) -> NoReturn:
        raise UnsupportedError(
            "which elements depend on which can't be told: a loop collects arrays whose lengths differ",
            let.span,
            code="sparsity",
            remedy="give the pattern as sparsity=, a boolean matrix",
        )


def _linear_in(let: Let, operand: int) -> bool:
    """Whether an elementwise operation is linear in an operand, as far as its declaration says."""
    rules = let.primitive.transpose
    return isinstance(rules, tuple) and rules[operand] is not None


def _spread(reads: np.ndarray, own: Factors, wanted: Factors) -> np.ndarray:
    """The unions over all dims whose factor is not wanted, with the others where they are wanted."""
    axes = tuple(k for k, factor in enumerate(own) if factor is None or factor not in wanted)
    if axes:
        reads = np.asarray(np.add.reduce(reads, axis=axes, initial=0.0), object)
    kept = [factor for factor in own if factor is not None and factor in wanted]
    order = [kept.index(factor) for factor in wanted if factor in kept]
    reads = np.transpose(reads, order)
    shape = iter(reads.shape)
    return reads.reshape([next(shape) if factor in kept else 1 for factor in wanted])


def _union(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.add(a, b), object)


def _row(value: Value, i: Any) -> Value:
    """What an iteration takes of the rows; `i` None: any of them."""
    if i is None:
        if value.reads is None or not len(value.reads):
            return UNKNOWN
        return Value(reads=np.asarray(np.add.reduce(value.reads, axis=0), object))
    if value.reads is not None:
        return Value(reads=np.asarray(value.reads[i], object))
    return Value(None if value.known is None else value.known[i])


def _equal(a: Value, b: Value) -> bool:
    if a.reads is None or b.reads is None:
        return a.reads is b.reads and (a.known is None) == (b.known is None)
    return all(map(_same, a.reads.ravel(), b.reads.ravel()))


def _same(a: Any, b: Any) -> bool:
    if a is b or not isinstance(a, Reads) or not isinstance(b, Reads):
        return isinstance(a, Reads) == isinstance(b, Reads)
    return a.indices() == b.indices()


_REGIONS: dict[str, Callable[[_Run, Let, list[Value]], Sequence[Value]]] = {
    "call": _Run.call,
    "cond": _Run.cond,
    "loop": _Run.loop,
}

__all__ = ["dependencies"]
