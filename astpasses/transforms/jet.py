"""Taylor mode: derivatives of any order along a curve (Griewank & Walther, Evaluating Derivatives, ch. 13).

In: a Function, for each parameter whether it moves, and an order K. Out: a Function of the parameters and of their
derivatives by t, first the first ones of all that move, then the second ones, to the K-th, that returns the results and
theirs. Example, K = 2:

    def f(x: f64):               def jet_f(x: f64, x_1: f64, x_2: f64):
        y = exp(x)                   y = exp(x)
        return y                     y_1 = mul(x_1, y)
                                     y_2 = add(mul(x_2, y), mul(x_1, y_1))
                                     return y, y_1, y_2

There is no further rule: y' = f'(x) x' is what a primitive's jvp says, and derivatives of both sides give one order
after the other. What a rule computes (the cosine of a sine, a sine again of that) is a value along the curve, too, and
is made once. So the work grows as a power of K, where K jvp programs in one another double it K times.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

from metaphrase.core.build import Builder
from metaphrase.core.calls import written_out
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import has_tangent
from metaphrase.locks import cached_property
from metaphrase.ops.arithmetic import add, div, mul, sub
from metaphrase.ops.arrays import zeros
from metaphrase.ops.families import like

from .common import substitute_args
from .jvp import region_series, tangents_of


def jet(
    function: Function, moving: Sequence[bool], order: int, instantiate: Sequence[bool] | None = None
) -> tuple[Function, list[bool]]:
    """The program, and which results have derivatives. `instantiate` forces those (zeros) of some results."""
    function = written_out(function)
    with Builder(f"jet_{function.name}") as builder:
        builder.params = list(function.params)
        marked = [p for p, m in zip(function.params, moving, strict=True) if m]
        known: dict[Var, list[Any]] = {p: [p] for p in marked}
        for k in range(1, order + 1):
            for param in marked:
                known[param].append(builder.parameter(f"{param.name}_{k}", param.type.plain))
        run = _Run(builder, order, {param: Series(param, values) for param, values in known.items()}, {})
        for let in function.lets:
            run.let(let)
        found = [run.of(r) for r in function.results]
        moves = [s.moves and any(s.at(k) is not None for k in range(1, order + 1)) for s in found]
        if instantiate is not None:
            moves = [a or b for a, b in zip(moves, instantiate)]
        higher = [s.value(k) for k in range(1, order + 1) for s, m in zip(found, moves) if m]
        return builder.function([*(s.at(0) for s in found), *higher]), moves


class Series:
    """A value along the curve: `at(k)` is its k-th derivative, None where it is known to be zero."""

    moves = True

    def __init__(self, like: Atom, known: Sequence[Atom | None] = ()):
        self.like, self.known = like, list(known)  # `like`: an atom of the same type

    def at(self, k: int) -> Any:
        while len(self.known) <= k:
            self.known.append(self.make(len(self.known)))
        return self.known[k]

    def value(self, k: int) -> Any:
        """`at`, with zeros that are there."""
        found = self.at(k)
        return zeros(self.like.type.plain) if found is None else found

    def make(self, k: int) -> Atom | None:
        return None

    @cached_property
    def derivative(self) -> Series:
        return _Derivative(self.like, self)


class _Constant(Series):
    moves = False


class _Derivative(Series):
    """The derivative of another value."""

    def __init__(self, like: Atom, of: Series):
        super().__init__(like)
        self.of = of

    def make(self, k: int) -> Atom | None:
        return self.of.at(k + 1)


class _Result(Series):
    """A result of an operation."""

    def __init__(self, like: Atom, operation: _Operation, number: int):
        super().__init__(like)
        self.operation, self.number = operation, number
        self.moves = has_tangent(like.type)

    def make(self, k: int) -> Atom | None:
        return self.operation.at(k)[self.number] if self.moves or not k else None


class _Run:
    """What a program has made so far. `order`: how many derivatives are known of its values; `atoms`: what stands for
    variables of the program."""

    def __init__(self, builder: Builder, order: int, series: dict[Var, Series], atoms: dict[Var, Atom]):
        self.builder, self.order, self.series, self.atoms = builder, order, series, atoms
        self.made: dict[Any, _Operation] = {}

    def of(self, atom: Atom) -> Series:
        if isinstance(atom, Var) and atom in self.series:
            return self.series[atom]
        return _Constant(atom, [self.atoms.get(atom, atom) if isinstance(atom, Var) else atom])

    def let(self, let: Let) -> None:
        """One operation of the program itself."""
        args = [self.of(a) for a in let.args]
        if not let.outs or not any(a.moves for a in args):
            self.builder.lets.append(substitute_args(let, self.atoms))
            return
        operation = _Operation(self, let, args, self.order)
        for var, result in zip(let.outs, operation.results):
            self.series[var] = result
            self.atoms[var] = result.at(0)
        for k in range(1, self.order + 1):  # here, where all that they are made of is at hand
            for atom, var in zip(operation.at(k), let.outs):
                if isinstance(atom, Var) and atom.name in REGISTRY:
                    atom.name = f"{var.name}_{k}"

    def traced(self, lets: Sequence[Let], series: dict[Var, Series], order: int) -> None:
        """The operations of a rule, of values that may move. Those that were made before are not made again."""

        def of(atom: Atom) -> Series:
            return series[atom] if isinstance(atom, Var) and atom in series else self.of(atom)

        for let in lets:
            args = [of(a) for a in let.args]
            if let.primitive.effect is None and let.outs:
                operation = _Operation(self, let, args, order)
                series.update(zip(let.outs, operation.results))


class _Operation:
    """One operation, of which `at(k)` has the k-th derivatives of the results."""

    def __new__(cls, run: _Run, let: Let, args: Sequence[Series], order: int) -> _Operation:
        key = let.primitive, tuple(map(_identity, args)), tuple(sorted(let.attributes.items(), key=lambda kv: kv[0]))
        found = run.made.get(key)
        if found is None or found.order < order and found.is_region:
            found = run.made[key] = super().__new__(cls)
            found.set(run, let, args, order)
        return found

    def set(self, run: _Run, let: Let, args: Sequence[Series], order: int) -> None:
        self.run, self.let, self.args, self.order = run, let, args, order
        self.rows: list[Sequence[Any]] = []
        self.results = [_Result(out, self, k) for k, out in enumerate(let.outs)]
        self.moving = [a.moves for a in args]

    @property
    def is_region(self) -> bool:
        return self.let.primitive.region and not self.let.primitive.transient

    def at(self, k: int) -> Sequence[Any]:
        while len(self.rows) <= k:
            self.rows += self.first() if not self.rows else [self.higher(len(self.rows))]
        return self.rows[k]

    def first(self) -> list[Sequence[Any]]:
        """The results; of a region with all derivatives that there are, for its operands are at hand."""
        values = [a.value(0) for a in self.args]
        let = Let(self.let.outs, self.let.primitive, tuple(values), self.let.attributes, self.let.span)
        builder = self.run.builder
        builder.span = let.span
        if self.is_region and any(self.moving) and self.order > 0:
            orders = [
                [a.at(k) if m else None for a, m in zip(self.args, self.moving)] for k in range(1, self.order + 1)
            ]
            outs, higher = region_series(let, orders, lambda f, marks, forced: jet(f, marks, self.order, forced))
            rows: list[Sequence[Any]] = [outs, *higher]
        else:
            rows = [builder.bind(let.primitive, let.args, let.attributes)]
            for out, old in zip(rows[0], let.outs):
                out.name = old.name
        builder.span = None
        return rows

    def higher(self, k: int) -> Sequence[Any]:
        builder = self.run.builder
        builder.span = self.let.span.with_role("tangent") if self.let.span else None
        if not any(self.moving):
            found: Sequence[Any] = [None] * len(self.results)
        elif self.let.primitive is div:
            found = [self.quotient(k)]
        elif self.kind == "linear":
            let = Let(
                tuple(self.rows[0]), self.let.primitive, tuple(a.value(0) for a in self.args), self.let.attributes
            )
            found = tangents_of(builder, let, [a.at(k) if m else None for a, m in zip(self.args, self.moving)])
        elif self.kind == "product":
            found = [self.product(k)]
        else:
            found = [None if part is None else part.at(k - 1) for part in self.rule]
        builder.span = None
        return found

    @cached_property
    def traced(self) -> tuple[list[Let], list[Any], list[Atom | None]]:
        """What the jvp rule computes, of any tangents."""
        with Builder(self.let.primitive.name) as builder:
            dots = [Var("x_dot", a.type.plain) if m else None for a, m in zip(self.let.args, self.moving)]
            out_dots = tangents_of(builder, self.let, list(dots))
        return builder.lets, dots, list(out_dots)

    @cached_property
    def kind(self) -> str:
        """Whether it is linear in the operands that move together, the product of two of them, or something else."""
        lets, dots, out_dots = self.traced
        needed: set[Any] = {d for d in out_dots if d is not None}
        for made in reversed(lets):
            if not needed.isdisjoint(made.outs):
                needed.update(made.args)
        moving = {a for a, m in zip(self.let.args, self.moving) if m}
        if needed.isdisjoint(moving) and needed.isdisjoint(self.let.outs):
            return "linear"
        own = [  # the operation itself, with a tangent in the place of one operand
            made
            for made in lets
            if made.primitive is self.let.primitive
            and dict(made.attributes) == dict(self.let.attributes)
            and sum(a is not b for a, b in zip(made.args, self.let.args)) == 1
        ]
        places = [next(k for k, (a, b) in enumerate(zip(made.args, self.let.args)) if a is not b) for made in own]
        rest = [made for made in lets if made not in own]
        sums = len(rest) == 1 and rest[0].primitive is add and set(rest[0].args) == {made.outs[0] for made in own}
        return "product" if sums and places == [k for k, m in enumerate(self.moving) if m] else "other"

    def product(self, k: int) -> Any:
        """Leibniz: the sum of (k over i) times the product of the i-th and the (k - i)-th derivative."""
        left, right = (n for n, m in enumerate(self.moving) if m)
        total = None
        for i in range(k + 1):
            a, b = self.args[left].at(i), self.args[right].at(k - i)
            if a is not None and b is not None:
                args = [a if n == left else b if n == right else s.at(0) for n, s in enumerate(self.args)]
                total = _plus(total, _times(comb(k, i), self.let.primitive(*args, **self.let.attributes)))
        return total

    def quotient(self, k: int) -> Any:
        """y = a / b: the k-th derivative of y b is that of a."""
        a, b = self.args
        total = a.at(k)
        for i in range(k):
            if self.at(i)[0] is not None and b.at(k - i) is not None:
                part = _times(comb(k, i), mul(self.at(i)[0], b.at(k - i)))
                total = sub(zeros(part.type.plain) if total is None else total, part)
        return None if total is None else div(total, b.at(0))

    @cached_property
    def rule(self) -> list[Series | None]:
        """The first derivatives of the results, as values along the curve."""
        lets, dots, out_dots = self.traced
        run, own = self.run, self
        if any(let.primitive.region for let in lets):  # which takes all derivatives at once: the results' must be there
            run = _Run(run.builder, self.order - 1, run.series, run.atoms)
            own = _Operation(run, self.let, self.args, self.order - 1)
            own.rows = self.rows[:1]
        series: dict[Var, Series] = dict(zip(self.let.outs, own.results))
        series.update((a, s) for a, s in zip(self.let.args, self.args) if isinstance(a, Var))
        series.update((dot, s.derivative) for dot, s in zip(dots, self.args) if dot is not None)
        run.traced(lets, series, self.order - 1)
        known = [series.get(dot) if isinstance(dot, Var) else None for dot in out_dots]
        return [None if dot is None else found or run.of(dot) for dot, found in zip(out_dots, known)]


def _identity(series: Series) -> Any:
    """Equal for what is the same value."""
    if series.moves:
        return id(series)
    atom = series.at(0)
    return atom if isinstance(atom, Literal) else id(atom)


def _plus(total: Any, part: Any) -> Any:
    return part if total is None else add(total, part)


def _times(count: int, value: Any) -> Any:
    return value if count == 1 else mul(value, like(value, count))


__all__ = ["jet"]
