"""What stays a call, and the functions that are called: each is cleaned once, for all calls of it.

In: a Function. Out: the same with the body in the place of each `call` that is not worth being one, and
clean functions behind the others. Calls that carry a rule of their own (custom derivatives) are other
primitives and stay.

    h1 = call(x, w1, function=layer)                      h1 = call(x, w1, function=layer')
    h2 = call(h1, w2, function=layer)        ->           h2 = call(h1, w2, function=layer')
    s = call(h2, function=square)                         s = mul(h2, h2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metaphrase.core.calls import derived
from metaphrase.core.ir import Function, Let

from .rebuild import map_regions


def clean_callees(function: Function, clean: Callable[[Function], Function], key: Any) -> Function:
    """`clean(callee)` for each function that is called; `key` names what `clean` does."""

    def callee(function: Function) -> Function:
        made = derived(function, key, lambda: clean(function))
        return derived(made, key, lambda: made)

    def inside(function: Function) -> Function:
        lets = [let_inside(let) for let in function.lets]
        if all(a is b for a, b in zip(lets, function.lets)):
            return function
        return Function(function.name, function.params, tuple(lets), function.results)

    def let_inside(let: Let) -> Let:
        if let.primitive.name != "call":
            return map_regions(let, inside)
        new = callee(let.attributes["function"])
        if new is let.attributes["function"]:
            return let
        return Let(let.outs, let.primitive, let.args, {"function": new}, let.span)

    return inside(function)


__all__ = ["clean_callees"]
