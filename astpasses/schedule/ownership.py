"""Who may overwrite what: which operand's storage the result of a Let takes over, decided before anything is
lowered.

In: a Function and the positions of the parameters it owns. Out: `Plan`s, one a Function and one a region in
it.

    x1 = slice_update(x, v, i, step=(1,))     # x owned and not read again: x1 lives where x did, v is stored
    there
                                              # else x1 is a copy; views of x that are read later are copied
                                              # instead

A result that shares the storage of an operand is written down as `shares[let][result position] = operand
position`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from metaphrase.core.ir import Function, Let, Var
from metaphrase.core.native import Gather, Iota, Move, Point, Put, Reduce, Region

from .pieces import move_pieces

Root = Var | None
INLINED_OPERATIONS = 12  # of one expression
CHEAP_READERS = 4


@dataclass(eq=False)
class Plan:
    """`shares`: see above. `kept`: lazy values to be stored after all. `roots`: the Var whose storage each
    result is in (a parameter or a result of a Let; None when it has no storage of its own). `regions`: plans
    of inner Functions.
    """

    function: Function
    shares: dict[Let, dict[int, int]] = field(default_factory=dict)
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
    function: Function, owned: frozenset[int] = frozenset(), early: frozenset[int] = frozenset()
) -> Plan:
    """Decide for `function`, whose parameters in `owned` may be overwritten. Results in `early` are rows:
    they are copied out when they are made if something overwrites them later (parameters: before the body
    runs), and so keep nothing alive."""
    made = Plan(function)
    _survey(made, early)
    free: set[Var] = {p for k, p in enumerate(function.params) if k in owned and p.type.dims}
    for p in function.params:
        made.storage[p] = p
    for place, let in enumerate(function.lets):
        native = let.primitive.native
        shares: dict[int, int] = {}
        out: Any  # a position, then a result
        if isinstance(native, Put):
            if _may_take(made, let, place, 0, free):
                shares[0] = 0
        elif isinstance(native, Region):
            shares = _region(made, let, place, free, native.kind)
        for out, operand in shares.items():
            made.storage[let.outs[out]] = made.storage[let.args[operand]]  # type: ignore[index]
            free.add(let.outs[out])
        made.shares[let] = shares
        if is_lazy(let) or let.outs and let.outs[0] in made.inlined:
            continue
        for k, out in enumerate(let.outs):
            if out.type.dims and k not in shares:
                made.storage[out] = out
                free.add(out)
    for var in made.kept:
        made.storage[var] = var
    made.roots = tuple(made.root(r) for r in function.results)
    made.saved |= {v for v in made.rows if made.root(v) is not v}
    return made


def written_in_place(function: Function, writes: Mapping[int, int]) -> tuple[Plan, dict[int, int]]:
    """The plan of a program whose results in `writes` are the new values of parameters, and those that
    can be made where the old ones are: {result: parameter}."""
    chosen = dict(writes)
    while True:
        made = plan(function, frozenset(chosen.values()))
        kept = {}
        for result, position in chosen.items():
            param = function.params[position]
            root = made.roots[result]
            if not param.type.dims or function.results[result].type != param.type:
                continue
            alone = root is param and made.roots.count(param) == 1
            if alone or writes_directly(made, function, param, result):
                kept[result] = position
        if kept == chosen:
            return made, kept
        chosen = kept


def writes_directly(made: Plan, body: Function, param: Var, result: int) -> bool:
    """Whether a parameter's new value may be computed right where the old one is: an elementwise operation
    that is the last to read it, and nothing reads it from other places."""
    root = made.roots[result]
    if root is None or root not in made.position or made.roots.count(root) > 1:
        return False
    family = {v for v, storage in made.storage.items() if storage is param}  # all that live where it does
    if any(family & bases for bases in made.moved.values()):
        return False
    let = body.lets[made.position[root]]
    readers = family | {v for v in made.inlined if made.aliases[v] & family}
    uses = [use for v in readers for use in made.uses.get(v, ())]
    if any(use > made.position[root] for use in uses):
        return False
    return isinstance(let.primitive.native, Point) or not any(use == made.position[root] for use in uses)


def _survey(made: Plan, early: frozenset[int]) -> None:
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
            args = [a for a in let.args if isinstance(a, Var) and a.type.dims]
            bases = frozenset().union(frozenset(args), *(made.aliases.get(a, frozenset()) for a in args))
            made.aliases[let.out] = bases
            made.moved[let.out] = (
                bases
                if let.out not in made.inlined
                else frozenset().union(frozenset(), *(made.moved.get(a, frozenset()) for a in args))
            )
    for k, result in enumerate(function.results):
        if (
            isinstance(result, Var)
            and k in early
            and result.type.dims
            and function.results.count(result) == 1
        ):
            if result not in function.params:
                made.rows.add(result)
        elif isinstance(result, Var) and not (k in early and result in function.params):
            made.uses.setdefault(result, []).append(len(function.lets))


def _find_inlined(made: Plan) -> None:
    """Elementwise results with one reader that reads each element once, and cheap ones with a few: they need
    no storage and no nest."""
    function = made.function
    size: dict[Var, int] = {}
    for let in function.lets:
        if (
            not isinstance(let.primitive.native, Point)
            or not let.out.type.dims
            or let.out in function.results
        ):
            continue
        uses = made.uses.get(let.out, [])
        if not uses or len(uses) > 1 and not (_is_cheap(made, let) and len(uses) <= CHEAP_READERS):
            continue
        once = True
        for use in uses:
            reader = function.lets[use]
            native = reader.primitive.native
            once = once and (
                isinstance(native, Point)
                or len(uses) == 1
                and isinstance(native, Reduce)
                or len(uses) == 1
                and isinstance(native, Put)
                and reader.args.index(let.out) == 1
            )
        size[let.out] = 1 + sum(size.get(a, 0) for a in let.args if isinstance(a, Var))
        if once and size[let.out] <= INLINED_OPERATIONS:
            made.inlined.add(let.out)
        else:
            size[let.out] = 0


def _is_cheap(made: Plan, let: Let) -> bool:
    """Cheaper to compute again than to store and load: one operation on an array that is stored anyway."""
    arrays = [a for a in let.args if isinstance(a, Var) and a.type.dims and not _is_spread(made, a)]
    return (
        let.primitive.name in ("add", "sub", "mul", "neg")
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


def _may_take(made: Plan, let: Let, place: int, operand: int, free: set[Var]) -> bool:
    """Whether `let` may overwrite its operand; then views of it that are still needed are stored where they
    stand."""
    if not _could_take(made, let, place, operand, free):
        return False
    x = let.args[operand]
    assert isinstance(x, Var)
    made.kept.update(_alive_views(made, x, let, place))
    if x in made.rows:
        made.saved.add(x)
    return True


def _could_take(made: Plan, let: Let, place: int, operand: int, free: set[Var]) -> bool:
    x = let.args[operand]
    return (
        isinstance(x, Var)
        and bool(x.type.dims)
        and x in free
        and not _read_after(made, x, place)
        and let.args.count(x) == 1
    )


def _region(made: Plan, let: Let, place: int, free: set[Var], kind: str) -> dict[int, int]:
    if kind == "loop":
        return _loop(made, let, place, free)
    functions = list(let.regions())
    first = 0 if kind == "call" else 1
    takeable = {k for k in range(first, len(let.args)) if _could_take(made, let, place, k, free)}
    plans = [plan(f, frozenset(k - first for k in takeable)) for f in functions]
    shares: dict[int, int] = {}
    for k, out in enumerate(let.outs):
        for inner in plans:
            root = inner.roots[k]
            if root is None or root not in inner.function.params or not out.type.dims:
                continue
            operand = inner.function.params.index(root) + first
            if (
                operand in takeable
                and operand not in shares.values()
                and let.args[operand].type.dims == out.type.dims
            ):
                shares[k] = operand
                break
    taken = {k for k in takeable if k in shares.values() or any(_writes(p, k - first) for p in plans)}
    for k in taken:
        made.kept.update(_alive_views(made, let.args[k], let, place))  # type: ignore[arg-type]
        if let.args[k] in made.rows:
            made.saved.add(let.args[k])  # type: ignore[arg-type]
    for number, inner in enumerate(plans):
        made.regions[let, number] = inner
    return shares


def _writes(inner: Plan, position: int) -> bool:
    """Whether a region, or one inside it, writes into the storage of its parameter."""
    param = inner.function.params[position]
    if any(
        inner.root(let.args[operand]) is param
        for let, shares in inner.shares.items()
        for operand in shares.values()
    ):
        return True
    for (let, _), deeper in inner.regions.items():
        native = let.primitive.native
        if isinstance(native, Region) and native.kind != "loop":  # what a loop writes into, its results share
            first = 0 if native.kind == "call" else 1
            if any(inner.root(a) is param and _writes(deeper, k) for k, a in enumerate(let.args[first:])):
                return True
    return False


def _loop(made: Plan, let: Let, place: int, free: set[Var]) -> dict[int, int]:
    roles, body = let.attributes["roles"], let.attributes["body"]
    state = roles.carries + roles.accumulators
    owned = frozenset(range(1 + roles.consts, 1 + roles.consts + state))
    early = frozenset(range(state, len(body.results) - roles.segments))
    made.regions[let, 0] = plan(body, owned, early)
    if let.attributes.get("cond") is not None:
        made.regions[let, 1] = plan(let.attributes["cond"])
    ahead = len(let.own_symbols())
    shares: dict[int, int] = {}
    for k in range(state):
        operand = roles.consts + k
        if _may_take(made, let, place, operand, free):
            shares[ahead + k] = operand
    return shares


__all__ = ["Plan", "plan", "is_lazy", "writes_directly", "written_in_place"]
