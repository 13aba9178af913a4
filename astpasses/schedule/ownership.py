"""Who may overwrite what: which operand's storage the result of a Let takes over, decided before anything is
lowered.

In: a Function and the positions of the parameters it owns. Out: `Plan`s, one a Function and one a region in
it.

    x1 = slice_update(x, v, i, step=(1,))     # x owned and not read again: x1 lives where x did, v is stored
    there
                                              # else x1 is a copy; views of x that are read later are copied
                                              # instead; where v is all of x1 but a frame, and is computed from x
                                              # at other places, x1 is made apart: v needs no storage of its own

A result that shares the storage of an operand is written down as `shares[let][result] = operand`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from metaphrase.core.calls import may_stay
from metaphrase.core.dims import Dim, product
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop
from metaphrase.core.native import Gather, Iota, Move, Point, Put, Reduce, Region
from metaphrase.core.scalars import CHEAP
from metaphrase.late import dataclass, field

from .pieces import move_pieces
from .target import Target

Root = Var | None


@dataclass(eq=False)
class Plan:
    """`shares`: see above. `kept`: lazy values to be stored after all. `roots`: the Var whose storage each
    result is in (a parameter or a result of a Let; None when it has no storage of its own). `regions`: plans
    of inner Functions.
    """

    function: Function
    target: Target
    shares: dict[Let, dict[Var, Var]] = field(default_factory=dict)
    kept: set[Var] = field(default_factory=set)
    roots: tuple[Root, ...] = ()
    regions: dict[tuple[Let, int], Plan] = field(default_factory=dict)
    storage: dict[Var, Var] = field(default_factory=dict)
    uses: dict[Var, list[int]] = field(default_factory=dict)
    position: dict[Var, int] = field(default_factory=dict)
    aliases: dict[Var, frozenset[Var]] = field(default_factory=dict)  # what a lazy value reads
    moved: dict[Var, frozenset[Var]] = field(default_factory=dict)  # of that, what it reads at other indices
    inlined: set[Var] = field(default_factory=set)  # elementwise results written into their only reader
    rows: set[Var] = field(default_factory=set)  # results of a loop body that are rows, made in the body
    saved: set[Var] = field(default_factory=set)  # those of them that are copied out as soon as they are made
    fixed: frozenset[Var] = frozenset()  # those parameters whose new values have to be where the old ones are

    def root(self, var: object) -> Root:
        """The Var whose storage `var` lives in."""
        return self.storage.get(var) if isinstance(var, Var) else None  # type: ignore[call-overload]


def is_lazy(let: Let) -> bool:
    """Whether the result of `let` is read through its operands and gets no storage: views, counting,
    constants."""
    if len(let.outs) != 1 or not let.out.type.dims:
        return False
    native = let.primitive.native
    if isinstance(native, Iota):
        return True
    if isinstance(native, Gather):  # a part whose place is known: a row, a block
        return native.kind == "slice" or all(not index.type.dims for index in let.args[1:])
    if isinstance(native, Move):
        pieces = move_pieces(let)
        return len(pieces) == 1 and not pieces[0].guard
    return False


def plan(
    function: Function,
    target: Target,
    owned: Collection[Var] = frozenset(),
    rows: Sequence[Atom] = (),
    free_to_move: Collection[Var] = frozenset(),
) -> Plan:
    """Decide for `function`, whose parameters in `owned` may be overwritten, those in `free_to_move` by other storage,
    too. Those results that are `rows` of a loop are copied out when they are made if something overwrites them later
    (parameters: before the body runs), and so keep nothing alive."""
    made = Plan(function, target, fixed=frozenset(owned) - frozenset(free_to_move))
    _survey(made, rows)
    free: set[Var] = {p for p in owned if p.type.dims}
    for p in function.params:
        made.storage[p] = p
    for place, let in enumerate(function.lets):
        native = let.primitive.native
        shares: dict[Var, Var] = {}
        if isinstance(native, Put):
            if not _is_better_apart(made, let) and _may_take(made, let, place, let.args[0], free):
                shares[let.out] = let.args[0]  # type: ignore[assignment]
        elif isinstance(native, Region) and not (native.kind == "call" and may_stay(let.attributes["function"])):
            shares = _region(made, let, place, free, native.kind)
        for out, operand in shares.items():
            made.storage[out] = made.storage[operand]
            free.add(out)
        made.shares[let] = shares
        if is_lazy(let) or let.outs and let.outs[0] in made.inlined:
            continue
        for out in let.outs:
            if out.type.dims and out not in shares:
                made.storage[out] = out
                free.add(out)
    for var in made.kept:
        made.storage[var] = var
    made.roots = tuple(made.root(r) for r in function.results)
    made.saved |= {v for v in made.rows if made.root(v) is not v}
    return made


def written_in_place(function: Function, target: Target, writes: Mapping[int, int]) -> tuple[Plan, dict[int, int]]:
    """The plan of a program whose results in `writes` are the new values of parameters, and those that
    can be made where the old ones are: {result: parameter}."""
    chosen = dict(writes)
    while True:
        made = plan(function, target, [function.params[position] for position in chosen.values()])
        kept = {}
        for result, position in chosen.items():
            param = function.params[position]
            root = made.roots[result]
            if not param.type.dims or function.results[result].type != param.type:
                continue
            alone = root is param and made.roots.count(param) == 1
            if alone or writes_directly(made, param, root) or _is_copied_there(made, param, result, chosen):
                kept[result] = position
        if kept == chosen:
            return made, kept
        chosen = kept


def _is_copied_there(made: Plan, param: Var, result: int, chosen: Collection[int]) -> bool:
    """Whether a parameter's new value has no storage of its own, as the transpose of another one, and none of those
    that are copied into parameters, when all else is done, reads this one."""
    family = {v for v, storage in made.storage.items() if storage is param}
    copied = (made.function.results[k] for k in chosen if made.roots[k] is None)
    return made.roots[result] is None and not any(family & made.aliases.get(v, frozenset()) for v in copied)  # type: ignore[arg-type]


def writes_directly(made: Plan, param: Var, root: Root) -> bool:
    """Whether a parameter's new value, which is in the storage `root`, may be computed right where the old one is:
    by an elementwise operation that is the last to read it, and nothing reads it from other places."""
    if root is None or root not in made.position or made.roots.count(root) > 1:
        return False
    family = {v for v, storage in made.storage.items() if storage is param}  # all that live where it does
    if any(family & bases for bases in made.moved.values()):
        return False
    let = made.function.lets[made.position[root]]
    readers = family | {v for v in made.inlined if made.aliases[v] & family}
    uses = [use for v in readers for use in made.uses.get(v, ())]
    if any(use > made.position[root] for use in uses):
        return False
    return isinstance(let.primitive.native, Point) or not any(use == made.position[root] for use in uses)


def _survey(made: Plan, rows: Sequence[Atom]) -> None:
    """Where each Var is used, which are lazy, and what these read."""
    function = made.function
    for place, let in enumerate(function.lets):
        for arg in let.args:
            if isinstance(arg, Var):
                made.uses.setdefault(arg, []).append(place)
        for out in let.outs:
            made.position[out] = place
    _find_inlined(made)
    for let in function.lets:
        if is_lazy(let) or let.outs and let.outs[0] in made.inlined:
            args = frozenset(a for a in let.args if isinstance(a, Var) and a.type.dims)
            made.aliases[let.out] = args.union(*(made.aliases.get(a, ()) for a in args))
            moved = frozenset[Var]().union(*(made.moved.get(a, ()) for a in args))
            made.moved[let.out] = moved if let.out in made.inlined else made.aliases[let.out]
    _note_results(made, rows)


def _note_results(made: Plan, rows: Sequence[Atom]) -> None:
    """Which results are rows made in the body; the others are in use to its end."""
    results, params = made.function.results, made.function.params
    others = Counter(results) - Counter(rows)
    for row in rows:
        if isinstance(row, Var) and row not in params:
            if row.type.dims and results.count(row) == 1:
                made.rows.add(row)
            else:
                others[row] = 1
    for result in others:
        if isinstance(result, Var):
            made.uses.setdefault(result, []).append(len(made.function.lets))


def order_of_reader(plan: Plan, out: Var) -> tuple[int, ...]:
    """The dims of an array in the order that its only reader gives them, where that does nothing else."""
    order = tuple(range(len(out.type.dims)))
    uses, lets = plan.uses.get(out, []), plan.function.lets
    if len(uses) != 1 or uses[0] >= len(lets):
        return order
    reader = lets[uses[0]]
    if not isinstance(reader.primitive.native, Move) or len(reader.out.type.dims) != len(order):
        return order
    pieces = move_pieces(reader)
    read = [e.name if isinstance(e, Dim) and e.is_sym else "" for e in pieces[0].index]
    wanted = [f"_{k}" for k in order]
    return tuple(map(read.index, wanted)) if len(pieces) == 1 and sorted(read) == wanted else order


def _find_inlined(made: Plan) -> None:
    """Elementwise results with one reader that reads each element once, and cheap ones with a few: they need
    no storage and no nest."""
    function = made.function
    size: dict[Var, int] = {}
    counted: set[Var] = set()
    for let in function.lets:
        if let.outs and _is_counted(let, counted):
            counted.add(let.out)
            if isinstance(let.primitive.native, Point) and let.out.type.dims and let.out not in function.results:
                made.inlined.add(let.out)
            continue
        if not isinstance(let.primitive.native, Point) or not let.out.type.dims or let.out in function.results:
            continue
        uses = made.uses.get(let.out, [])
        if not uses or len(uses) > 1 and not (_is_cheap(made, let) and len(uses) <= made.target.readers):
            continue
        once = all(_reads_once(function.lets[use], let.out, len(uses) == 1) for use in uses)
        size[let.out] = 1 + sum(size.get(a, 0) for a in let.args if isinstance(a, Var))
        if once and size[let.out] <= made.target.repeated:
            made.inlined.add(let.out)
        else:
            size[let.out] = 0


def _is_counted(let: Let, counted: set[Var]) -> bool:
    """Whether an element is told by where it stands, as that of a unit matrix is: there is nothing to load."""
    if isinstance(let.primitive.native, Iota):
        return True
    point = isinstance(let.primitive.native, Point) and let.primitive.cost <= CHEAP
    return (
        (point or is_lazy(let))
        and all(a in counted or not isinstance(a, Var) for a in let.args)
        and any(isinstance(a, Var) for a in let.args)
    )


def _reads_once(reader: Let, var: Var, alone: bool) -> bool:
    """Whether an operation reads each element of `var` once, in the order of what it does: `exp(a) @ v` does of
    `exp(a)`."""
    native = reader.primitive.native
    if isinstance(native, Put):
        return alone and reader.args.index(var) == 1
    if reader.primitive.name == "dot_general":
        return alone and _is_vector(reader, reader.args[1 - reader.args.index(var)])
    return isinstance(native, Point) or alone and isinstance(native, Reduce)


def _is_vector(product: Let, factor: Atom) -> bool:
    """Whether a factor of a product has no dims but those that are summed over: such a product is loops, which take
    each element of the other factor once."""
    side = product.args.index(factor)
    summed, common = (product.attributes[key][side] for key in ("contract", "batch"))
    return not common and len(summed) == len(factor.type.dims)


def _is_cheap(made: Plan, let: Let) -> bool:
    """Cheaper to compute again than to store and load: one operation on an array that is stored anyway."""
    arrays = [a for a in let.args if isinstance(a, Var) and a.type.dims and not _is_spread(made, a)]
    scalar = let.primitive.scalar
    return (
        scalar is not None
        and scalar.sign is not None
        and scalar.cost <= CHEAP
        and let.out.type.dtype.kind == "f"
        and let.out.type.dtype.itemsize >= 4
        and len(arrays) == 1
        and arrays[0] not in made.inlined
    )


def _is_spread(made: Plan, var: Var) -> bool:
    """Whether all elements are one scalar."""
    place = made.position.get(var)
    if place is None:
        return False
    let = made.function.lets[place]
    return is_lazy(let) and not any(a.type.dims for a in let.args)


def _read_after(made: Plan, var: Var, place: int) -> bool:
    return any(use > place for use in made.uses.get(var, ()))


def _alive_views(made: Plan, var: Var, let: Let, place: int) -> list[Var]:
    """Views of `var` made so far that `let` itself or something after it reads."""
    return [
        view
        for view, bases in made.aliases.items()
        if var in bases
        and view not in made.kept
        and made.position[view] < place
        and (view in let.args or _read_after(made, view, place))
    ]


def _may_take(made: Plan, let: Let, place: int, x: Atom, free: set[Var]) -> bool:
    """Whether `let` may overwrite its operand; then views of it that are still needed are stored where they
    stand."""
    if not _could_take(made, let, place, x, free):
        return False
    _take(made, let, place, x)
    return True


def _is_better_apart(made: Plan, let: Let) -> bool:
    """Whether a store is one of nearly all elements, computed from others of what it stores into: in its place they
    would have to be stored twice."""
    x, v, *start = let.args
    if let.primitive.native.kind != "slice" or v not in made.inlined or made.root(x) in made.fixed:
        return False
    around = [have - new for have, new in zip(x.type.dims, v.type.dims)]
    amount = product(v.type.dims)
    if any(step != 1 for step in let.attributes["step"]) or isinstance(amount, int) and amount < made.target.frame_from:
        return False
    if not all(isinstance(rows, int) and rows <= made.target.frame for rows in around):
        return False
    return any(x in made.aliases.get(view, ()) for view in _elsewhere(made, v, x, start))


def _elsewhere(made: Plan, v: Atom, x: Atom, start: list[Atom]) -> Iterator[Var]:
    """The views that a value is computed from, but those of the part of x that it has the place of."""
    if v in made.inlined:
        for arg in made.function.lets[made.position[v]].args:  # type: ignore[index]
            yield from _elsewhere(made, arg, x, start)
    elif v in made.aliases and isinstance(v, Var):
        let = made.function.lets[made.position[v]]
        same = isinstance(let.primitive.native, Gather) and let.args[0] is x and [*let.args[1:]] == start
        if not same:
            yield v


def _take(made: Plan, let: Let, place: int, x: Any) -> None:
    made.kept.update(_alive_views(made, x, let, place))
    if x in made.rows:
        made.saved.add(x)


def _could_take(made: Plan, let: Let, place: int, x: Atom, free: set[Var]) -> bool:
    return (
        isinstance(x, Var)
        and bool(x.type.dims)
        and x in free
        and not _read_after(made, x, place)
        and let.args.count(x) == 1
    )


def _region(made: Plan, let: Let, place: int, free: set[Var], kind: str) -> dict[Var, Var]:
    if kind == "loop":
        return _loop(made, let, place, free)
    operands = let.args if kind == "call" else let.args[1:]
    takeable = {a for a in operands if _could_take(made, let, place, a, free)}
    regions = list(let.regions())
    plans = [plan(r, made.target, [p for p, a in zip(r.params, operands) if a in takeable]) for r in regions]
    shares = _shared(let, operands, plans, takeable)
    for k, x in enumerate(operands):
        if x in takeable and (x in shares.values() or any(_writes(inner, k) for inner in plans)):
            _take(made, let, place, x)
    for number, inner in enumerate(plans):
        made.regions[let, number] = inner
    return shares


def _shared(let: Let, operands: Sequence[Atom], plans: list[Plan], takeable: set[Atom]) -> dict[Var, Var]:
    """For results the operand in whose storage a region leaves them, each operand for one."""
    shares: dict[Var, Var] = {}
    for k, out in enumerate(let.outs):
        for inner in plans if out.type.dims else ():
            operand: Any = dict(zip(inner.function.params, operands)).get(inner.roots[k])  # type: ignore[arg-type]
            if operand in takeable and operand not in shares.values() and operand.type.dims == out.type.dims:
                shares[out] = operand
                break
    return shares


def _writes(inner: Plan, position: int) -> bool:
    """Whether a region, or one inside it, writes into the storage of its parameter."""
    param = inner.function.params[position]
    if any(inner.root(operand) is param for shares in inner.shares.values() for operand in shares.values()):
        return True
    for (let, _), deeper in inner.regions.items():
        native = let.primitive.native
        if isinstance(native, Region) and native.kind != "loop":  # what a loop writes into, its results share
            first = 0 if native.kind == "call" else 1
            if any(inner.root(a) is param and _writes(deeper, k) for k, a in enumerate(let.args[first:])):
                return True
    return False


def _loop(made: Plan, let: Let, place: int, free: set[Var]) -> dict[Var, Var]:
    loop = Loop.of(let)
    moving = [p for p, a in zip(loop.params.state, loop.args.state) if made.root(a) not in made.fixed]
    made.regions[let, 0] = plan(loop.body.function, made.target, [*loop.params.state], loop.results.rows, moving)
    if loop.condition is not None:
        made.regions[let, 1] = plan(loop.condition.function, made.target)
    state = zip(loop.outs.state, loop.args.state)
    return {out: a for out, a in state if _may_take(made, let, place, a, free)}  # type: ignore[misc]


__all__ = ["Plan", "plan", "is_lazy", "order_of_reader", "writes_directly", "written_in_place"]
