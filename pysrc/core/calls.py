"""Calls of one function from many places: which of them stay calls, and what is made of a function once for
all of them.

In: Functions with `call`s. Out: the same with some of these written out; facts and other functions that are
derived from one, once for each. Functions never change, so what is derived from one holds as long as it does:

    layers of a network, 64 calls of `layer`      ->      one `jvp_layer`, called 64 times
    derived(layer, ("jvp", marks), make)                  `make()` the first time, then what it made
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from .build import Builder
from .dims import product
from .ir import Atom, Function, Let, Var, function_symbols
from .native import Iota, Lib, Move, Point, Put
from .types import type_symbols

T = TypeVar("T")
LARGE = 1024  # elements: where a loop calls a function on less, the call and storage for its results show
WORTH = 64  # operations that calls must save, or the program is better off in one piece


def derived(function: Function, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` makes of a function: made once."""
    if function._derived is None:
        object.__setattr__(function, "_derived", {})
    known: dict[Hashable, Any] = function._derived  # type: ignore[assignment]
    if key not in known:
        known[key] = make()
    return known[key]


def operations(function: Function) -> int:
    """How many operations a function has, in its regions too; a call counts as one."""
    return derived(function, "operations", lambda: sum(map(_operations_of, function.lets)))


def _operations_of(let: Let) -> int:
    return 1 if let.primitive.name == "call" else 1 + sum(map(operations, let.regions()))


def may_stay(function: Function) -> bool:
    """Whether calls of a function can stay calls, as far as the function itself tells: not if it names sizes
    that only its run knows, or writes into an argument, which is in place where it is written out; nor if all
    of it is elementwise, which is to be one loop with what stands around the call."""
    return derived(function, "may stay", lambda: _may_stay(function))


def _may_stay(function: Function) -> bool:
    known = function_symbols(function)
    if any(let.own_symbols() for let in function.lets):
        return False
    if any(v.type.value is not None or type_symbols(v.type) - known for v in (*function.params, *function.results)):
        return False
    if any(isinstance(let.primitive.native, Put) and let.args[0] in function.params for let in function.lets):
        return False
    return not all(map(_is_elementwise, function.lets))


def _is_elementwise(let: Let) -> bool:
    """Also of a call that is written out: a function that only calls such a one is no more than that."""
    if let.primitive.name == "call":
        return not may_stay(let.attributes["function"])
    return isinstance(let.primitive.native, (Point, Move, Iota))


def written_out(function: Function, stays: Callable[[Function], bool] = may_stay) -> Function:
    """The program with the body in the place of each `call` of a function that does not stay one, at every
    depth."""
    made: dict[Function, Function] = {}

    def again(function: Function) -> Function:
        if function not in made:
            made[function] = _written_out(function, again, stays) if has_calls(function) else function
        return made[function]

    return again(function)


def has_calls(function: Function) -> bool:
    """Whether a function calls another one, at any depth."""
    return derived(function, "calls", lambda: any(_is_call(let) for let in function.lets))


def _is_call(let: Let) -> bool:
    return let.primitive.name == "call" or any(map(has_calls, let.regions()))


def _written_out(
    function: Function, again: Callable[[Function], Function], stays: Callable[[Function], bool]
) -> Function:
    builder = Builder(function.name)
    env: dict[Var, Atom] = {}
    changed = False
    for let in function.lets:
        args = tuple(env.get(a, a) if isinstance(a, Var) else a for a in let.args)
        if let.primitive.name == "call" and not stays(let.attributes["function"]):
            results = builder.replay(again(let.attributes["function"]), args)
            env.update(zip(let.outs, results))
            changed = True
            continue
        new = let.with_regions(again) if let.primitive.region else let
        if args != let.args:
            new = Let(new.outs, new.primitive, args, new.attributes, new.span)
        changed |= new is not let
        builder.lets.append(new)
    if not changed:
        return function
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(builder.lets), results)


def worth_calling(program: Function) -> Callable[[Function], bool]:
    """The rule of what calls cost: a function stays one if the calls of it in `program` save operations
    enough. Where a loop calls it, it must do so much itself that a call and storage for its results are nothing
    beside it."""
    places: Counter[Function] = Counter()
    looped: set[Function] = set()
    seen: set[tuple[Function, bool]] = set()

    def count(function: Function, in_loop: bool) -> None:
        if (function, in_loop) in seen or not has_calls(function):
            return
        seen.add((function, in_loop))
        first = (function, not in_loop) not in seen
        for let in function.lets:
            inside = in_loop or let.primitive.name == "loop"
            for region in let.regions():
                if let.primitive.name == "call":
                    places[region] += first
                    looped.update([region] * in_loop)
                count(region, inside)

    def stays(function: Function) -> bool:
        saved = (places[function] - 1) * operations(function)
        return may_stay(function) and saved >= WORTH and (function not in looped or _takes_long(function))

    count(program, False)
    return stays


def _is_small(atom: Atom) -> bool:
    elements = product(atom.type.dims)
    return isinstance(elements, int) and elements < LARGE


def _takes_long(function: Function) -> bool:
    """Whether a function has a loop, or a product or another operation of a library on arrays that may be large."""

    def look() -> bool:
        return any(
            isinstance(let.primitive.native, Lib)
            and not all(map(_is_small, let.args))
            or let.primitive.name == "loop"
            or any(map(_takes_long, let.regions()))
            for let in function.lets
        )

    return derived(function, "takes long", look)


__all__ = ["derived", "has_calls", "may_stay", "operations", "worth_calling", "written_out"]
