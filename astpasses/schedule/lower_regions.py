"""Lowering of regions: a call becomes one of a function of its own (callees.py) or is written in place, cond
becomes If, loop becomes For or While.

In: a Let in a Block, with the plan that says which storages are taken over. Out: the statements.

A carried array has one storage for the whole loop. What the body makes of it ends up there in one of three
ways: it was updated in place; or it is computed straight into it, because nothing reads the old value any
more; or it is computed into a second storage and the two change places (`Swap`: pointers, no copy).

Rows of unknown number grow on a stack, and so do segments. What a loop in the body stacks as a segment of the
loop around goes onto that one's stack at once, behind what is there: `filled` counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metaphrase.core.dims import DimLike, Sym
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop
from metaphrase.core.native import Region
from metaphrase.core.types import i64
from metaphrase.late import dataclass

from . import scalars
from .callees import call_function, stays
from .lower import Block, rule
from .nest import (
    Bind,
    Buf,
    E,
    For,
    Grow,
    If,
    Index,
    Load,
    Op,
    Stmt,
    Store,
    Swap,
    While,
    boolean,
    expression_symbols,
    loads,
    local,
)
from .ownership import Plan, Root, writes_directly
from .rewrite import map_expression, rename_expression
from .segments import Segment, append_segments, ask_behind, behind, open_segments
from .values import Place, Value, scalar, stored


@rule(Region)
def region(block: Block, let: Let) -> None:
    {"call": _call, "cond": _cond, "loop": _loop}[let.primitive.native.kind](block, let)


def inner_block(block: Block, made: Plan, params: Sequence[Var], values: Sequence[Value]) -> Block:
    """A block for a region: it sees our sizes, its parameters are the given values."""
    inner = Block(block.shared, made, block.sizes)
    inner.span = block.span
    inner.values.update(zip(params, values))
    return inner


def bind_known(block: Block, var: Var, value: Value) -> None:
    """A scalar whose type names its size: the symbol gets this value."""
    known = var.type.value
    if known is not None and not isinstance(known, int) and known.is_sym and known.name not in block.sizes:
        dim = scalars.as_dim(value.scalar)
        if dim is not None:
            block.sizes[known.name] = dim


# --- call -----------------------------------------------------------------------------------------


def _call(block: Block, let: Let) -> None:
    if stays(let):
        call_function(block, let)
        return
    function: Function = let.attributes["function"]
    inner = inner_block(block, block.plan.regions[let, 0], function.params, block.args(let))
    roots = zip(inner.plan.roots, let.outs)
    inner.want([(root, block.wanted.pop(out)) for root, out in roots if out in block.wanted])
    inner.run(function)
    block.statements.extend(inner.statements)
    for out, result in zip(let.outs, function.results):
        value = inner.value(result)
        if out in block.plan.kept or out.type.dims and value.place is None and not value.undefined:
            value = _store(block, out, value)
        block.values[out] = value


def _store(block: Block, out: Var, value: Value) -> Value:
    place = block.place_for(out)
    block.copy(place, value)
    return stored(place)


# --- cond -----------------------------------------------------------------------------------------


def _cond(block: Block, let: Let) -> None:
    index, *args = block.args(let)
    branches: tuple[Function, ...] = let.attributes["branches"]
    shares = block.plan.shares[let]
    targets: list[Buf | str | Place] = []
    value_of = dict(zip(let.args[1:], args))
    for out in let.outs:
        if not out.type.dims:
            targets.append(
                block.shared.symbol(out.name)
                if out.type.dtype == i64
                else local(block.shared.names.fresh(out.name), out.type.dtype)
            )
        elif out in shares:
            place = value_of[shares[out]].place
            assert place is not None
            targets.append(place)
        else:
            targets.append(block.place_for(out))
    sides = [
        _branch(block, block.plan.regions[let, number], branch, args, targets) for number, branch in enumerate(branches)
    ]
    if len(branches) == 1:
        block.statements.extend(sides[0])
    elif let.args[0].type.dtype == bool:
        block.emit(If(index.scalar, sides[1], sides[0]))
    else:
        choice = index.scalar
        rest = sides[-1]
        for number in reversed(range(len(sides) - 1)):
            wanted = block.apply("convert", Index(number), dtype=choice.dtype)
            rest = (If(Op("eq", (choice, wanted), boolean(True).dtype), sides[number], rest),)
        block.statements.extend(rest)
    for out, target in zip(let.outs, targets):
        block.values[out] = _target_value(target)


def _target_value(target: Buf | str | Place) -> Value:
    if isinstance(target, str):
        return scalar(Index(Sym(target)))
    return stored(target if isinstance(target, Place) else Place(target))


def _branch(
    block: Block, made: Plan, branch: Function, args: list[Value], targets: list[Buf | str | Place]
) -> tuple[Stmt, ...]:
    inner = inner_block(block, made, branch.params, args)
    # A target that is the storage of an operand may still be read here: only new storage is wanted directly.
    operands = [a.place.buf for a in args if a.place is not None]
    wanted = ((root, t) for root, t in zip(made.roots, targets) if isinstance(t, Place) and t.buf not in operands)
    inner.want(wanted)
    inner.run(branch)
    finish(inner, [inner.value(r) for r in branch.results], targets)
    return tuple(inner.statements)


def finish(inner: Block, values: list[Value], targets: Sequence[Buf | str | Place]) -> None:
    """All targets take their values at once: what a later copy still reads is saved first."""
    for value, target in zip(values, targets):
        if isinstance(target, Place) and value.undefined:
            target.buf.unbound = True
    arrays = [
        (v, t)
        for v, t in zip(values, targets)
        if isinstance(t, Place) and not v.undefined and not _same_place(v.place, t)
    ]
    written = {t.buf for _, t in arrays}  # type: ignore[union-attr]
    saved = []
    for value, target in arrays:
        if len(arrays) > 1 and reads_any(inner, value, written) or reads_any(inner, value, {target.buf}):  # type: ignore
            place = inner.temp("saved", value.dtype, value.dims)
            inner.fill(place, value.at)
            value = stored(place)
        saved.append((value, target))
    for value, target in saved:
        inner.copy(target, value)  # type: ignore[arg-type]
    assign_scalars(inner, [(v.scalar, t) for v, t in zip(values, targets) if not isinstance(t, Place)])


def _same_place(a: Place | None, b: Place) -> bool:
    return a is not None and a.buf is b.buf and a.prefix == b.prefix


def reads_any(block: Block, value: Value, bufs: set[Buf]) -> bool:
    """Whether an element of `value` reads one of `bufs`."""
    _, index = block.axes(tuple(2 if d == 1 else d for d in value.dims))
    return any(load.buf in bufs for load in loads(value.at(index)))


def assign_scalars(block: Block, moves: list[tuple[E, Buf | str]]) -> None:
    """Scalars take their new values at once; one that another still reads is kept in a variable first."""
    left = [(e, t) for e, t in moves if not _is_target(e, t)]

    def reads(e: E, target: Buf | str) -> bool:
        if isinstance(target, str):
            return target in expression_symbols(e)
        return any(load.buf is target for load in loads(e))

    while left:
        ready = next((m for m in left if not any(reads(e, m[1]) for e, t in left if t is not m[1])), None)
        if ready is None:  # a cycle: save one old value
            target = left[0][1]
            old = Index(Sym(target)) if isinstance(target, str) else Load(target)
            kept = block.local("old", old)
            left = [(_replace(e, target, kept) if t is not target else e, t) for e, t in left]
            continue
        left.remove(ready)
        e, target = ready
        block.emit(Bind(target, e) if isinstance(target, str) else Store(target, (), e))


def _is_target(e: E, target: Buf | str) -> bool:
    return e == Index(Sym(target)) if isinstance(target, str) else e == Load(target)


def _replace(e: E, target: Buf | str, new: E) -> E:
    if isinstance(target, str):
        dim = scalars.as_dim(new)
        assert dim is not None
        return rename_expression(e, {target: dim})
    return map_expression(e, lambda x: new if x == Load(target) else None)


# --- loop -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Carried:
    """One carried array: `place` holds it; `other` is the second storage where the two change places."""

    place: Place
    other: Place | None = None

    def __post_init__(self) -> None:
        self.place.buf.carried = True


def _loop(block: Block, let: Let) -> None:
    loop = Loop.of(let)
    args = loop.args.like(block.args(let))
    made = block.plan.regions[let, 0]
    length: Any = block.attributes(let)["length"]  # a dim; None where only the condition ends the loop
    grows = loop.condition is not None
    taken = loop.outs.state.map(block.plan.shares[let].get)
    roots = loop.results.like(made.roots)
    targets = loop.outs.state.map(
        lambda *of_one: _state_target(block, made, *of_one), loop.params.state, roots.state, args.state, taken
    )

    counter = block.shared.symbol("trips" if grows else "i", 0, None if grows else length - 1)
    here: DimLike = length - 1 - Sym(counter) if loop.reverse else Sym(counter)
    row_targets = [_row_target(block, out, here, grows, counter) for out in loop.outs.rows]
    segments = open_segments(block, let, loop.outs.segments)

    held = targets.map(lambda t: _target_value(t.place if isinstance(t, Carried) else t))
    slices = [
        Value(r.dtype, r.dims[1:], lambda index, r=r: r.at((here, *index)))  # type: ignore[misc]
        for r in args.rows
    ]
    values = args.replace(carries=held.carries, accumulators=held.accumulators, rows=slices)
    index_value = scalar(Index(here))
    statements = _body(block, made, loop, [index_value, *values], [*targets], row_targets, segments)

    if loop.condition is None:
        kind = "par" if loop.parallel and not loop.args.accumulators else "seq"
        if length != 0:
            block.emit(For(counter, length, statements, kind))
    else:
        condition = loop.condition.function
        test = inner_block(block, block.plan.regions[let, 1], condition.params, [index_value, *values.asked])
        test.run(condition)
        block.emit(While(counter, tuple(test.statements), test.value(condition.results[0]).scalar, statements, length))
        block.sizes[loop.more["size"]] = Sym(counter)
        block.values[loop.sizes[0]] = scalar(Index(Sym(counter)))
    for out, value, target in zip(loop.outs.state, held, targets):
        wanted = block.wanted.pop(out, None)
        if wanted is not None and isinstance(target, Carried):
            block.copy(wanted, value)
            value = stored(wanted)
        block.values[out] = value
    for out, place in zip(loop.outs.rows, row_targets):
        start = place.prefix[-1] - here
        moved = place.buf.space == "stack" and start != 0
        whole = Place(place.buf, place.prefix[:-1])
        block.values[out] = behind(place.buf, start, block.dims(out.type.dims)) if moved else stored(whole)
    for name, segment in zip(loop.segment_sizes, segments):
        block.sizes[name] = Sym(segment.filled)
        block.values[loop.binder(name)] = scalar(Index(Sym(segment.filled)))
    for out, segment in zip(loop.outs.segments, segments):
        block.values[out] = behind(segment.buf, segment.start, block.dims(out.type.dims))


def _state_target(
    block: Block, made: Plan, out: Var, param: Var, root: Root, value: Value, taken: Var | None
) -> Buf | str | Carried:
    """The variable or storage of a carry or accumulator, holding its first value: that of the operand `taken`, or
    its own."""
    if not out.type.dims:
        if out.type.dtype == i64:
            name = block.shared.symbol(param.name)
            block.emit(Bind(name, value.scalar))
            return name
        buf = local(block.shared.names.fresh(param.name), out.type.dtype)
        block.emit(Store(buf, (), value.scalar))
        return buf
    swaps = root is not param and not writes_directly(made, param, root)
    if taken is not None:
        place = block.value(taken).place
        assert place is not None
        if not swaps or _is_pointer(place):
            return Carried(place, block.temp(out.name, out.type.dtype, place.dims) if swaps else None)
    dims = block.dims(out.type.dims)
    if swaps:
        place = block.temp(param.name, out.type.dtype, dims)
        second: Place | None = block.temp(param.name, out.type.dtype, dims)
    else:
        place, second = block.place_for(out), None
    if not value.undefined:
        block.copy(place, value)
    for one in (place, second) if value.undefined else ():
        if one is not None:
            one.buf.unbound = True
    return Carried(place, second)


def _row_target(block: Block, out: Var, here: DimLike, grows: bool, counter: str) -> Place:
    """Row `here` of the stacked result."""
    buf, start = block.behind.pop(out, (None, 0))
    if buf is not None:
        block.wanted.pop(out, None)
        if not grows:
            block.emit(Grow((buf,), start + block.dims(out.type.dims)[0]))
        return Place(buf, (start + here,))
    if not grows:
        place = block.place_for(out)
        return Place(place.buf, (*place.prefix, here))
    dims = (Sym(counter), *block.dims(out.type.dims[1:]))
    buf = Buf(block.shared.names.fresh(out.name), out.type.dtype, dims, "stack", dynamic=True)
    block.wanted.pop(out, None)
    return Place(buf, (here,))


def _body(
    block: Block,
    made: Plan,
    loop: Loop,
    values: list[Value],
    targets: list[Buf | str | Carried],
    row_targets: list[Place],
    segments: list[Segment],
) -> tuple[Stmt, ...]:
    body = loop.body.function
    inner = inner_block(block, made, body.params, values)
    stacks: dict[DimLike, list[Buf]] = {}
    for place in row_targets if loop.condition else ():  # those that begin at the same row grow together
        stacks.setdefault(place.prefix[-1], []).append(place.buf)
    for row, bufs in stacks.items():
        inner.emit(Grow(tuple(bufs), row + 1))
    for param, value in zip(loop.params, values[1:], strict=True):
        if not param.type.dims and not _is_simple(value.scalar):
            inner.values[param] = scalar(inner.local(param.name, value.scalar))
        bind_known(inner, param, inner.values[param])
    ask_behind(inner, body, loop.results.segments, segments)
    roots = loop.results.like(made.roots)
    wanted = [
        (root, target.other or target.place)
        for root, target in zip(roots.state, targets)
        if isinstance(target, Carried) and root not in body.params
    ]
    late = []
    for result, root, place in zip(loop.results.rows, roots.rows, row_targets):
        if result in body.params:  # the old value: saved before the body changes it
            _store_row(inner, inner.value(result), place)
        elif result in made.saved:
            inner.saves[result] = place  # type: ignore[index]
        else:
            late.append((result, place))
            wanted += [(root, place)] if result.type.dims else []
    inner.want(wanted)
    inner.run(body)
    inner.span = None
    for result, place in late:
        _store_row(inner, inner.value(result), place)
    append_segments(inner, loop.results.segments, segments)
    _update(inner, [*loop.results.state], targets)
    return tuple(inner.statements)


def _is_simple(e: E) -> bool:
    return not isinstance(e, (Op, Load)) or isinstance(e, Load) and not e.buf.dims


def _store_row(inner: Block, value: Value, place: Place) -> None:
    if not value.dims:
        inner.emit(Store(place.buf, place.prefix, value.scalar))
    elif value.undefined:
        place.buf.unbound = True
    else:
        inner.copy(place, value)


def _update(inner: Block, results: list[Atom], targets: list[Buf | str | Carried]) -> None:
    """The carries take their new values."""
    value_of = {t: inner.value(r) for t, r in zip(targets, results) if isinstance(t, Carried)}
    holder = {t.place.buf: t for t in value_of}
    taken: dict[Carried, Carried] = {}  # those that take another's storage
    for target, value in value_of.items():
        if _same_place(value.place, target.place) or value.undefined:
            continue
        whole = value.place is not None and not value.place.prefix
        source = holder.get(value.place.buf) if whole else None  # type: ignore[union-attr]
        if source not in (None, target) and _is_pointer(target.place) and _is_pointer(source.place):  # type: ignore[union-attr]
            taken[target] = source  # type: ignore[assignment]
            continue
        inner.copy(_second(inner, target), value)
    swaps = _exchange(inner, taken)
    for target, value in value_of.items():
        if target.other is not None and target not in taken and not _same_place(value.place, target.place):
            if _is_pointer(target.place):
                swaps.append((target, target.other.buf))
            else:
                inner.copy(target.place, stored(target.other))
    for target, buf in swaps:
        inner.emit(Swap(target.place.buf, buf))
    numbers = [(r, t) for r, t in zip(results, targets) if not isinstance(t, Carried)]
    assign_scalars(inner, [(inner.value(r).scalar, t) for r, t in numbers])


def _second(block: Block, target: Carried) -> Place:
    """The second storage of a carried array."""
    if target.other is None:
        target.other = block.temp("next", target.place.buf.dtype, target.place.dims)
    return target.other


def _is_pointer(place: Place) -> bool:
    """Whether it can change places with another: not the caller's memory, and not a part of an array."""
    return not place.prefix and place.buf.space == "temp"


def _exchange(inner: Block, taken: dict[Carried, Carried]) -> list[tuple[Carried, Buf]]:
    """Carries that take each other's arrays: swaps around a cycle; else a copy into a second storage, made
    before any swap."""
    swaps: list[tuple[Carried, Buf]] = []
    left = list(taken)
    while left:
        cycle, walk = [left[0]], taken[left[0]]
        while walk in left and walk not in cycle:
            cycle.append(walk)
            walk = taken[walk]
        if walk is left[0]:
            swaps += [(a, b.place.buf) for a, b in zip(cycle, cycle[1:])]
            left = [target for target in left if target not in cycle]
        else:
            target = left.pop(0)
            place = _second(inner, target)
            inner.copy(place, stored(taken[target].place))
            swaps.append((target, place.buf))
    return swaps
