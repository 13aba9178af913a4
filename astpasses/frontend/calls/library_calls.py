"""Calls that the library of `ops` answers (`metaphrase.ops.library`): most of NumPy, some of SciPy.

In: the arguments of a user's call, staged or not. Out: staged arrays, or NumPy scalars where NumPy gives
those.

    library_handler(np.mean)(x, axis=0)      # emits the primitives of a mean; LIBRARY[np.mean] says which
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.astpasses.library.arrays import update_at
from metaphrase.core.dims import Sym, product
from metaphrase.core.ir import Let, Literal, Var
from metaphrase.ops.library import LIBRARY, UPDATES
from metaphrase.ops.limits import UnknownSize, check_memory, check_sizes
from metaphrase.ops.promotion import NeedsValue, Weak, result_type
from metaphrase.source import SourceError
from metaphrase.tree_util import tree_leaves

from ..operators.arithmetic import check_castable
from ..operators.indexing import write_view
from ..staging.demand import need_concrete, roots_of
from ..staging.session import Session, session
from ..staging.signals import NeedConcrete
from ..values.layout import is_contiguous
from ..values.orders import lay_like, put_in_order
from ..values.staged_values import Number, StagedArray
from .call import call_value, has_staged
from .signatures import python_values, settled_arguments

# Functions that make an array object whatever its rank: it may be written into afterwards.
MAKERS: frozenset[Any] = frozenset(
    getattr(np, name)
    for name in """array asarray ascontiguousarray asanyarray asfortranarray copy full zeros ones empty full_like
    zeros_like ones_like empty_like arange linspace logspace geomspace eye identity tri meshgrid indices vander reshape
    squeeze broadcast_to where""".split()
)
# Functions whose results of no axes are arrays all the same.
_ARRAYS = MAKERS | {np.tensordot, np.linalg.tensordot, np.isin, np.astype, np.roll, np.pad, np.select, np.cov}
PYTHON_BOOLS = frozenset((np.allclose, np.array_equal, math.isclose))  # they give Python's bool
_ORDERS = ("C", "F")
_BY_ROWS = frozenset((np.matmul, np.dot, np.inner, np.outer, np.tensordot))  # whatever they are given
_SAME_KIND = dict.fromkeys((np.clip, np.concatenate, np.stack), "same_kind")
_CASTING = {**_SAME_KIND, np.dot: "no", np.einsum: "safe"}  # to `out=`
_SPREAD = frozenset((np.clip, np.fix))  # an `out` of more dimensions is filled
_COLUMNS = frozenset((np.argwhere, np.nonzero, np.unravel_index))  # of one array
LIKE = frozenset((np.full_like, np.zeros_like, np.ones_like, np.empty_like))
_FEW = 64
_REMEDIES = {
    "axis": "give the axis as a Python int that the array has",
    "arange": "give a step that is not 0",
    "broadcast": "make the sizes equal, or 1",
    "concatenate": "give the arrays one shape, but for the axis that is joined",
    "einsum": "write one letter an axis, the same one where the sizes are the same",
    "norm": "use None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf",
    "numpy-function": "write it with array operations",
    "product": "transpose or reshape one of the operands so that the sizes agree",
    "repeat": "give one count, or one an element",
    "where": "give the values for both cases",
    "": "compare the shapes and dtypes of the arguments with what the function takes",
}


def library_handler(function: Any) -> Callable | None:
    """What answers a call of `function` on staged values; None if the library does not know it."""
    if function in UPDATES:
        return lambda target, *args, **keywords: _update(function, target, args, keywords)
    if function not in LIBRARY:
        return None
    return lambda *args, **keywords: call_library(function, args, keywords)


def call_library(function: Any, args: tuple, keywords: dict) -> Any:
    if not has_staged((args, keywords)) and function not in MAKERS:
        return function(*args, **keywords)
    here = session()
    rule = LIBRARY[function]
    given, named, out = settled_arguments(function, rule, args, keywords)
    given, named = python_values(function, rule, given, named)
    result = run_rule(here, rule, given, named, function in _ARRAYS)
    if function is np.linspace and isinstance(result, tuple) and not result[1].ndim:
        result = (result[0], here.wrap(here.atom(result[1])))  # a step is a number
    _lay_down(here, function, given, named, result)
    if not has_staged((args, keywords)) and isinstance(result, StagedArray):
        known = np.asarray(function(*args, **{k: v for k, v in keywords.items() if k != "out"}))
        result.box.known = known
        put_in_order(result.box, known.flags.c_contiguous)
    if function in PYTHON_BOOLS and isinstance(result, Number):
        result = here.wrap(here.atom(result), bool)
    if out is None:
        return result
    from .numpy_calls import store_out

    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if function is np.take and isinstance(out, StagedArray):  # NumPy takes into a copy of `out`
        check_castable(here, out, result, "out", "safe")
    if function not in _SPREAD and (found := np.ndim(out)) != (wanted := np.ndim(result)):
        raise here.shape_error(f"`out` has the wrong number of dimensions: {found} where the result has {wanted}")
    return store_out(out, result, _CASTING.get(function, "unsafe"))


def _lay_down(here: Session, function: Any, args: tuple, keywords: dict, result: Any) -> None:
    """Says how the arrays of a result lie in memory."""
    if function not in _BY_ROWS:
        others = [here.atom(a) for a in tree_leaves((args, keywords)) if isinstance(a, StagedArray)]
        by_columns = function in _COLUMNS or function is np.where and len(args) == 1
        for made in tree_leaves(result):
            if isinstance(made, StagedArray):
                lay_like(here, made, others)
                if by_columns:
                    made.box.by_rows = False
    if not isinstance(result, StagedArray):
        return
    if function is np.take:
        result.box.by_rows = True
    elif function in MAKERS:
        given = (*args, *keywords.values())
        order = next((v for v in given if isinstance(v, str) and v in _ORDERS), None)
        if order is not None:
            put_in_order(result.box, order == "C")
        elif function in LIKE and isinstance(given[0], StagedArray) and is_contiguous(given[0])[0] != "view":
            put_in_order(result.box, False)


def _update(function: Any, target: Any, args: tuple, keywords: dict) -> None:
    """NumPy's functions that write into their first operand."""
    if not isinstance(target, StagedArray) and not has_staged((args, keywords)):
        return function(target, *args, **keywords)
    here = session()
    target = here.lift(target) if isinstance(target, np.ndarray) else target
    sums = getattr(function, "__name__", "") == "at"
    rounds = sums and target.dtype.kind in "iub" and result_type(_operand(here, args[1])).kind in "fc"
    if sums and (rounds or not _index_arrays(args[0])):
        return call_value(update_at, (function.__self__, target, *args), keywords)
    new = run_rule(here, UPDATES[function], (target, *args), keywords, True)
    return write_view(target, new.read())


