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
from ..staging.operations import StagedStager
from .call import TABLE, handles

_BINARY = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.matmul: "@",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.concat: "+",
    operator.lt: "<",
    operator.le: "<=",
    operator.eq: "==",
    operator.ne: "!=",
    operator.ge: ">=",
    operator.gt: ">",
}
_UNARY = {operator.neg: "-", operator.pos: "+", operator.invert: "~", operator.inv: "~"}
_INPLACE = {
    operator.iadd: "+",
    operator.isub: "-",
    operator.imul: "*",
    operator.itruediv: "/",
    operator.imod: "%",
    operator.ifloordiv: "//",
    operator.ipow: "**",
    operator.imatmul: "@",
    operator.iand: "&",
    operator.ior: "|",
    operator.ixor: "^",
    operator.ilshift: "<<",
    operator.irshift: ">>",
}


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


for table, make in ((_BINARY, _binary), (_UNARY, _unary), (_INPLACE, _inplace)):
    TABLE.update({function: make(symbol) for function, symbol in table.items()})


@handles(operator.not_)
def not_(a: Any, /) -> Any:
    return _stager().not_(a)


@handles(operator.truth)
def truth(a: Any, /) -> Any:
    return _stager().not_(_stager().not_(a))


@handles(operator.is_)
def is_(a: Any, b: Any, /) -> Any:
    return _stager().is_(a, b)


@handles(operator.is_not)
def is_not(a: Any, b: Any, /) -> Any:
    return _stager().is_not(a, b)


@handles(operator.contains)
def contains(container: Any, value: Any, /) -> Any:
    return _stager().contains(value, container)


@handles(operator.getitem)
def getitem(container: Any, index: Any, /) -> Any:
    return _stager().item(container, index)


@handles(operator.setitem)
def setitem(container: Any, index: Any, value: Any, /) -> None:
    _stager().store_item(value, container, index)


@handles(operator.delitem)
def delitem(container: Any, index: Any, /) -> None:
    _stager().delete_item(container, index)


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
