"""Spellings of what moves, reduces and multiplies arrays: broadcast, reshape, permute, slices, reductions,
products.

In: the emitter and a Let. Out: an `Expr`: `x[:, None]`, `x.T`, `x[i, 1:]`, `np.sum(x, axis=0)`, `a @ b`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metaphrase.core.dims import product
from metaphrase.core.ir import Let, Var
from metaphrase.core.types import Array

from .numpy_source_blocks import Emitter, named
from .numpy_source_expressions import (
    ATOM,
    Expr,
    Storage,
    call,
    dtype_text,
    infix,
    literal,
    operations_of,
    prefix,
    reads_of,
    strong,
    suffix,
)
from .numpy_source_indices import Index, index_of
from .numpy_source_names import wanted_name
from .numpy_source_spellings import array_text, spelled, typed


@spelled("broadcast")
def _broadcast(emitter: Emitter, let: Let) -> Expr:
    x, axes, type_ = emitter.expr(let.args[0]), let.attributes["axes"], let.out.type
    if x.type.dims == type_.dims:
        return x
    if not x.type.dims:
        if x.operations and emitter.block.uses.get(let.out, 0) > 1:
            x = _name_for(emitter, let, x)
        alone = x if all(d == 1 for d in type_.dims) else None
        return replace(_filled(emitter, x, type_), loose=x, narrow=alone, cheap=x.operations == 0)
    aligned = _aligned(x, axes, type_)
    if emitter.block.uses.get(let.out, 0) > 1 and aligned.operations:
        aligned = _name_for(emitter, let, aligned)
    if aligned.type.dims == type_.dims:
        return replace(aligned, loose=x.loose if aligned is x else None)
    shape = emitter.shape(type_.dims)
    storages = (*x.storages, Storage(False))
    made = Expr(
        f"np.broadcast_to({aligned.text}, {shape})",
        ATOM,
        type_.plain,
        None,
        aligned.reads,
        aligned.operations + 1,
        storages=storages,
    )
    return replace(made, loose=aligned, cheap=aligned.operations == 0)


def _name_for(emitter: Emitter, let: Let, expr: Expr) -> Expr:
    """A name for the operand of a broadcast that several operations stretch."""
    atom = let.args[0]
    maker = emitter.block.makers.get(atom) if isinstance(atom, Var) else None
    target = emitter.names.fresh(wanted_name(atom if isinstance(atom, Var) else let.out, maker or let, expr.text))
    emitter.block.names.add(target)
    emitter.line(f"{target} = {expr.text}", let)
    made = named(target, Var(target, expr.type), expr)
    emitter.keep_track(target, made.storages)
    return made


def _filled(emitter: Emitter, x: Expr, type_: Array) -> Expr:
    """An array with one value everywhere."""
    shape = emitter.shape(type_.dims)
    plain = type_.dtype == np.float64
    more = "" if plain else f", dtype={dtype_text(type_.dtype)}"
    if x.weak is not None and x.text in ("0.0", "0", "False", "0.0j"):
        text = f"np.zeros({shape}{more})"
    elif x.weak is not None and x.text in ("1.0", "1", "True"):
        text = f"np.ones({shape}{more})"
    else:
        typed_already = x.weak is None and not x.maybe_python
        natural = typed_already or type_.dtype in (np.float64, np.bool_) and x.type.dtype == type_.dtype
        text = f"np.full({shape}, {x.text}{'' if natural else f', dtype={dtype_text(type_.dtype)}'})"
    return Expr(text, ATOM, type_.plain, None, x.reads, x.operations + 1)


def _aligned(x: Expr, axes: tuple, type_: Array) -> Expr:
    """x with axes of size 1 where NumPy needs them to line it up with `type_`."""
    rank = type_.ndim
    if axes == tuple(range(rank - len(axes), rank)):
        return x
    dims = tuple(type_.dims[k] if k in axes else 1 for k in range(axes[0], rank))
    if x.kept is not None and x.kept.type.dims == dims:
        return x.kept
    parts = [":" if k in axes else "None" for k in range(axes[0], rank)]
    tail = len(parts) - parts[::-1].index(":")
    if tail > 2 and all(p == ":" for p in parts[:tail]):
        parts = ["...", *parts[tail:]]
    return suffix(x, f"[{', '.join(parts)}]", type_.with_dims(dims), x.storages)


@spelled("reshape")
def _reshape(emitter: Emitter, let: Let) -> Expr:
    x, shape, type_ = emitter.expr(let.args[0]), let.attributes["shape"], let.out.type
    have = x.type.dims
    if have == tuple(shape):
        return x
    narrow_dims = tuple(d for d in shape if d != 1)
    if x.parts is not None and x.parts[0] == "slice":
        dropped = _dropped(have, shape)
        if dropped is not None:
            return x.parts[1].read(emitter, type_, drop=dropped)
    if tuple(d for d in have if d != 1) == narrow_dims:
        made = _ones_moved(emitter, x, have, tuple(shape), type_)
        narrow = x.narrow or x
        return replace(made, narrow=narrow if len(narrow.type.dims) < len(shape) else None)
    if len(shape) == 1 and len(have) > 1:
        return suffix(x, ".ravel()", type_, x.storages)
    return suffix(strong(x), f".reshape({', '.join(emitter.dim(d) for d in shape)})", type_, x.storages)


def _dropped(have: tuple, want: tuple) -> tuple | None:
    """Which dims of size 1 to leave out of `have` to get `want`; None when that does not do."""
    left, dropped = list(want), []
    for k, d in enumerate(have):
        if left and d == left[0] and not (d == 1 and len(have) - k > len(left)):
            left.pop(0)
        elif d == 1:
            dropped.append(k)
        else:
            return None
    return tuple(dropped) if not left else None


def _ones_moved(emitter: Emitter, x: Expr, have: tuple, shape: tuple, type_: Array) -> Expr:
    """x with dims of size 1 put in or left out."""
    if not have:
        text = (
            f"np.array([{strong(x).text}])" if len(shape) == 1 else f"np.full({emitter.shape(shape)}, {strong(x).text})"
        )
        return Expr(text, ATOM, type_.plain, None, x.reads, x.operations + 1, loose=x)
    parts, left = [], list(have)
    for d in shape:
        if left and left[0] == d:
            parts.append(":")
            left.pop(0)
            continue
        while left and left[0] == 1 and d != 1:
            parts.append("0")
            left.pop(0)
        if left and left[0] == d:
            parts.append(":")
            left.pop(0)
        else:
            parts.append("None")
    parts += ["0"] * len(left)
    grows = "None" in parts
    while parts[-1] == ":":
        parts.pop()
    made = suffix(x, f"[{', '.join(parts)}]", type_, x.storages if shape else ())
    leading = shape[len(shape) - len(have) :] == have
    return replace(made, loose=x if grows and leading else None)


@spelled("permute")
def _permute(emitter: Emitter, let: Let) -> Expr:
    x, axes = emitter.expr(let.args[0]), let.attributes["axes"]
    return permuted(x, axes, let.out.type)


def permuted(x: Expr, axes: tuple, type_: Array) -> Expr:
    rank = len(axes)
    if axes == tuple(range(rank)):
        return x
    if axes == tuple(reversed(range(rank))):
        return suffix(x, ".T", type_, x.storages)
    moved = [k for k in range(rank) if axes[k] != k]
    if len(moved) == 2:
        return suffix(x, f".swapaxes({moved[0]}, {moved[1]})", type_, x.storages)
    return suffix(x, f".transpose({', '.join(map(str, axes))})", type_, x.storages)


# --- reading parts ---------------------------------------------------------------------------------------


@spelled("slice")
def _slice(emitter: Emitter, let: Let) -> Expr:
    x = emitter.expr(let.args[0])
    index = index_of(emitter, x, let.args[1:], let.attributes["shape"], let.attributes["step"])
    return replace(index.read(emitter, let.out.type), parts=("slice", index))


@spelled("gather")
def _gather(emitter: Emitter, let: Let) -> Expr:
    x = emitter.expr(let.args[0])
    if emitter.block.on_diagonal(let):
        return replace(call("np.diag", [x], let.out.type), storages=x.storages)
    indices = [emitter.expr(i) for i in let.args[1:]]
    return _picked(x, indices, let.attributes["axes"], let)


def _picked(x: Expr, indices: list[Expr], axes: tuple, let: Let) -> Expr:
    target, text, used = gathered(x, indices, axes, let.args[1].type.dims)
    storages = x.storages if not let.args[1].type.dims and let.out.type.dims else ()
    return suffix(target, f"[{text}]", let.out.type, storages, used)


def gathered(x: Expr, indices: list[Expr], axes: tuple, dims: tuple) -> tuple[Expr, str, list[Expr]]:
    """What to index, the text of the index, and the expressions in it."""
    from .numpy_source_expressions import loosened

    used = loosened(indices, dims, np.dtype("int64")) if len(indices) > 1 else indices
    if len(used) == 1 and used[0].parts is not None and used[0].parts[0] == "nonzero":
        mask = used[0].parts[1]
        used = [mask] if mask.type.dims[0] == x.type.dims[axes[0]] else used
    by_axis = dict(zip(axes, used))
    if not dims or axes == tuple(range(len(axes))):
        texts = [by_axis[k].text if k in by_axis else ":" for k in range(max(axes) + 1)]
        return x, ", ".join(texts), used
    rest = tuple(k for k in range(x.type.ndim) if k not in axes)
    order = (*axes, *rest)
    front = permuted(x, order, x.type.with_dims(tuple(x.type.dims[k] for k in order)))
    return front, ", ".join(e.text for e in used), used


@spelled("concatenate")
def _concatenate(emitter: Emitter, let: Let) -> Expr:
    xs, axis = [emitter.expr(a) for a in let.args], let.attributes["axis"]
    text = f"[{', '.join(x.text for x in xs)}]" + (f", axis={axis}" if axis else "")
    scalars = [x.narrow for x in xs if x.narrow is not None]
    whole = len(scalars) == len(xs)
    if let.out.type.ndim == 1 and whole and not any(s.type.dims for s in scalars):
        usual = let.out.type.dtype in (np.float64, np.int64, np.bool_, np.complex128)
        values = [s if usual else strong(s) for s in scalars]
        return Expr(
            f"np.array([{', '.join(s.text for s in values)}])",
            ATOM,
            let.out.type,
            None,
            reads_of(xs),
            operations_of(scalars) + 1,
        )
    if whole and all(
        s.type.ndim + 1 == x.type.ndim
        and x.type.dims[axis] == 1
        and s.type.dims
        and x.type.dims == (*s.type.dims[:axis], 1, *s.type.dims[axis:])
        for s, x in zip(scalars, xs)
    ):
        text = f"[{', '.join(s.text for s in scalars)}]" + (f", axis={axis}" if axis else "")
        return Expr(f"np.stack({text})", ATOM, let.out.type, None, reads_of(scalars), operations_of(scalars) + 1)
    return Expr(f"np.concatenate({text})", ATOM, let.out.type, None, reads_of(xs), operations_of(xs) + 1)


@spelled("roll")
def _roll(emitter: Emitter, let: Let) -> Expr:
    x, shift, axis = emitter.expr(let.args[0]), let.attributes["shift"], let.attributes["axis"]
    return Expr(
        f"np.roll({x.text}, {shift}{f', axis={axis}' if let.out.type.ndim > 1 else ''})",
        ATOM,
        let.out.type,
        None,
        reads_of([x]),
        operations_of([x]) + 1,
    )


@spelled("pad")
def _pad(emitter: Emitter, let: Let) -> Expr:
    x, value = emitter.expr(let.args[0]), emitter.expr(let.args[1])
    low, high, interior = (let.attributes[k] for k in ("low", "high", "interior"))
    if any(interior):
        emitter.helpers.add("spread_out")
        text = f"{x.text}, {value.text}, {_tuple(emitter, low)}, {_tuple(emitter, high)}, {interior}"
        return Expr(
            f"spread_out({text})", ATOM, let.out.type, None, reads_of([x, value]), operations_of([x, value]) + 1
        )
    widths = [f"({emitter.dim(a)}, {emitter.dim(b)})" for a, b in zip(low, high)]
    text = widths[0] if len(widths) == 1 else f"({', '.join(widths)})"
    more = "" if value.weak is not None and value.text in ("0", "0.0", "False") else f", constant_values={value.text}"
    return Expr(
        f"np.pad({x.text}, {text}{more})", ATOM, let.out.type, None, reads_of([x, value]), operations_of([x, value]) + 1
    )


def _tuple(emitter: Emitter, dims: tuple) -> str:
    return f"({', '.join(map(emitter.dim, dims))}{',' if len(dims) == 1 else ''})"


# --- reductions ------------------------------------------------------------------------------------------


@spelled("Reduce")
def _reduce(emitter: Emitter, let: Let) -> Expr:
    (x,), axes = [emitter.expr(a) for a in let.args], let.attributes["axes"]
    kind, rank, out = let.primitive.native.spelled, let.args[0].type.ndim, let.out.type
    x = strong(x)
    if not axes and kind not in ("sum", "prod"):
        return x
    more = []
    if axes != tuple(range(rank)) or rank == 0 or kind.endswith(".reduce"):
        more.append(f"axis={axes[0] if len(axes) == 1 else axes}")
    if kind in ("sum", "prod") and (x.type.dtype == bool or x.type.dtype.kind in "iu" and x.type.dtype.itemsize < 8):
        more.append(f"dtype={dtype_text(x.type.dtype)}")
    made = call(f"np.{kind}", [x], out, ", ".join(more))
    if not axes or kind.startswith("arg"):
        return made
    dims = tuple(1 if k in axes else d for k, d in enumerate(let.args[0].type.dims))
    kept = call(f"np.{kind}", [x], out.with_dims(dims), ", ".join([*more, "keepdims=True"]))
    parts = None
    if kind == "sum" and x.type.dtype in (np.float32, np.float64):
        count = product(let.args[0].type.dims[k] for k in axes)
        mean = call("np.mean", [x], out, ", ".join(more))
        mean_kept = call("np.mean", [x], out.with_dims(dims), ", ".join([*more, "keepdims=True"]))
        parts = ("sum", count, replace(mean, kept=mean_kept))
    return replace(made, kept=kept, parts=parts)


@spelled("cumsum", "cumprod", "cummax", "cummin")
def _scan(emitter: Emitter, let: Let) -> Expr:
    x, axis = emitter.expr(let.args[0]), let.attributes["axis"]
    kind, type_ = let.primitive.name, let.out.type
    function = {"cummax": "np.maximum.accumulate", "cummin": "np.minimum.accumulate"}.get(kind, f"np.{kind}")
    more = [f"axis={axis}"] if type_.ndim > 1 or function.endswith("accumulate") and axis else []
    if type_.dtype.kind in "iu" and type_.dtype.itemsize < 8 and function == f"np.{kind}":
        more.append(f"dtype={dtype_text(type_.dtype)}")
    if not let.attributes["reverse"]:
        return call(function, [x], type_, ", ".join(more))
    back = f"[{', '.join([':'] * axis + ['::-1'])}]"
    return suffix(call(function, [suffix(x, back, type_)], type_, ", ".join(more)), back, type_)


@spelled("sort", "argsort")
def _sort(emitter: Emitter, let: Let) -> Expr:
    x, axis = emitter.expr(let.args[0]), let.attributes["axis"]
    more = [] if axis == let.out.type.ndim - 1 else [f"axis={axis}"]
    if let.primitive.name == "argsort":
        more.append('kind="stable"')
    return call(f"np.{let.primitive.name}", [x], let.out.type, ", ".join(more))


@spelled("nonzero")
def _nonzero(emitter: Emitter, let: Let) -> Expr:
    x, axis, type_ = emitter.expr(let.args[0]), let.attributes["axis"], let.out.type
    if type_.ndim == 1:
        return replace(call("np.flatnonzero", [x], type_), parts=("nonzero", x))
    more = [] if axis == type_.ndim - 1 else [f"axis={axis}"]
    order = call("np.argsort", [prefix("~", x, x.type)], type_, ", ".join([*more, 'kind="stable"']))
    return suffix(order, f"[{', '.join([':'] * axis + [':' + emitter.dim(type_.dims[axis])])}]", type_)


@spelled("searchsorted")
def _searchsorted(emitter: Emitter, let: Let) -> Expr:
    args = [emitter.expr(a) for a in let.args]
    return call("np.searchsorted", args, let.out.type, 'side="right"' if let.attributes["right"] else "")


@spelled("ranked")
def _ranked(emitter: Emitter, let: Let) -> Expr:
    (x, places), type_, axis = (emitter.expr(a) for a in let.args), let.out.type, let.attributes["axis"]
    options = "" if axis == type_.ndim - 1 else f"axis={axis}"
    ordered = call("np.partition", [x, places], type_, options)
    return call("np.take", [ordered, places], type_, f"axis={axis}")


@spelled("contains")
def _contains(emitter: Emitter, let: Let) -> Expr:
    a, v = (emitter.expr(x) for x in let.args)
    among = call("np.isin", [v, a], let.out.type)
    return among if let.out.type.dims else suffix(among, "[()]", let.out.type)


# --- products --------------------------------------------------------------------------------------------


@spelled("dot_general")
def _dot(emitter: Emitter, let: Let) -> Expr:
    """`a @ b` where matmul does it after transpositions, `np.outer`, `np.tensordot`, else `np.einsum`."""
    a, b = (emitter.expr(x) for x in let.args)
    (ca, cb), (ba, bb) = let.attributes["contract"], let.attributes["batch"]
    free_a = tuple(k for k in range(a.type.ndim) if k not in ca and k not in ba)
    free_b = tuple(k for k in range(b.type.ndim) if k not in cb and k not in bb)
    type_ = let.out.type
    if not a.type.dims or not b.type.dims:
        return infix("*", a, b, type_)
    if len(ca) == 1 and (len(free_a) == len(free_b) == 1 or not ba and len(free_a) <= 1 and len(free_b) <= 1):
        left = _ordered(a, (*ba, *free_a, *ca))
        right = _ordered(b, (*bb, *cb, *free_b))
        return infix("@", left, right, type_)
    if not ba and not ca and a.type.ndim == b.type.ndim == 1:
        return call("np.outer", [a, b], type_)
    if not ba and not ca and a.type.ndim and b.type.ndim:
        return call("np.multiply.outer", [a, b], type_)
    if not ba and ca:
        usual = ca == tuple(range(a.type.ndim - len(ca), a.type.ndim)) and cb == tuple(range(len(cb)))
        return call("np.tensordot", [a, b], type_, str(len(ca)) if usual else f"axes=({list(ca)}, {list(cb)})")
    return _einsum(a, b, (ca, cb), (ba, bb), (free_a, free_b), type_)


def _ordered(x: Expr, order: tuple) -> Expr:
    return permuted(x, order, x.type.with_dims(tuple(x.type.dims[k] for k in order)))


def _einsum(a: Expr, b: Expr, contract: tuple, batch: tuple, free: tuple, type_: Array) -> Expr:
    letters = iter("ijklmnopqrstuvwxyzabcdefgh")
    left, right = [""] * a.type.ndim, [""] * b.type.ndim
    common = []
    for i, j in zip(*batch):
        left[i] = right[j] = next(letters)
        common.append(left[i])
    for axes, names in zip(free, (left, right)):
        for k in axes:
            names[k] = next(letters)
            common.append(names[k])
    for i, j in zip(*contract):
        left[i] = right[j] = next(letters)
    text = f'"{"".join(left)},{"".join(right)}->{"".join(common)}"'
    made = Expr(
        f"np.einsum({text}, {a.text}, {b.text})", ATOM, type_.plain, None, reads_of([a, b]), operations_of([a, b]) + 1
    )
    return made


__all__ = ["permuted", "gathered", "Index", "literal", "typed", "array_text"]
