"""Building programs: a Builder records Lets; rules written as ordinary calls land in the current one.

In: parameter types and calls of primitives. Out: a `Function`.

    f = trace("area", lambda r: mul(literal(3.14), mul(r, r)), [("r", Array(f64))])
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..source import Span
from .dims import Dim, DimLike, Sym, dim_max, fresh_symbol, substitute
from .facts import Facts
from .ir import Atom, Function, Let, Literal, Roles, Var
from .primitive import REGISTRY, Primitive, as_atom
from .types import Array, CoreTypeError, Size, substitute_type

_state = threading.local()


def current() -> Builder | None:
    """The builder that calls of primitives land in, if any."""
    stack = getattr(_state, "stack", None)
    return stack[-1] if stack else None


def known_facts() -> Facts:
    """What is known of sizes where calls of primitives land; without a builder, that they aren't negative."""
    builder = current()
    return Facts() if builder is None else builder.facts


def at_least(dim: DimLike, low: DimLike) -> DimLike:
    """max(dim, low), which is `dim` where that is known.

    >>> at_least(Sym("n") + 1, 0), at_least(Sym("n") - 1, 0)
    (n + 1, max(0, n - 1))
    """
    return dim if known_facts().less_equal(low, dim) else dim_max(dim, low)


class Builder:
    """Collects parameters and Lets. `span` is stamped on each Let; `facts`: what is known of sizes here.
    `is_decided(args, attributes)`: asked of each check, whether it is known to pass. `done`: results of
    operations that need not be recorded again. `size_of`: the size that an integer was already made.
    `in_attempt`: whether a handler of the user's may take what fails here."""

    def __init__(self, name: str = "function"):
        self.name = name
        self.params: list[Var] = []
        self.lets: list[Let] = []
        self.span: Span | None = None
        self.facts = Facts()
        self.is_decided: Callable[[tuple[Atom, ...], Mapping[str, Any]], bool] | None = None
        self.done: Mapping[tuple | None, tuple[Var, ...]] = {}
        self.size_of: Callable[[Atom], DimLike | None] = lambda atom: None
        self.in_attempt = False

    def parameter(self, name: str, type: Array) -> Var:
        var = Var(name, type)
        self.params.append(var)
        return var

    def bind(
        self,
        primitive: Primitive,
        args: tuple[Atom, ...],
        attributes: Mapping[str, Any],
        names: Sequence[str] | None = None,
        span: Span | None = None,
    ) -> tuple[Var, ...]:
        """Append `primitive(*args, **attributes)`; result types come from its type rule."""
        types = primitive.type(*(a.type for a in args), **attributes)
        if primitive.effect == "failing" and self.is_decided and self.is_decided(args, attributes):
            return ()
        if self.done and (key := operation(primitive, args, attributes)) in self.done:
            return self.done[key]
        if isinstance(types, Array):
            types = (types,)
        names = names or [primitive.name] * len(types)
        outs = tuple(Var(n, t) for n, t in zip(names, types))
        self.lets.append(Let(outs, primitive, tuple(args), dict(attributes), span or self.span))
        return outs

    def function(self, results: Sequence[Any]) -> Function:
        return Function(self.name, tuple(self.params), tuple(self.lets), tuple(map(as_atom, results)))

    def replay(self, function: Function, args: Sequence[Any], span: Span | None = None) -> tuple[Atom, ...]:
        """Copy the Lets of `function` here with `args` for its parameters; returns its results.

        Size symbols of the parameter types are replaced by the arguments' dims, symbols bound inside by fresh
        ones, or by the sizes that the arguments are.
        """
        sizes: dict[str, DimLike] = {}
        env: dict[Var, Atom] = {}
        for param, arg in zip(function.params, args, strict=True):
            arg = as_atom(arg)
            if param.type.value is not None and arg.type.value is None:  # a size that comes as a number
                arg = self.size(arg, param.name)
            match_dims(param.type, arg.type, sizes)
            env[param] = arg
        for let in function.lets:
            number = env.get(let.args[0]) if let.primitive.name == "as_dim" else None  # type: ignore[arg-type]
            if number is not None and number.type.value is not None:  # here it is known which size the number is
                sizes[let.attributes["size"]], env[let.out] = number.type.value, number
                continue
            self.lets.append(copy_let(let, env, sizes, span))
        return tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)

    def size(self, number: Atom, name: str) -> Atom:
        """A number as the size that it is."""
        if isinstance(number, Literal):
            return self.bind(REGISTRY["dim_value"], (), {"dim": int(number.value)})[0]
        return self.bind(REGISTRY["as_dim"], (number,), {"size": fresh_symbol(name)})[0]

    def __enter__(self) -> Builder:
        if not hasattr(_state, "stack"):
            _state.stack = []
        _state.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        popped = _state.stack.pop()
        assert popped is self


building = Builder


def operation(primitive: Primitive, args: tuple[Atom, ...], attributes: Mapping[str, Any]) -> tuple | None:
    """What makes two operations the same; None for those with effects, regions or sizes of their own."""
    if primitive.effect is not None or primitive.region or "size" in attributes:
        return None
    key = (primitive, tuple(args), tuple(sorted(attributes.items(), key=lambda item: item[0])))
    try:
        hash(key)
    except TypeError:
        return None
    return key


