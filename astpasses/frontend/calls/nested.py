"""Functions that are staged on their own and then called: transformations (`grad(f)(x)`, `vmap(f)(xs)`), jitted
functions, and plain ones that are called again and again.

In: an object whose type has `__metaphrase_stage__(args, kwargs) -> Staged | None`, or a function, and the staged
arguments. Out: its result. The function is staged in a session of its own; what it takes from the outer staging
comes back as captures. For calls with arguments of the same types and structure this is done once, if what it
gives depends on nothing else:

    for w, b in layers:          # the first calls are written out, the others are calls of one function
        x = layer(x, w, b)
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from metaphrase import tree_util
from metaphrase.core.calls import may_stay, operations
from metaphrase.core.dims import symbols
from metaphrase.core.ir import Function, Var
from metaphrase.core.types import Array, type_symbols
from metaphrase.ops.regions import call
from metaphrase.ops.shape import convert
from metaphrase.source import UnsupportedError

from ..operators.indexing import write_view
from ..operators.kinds import is_doubtful
from ..staging.literals import capture_array
from ..staging.numbers import hidden_number
from ..staging.session import Session
from ..staging.signals import CallsBack
from ..staging.stage import stage
from ..staging.staged import Staged as Program
from ..staging.under_way import sessions
from ..values.layout import is_contiguous
from ..values.orders import assume_order
from ..values.sources import AttributeSource, CellSource, GlobalSource, ItemSource, NumberSource, Source
from ..values.staged_values import Number, Staged, StagedArray
from .call import call_value

_ARRAYS = (GlobalSource, CellSource, AttributeSource, ItemSource)  # where an array is read that was not given
WRITTEN_OUT = 32  # operations of a function's first calls: fewer, and another one is as well written out


class Repeated:
    """What is known of the calls of a function with arguments of one kind: how many operations those that were
    written out had (None: they all have to be), and its program."""

    def __init__(self, function: Any):
        self.function = function  # kept, so that its id stays its own
        self.operations: int | None = 0
        self.program: Program | None = None


def repeated(here: Session, function: Any, args: tuple, keywords: dict) -> Repeated | None:
    """The record of calls like this one; None where a call may depend on more than types and structure."""
    kinds = _kind(here, (args, keywords))
    return None if kinds is None else here.repeated.setdefault((id(function), kinds), Repeated(function))


def _kind(here: Session, value: Any, depth: int = 8) -> Hashable:
    """What is equal of two values that are as good as each other; None where it is the object itself."""
    if type(value) in (tuple, list, dict):
        if not depth or id(value) in here.roots or id(value) in here.deques:
            return None
        kinds = tuple(_kind(here, v, depth - 1) for v in (value.values() if type(value) is dict else value))
        return None if None in kinds else (type(value), kinds, tuple(value) if type(value) is dict else ())
    if type(value) is StagedArray:
        return (value.type, value.writeable) if value.box.known is None and value.box.phi is None else None
    if type(value) is Number:
        plain = value.type.dtype.kind == "f" and isinstance(value._atom, Var) and value.narrow is None
        return (value.type, "in doubt" if value.doubts else value.python) if plain else None
    return (type(value), repr(value)) if value is None or type(value) in (bool, int, float, str) else None


def _serves_all(here: Session, program: Program) -> bool:
    """Whether a program does not depend on the very objects that it was staged for."""
    return (
        not (program.writes or program.ordered or program.raises or program.pinned or program.same)
        and all(type(c) in _ARRAYS for c in program.captures)
        and all(o.kind == "result" or o.kind == "static" and _kind(here, o.value) is not None for o in program.outputs)
    )


def _serves_now(program: Program) -> bool:
    """Whether what it was staged for stands where it stood."""
    params = zip(program.captures, program.function.params)
    return all(guard.holds() for guard in program.guards) and all(
        type(value := source.read()) is np.ndarray and (value.dtype, value.shape) == (param.type.dtype, param.type.dims)
        for source, param in params
    )


def call_again(here: Session, function: types.FunctionType, run: Callable[[], Any], args: tuple, keywords: dict) -> Any:
    """A call of a plain function; `run` writes it out."""
    known = None if here.attempts or function.__code__.co_flags & 0x20 else repeated(here, function, args, keywords)
    if known is None or known.operations is None or any(_runs(outer, function.__code__) for outer in sessions()):
        return run()
    if known.program is not None or known.operations >= WRITTEN_OUT:
        for leaf in tree_util.tree_leaves((args, keywords)):
            if is_doubtful(leaf):
                leaf.ask()  # a program is for numbers of one kind
    if known.program is None and known.operations >= WRITTEN_OUT:
        known.program = _staged(here, function, args, keywords)
    if known.program is not None and _serves_now(known.program):
        return _bound(here, known.program, tree_util.tree_leaves((args, keywords)))
    if known.operations >= WRITTEN_OUT:
        known.operations = None
        return run()
    lets = here.region.builder.lets
    first, before = len(lets), here.journal.mark()
    result = run()
    plain = here.journal.mark() == before and _kind(here, result) is not None
    leaves = tree_util.tree_leaves(result) if plain else []
    atoms = [v.box.first if isinstance(v, StagedArray) else v._atom for v in leaves if isinstance(v, Staged)]
    if plain and len(set(atoms)) == len(atoms) and {v for let in lets[first:] for v in let.outs}.issuperset(atoms):
        known.operations += sum(1 + sum(map(operations, let.regions())) for let in lets[first:])
    else:  # it stores, or gives what is known elsewhere, or what is more than arrays
        known.operations = None
    return result


def _staged(here: Session, function: types.FunctionType, args: tuple, keywords: dict) -> Program | None:
    """The program that calls of a function have in common, if they have one. Numbers that are given are constants."""
    numbered = (*enumerate(args), *keywords.items())
    static = [key for key, arg in numbered if isinstance(arg, (int, float, str))]
    held = [arg for _, arg in numbered if isinstance(arg, (tuple, list, dict))]
    if any(type(leaf) in (int, float) for leaf in tree_util.tree_leaves(held)):
        return None
    try:
        program = stage(function, args, keywords, static=static)
    except Exception:  # written out, it tells what is wrong, or that nothing is
        return None
    return program if _serves_all(here, program) and may_stay(program.function) else None


def call_transformed(here: Session, function: Any, args: tuple, keywords: dict) -> Any:
    """Stage, bind a `call` of the Function, and give the user's result."""
    known = repeated(here, function, args, keywords)
    if known is not None and known.program is not None and _serves_now(known.program):
        return _bound(here, known.program, tree_util.tree_leaves((args, keywords)))
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
    if found is None or (found.writes or found.ordered) and inner is not None:
        # As good as written here: every alias of what a jitted function changes is seen. None: nothing else is wanted.
        return call_value(inner, args, keywords)
    if known is not None and _serves_all(here, found):
        known.program = found
    return _bound(here, found, tree_util.tree_leaves((args, keywords)))


