"""The functions of `operator`: what the operators do that they stand for.

In: the arguments of a call of one of them, or of an `itemgetter`, `attrgetter` or `methodcaller`. Out: what
the operator, subscript, attribute or method call gives. Example:

    functools.reduce(operator.mul, [n, m, 2])      # (n * m) * 2, of Python numbers a Python number
    sorted(pairs, key=operator.itemgetter(1))      # pairs[k][1] of each
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from ..rewrite.convert import Outer
from ..rewrite.plain import INPLACE, OPERATORS, UNARY
from ..staging.operations import StagedStager
from .call import handles


@functools.cache
def _stager() -> Any:
    outer: Any = _stager.__wrapped__
    return StagedStager(Outer(outer))  # its outer names are never asked for


def _binary(symbol: str) -> Callable:
    return lambda a, b, /: _stager().operate(symbol, a, b)


def _unary(symbol: str) -> Callable:
    return lambda a, /: _stager().unary(symbol, a)


def _inplace(symbol: str) -> Callable:
    return lambda a, b, /: _stager().inplace(symbol, a, b)


_ANSWERS: dict[Any, Callable] = {
    **{function: _binary(symbol) for symbol, function in OPERATORS.items()},
    **{function: _unary(symbol) for symbol, function in UNARY.items()},
    **{function: _inplace(symbol) for symbol, function in INPLACE.items()},
    operator.concat: _binary("+"),
    operator.inv: _unary("~"),
    operator.not_: lambda a, /: _stager().not_(a),
    operator.truth: lambda a, /: _stager().not_(_stager().not_(a)),
    operator.is_: lambda a, b, /: _stager().is_(a, b),
    operator.is_not: lambda a, b, /: _stager().is_not(a, b),
    operator.contains: lambda container, value, /: _stager().contains(value, container),
    operator.getitem: lambda container, index, /: _stager().item(container, index),
    operator.setitem: lambda container, index, value, /: _stager().store_item(value, container, index),
    operator.delitem: lambda container, index, /: _stager().delete_item(container, index),
}
for _function, _answer in _ANSWERS.items():
    _answer.__qualname__ = _function.__name__  # told of wrong arguments
    handles(_function)(_answer)


def call_getter(getter: Any, target: Any) -> Any:
    """What an `itemgetter`, `attrgetter` or `methodcaller` gives of an object."""
    call, parts = getter.__reduce__()[:2]
    stager = _stager()
    if isinstance(getter, operator.methodcaller):
        keywords = call.keywords if isinstance(call, functools.partial) else {}
        name, *args = (*call.args, *parts) if isinstance(call, functools.partial) else parts
        return stager.method(target, name, *args, **keywords)
    if isinstance(getter, operator.itemgetter):
        found = tuple(stager.item(target, part) for part in parts)
    else:
        found = tuple(functools.reduce(stager.attribute, part.split("."), target) for part in parts)
    return found[0] if len(found) == 1 else found
