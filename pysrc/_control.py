"""Structured control flow by JAX's names, written with plain `if`, `while` and `for`.

In: functions and values (pytrees). Out: what the loop or branch leaves. Code that uses Python's own control
flow needs none of these; they are here for programs that were written for JAX, and run at once on NumPy
arrays as well.

>>> fori_loop(0, 5, lambda i, total: total + i, 0)
10
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import tree

_NO_OPERAND = object()


def _functions(call: str, **given: Any) -> None:
    """An error that shows how the call is written, where one of its functions is none."""
    for name, value in given.items():
        if not callable(value):
            raise TypeError(f"{name} of {call} is a function, and this one is a {type(value).__name__}")


def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """`true_fun(*operands)` if pred, else `false_fun(*operands)`; only the chosen one runs.

    JAX's older forms are taken too: `cond(pred, f, g, operand=x)` and `cond(pred, x, f, y, g)`.
    """
    if operand is not _NO_OPERAND:
        operands = (operand,)
    elif not callable(true_fun) and len(operands) == 2 and callable(false_fun):
        if pred:
            return false_fun(true_fun)
        return operands[1](operands[0])
    _functions("lax.cond(pred, true_fun, false_fun, *operands)", true_fun=true_fun, false_fun=false_fun)
    if pred:
        return true_fun(*operands)
    return false_fun(*operands)


def switch(index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index out of range picks the nearest branch."""
    if len(branches) == 0:
        raise ValueError("lax.switch needs at least one branch")
    return _switch(index, 0, tuple(branches), operands)


def _switch(index: Any, position: int, branches: tuple[Callable, ...], operands: tuple) -> Any:
    if position == len(branches) - 1:
        return branches[position](*operands)
    if index <= position:
        return branches[position](*operands)
    return _switch(index, position + 1, branches, operands)


def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """`val = init_val; while cond_fun(val): val = body_fun(val)`; the condition is one bool."""
    _functions("lax.while_loop(cond_fun, body_fun, init_val)", cond_fun=cond_fun, body_fun=body_fun)
    val = init_val
    while _one_bool(cond_fun(val)):
        val = body_fun(val)
    return val


def _one_bool(condition: Any) -> Any:
    """The condition, where it is one: a number that is meant as one would be true for ever."""
    dtype, shape = np.asarray(condition).dtype, np.shape(condition)
    if dtype.kind != "b" or shape:
        raise TypeError(
            f"lax.while_loop goes on while its condition, one bool, is true, and got "
            f"{dtype}{list(shape)}; compare it with a number"
        )
    return condition


def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any, *, unroll: Any = None) -> Any:
    """`val = init_val; for i in range(lower, upper): val = body_fun(i, val)`. `unroll` is accepted and not
    needed."""
    _functions("lax.fori_loop(lower, upper, body_fun, init_val)", body_fun=body_fun)
    val = init_val
    for i in range(lower, upper):
        val = body_fun(i, val)
    return val


def scan(
    f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: Any = 1
) -> tuple[Any, Any]:
    """`carry, y = f(carry, x)` for each x of xs (along axis 0); the last carry, and the ys stacked.

    `unroll` is accepted and not needed.
    """
    _functions("lax.scan(f, init, xs)", f=f)
    count = _length(xs, length)
    if count == 0:
        return init, _no_rows(f, init, xs)
    start = count - 1 if reverse else 0
    carry, y = _pair(f(init, _row(xs, start)))
    ys = tree.map(lambda leaf: np.empty((count, *np.shape(leaf)), np.asarray(leaf).dtype), y)
    _store(ys, start, y)
    for step in range(1, count):
        i = count - 1 - step if reverse else step
        carry, y = f(carry, _row(xs, i))
        _store(ys, i, y)
    return carry, ys


def _pair(made: Any) -> Any:
    if not isinstance(made, (tuple, list)) or len(made) != 2:
        found = f"a {type(made).__name__} of {len(made)}" if isinstance(made, (tuple, list)) else "one value"
        raise TypeError(
            f"lax.scan takes a function that returns the pair (carry, y), and this one returns "
            f"{found}; return (carry, None) where there is no y"
        )
    return made


def _length(xs: Any, length: int | None) -> Any:
    leaves = tree.leaves(xs)
    if not leaves:
        if length is None:
            raise ValueError("lax.scan needs xs or a length")
        return length
    for path, leaf in tree.leaves_with_path(xs):
        if np.ndim(leaf) == 0:
            raise ValueError(f"lax.scan runs along axis 0 of xs, and xs{tree.keystr(path)} has rank 0")
    count = leaves[0].shape[0]
    for path, leaf in tree.leaves_with_path(xs):
        if leaf.shape[0] != count:
            raise ValueError(
                f"lax.scan: the leaves of xs differ in length: {count} and, at xs{tree.keystr(path)}, {leaf.shape[0]}"
            )
    if length is not None and length != count:
        raise ValueError(f"lax.scan: length is {length}, and xs has {count} rows")
    return count


def _row(xs: Any, i: Any) -> Any:
    return tree.map(lambda x: x[i], xs)


def _store(ys: Any, i: Any, y: Any) -> None:
    def put(rows: Any, row: Any) -> None:
        rows[i] = row

    for rows, row in zip(tree.leaves(ys), tree.leaves(y)):
        put(rows, row)


def _no_rows(f: Callable, init: Any, xs: Any) -> Any:
    """Empty ys of the right types, for a scan of no steps."""
    from .api.public import eval_shape

    row = tree.map(lambda x: np.zeros(x.shape[1:], x.dtype), xs)
    _, y = eval_shape(f, init, row)
    return tree.map(lambda t: np.empty((0, *t.shape), t.dtype), y)


def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """`f` of each row of xs, stacked. `batch_size` is accepted and not needed."""
    return scan(lambda carry, x: (carry, f(x)), None, xs)[1]


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Running combinations elems[0], fn(elems[0], elems[1]), ... of an associative `fn` that takes whole
    arrays.

    Each pass doubles the distance that is combined, so there are log2(n) calls of `fn`.
    """
    leaves, structure = tree.flatten(elems)
    leaves = [np.moveaxis(np.asarray(leaf), axis, 0) for leaf in leaves]
    if reverse:
        leaves = [leaf[::-1] for leaf in leaves]
    count, distance = leaves[0].shape[0], 1
    while distance < count:
        joined = tree.leaves(
            fn(
                structure.unflatten([leaf[:-distance] for leaf in leaves]),
                structure.unflatten([leaf[distance:] for leaf in leaves]),
            )
        )
        leaves = [np.concatenate([leaf[:distance], new], axis=0) for leaf, new in zip(leaves, joined)]
        distance = 2 * distance
    if reverse:
        leaves = [leaf[::-1] for leaf in leaves]
    return structure.unflatten([np.moveaxis(leaf, 0, axis) for leaf in leaves])
