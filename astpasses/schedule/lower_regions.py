"""Lowering of regions: call is written in place, cond becomes If, loop becomes For or While.

In: a Let in a Block, with the plan that says which storages are taken over. Out: the statements.

A carried array has one storage for the whole loop. What the body makes of it ends up there in one of three
ways: it was updated in place; or it is computed straight into it, because nothing reads the old value any
more; or it is computed into a second storage and the two change places (`Swap`: pointers, no copy).

Rows of unknown number grow on a stack, and so do segments. What a loop in the body stacks as a segment of the
loop around goes onto that one's stack at once, behind what is there: `filled` counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metaphrase.core.dims import DimLike, Sym
from metaphrase.core.ir import Function, Let, Var
from metaphrase.core.native import Region
from metaphrase.core.types import i64

from . import scalars
from .lower import Block, rule
from .nest import Bind, Buf, E, For, Grow, If, Index, Load, Op, Stmt, Store, Swap, While, boolean, local
from .ownership import Plan, writes_directly
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
    function: Function = let.attributes["function"]
    inner = inner_block(block, block.plan.regions[let, 0], function.params, block.args(let))
    places = {k: block.wanted.pop(out) for k, out in enumerate(let.outs) if out in block.wanted}
    inner.want(function.results, places)
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
    for k, out in enumerate(let.outs):
        if not out.type.dims:
            targets.append(
                block.shared.symbol(out.name)
                if out.type.dtype == i64
                else local(block.shared.names.fresh(out.name), out.type.dtype)
            )
        elif k in shares:
            place = args[shares[k] - 1].place
            assert place is not None
            targets.append(place)
        else:
            targets.append(block.place_for(out))
    sides = [
        _branch(block, block.plan.regions[let, number], branch, args, targets)
        for number, branch in enumerate(branches)
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
    inner.want(
        branch.results,
        {k: t for k, t in enumerate(targets) if isinstance(t, Place) and t.buf not in operands},
    )
    inner.run(branch)
    finish(inner, [inner.value(r) for r in branch.results], targets)
    return tuple(inner.statements)


def finish(inner: Block, values: list[Value], targets: Sequence[Buf | str | Place]) -> None:
    """All targets take their values at once: what a later copy still reads is saved first."""
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
    from .nest import loads

    _, index = block.axes(tuple(2 if d == 1 else d for d in value.dims))
    return any(load.buf in bufs for load in loads(value.at(index)))


def assign_scalars(block: Block, moves: list[tuple[E, Buf | str]]) -> None:
    """Scalars take their new values at once; one that another still reads is kept in a variable first."""
    from .nest import expression_symbols, loads

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
    from .rewrite import map_expression, rename_expression

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
    attributes = block.attributes(let)
    roles, body, cond = attributes["roles"], let.attributes["body"], let.attributes.get("cond")
    consts, carries, accumulators, rows = roles.parts(block.args(let))
    state = (*carries, *accumulators)
    ahead = len(let.own_symbols())
    made = block.plan.regions[let, 0]
    length: Any = attributes["length"]  # a dim; None where only the condition ends the loop
    outs = let.outs[ahead:]
    targets = [_state_target(block, let, ahead + k, value, made, roles) for k, value in enumerate(state)]

    counter = block.shared.symbol(
        "i" if cond is None else "trips", 0, None if cond is not None else length - 1
    )
    here: DimLike = length - 1 - Sym(counter) if attributes.get("reverse") else Sym(counter)
    cut = len(outs) - roles.segments
    row_targets = [_row_target(block, out, here, cond is not None, counter) for out in outs[len(state) : cut]]
    segments = open_segments(block, let, outs[cut:])

    held = [_target_value(t.place if isinstance(t, Carried) else t) for t in targets]
    slices = [
        Value(r.dtype, r.dims[1:], lambda index, r=r: r.at((here, *index)))  # type: ignore[misc]
        for r in rows
    ]
    index_value = scalar(Index(here))
    statements = _body(
        block,
        made,
        body,
        [index_value, *consts, *held, *slices],
        targets,
        row_targets,
        segments,
        cond is not None,
    )

    if cond is None:
        kind = "par" if attributes.get("parallel") and not roles.accumulators else "seq"
        if length != 0:
            block.emit(For(counter, length, statements, kind))
    else:
        test = inner_block(
            block, block.plan.regions[let, 1], cond.params, [index_value, *consts, *held[: roles.carries]]
        )
        test.run(cond)
        block.emit(
            While(counter, tuple(test.statements), test.value(cond.results[0]).scalar, statements, length)
        )
        block.sizes[attributes["size"]] = Sym(counter)
        block.values[let.outs[0]] = scalar(Index(Sym(counter)))
    for out, target in zip(outs, targets):
        value = _target_value(target.place if isinstance(target, Carried) else target)
        wanted = block.wanted.pop(out, None)
        if wanted is not None and isinstance(target, Carried):
            block.copy(wanted, value)
            value = stored(wanted)
        block.values[out] = value
    for out, place in zip(outs[len(state) : cut], row_targets):
        start = place.prefix[-1] - here
        moved = place.buf.space == "stack" and start != 0
        whole = Place(place.buf, place.prefix[:-1])
        block.values[out] = behind(place.buf, start, block.dims(out.type.dims)) if moved else stored(whole)
    for name, segment in zip(let.attributes.get("segment_sizes", ()), segments):
        block.sizes[name] = Sym(segment.filled)
        block.values[let.binder(name)] = scalar(Index(Sym(segment.filled)))
    for out, segment in zip(outs[cut:], segments):
        block.values[out] = behind(segment.buf, segment.start, block.dims(out.type.dims))


def _state_target(
    block: Block, let: Let, k: int, value: Value, made: Plan, roles: object
) -> Buf | str | Carried:
    """The variable or storage of a carry or accumulator, holding its first value."""
    out = let.outs[k]
    body: Function = let.attributes["body"]
    result = k - (len(let.outs) - len(body.results))
    param = body.params[1 + roles.consts + result]  # type: ignore[attr-defined]
    if not out.type.dims:
        if out.type.dtype == i64:
            name = block.shared.symbol(param.name)
            block.emit(Bind(name, value.scalar))
            return name
        buf = local(block.shared.names.fresh(param.name), out.type.dtype)
        block.emit(Store(buf, (), value.scalar))
        return buf
    swaps = made.roots[result] is not param and not writes_directly(made, body, param, result)
    shares = block.plan.shares[let]
    if k in shares:
        place = block.value(let.args[shares[k]]).place
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
    body: Function,
    values: list[Value],
    targets: list,
    row_targets: list[Place],
    segments: list[Segment],
    grows: bool,
) -> tuple[Stmt, ...]:
    inner = inner_block(block, made, body.params, values)
    state = len(targets)
    stacks: dict[DimLike, list[Buf]] = {}
    for place in row_targets if grows else ():  # those that begin at the same row grow together
        stacks.setdefault(place.prefix[-1], []).append(place.buf)
    for row, bufs in stacks.items():
        inner.emit(Grow(tuple(bufs), row + 1))
    scalars_of_rows = len(values) - len(body.params)
    assert scalars_of_rows == 0, (body, values)
    for param, value in zip(body.params[1:], values[1:]):
        if not param.type.dims and not _is_simple(value.scalar):
            inner.values[param] = scalar(inner.local(param.name, value.scalar))
        bind_known(inner, param, inner.values[param])
    cut = len(body.results) - len(segments)
    rows = body.results[state:cut]
    ask_behind(inner, body, body.results[cut:], segments)
    done = set()
    for k, (result, place) in enumerate(zip(rows, row_targets)):
        if result in body.params:  # the old value: saved before the body changes it
            _store_row(inner, inner.value(result), place)
            done.add(k)
        elif result in made.saved:
            assert isinstance(result, Var)
            inner.saves[result] = place
            done.add(k)
    _ask(inner, made, body, targets, row_targets, done)
    inner.run(body)
    inner.span = None
    for k, (result, place) in enumerate(zip(rows, row_targets)):
        if k not in done:
            _store_row(inner, inner.value(result), place)
    append_segments(inner, body.results[cut:], segments)
    _update(inner, made, body, targets)
    return tuple(inner.statements)


def _is_simple(e: E) -> bool:
    return not isinstance(e, (Op, Load)) or isinstance(e, Load) and not e.buf.dims


def _store_row(inner: Block, value: Value, place: Place) -> None:
    if not value.dims:
        inner.emit(Store(place.buf, place.prefix, value.scalar))
    elif not value.undefined:
        inner.copy(place, value)


def _ask(
    inner: Block, made: Plan, body: Function, targets: list, row_targets: list[Place], done: set[int]
) -> None:
    """Where the body's results should be made."""
    state = len(targets)
    places: dict[int, Place] = {}
    for k, target in enumerate(targets):
        if isinstance(target, Carried) and made.roots[k] is not None and made.roots[k] not in body.params:
            places[k] = target.other or target.place
    for k, place in enumerate(row_targets):
        if k not in done and body.results[state + k].type.dims:
            places[state + k] = place
    inner.want(body.results, places)


