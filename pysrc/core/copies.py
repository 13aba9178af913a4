"""Copies of a function that is called elsewhere become calls of it.

In: a Function some of whose calls stand as `call`s, while others were written out before anybody knew that there would
be more of them. Out: the same with calls in the place of these, where operations behind one another are those of the
function, name by name, and nothing but its results is read of them:

    a: f64[n] = mul(x, w)                     y: f64[n] = call(x, w, function=layer)
    y: f64[n] = tanh(a)              ->       z: f64[n] = call(y, w, function=layer)
    z: f64[n] = call(y, w, function=layer)

Which calls stay calls is another question (`calls.worth_calling`).
"""

from __future__ import annotations

from typing import Any

from .calls import has_calls, may_stay
from .ir import Atom, Function, Let, Var
from .primitive import REGISTRY
from .show import same


def with_copies_called(function: Function) -> Function:
    """The function with a call in the place of each copy, the innermost functions first."""
    if not has_calls(function):
        return function
    number = 0
    while number < len(callees := _callees(function)):
        if may_stay(callees[number]):
            function = _Callee(callees[number]).called_in(function)
        number += 1
    return function


def _callees(function: Function) -> list[Function]:
    """What is called, at any depth; of a function that calls others they come first."""
    order: dict[Function, None] = {}
    seen: set[Function] = set()

    def visit(function: Function) -> None:
        if function in seen or not has_calls(function):
            return
        seen.add(function)
        for let in function.lets:
            for region in let.regions():
                visit(region)
                if let.primitive.name == "call":
                    order.setdefault(region)

    visit(function)
    return list(order)


class _Callee:
    """One function, and what is made of those that may have copies of it."""

    def __init__(self, function: Function):
        self.function, self.made = function, {function: function}
        own = {out for let in function.lets for out in let.outs}
        # Results that are parameters or constants, or that are twice the same, are no copy's own.
        self.is_plain = own.issuperset(function.results) and len({*function.results}) == len(function.results)

    def called_in(self, function: Function) -> Function:
        if not self.is_plain:
            return function
        if function not in self.made:
            self.made[function] = self._called_in(function)
        return self.made[function]

    def _called_in(self, function: Function) -> Function:
        old = tuple(let.with_regions(self.called_in) if let.primitive.region else let for let in function.lets)
        lets: list[Let] = []
        last = _last_uses(function)
        k = 0
        while k < len(old):
            call = self.call_at(old, k, last)
            lets.append(call or old[k])
            k += len(self.function.lets) if call else 1
        if all(new is let for new, let in zip(lets, function.lets)):
            return function
        return Function(function.name, function.params, tuple(lets), function.results)

    def call_at(self, lets: tuple[Let, ...], start: int, last: dict[Var, int]) -> Let | None:
        """The call that stands for the operations from there on; None where they are no copy."""
        end = start + len(self.function.lets)
        env: dict[Var, Atom] = {}
        copies = lets[start:end]
        if len(copies) < len(self.function.lets) or not all(
            _is_copy(own, copy, env) for own, copy in zip(self.function.lets, copies)
        ):
            return None
        if not all(param in env for param in self.function.params):
            return None
        args = tuple(env[param] for param in self.function.params)
        outs = tuple(env[r] for r in self.function.results if isinstance(r, Var))
        made = {out for copy in copies for out in copy.outs}
        if not made.isdisjoint(args) or any(last.get(out, start) >= end for out in made.difference(outs)):
            return None  # it is given what it makes, or what it makes on the way is read elsewhere
        return Let(outs, REGISTRY["call"], args, {"function": self.function}, copies[-1].span)  # type: ignore[arg-type]


def _last_uses(function: Function) -> dict[Var, int]:
    """The last operation that reads each value; one behind all of them reads the results."""
    reads = (*(let.args for let in function.lets), function.results)
    return {atom: k for k, atoms in enumerate(reads) for atom in atoms if isinstance(atom, Var)}


def _is_copy(own: Let, copy: Let, env: dict[Var, Atom]) -> bool:
    """Whether an operation is another one on the values that `env` says, which learns what it is given and gives."""
    if own.primitive is not copy.primitive or len(own.args) != len(copy.args) or len(own.outs) != len(copy.outs):
        return False
    for mine, other in zip(own.args, copy.args):
        # What is not known yet is a parameter.
        if mine != other if not isinstance(mine, Var) else env.setdefault(mine, other) != other:
            return False
        if mine.type != other.type:
            return False
    if any(mine.type != other.type for mine, other in zip(own.outs, copy.outs)):
        return False
    env.update(zip(own.outs, copy.outs))
    return _are_equal(own.attributes, copy.attributes)


def _are_equal(a: Any, b: Any) -> bool:
    """Whether two attributes are: functions are equal up to names."""
    if isinstance(a, Function) and isinstance(b, Function):
        return same(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_are_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_are_equal(a[key], b[key]) for key in a)
    return bool(a == b)


__all__ = ["with_copies_called"]