def _index_arrays(index: Any) -> bool:
    """Whether an index is made of integers and integer arrays only."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(isinstance(p, (int, np.integer)) or getattr(p, "dtype", np.dtype(bool)).kind in "iu" for p in parts)


def run_rule(here: Session, rule: Callable, args: tuple, keywords: dict, makes: bool) -> Any:
    operands = tuple(_operand(here, a) for a in args)
    named = {k: _operand(here, v) for k, v in keywords.items()}
    builder = here.region.builder
    before = len(builder.lets)
    builder.facts, builder.size_of, builder.in_attempt = here.facts, here.size_of, bool(here.attempts)
    try:
        with here.stamped():
            made = rule(*operands, **named)
            if makes and isinstance(made, Var):
                check_sizes(made.type, here.facts)
                check_memory(made.type, here.facts, here.argument_sizes)
    except NeedsValue as need:
        need_concrete(Number(here, need.atom, int), need.what, int, need.remedy or _REMEDIES["axis"])
        raise
    except SourceError as error:
        if error.span is None:
            error.span = here.span()
        if isinstance(error, UnknownSize):
            _pin_size(here, error)
        error.remedy = error.remedy or _REMEDIES.get(error.code, _REMEDIES[""])
        raise
    for let in builder.lets[before:]:  # sizes that the library bound, as `nonzero` does
        here.region.symbols |= let.own_symbols()
        if let.primitive.name == "as_dim":
            here.region.dims.setdefault(let.args[0], Sym(let.attributes["size"]))
            _learn_count(here, let, builder.lets[before:])
    return _result(here, made, makes)


def _pin_size(here: Session, error: UnknownSize) -> None:
    """A size that numbers give is known where they are."""
    roots = roots_of(here, here.dim_atom(error.dim)) if here.is_bound(error.dim) else set()
    if roots and all(root[0] == "argument" for root in roots):
        raise NeedConcrete(roots, "a size of a matrix", error.span, refusal=error)


def _learn_count(here: Session, bound: Let, lets: list[Let]) -> None:
    """A size that counts the true elements of a mask is at most that of the mask."""
    makers: dict[Any, Let] = {out: let for let in lets for out in let.outs}
    counted = makers.get(bound.args[0])
    if counted is None or counted.primitive.name != "reduce_sum":
        return
    flags = makers.get(counted.args[0])
    if flags is not None and flags.primitive.name == "convert" and flags.args[0].type.dtype == bool:
        here.facts.learn(bound.attributes["size"], 0, product(flags.out.type.dims))


def _operand(here: Session, value: Any) -> Any:
    """A core atom for a staged value, `Weak` for a staged Python number; all else as the user wrote it."""
    if isinstance(value, StagedArray):
        known = value.box.known
        if known is not None and not value.chain and known.dtype.kind in "iu" and known.size <= _FEW:
            return known  # small index arrays: bounds are settled now, and counts are known
        return here.atom(value)
    if isinstance(value, Number):
        dim = value.dim if value.dim is not None and here.is_bound(value.dim) else None
        if value.python in (int, float, complex):
            return Weak(here.atom(value), value.python, dim)
        return here.atom(value)
    if type(value) in (list, tuple):
        return type(value)(_operand(here, v) for v in value)
    if isinstance(value, range):  # of axes or of numbers
        return tuple(value) if len(value) <= _FEW else np.arange(value.start, value.stop, value.step)
    return value


def _result(here: Session, made: Any, makes: bool) -> Any:
    if isinstance(made, (list, tuple)):
        parts = (_result(here, m, makes) for m in made)
        if hasattr(made, "_fields"):
            return type(made)(*parts)
        return here.born(list(parts)) if isinstance(made, list) else tuple(parts)
    if isinstance(made, (Var, Literal)):
        return here.array(made) if makes or made.type.dims else here.wrap(made)
    return made