def _update(inner: Block, made: Plan, body: Function, targets: list) -> None:
    """The carries take their new values."""
    arrays = [(k, t) for k, t in enumerate(targets) if isinstance(t, Carried)]
    values = {k: inner.value(body.results[k]) for k, _ in arrays}
    arrays_of = dict(arrays)
    held = {t.place.buf: k for k, t in arrays}
    pending: dict[int, Carried] = {}
    for k, target in arrays:
        value = values[k]
        if _same_place(value.place, target.place) or value.undefined:
            continue
        source = value.place.buf if value.place is not None else None
        if source in held and value.place is not None and not value.place.prefix and held[source] != k:
            if _is_pointer(target.place) and _is_pointer(arrays_of[held[source]].place):
                pending[k] = target  # another carry's storage
                continue
        if target.other is None:
            target.other = inner.temp("next", value.dtype, target.place.dims)
        inner.copy(target.other, value)
    sources = {k: held[place.buf] for k in pending if (place := values[k].place) is not None}
    swaps = _exchange(inner, pending, sources, arrays_of)
    for k, target in arrays:
        if target.other is not None and k not in pending and not _same_place(values[k].place, target.place):
            if _is_pointer(target.place):
                swaps.append((target, target.other.buf))
            else:
                inner.copy(target.place, stored(target.other))
    for target, buf in swaps:
        inner.emit(Swap(target.place.buf, buf))
    assign_scalars(
        inner,
        [
            (inner.value(body.results[k]).scalar, t)
            for k, t in enumerate(targets)
            if not isinstance(t, Carried)
        ],
    )


def _is_pointer(place: Place) -> bool:
    """Whether it can change places with another: not the caller's memory, and not a part of an array."""
    return not place.prefix and place.buf.space == "temp"


def _exchange(
    inner: Block, pending: dict[int, Carried], source: dict[int, int], carried: dict[int, Carried]
) -> list[tuple[Carried, Buf]]:
    """Carries that take each other's arrays: swaps around a cycle; else a copy into a second storage, made
    before any swap."""
    swaps: list[tuple[Carried, Buf]] = []
    left = set(pending)
    while left:
        k = min(left)
        cycle, walk = [k], source[k]
        while walk in left and walk not in cycle:
            cycle.append(walk)
            walk = source[walk]
        if walk == k:
            swaps += [(carried[a], carried[b].place.buf) for a, b in zip(cycle, cycle[1:])]
            left -= set(cycle)
        else:
            target = pending[k]
            if target.other is None:
                target.other = inner.temp("next", target.place.buf.dtype, target.place.dims)
            inner.copy(target.other, stored(carried[source[k]].place))
            swaps.append((target, target.other.buf))
            left.discard(k)
    return swaps