def _bound(here: Session, found: Program, leaves: list) -> Any:
    """A call of a program: the user's result."""
    for leaf in (leaves[k] for k in found.ordered if isinstance(leaves[k], StagedArray)):
        assume_order(here, leaf.box)
        if is_contiguous(leaf)[0] != "view":
            raise here.unsupported(
                "a transformed function stores through a reshape of what it makes of an array that may not "
                "lie in memory row after row: NumPy's reshape may give a copy",
                "copy the array: x.copy()",
                code="layout",
            )
    operands = []
    for capture in found.captures:
        if isinstance(capture, NumberSource):
            capture = hidden_number(here, capture)
        elif isinstance(capture, Source):
            capture = capture_array(here, capture.read(), capture)
        operands.append(here.atom(capture))
    operands += [here.atom(leaves[k]) for k in found.dynamic]
    for guard in found.guards:
        here.guards.setdefault(guard.key(), guard)
    fitted = [_fit(here, atom, param.type) for atom, param in zip(operands, found.function.params)]
    measures = _measures(found.function, fitted)
    outs = _written_out(here, found.function, fitted) if measures else here.emit(call, *fitted, function=found.function)
    return _result(here, found, outs, leaves)


def _runs(here: Session, code: Any) -> bool:
    """Whether a call of the function with this code is under way in the session."""
    return code is not None and any(entry[0] is code for entry in here.path)


def _measures(function: Function, args: list) -> bool:
    """Whether results are sizes, or have some that only the run of the function knows, or arguments those that such a
    run left (a `vjp` for its pullback): a `call` knows of none of them."""
    if any(type_symbols(p.type) and p.type != a.type for p, a in zip(function.params, args)):
        return True
    known: set[str] = set().union(*(type_symbols(p.type) for p in function.params))
    return any(r.type.value is not None or type_symbols(r.type) - known for r in function.results)


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
    return atom if atom.type.dtype == type_.dtype else here.emit(convert, atom, dtype=type_.dtype)


def _result(here: Session, found: Any, outs: tuple, leaves: list) -> Any:
    for write in found.writes:
        if write.kind != "argument":
            raise here.dtype_error(
                "a transformed function changes an object that it was not given", remedy="return the new value instead"
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
