"""Loops and branches as `while`, `for` and `if`.

In: the emitter and a `loop`, `cond` or `call` Let. Out: statements; carries are plain variables.

    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1.0 - e * np.cos(E))

What only other loops go through, the residuals of a derivative, is a list: `residuals.append((sin_E,
cos_E))`, later `for sin_E, cos_E in reversed(residuals):`.
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.ir import Atom, Function, Let, Roles, Var
from metaphrase.core.stores import written_carries

from .numpy_source_blocks import Block, Emitter, assign_all
from .numpy_source_effects import negated
from .numpy_source_expressions import ATOM, COMPARE, INDEX_BITS, NOT, Expr, Storage, name, strong
from .numpy_source_names import wanted_name
from .numpy_source_rows import (
    Loop,
    borrowed,
    counter_needed,
    for_header,
    join_segments,
    outer_expr,
    row_outputs,
    shifted_counter,
    stacked,
    store_rows,
)
from .numpy_source_spellings import STATEMENTS


def emit_loop(emitter: Emitter, let: Let) -> None:
    roles: Roles = let.attributes["roles"]
    body: Function = let.attributes["body"]
    outs = list(let.outs[len(let.own_symbols()) :])
    trips = let.outs[0] if let.attributes["cond"] is not None else None
    count = roles.carries + roles.accumulators
    cut = len(outs) - roles.segments
    consts, carries, accumulators, rows = roles.parts(let.args)
    loop = Loop(
        let,
        roles,
        body,
        consts,
        carries,
        accumulators,
        rows,
        trips,
        tuple(outs[:count]),
        tuple(outs[count:cut]),
        tuple(outs[cut:]),
        written_carries(let),
    )
    block = emitter.block
    used = {v for v in let.outs if v in block.uses}
    condition = let.attributes["cond"]
    for atom in (*loop.consts, *loop.rows):
        if atom not in block.only_rows:
            emitter.named(atom)
    _carry_variables(emitter, loop)
    counted = counter_needed(emitter, loop)
    row_outputs(emitter, loop, used)
    forward_arrays = bool(loop.arrays) and condition is None
    index_used = body.params[0] in Block(body).uses
    if condition is not None and condition.params[0] in Block(condition).uses:
        index_used = True
    needs_index = index_used or forward_arrays or (counted and not loop.lists)
    shift = (
        None
        if condition is not None or forward_arrays or counted
        else shifted_counter(body, body.params[1 : 1 + roles.consts])
    )
    needs_index = needs_index and shift is None
    scope: set[str] = set()
    loop.index = "_"
    if needs_index or shift is not None:
        loop.index = emitter.names.fresh(body.params[0].name if body.params[0].name != "_" else "i")
        scope.add(loop.index)
    length = let.attributes["length"]
    as_while = length is None or condition is not None and counted and not loop.lists
    with emitter.inside(body) as inner:
        last = body.results[count + len(loop.stacked) :]
        inner.segments = {r for r in last if isinstance(r, Var) and inner.uses[r] == 1}
        rows_in = _bind_parameters(emitter, loop, inner)
        read_rows = exit_test = None
        if length is not None:
            header, read_rows = for_header(emitter, loop, inner, rows_in, length, needs_index, shift)
            exit_test = condition
        if as_while:
            header, exit_test = _while_header(emitter, loop, needs_index), None
        with emitter.captured(deeper=1) as lines:
            if as_while:
                header = _while_test(emitter, loop, header)
            if read_rows is not None:
                read_rows(emitter)
            if exit_test is not None:
                _break_unless(emitter, _condition(emitter, loop, exit_test))
            emitter.run(inner)
            _finish_iteration(emitter, loop, inner, as_while and needs_index)
    emitter.names.release(scope)
    emitter.line(header, let)
    emitter.lines += lines or ["    " * (emitter.indent + 1) + "pass"]
    _results(emitter, loop, counted)


# --- state -----------------------------------------------------------------------------------------------


def _carry_variables(emitter: Emitter, loop: Loop) -> None:
    """A Python variable for each carry and accumulator, holding its first value; arrays written in place are
    owned."""
    block, let = emitter.block, loop.let
    initial = (*loop.carries, *loop.accumulators)
    params = loop.body.params[1 + loop.roles.consts :][: len(initial)]
    starting: list[tuple[str, Expr]] = []
    for k, (atom, param, out) in enumerate(zip(initial, params, loop.kept)):
        owned = loop.owned[k] and bool(param.type.dims)
        expr = emitter.expr(atom)
        loop.initial.append(expr)
        repeated = sum(a is atom for a in let.args) > 1
        mine = isinstance(atom, Var) and expr.is_name and block.holder.get(expr.text) is atom
        dead = (
            isinstance(atom, Var)
            and not block.live_after(atom)
            and not repeated
            and expr.text not in emitter.size_reads
            and not any(expr.is_name and _reads(emitter, a, expr.text) for a in (*loop.consts, *loop.rows))
        )
        if owned and not (mine and dead and emitter.may_write(atom) and not _shared(emitter, atom, let)):
            fresh = not expr.storages and expr.operations > 0
            expr = (
                expr if fresh else replace(expr, text=f"{expr.at(ATOM)}.copy()", level=ATOM, operations=1, parts=None)
            )
            mine = False
        if mine and dead:
            if owned:  # what waits may read it by another name
                emitter.flush_storage(expr.storages, spare=[atom])
            emitter.flush(frozenset([expr.text]), spare=[atom])
            loop.targets.append(expr.text)
            block.holder[expr.text] = out
            continue
        wish = wanted_name(out, let)
        wish = wanted_name(param, None) if out not in block.uses or out.name == let.primitive.name else wish
        target = wish if _may_take(emitter, loop, wish, atom if dead else None) else emitter.names.fresh(wish)
        if target != wish:
            block.names.add(target)
        loop.targets.append(target)
        block.holder[target] = out
        starting.append((target, strong(expr)))
    assign_all(emitter, starting)


def _may_take(emitter: Emitter, loop: Loop, wish: str, dying: Atom | None) -> bool:
    """Whether the name `wish` is that of a value nobody needs any more; `dying` is the carry's own first
    value."""
    block = emitter.block
    old = block.holder.get(wish)
    if old is None or wish in loop.targets or wish in emitter.size_reads:
        return False
    if old in loop.let.args and old is not dying or any(_reads(emitter, a, wish) for a in (*loop.consts, *loop.rows)):
        return False
    return not emitter._still_needed(old, wish)


def _reads(emitter: Emitter, atom: Atom, target: str) -> bool:
    return target in emitter.expr(atom).reads


def _as_given(emitter: Emitter, carried: Expr, first: Expr) -> Expr:
    """What a loop carries, which may be the Python number that it was before."""
    if not first.maybe_python:
        return carried
    emitter.roots[carried.text] = emitter.roots_of([first])
    return replace(carried, maybe_python=True)


def _shared(emitter: Emitter, atom: Var, let: Let) -> bool:
    """Whether another operand of `let` is the same memory."""
    mine = emitter.expr(atom).storages
    return any(s in mine for a in let.args if a is not atom and isinstance(a, Var) for s in _storages(emitter, a))


def _storages(emitter: Emitter, var: Var) -> tuple[Storage, ...]:
    expr = emitter.block.env.get(var)
    return expr.storages if expr is not None else ()


def _bind_parameters(emitter: Emitter, loop: Loop, inner: Block) -> list[tuple[Var, Expr]]:
    """Expressions for the parameters of the body; gives back the row parameters with what they go through."""
    outer = emitter.blocks[-2]
    index, *params = loop.body.params
    inner.env[index] = name(loop.index, index.type, weak=INDEX_BITS)
    consts, carries, accumulators, rows = loop.roles.parts(params)
    nested = len(emitter.blocks) > 2
    for param, atom in zip(consts, loop.consts):
        whole = outer_expr(outer, atom)
        inner.env[param] = borrowed(whole, param)
        if nested or any(s.owned for s in whole.storages):
            loop.foreign += inner.env[param].storages
    for k, (param, target) in enumerate(zip((*carries, *accumulators), loop.targets)):
        storage = Storage(loop.owned[k])
        made = name(target, param.type, storages=(storage,) if param.type.dims else ())
        first = loop.initial[k]
        if first.text != target and first.storages and (nested or any(s.owned for s in first.storages)):
            loop.foreign += made.storages  # in the first iteration it is what somebody else has
        inner.env[param] = _as_given(emitter, made, first)
        inner.carried[loop.body.results[k]] = target
        inner.holder[target] = param
        storage.add(inner, param)
        emitter.keep_track(target, made.storages)
    found = []
    for param, atom in zip(rows, loop.rows):
        found.append((param, atom))
    return found


# --- headers ---------------------------------------------------------------------------------------------


def _while_header(emitter: Emitter, loop: Loop, needs_index: bool) -> str:
    """Set up the counter of a `while`; its header where the number of iterations is bounded too."""
    if needs_index:
        emitter.line(f"{loop.index} = 0")
    length = loop.let.attributes["length"]
    return "" if length is None else f"{loop.index} < {emitter.dim_expr(length).at(COMPARE + 1)}"


def _while_test(emitter: Emitter, loop: Loop, bound: str) -> str:
    """`while test:`; where the test needs lines of its own, `while True:` and a `break` in the body."""
    start = len(emitter.lines)
    test = _condition(emitter, loop, loop.let.attributes["cond"])
    if len(emitter.lines) == start:
        return f"while {bound} and {test.at(NOT)}:" if bound else f"while {test.text}:"
    _break_unless(emitter, test)
    return f"while {bound or 'True'}:"


def _break_unless(emitter: Emitter, test: Expr) -> None:
    emitter.line(f"if {negated(test).text}:")
    emitter.line("    break")


def _condition(emitter: Emitter, loop: Loop, condition: Function) -> Expr:
    """The condition on the names of the carries."""
    outer = emitter.blocks[-2]
    with emitter.inside(condition) as block:
        index, *params = condition.params
        block.env[index] = name(loop.index, index.type, weak=INDEX_BITS)
        for param, atom in zip(params, loop.consts):
            block.env[param] = borrowed(outer_expr(outer, atom), param)
        for param, target, first in zip(params[len(loop.consts) :], loop.targets, loop.initial):
            storages = (Storage(False),) if param.type.dims else ()
            block.env[param] = _as_given(emitter, name(target, param.type, storages=storages), first)
        emitter.run(block)
        return emitter.expr(condition.results[0])


def _finish_iteration(emitter: Emitter, loop: Loop, inner: Block, count: bool) -> None:
    """The end of the body: rows are stored, then carries get their next values."""
    results = list(loop.body.results)
    kept = results[: len(loop.kept)]
    store_rows(emitter, loop, inner)
    pairs: list[tuple[str, Expr]] = []
    seen: list[Storage] = []
    borrowed_by_others = [s for k, atom in enumerate(kept) if not loop.owned[k] for s in emitter.expr(atom).storages]
    for k, (atom, target) in enumerate(zip(kept, loop.targets)):
        expr = emitter.expr(atom)
        if expr.maybe_python and expr.text != target:
            emitter.need_numpy(expr)
        if loop.owned[k] and loop.kept[k].type.dims:
            exclusive = _fresh(expr) or len(expr.storages) == 1 and expr.storages[0].owned
            if any(s in expr.storages for s in (*seen, *borrowed_by_others)):
                exclusive = False
            if not exclusive:
                expr = replace(expr, text=f"{expr.at(ATOM)}.copy()", level=ATOM, parts=None)
            seen += expr.storages
        pairs.append((target, expr))
    accumulated = {t for k, t in enumerate(loop.targets) if k >= loop.roles.carries}
    assign_all(emitter, pairs, accumulated)
    if count:
        emitter.line(f"{loop.index} += 1")


def _fresh(expr: Expr) -> bool:
    """Whether an expression makes an array of its own."""
    return not expr.storages and expr.operations > 0


def _results(emitter: Emitter, loop: Loop, counted: bool) -> None:
    """Names for what the loop leaves."""
    block, let = emitter.block, loop.let
    operands = tuple(s for a in let.args if isinstance(a, Var) for s in _storages(emitter, a))
    for k, (var, target) in enumerate(zip(loop.kept, loop.targets)):
        storages: tuple[Storage, ...] = ()
        if var.type.dims:
            storages = (Storage(True),) if loop.owned[k] else (*dict.fromkeys(operands), Storage(False))
        made = name(target, var.type, storages=storages)
        emitter.hold(var, _as_given(emitter, made, loop.initial[k]) if k < len(loop.initial) else made, target)
    for var, target in loop.arrays.items():
        emitter.hold(var, name(target, var.type, storages=(Storage(True),)), target)
    symbol = let.attributes.get("size")
    if symbol is not None:
        text = f"len({loop.lists[0].name})" if loop.lists else loop.index
        emitter.sizes[symbol] = text
        emitter.size_reads.add(loop.lists[0].name if loop.lists else loop.index)
        if counted:
            if not loop.lists:
                block.names.add(loop.index)
                emitter.names.taken.add(loop.index)
            assert loop.trips is not None
            block.env[loop.trips] = Expr(
                text, ATOM, loop.trips.type.plain, weak=INDEX_BITS, reads=frozenset([loop.index])
            )
    for rows_list in loop.lists:
        var = rows_list.vars[0]
        if var in block.only_rows:
            for v in rows_list.vars:
                block.env[v] = name(rows_list.name, v.type, storages=(Storage(False),))
            continue
        emitter.hold(var, name(rows_list.name, var.type, storages=(Storage(True),)), rows_list.name)
        if var in block.segments:
            block.lists.add(var)
            continue
        emitter.line(f"{rows_list.name} = {stacked(emitter, rows_list.name, var.type)}", let)
    join_segments(emitter, loop)


STATEMENTS["loop"] = emit_loop

__all__ = ["emit_loop"]