@contextmanager
def at(span: Span | None) -> Iterator[None]:
    """Stamp `span` on the Lets made inside."""
    builder = current()
    assert builder is not None
    before, builder.span = builder.span, span
    try:
        yield
    finally:
        builder.span = before


def trace(name: str, fn: Callable[..., Any], params: Sequence[tuple[str, Array]]) -> Function:
    """Run `fn` on fresh parameters and record what it does. `fn` returns an atom or a tuple of them."""
    with Builder(name) as builder:
        results = fn(*(builder.parameter(n, t) for n, t in params))
        if not isinstance(results, (tuple, list)):
            results = (results,)
        return builder.function(results)


def match_dims(pattern: Array, actual: Array, sizes: dict[str, DimLike]) -> None:
    """Bind bare symbols of `pattern` to the dims of `actual` (a symbol that stands for itself is not
    recorded)."""
    for want, have in zip(pattern.dims, actual.dims):
        if isinstance(want, Dim) and want.is_sym and want != have:
            sizes.setdefault(want.name, have)
    if isinstance(pattern.value, Dim) and pattern.value.is_sym and actual.value is not None:
        if pattern.value != actual.value:
            sizes.setdefault(pattern.value.name, actual.value)


def copy_let(let: Let, env: dict[Var, Atom], sizes: dict[str, DimLike], span: Span | None = None) -> Let:
    """A fresh copy of `let` under a renaming; records its results in `env` and its bound symbols in
    `sizes`."""
    for symbol in sorted(let.own_symbols()):
        sizes[symbol] = Sym(fresh_symbol(symbol))
    attributes = {k: substitute_attribute(v, sizes) for k, v in let.attributes.items()}
    if isinstance(attributes.get("size"), str) and attributes["size"] in sizes:
        attributes["size"] = sizes[attributes["size"]].name  # type: ignore[union-attr]
    if "segment_sizes" in attributes:
        names = attributes["segment_sizes"]
        attributes["segment_sizes"] = tuple(sizes[s].name for s in names)  # type: ignore[union-attr]
    outs = tuple(Var(v.name, substitute_type(v.type, sizes)) for v in let.outs)
    args = tuple(env.get(a, a) if isinstance(a, Var) else a for a in let.args)
    env.update(zip(let.outs, outs))
    return Let(outs, let.primitive, args, attributes, span or let.span)


def substitute_attribute(value: Any, sizes: Mapping[str, DimLike]) -> Any:
    """Put sizes into an attribute; regions are copied when they mention a replaced symbol."""
    if isinstance(value, Dim):
        return substitute(value, sizes)
    if isinstance(value, Array):
        return substitute_type(value, sizes)
    if isinstance(value, Roles):
        return value
    if isinstance(value, tuple):
        return tuple(substitute_attribute(v, sizes) for v in value)
    if isinstance(value, Function):
        return substitute_function(value, sizes)
    return value


def substitute_function(function: Function, sizes: Mapping[str, DimLike]) -> Function:
    """A copy of a region under a replacement of its free size symbols."""
    return fresh_copy(function, sizes) if sizes else function


def fresh_copy(function: Function, sizes: Mapping[str, DimLike] | None = None) -> Function:
    """The same program in new variables, symbols bound inside made fresh, free ones replaced by `sizes`."""
    inner = dict(sizes or {})
    env: dict[Var, Atom] = {p: Var(p.name, substitute_type(p.type, inner)) for p in function.params}
    params = tuple(env[p] for p in function.params)
    lets = tuple(copy_let(let, env, inner) for let in function.lets)
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, params, lets, results)  # type: ignore[arg-type]


def with_own_regions(function: Function) -> Function:
    """The same program with each Var in one place only. Where one function has been written out twice the bodies of
    its loops and its branches are the same, or were before they were simplified, and whoever notes what a Var is would
    take one for the other."""
    seen: set[Var] = set()

    def own(region: Function) -> Function:
        bound = {*region.params, *(out for let in region.lets for out in let.outs)}
        new = region if seen.isdisjoint(bound) else fresh_copy(region)
        seen.update(bound)
        lets = tuple(map(of_let, new.lets))
        same = all(a is b for a, b in zip(lets, new.lets))
        return new if same else Function(new.name, new.params, lets, new.results)

    def of_let(let: Let) -> Let:
        if let.primitive.name not in ("loop", "cond"):
            return let
        return let.with_regions({region: own(region) for region in dict.fromkeys(let.regions())}.__getitem__)

    return own(function)


def literal(value: Any, dtype: Any = None) -> Literal:
    """A rank-0 constant of the given dtype (by default the value's own)."""
    return Literal(np.asarray(value, dtype=dtype)[()])


def replayed(name: str, params: Sequence[tuple[str, Array]], make: Callable[..., Sequence[Any]]) -> Function:
    """A Function of these parameters, made by `make(builder, vars)`."""
    with Builder(name) as builder:
        variables = [builder.parameter(n, t) for n, t in params]
        return builder.function(make(builder, variables))


__all__ = [
    "Builder",
    "building",
    "current",
    "at",
    "trace",
    "literal",
    "match_dims",
    "replayed",
    "copy_let",
    "substitute_attribute",
    "substitute_function",
    "with_own_regions",
    "CoreTypeError",
    "Size",
]
