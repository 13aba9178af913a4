"""Transformations called in staged code: `grad(f)(x)`, `vmap(f)(xs)`, a jitted function.

In: an object whose type has `__metaphrase_stage__(args, kwargs) -> Staged` and the staged arguments. Out:
its result. The function it holds is staged at once in a session of its own; what it takes from the outer
staging comes back as captures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase import tree_util
from metaphrase.core.dims import symbols
from metaphrase.core.ir import Function
from metaphrase.core.types import Array, type_symbols
from metaphrase.ops.regions import call
from metaphrase.source import UnsupportedError

from ..staging.session import Session
from ..staging.signals import CallsBack
from ..staging.under_way import sessions
from ..values.layout import is_contiguous
from ..values.orders import assume_order
from ..values.sources import NumberSource, Source
from ..values.staged_values import Number, Staged, StagedArray


def call_transformed(here: Session, function: Any, args: tuple, keywords: dict) -> Any:
    """Stage, bind a `call` of the Function, and give the user's result."""
    from .call import call_value

    inner = getattr(function, "py_func", None)
    code = getattr(inner, "__code__", None)
    if _runs(here, code):  # a jitted function that calls itself is one function
        return call_value(inner, args, keywords)
    if any(_runs(outer, code) for outer in sessions()):
        raise CallsBack(code)
    try:
        found = type(function).__metaphrase_stage__(function, args, keywords)
    except (CallsBack, UnsupportedError) as stopped:
        back = isinstance(stopped, CallsBack) and _runs(here, stopped.code)
        asks = isinstance(stopped, UnsupportedError) and stopped.code == "concrete"  # it may be known here
        if inner is None or not (back or asks):
            raise
        return call_value(inner, args, keywords)
    if (found.writes or found.ordered) and inner is not None:
        # A jitted function that changes what it is given is as good as written here: every alias is seen.
        return call_value(inner, args, keywords)
    leaves = tree_util.tree_leaves((args, keywords))
    for k in found.ordered:
        if not isinstance(leaves[k], StagedArray):
            continue
        assume_order(here, leaves[k].box)
        if is_contiguous(leaves[k])[0] != "view":
            raise UnsupportedError(
                "a transformed function stores through a reshape of what it makes of an array that may not "
                "lie in memory row after row: NumPy's reshape may give a copy",
                here.span(),
                code="layout",
                remedy="copy the array: x.copy()",
            )
    operands = []
    for capture in found.captures:
        if isinstance(capture, NumberSource):
            from ..staging.numbers import hidden_number

            capture = hidden_number(here, capture)
        elif isinstance(capture, Source):
            from ..staging.literals import capture_array

            capture = capture_array(here, capture.read(), capture)
        operands.append(here.atom(capture))
    operands += [here.atom(leaves[k]) for k in found.dynamic]
    for guard in found.guards:
        here.guards.setdefault(guard.key(), guard)
    fitted = [_fit(here, atom, param.type) for atom, param in zip(operands, found.function.params)]
    outs = (
        _written_out(here, found.function, fitted)
        if _measures(found.function, fitted)
        else here.emit(call, *fitted, function=found.function)
    )
    return _result(here, found, outs, leaves)


def _runs(here: Session, code: Any) -> bool:
    """Whether a call of the function with this code is under way in the session."""
    return code is not None and any(entry[0] is code for entry in here.path)


def _measures(function: Function, args: list) -> bool:
    """Whether results have sizes that only the run of the function knows, or arguments those that such a run
    left (a `vjp` for its pullback): a `call` knows of neither."""
    if any(type_symbols(p.type) and p.type != a.type for p, a in zip(function.params, args)):
        return True
    known: set[str] = set().union(*(type_symbols(p.type) for p in function.params))
    return any(type_symbols(r.type) - known for r in function.results)


def _written_out(here: Session, function: Function, args: list) -> tuple:
    """The Lets of the function in the place of a `call`."""
    lets = here.region.builder.lets
    before = len(lets)
    outs = here.region.builder.replay(function, args)
    for let in lets[before:]:
        for out in let.outs:
            if out.type.value is not None:
                here.region.symbols |= symbols(out.type.value)
    return outs


def _fit(here: Session, atom: Any, type_: Array) -> Any:
    from metaphrase.ops.shape import convert

    return atom if atom.type.dtype == type_.dtype else here.emit(convert, atom, dtype=type_.dtype)


def _result(here: Session, found: Any, outs: tuple, leaves: list) -> Any:
    from ..operators.indexing import write_view

    for write in found.writes:
        if write.kind != "argument":
            raise here.dtype_error(
                "a transformed function changes an object that it was not given",
                remedy="return the new value instead",
            )
        write_view(leaves[write.target], outs[write.index])
    made = []
    for output in found.outputs:
        if output.kind == "result":
            made.append(here.wrap(outs[output.index], output.python))
        elif output.kind == "static":
            made.append(output.value)
        elif output.kind == "argument":
            leaf = leaves[output.index]
            made.append(leaf if isinstance(leaf, (Staged, Number)) else np.asarray(leaf))
        else:
            capture = found.captures[output.index]
            made.append(capture if isinstance(capture, Staged) else capture.read())
    return tree_util.tree_unflatten(found.out_tree, made)
