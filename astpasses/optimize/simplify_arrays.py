"""Rules of what moves elements, of regions whose course is known, and of branches that are an `and` or an `or`.

In: operands of an operation. Out: something simpler that is equal bit for bit, or None.

    sin(broadcast(x, ...)) -> broadcast(sin(x), ...)   permute(permute(x)) -> permute(x)     slice of all -> x
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.dims import product
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.loops import Parts
from metaphrase.core.primitive import Primitive
from metaphrase.ops.arrays import undefined
from metaphrase.ops.compare import and_, or_
from metaphrase.ops.indexing import slice as slice_
from metaphrase.ops.indexing import slice_update
from metaphrase.ops.regions import cond
from metaphrase.ops.shape import broadcast, permute, reshape
from metaphrase.ops.unit_matrix import eye

from .simplify import Rewriter, rule


@rule("broadcast")
def broadcast_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    (x,), shape, axes = args, attributes["shape"], attributes["axes"]
    if x.type.dims == tuple(shape):
        return x
    if all(d == 1 for k, d in enumerate(shape) if k not in axes) and x.type.dims:
        return rewriter.make(reshape, x, shape=shape)  # keepdims
    inner = rewriter.maker(x, "broadcast")
    if inner is not None:
        through = tuple(axes[a] for a in inner.attributes["axes"])
        return rewriter.make(broadcast, inner.args[0], shape=shape, axes=through)
    return None


@rule("pointwise")
def pointwise_rule(rewriter: Rewriter, primitive: Primitive, args: tuple, attributes: Any, types: tuple) -> Any:
    """An operation on broadcast operands is done before they are broadcast."""
    if not types[0].dims or not args:
        return None
    makers = [rewriter.maker(a, "broadcast") for a in args]
    if any(m is None for m in makers):
        return None
    widest: Let = max(makers, key=lambda m: m.args[0].type.ndim)  # type: ignore[assignment,union-attr]
    axes, dims = widest.attributes["axes"], widest.args[0].type.dims
    inner = []
    for maker in makers:
        assert maker is not None
        x = maker.args[0]
        if x.type.dims and maker.attributes["axes"] != axes:
            return None
        inner.append(x if x.type.dims == dims else rewriter.make(broadcast, x, shape=dims, axes=()))
    made = rewriter.make(primitive, *inner, **attributes)
    return rewriter.make(broadcast, made, shape=types[0].dims, axes=axes)


@rule("reshape")
def reshape_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    (x,), shape = args, attributes["shape"]
    if x.type.dims == tuple(shape):
        return x
    inner = rewriter.maker(x, "reshape")
    if inner is not None and _as_many(inner.args[0].type.dims, shape):
        return rewriter.make(reshape, inner.args[0], shape=shape)
    spread = rewriter.maker(x, "broadcast")
    if spread is not None and not spread.args[0].type.dims and _as_many(x.type.dims, shape):
        return rewriter.make(broadcast, spread.args[0], shape=shape, axes=())
    return None


def _as_many(dims: tuple, shape: tuple) -> bool:
    return product(dims) == product(shape)


@rule("permute")
def permute_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    (x,), axes = args, attributes["axes"]
    if axes == tuple(range(len(axes))):
        return x
    inner = rewriter.maker(x, "permute")
    if inner is not None:
        return rewriter.make(permute, inner.args[0], axes=tuple(inner.attributes["axes"][a] for a in axes))
    spread = rewriter.maker(x, "broadcast")
    if spread is not None:
        new = tuple(axes.index(a) for a in spread.attributes["axes"])
        if list(new) == sorted(new):
            return rewriter.make(broadcast, spread.args[0], shape=types[0].dims, axes=new)
    return None


def _known(starts: tuple) -> list | None:
    """Starts as dims, or None if one is not known."""
    found = [int(s.value) if isinstance(s, Literal) else s.type.value for s in starts]
    return None if None in found else found


@rule("slice")
def slice_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    x, *starts = args
    shape, step = attributes["shape"], attributes["step"]
    if tuple(shape) == x.type.dims and all(s == 1 for s in step) and _zeros(starts):
        return x
    if rewriter.uniform(x) is not None:
        return rewriter.make(broadcast, Literal(rewriter.uniform(x)), shape=shape, axes=())
    inner = rewriter.maker(x, "slice")
    if inner is not None:
        outer_starts, inner_starts = _known(tuple(starts)), inner.args[1:]
        if outer_starts is not None and all(isinstance(s, int) for s in outer_starts):
            first: list[Any] = [
                _shifted(a, b, t) for a, b, t in zip(inner_starts, outer_starts, inner.attributes["step"])
            ]
            if all(f is not None for f in first):
                steps = tuple(a * b for a, b in zip(step, inner.attributes["step"]))
                return rewriter.make(slice_, inner.args[0], *first, shape=shape, step=steps)
    written = rewriter.maker(x, "slice_update")
    if (
        written is not None
        and _same_region(written.args[2:], starts, written.attributes["step"], step)
        and written.args[1].type.dims == tuple(shape)
    ):
        return written.args[1]
    return None


def _zeros(starts: Any) -> bool:
    return all(isinstance(s, Literal) and s.value == 0 for s in starts)


def _shifted(start: Atom, by: int, step: int) -> Atom | None:
    """start + by * step where that needs no operation."""
    if by == 0:
        return start
    return Literal(np.int64(int(start.value) + by * step)) if isinstance(start, Literal) else None


def _same_region(a: Any, b: Any, step_a: tuple, step_b: tuple) -> bool:
    return step_a == step_b and len(a) == len(b) and all(x == y for x, y in zip(a, b))


@rule("slice_update")
def slice_update_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """A write of everything is the value; a write over the same place makes the first one useless."""
    x, v, *starts = args
    step = attributes["step"]
    if v.type.dims == x.type.dims and all(s == 1 for s in step) and _zeros(starts):
        return v
    before = rewriter.maker(x, "slice_update")
    if (
        before is not None
        and _same_region(before.args[2:], starts, before.attributes["step"], step)
        and before.args[1].type.dims == v.type.dims
    ):
        return rewriter.make(slice_update, before.args[0], v, *starts, step=step)
    read = rewriter.maker(v, "slice")
    if read is not None and read.args[0] is x and _same_region(read.args[1:], starts, read.attributes["step"], step):
        return x
    return None


@rule("gather")
def gather_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    value = rewriter.uniform(args[0])
    if value is None:
        return None
    return rewriter.make(broadcast, Literal(value), shape=types[0].dims, axes=()) if types[0].dims else (Literal(value))


@rule("eq")
def unit_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """The number of the row is that of the column: the unit matrix."""
    counted = [_counted(rewriter, a) for a in args]
    if types[0].ndim != 2 or counted[0] is None or counted[1] is None:
        return None
    (row, before), (column, after) = sorted(c for c in counted if c is not None)
    if (row, column) != (0, 1):
        return None
    rows, columns = types[0].dims
    return rewriter.make(eye, rows=rows, columns=columns, diagonal=before - after, dtype=types[0].dtype)


def _counted(rewriter: Rewriter, atom: Atom) -> tuple[int, int] | None:
    """The axis along which a matrix counts, and the number at which it begins."""
    spread = rewriter.maker(atom, "broadcast")
    counter, first = spread.args[0] if spread is not None else atom, 0
    moved = rewriter.maker(counter, "add")
    if moved is not None:
        numbers = [rewriter.uniform(a) for a in moved.args]
        known = [k for k, n in enumerate(numbers) if n is not None and abs(int(n)) < 2**31]
        if len(known) != 1:
            return None
        counter, first = moved.args[1 - known[0]], int(numbers[known[0]])
        if spread is None:
            return None if (inner := _counted(rewriter, counter)) is None else (inner[0], inner[1] + first)
    if spread is None or rewriter.maker(counter, "iota") is None or atom.type.dtype.kind not in "iu":
        return None
    return spread.attributes["axes"][0], first


@rule("select", "convert")
def unit_numbers(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """Ones on the diagonal and zeros elsewhere: the unit matrix of that dtype."""
    unit = rewriter.maker(args[0], "eye")
    if unit is None or types[0].dtype.kind not in "biufc":
        return None
    if len(args) == 3:
        one, zero = rewriter.uniform(args[1]), rewriter.uniform(args[2])
        if one is None or zero is None or one != 1 or not _is_zero(zero):
            return None
    return rewriter.make(eye, **{**unit.attributes, "dtype": types[0].dtype})


def _is_zero(value: Any) -> bool:
    return value.tobytes() == np.zeros((), value.dtype).tobytes()


@rule("concatenate")
def concatenate_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    return args[0] if len(args) == 1 else None


@rule("pad")
def pad_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    widths = (*attributes["low"], *attributes["high"], *attributes["interior"])
    return args[0] if all(isinstance(w, int) and w == 0 for w in widths) else None


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all")
def reduce_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    return args[0] if not attributes["axes"] else None


@rule("reduce_all")
def all_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    value = rewriter.uniform(args[0])
    if value is None or not value:
        return None
    true = Literal(np.bool_(True))
    return true if not types[0].dims else rewriter.make(broadcast, true, shape=types[0].dims, axes=())


@rule("dim_value")
def dim_value_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    dim = attributes["dim"]
    return Literal(np.int64(dim)) if isinstance(dim, int) else None


@rule("check")
def check_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """A check that holds is no operation."""
    value = rewriter.uniform(args[0])
    return () if value is not None and bool(value) else None


# --- regions ---------------------------------------------------------------------------------------------


@rule("cond")
def cond_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """A branch that is known to be taken stands in place; what no branch binds is bound by none of them."""
    index, *operands = args
    branches = attributes["branches"]
    if isinstance(index, Literal) and 0 <= int(index.value) < len(branches):
        return rewriter.inline(branches[int(index.value)], operands)
    unbound = [{out for let in b.lets if let.primitive is undefined for out in let.outs} for b in branches]
    bound = [any(r not in u for r, u in zip(rs, unbound)) for rs in zip(*(b.results for b in branches))]
    if all(bound):
        return None
    kept = tuple(
        Function(b.name, b.params, b.lets, tuple(r for r, is_bound in zip(b.results, bound) if is_bound))
        for b in branches
    )
    rest = iter(rewriter.make(cond, *args, branches=kept))
    return tuple(
        next(rest) if is_bound else rewriter.make(undefined, dtype=t.dtype, shape=t.dims)
        for t, is_bound in zip(types, bound)
    )


ASKED = frozenset(["lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "not_", "add", "sub", "dim_value"])
FEW = 4  # operations that are done rather than branched over


@rule("cond")
def logic_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """`p and i < n`, whose second operand costs nothing, is no branch: what it is shows what holds where it is true."""
    index, *operands = args
    if len(types) != 1 or types[0].dtype != bool or types[0].dims or index.type.dtype != bool:
        return None
    if_false, if_true = (_truth(index, operands, b, k == 1) for k, b in enumerate(attributes["branches"]))
    if if_false is False and isinstance(if_true, Function):
        return rewriter.make(and_, index, *rewriter.inline(if_true, operands))
    if if_true is True and isinstance(if_false, Function):
        return rewriter.make(or_, index, *rewriter.inline(if_false, operands))
    return None


def _truth(index: Atom, operands: list, branch: Function, holds: bool) -> bool | Function | None:
    """What a branch gives: True or False, where it is that, or the condition, which `holds` there or not; itself where
    it costs little; None."""
    (result,) = branch.results
    given = dict(zip(branch.params, operands)).get(result) if isinstance(result, Var) else result
    if isinstance(given, Literal):
        return bool(given.value)
    if given is index:
        return holds
    is_cheap = all(let.primitive.name in ASKED and not let.out.type.dims for let in branch.lets)
    return branch if is_cheap and len(branch.lets) <= FEW else None


@rule("loop")
def loop_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """No iteration at all leaves the state as it was."""
    roles = attributes["roles"]
    if attributes["length"] != 0 or attributes["cond"] is not None or roles.segments:
        return None
    state = Parts(*roles.parts(args)).state
    rows = [rewriter.make(broadcast, Literal(_zero(t)), shape=t.dims, axes=()) for t in types[len(state) :]]
    return (*state, *rows)


def _zero(type_: Any) -> Any:
    return np.zeros((), type_.dtype)[()]


__all__ = ["broadcast_rule"]
