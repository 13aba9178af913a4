"""Loops and branches as `while`, `for` and `if`.

In: the emitter and a `loop`, `cond` or `call` Let. Out: statements; carries are plain variables.

    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1.0 - e * np.cos(E))

What only other loops go through, the residuals of a derivative, is a list: `residuals.append((sin_E, cos_E))`, later
`for sin_E, cos_E in reversed(residuals):`.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np

from metaphrase.core.ir import Atom, Function, Let, Roles, Var, attribute_symbols
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import Array

from .numpy_source_blocks import Block, Emitter, assign_all
from .numpy_source_expressions import ATOM, INDEX_BITS, Expr, Storage, dtype_text, literal, name, strong, suffix
from .numpy_source_names import wanted_name
from .numpy_source_ownership import written_carries
from .numpy_source_effects import negated
from .numpy_source_spellings import STATEMENTS


@dataclass
class RowList:
    """Rows of a loop kept in a Python list; several that the same loops go through are kept as tuples."""

    name: str
    vars: list[Var] = field(default_factory=list)
    wishes: dict[Var, str] = field(default_factory=dict)  # what the values were called where they were stored


@dataclass
class Loop:
    """A loop while it is written."""

    let: Let
    roles: Roles
    body: Function
    consts: tuple
    carries: tuple
    accumulators: tuple
    rows: tuple
    trips: Var | None
    kept: tuple[Var, ...]    # results: carries and accumulators
    stacked: tuple[Var, ...]  # results: rows
    owned: tuple[bool, ...]  # state that the body writes in place
    index: str = ""
    initial: list[Expr] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    lists: list[RowList] = field(default_factory=list)
    arrays: dict[Var, str] = field(default_factory=dict)


def emit_loop(emitter: Emitter, let: Let) -> None:
    roles: Roles = let.attributes["roles"]
    body: Function = let.attributes["body"]
    outs = list(let.outs)
    trips = outs.pop(0) if let.attributes["cond"] is not None else None
    count = roles.carries + roles.accumulators
    loop = Loop(let, roles, body, *roles.parts(let.args), trips, tuple(outs[:count]), tuple(outs[count:]),
                written_carries(body, roles))
    block = emitter.block
    used = {v for v in let.outs if v in block.uses}
    condition = let.attributes["cond"]
    for atom in (*loop.consts, *loop.rows):
        if atom not in block.only_rows:
            emitter.named(atom)
    _carry_variables(emitter, loop)
    counted = _counter_needed(emitter, loop)
    _row_outputs(emitter, loop, used)
    forward_arrays = bool(loop.arrays) and condition is None
    index_used = body.params[0] in Block(body).uses
    if condition is not None and condition.params[0] in Block(condition).uses:
        index_used = True
    needs_index = index_used or forward_arrays or (counted and not loop.lists)
    scope: set[str] = set()
    loop.index = "_"
    if needs_index:
        loop.index = emitter.names.fresh(body.params[0].name if body.params[0].name != "_" else "i")
        scope.add(loop.index)
    length = let.attributes["length"]
    with emitter.inside(body) as inner:
        rows_in = _bind_parameters(emitter, loop, inner)
        if length is None:
            header = _while_header(emitter, loop, condition, needs_index)
            exit_test = None
        else:
            header = _for_header(emitter, loop, inner, rows_in, length, needs_index)
            exit_test = condition
        with emitter.captured(deeper=1) as lines:
            if header[1] is not None:
                header[1](emitter)
            if exit_test is not None:
                _test(emitter, loop, exit_test)
            emitter.run(inner)
            _finish_iteration(emitter, loop, inner, length is None and needs_index)
    emitter.names.release(scope)
    emitter.line(header[0], let)
    emitter.lines += lines or ["    " * (emitter.indent + 1) + "pass"]
    _results(emitter, loop, counted)


# --- state -----------------------------------------------------------------------------------------------------------

def _carry_variables(emitter: Emitter, loop: Loop) -> None:
    """A Python variable for each carry and accumulator, holding its first value; arrays written in place are owned."""
    block, let = emitter.block, loop.let
    initial = (*loop.carries, *loop.accumulators)
    params = loop.body.params[1 + loop.roles.consts:][:len(initial)]
    starting: list[tuple[str, Expr]] = []
    for k, (atom, param, out) in enumerate(zip(initial, params, loop.kept)):
        owned = loop.owned[k] and bool(param.type.dims)
        expr = emitter.expr(atom)
        loop.initial.append(expr)
        repeated = sum(a is atom for a in let.args) > 1
        mine = isinstance(atom, Var) and expr.is_name and block.holder.get(expr.text) is atom
        dead = isinstance(atom, Var) and not block.live_after(atom) and not repeated and not any(
            expr.is_name and _reads(emitter, a, expr.text) for a in (*loop.consts, *loop.rows))
        if owned and not (mine and dead and emitter.may_write(atom) and not _shared(emitter, atom, let)):
            fresh = not expr.storages and expr.operations > 0
            expr = expr if fresh else replace(expr, text=f"{expr.at(ATOM)}.copy()", level=ATOM, operations=1, parts=None)
            mine = False
        if mine and dead:
            emitter.flush(frozenset([expr.text]), spare=[atom])
            loop.targets.append(expr.text)
            continue
        wish = wanted_name(out, let)
        wish = wanted_name(param, None) if out not in block.uses or out.name == let.primitive.name else wish
        target = wish if _may_take(emitter, loop, wish, atom if dead else None) else emitter.names.fresh(wish)
        if target != wish:
            block.names.add(target)
        loop.targets.append(target)
        starting.append((target, strong(expr)))
    assign_all(emitter, starting, let=let)


def _may_take(emitter: Emitter, loop: Loop, wish: str, dying: Atom | None) -> bool:
    """Whether the name `wish` is that of a value nobody needs any more; `dying` is the carry's own first value."""
    block = emitter.block
    old = block.holder.get(wish)
    if old is None or wish in loop.targets or wish in emitter.sizes.values():
        return False
    if old in loop.let.args and old is not dying or any(_reads(emitter, a, wish) for a in (*loop.consts, *loop.rows)):
        return False
    return not emitter._still_needed(old, wish)


def _reads(emitter: Emitter, atom: Atom, target: str) -> bool:
    return target in emitter.expr(atom).reads


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
    for param, atom in zip(consts, loop.consts):
        inner.env[param] = _borrowed(_outer_expr(outer, atom), param)
    for k, (param, target) in enumerate(zip((*carries, *accumulators), loop.targets)):
        storage = Storage(loop.owned[k])
        made = name(target, param.type, storages=(storage,) if param.type.dims else ())
        first = loop.initial[k]
        if first.maybe_python:
            made = replace(made, maybe_python=True)
            emitter.roots[target] = frozenset().union(*(emitter.roots.get(r, frozenset([r])) for r in first.reads))
        inner.env[param] = made
        inner.carried[loop.body.results[k]] = target
        inner.holder[target] = param
        storage.members.append((inner, param))
        emitter.storage_of[target] = made.storages
    found = []
    for param, atom in zip(rows, loop.rows):
        found.append((param, atom))
    return found


def _outer_expr(outer: Block, atom: Atom) -> Expr:
    return outer.env[atom] if isinstance(atom, Var) else literal(atom.value)


def _borrowed(expr: Expr, param: Var) -> Expr:
    storages = (Storage(False),) if param.type.dims else ()
    return replace(expr, storages=storages, kept=None, loose=expr.loose if expr.operations == 0 else None)


# --- headers ---------------------------------------------------------------------------------------------------------

def _while_header(emitter: Emitter, loop: Loop, condition: Function, needs_index: bool) -> tuple:
    if needs_index:
        emitter.line(f"{loop.index} = 0")
    with emitter.captured(deeper=1) as lines:
        test = _condition(emitter, loop, condition)
    if not lines:
        return f"while {test.text}:", None
    return "while True:", lambda e: _break_unless(e, lines, test)


def _break_unless(emitter: Emitter, lines: list[str], test: Expr) -> None:
    emitter.lines += lines
    emitter.line(f"if {negated(test).text}:")
    emitter.line("    break")


def _test(emitter: Emitter, loop: Loop, condition: Function) -> None:
    test = _condition(emitter, loop, condition)
    _break_unless(emitter, [], test)


def _condition(emitter: Emitter, loop: Loop, condition: Function) -> Expr:
    """The condition on the names of the carries."""
    outer = emitter.blocks[-2]
    with emitter.inside(condition) as block:
        index, *params = condition.params
        block.env[index] = name(loop.index, index.type, weak=INDEX_BITS)
        for param, atom in zip(params, loop.consts):
            block.env[param] = _borrowed(_outer_expr(outer, atom), param)
        for param, target in zip(params[len(loop.consts):], loop.targets):
            storages = (Storage(False),) if param.type.dims else ()
            block.env[param] = name(target, param.type, storages=storages)
        emitter.run(block)
        return emitter.expr(condition.results[0])


def _for_header(emitter: Emitter, loop: Loop, inner: Block, rows: list, length, needs_index: bool) -> tuple:
    """`for i in range(n):` with rows read by index, or `for x, y in zip(xs, ys):`."""
    outer = emitter.blocks[-2]
    reverse = loop.let.attributes.get("reverse", False)
    sources: list[tuple[str, str]] = []  # what to go through, and the pattern for one item
    done: set[str] = set()
    for param, atom in rows:
        source = outer.row_lists.get(atom)
        if source is not None:
            if source.name in done:
                continue
            done.add(source.name)
            pattern = _pattern(emitter, inner, source, rows)
            if pattern:
                sources.append((source.name, pattern))
        elif param in inner.uses:
            whole = _outer_expr(outer, atom)
            if needs_index and inner.uses[param] == 1:
                storages = (Storage(False),) if param.type.dims else ()
                made = suffix(whole, f"[{loop.index}]", param.type, storages)
                inner.env[param] = inner.pending[param] = made
                continue
            target = emitter.names.fresh(wanted_name(param, None))
            inner.names.add(target)
            sources.append((whole.text, target))
            _bind_row(inner, param, target)
    if needs_index:
        span = f"range({emitter.dim(length)})"
        header = f"for {loop.index} in {f'reversed({span})' if reverse else span}:"
        items = [(f"{target} = {source}[{loop.index}]") for source, target in sources]

        def read(e: Emitter) -> None:
            for item in items:
                e.line(item)
        return header, read
    if not sources:
        return f"for _ in range({emitter.dim(length)}):", None
    texts = [f"reversed({s})" if reverse else s for s, _ in sources]
    if len(sources) == 1:
        return f"for {sources[0][1]} in {texts[0]}:", None
    patterns = [f"({p})" if "," in p else p for _, p in sources]
    return f"for {', '.join(patterns)} in zip({', '.join(texts)}):", None


def _bind_row(inner: Block, param: Var, target: str) -> None:
    inner.env[param] = name(target, param.type, storages=(Storage(False),) if param.type.dims else ())
    inner.holder[target] = param


def _pattern(emitter: Emitter, inner: Block, source: RowList, rows: list) -> str:
    """Names for one item of a list of residuals."""
    names = []
    for var in source.vars:
        param = next((p for p, a in rows if a is var and p in inner.uses), None)
        if param is None:
            names.append("_")
            continue
        wish = source.wishes.get(var)
        target = emitter.names.fresh(wish if wish and re.sub(r"_\d+$", "", param.name) in REGISTRY else wanted_name(param, None))
        inner.names.add(target)
        _bind_row(inner, param, target)
        for other, a in rows:
            if a is var and other is not param and other in inner.uses:
                inner.env[other] = inner.env[param]
        names.append(target)
    return "" if set(names) == {"_"} else ", ".join(names)


# --- rows out --------------------------------------------------------------------------------------------------------

def _counter_needed(emitter: Emitter, loop: Loop) -> bool:
    """Whether anything later asks for the number of iterations."""
    if loop.trips is None:
        return False
    block, symbol = emitter.block, loop.let.attributes["size"]
    if loop.trips in block.uses:
        return True
    for let in block.function.lets[block.position + 1:]:
        for key, value in let.attributes.items():
            if key == "length" and any(a in loop.stacked for a in let.args):
                continue
            if symbol in attribute_symbols(value) and not isinstance(value, Function):
                return True
        if any(symbol in attribute_symbols(r) for r in let.regions()):
            return True
    return False


def _row_outputs(emitter: Emitter, loop: Loop, used: set[Var]) -> None:
    """Lists for rows that only loops go through, arrays made beforehand for the others of known number."""
    block, known = emitter.block, loop.let.attributes["cond"] is None
    groups: dict[tuple, list[Var]] = {}
    for var in loop.stacked:
        if var not in used:
            continue
        consumers = _row_consumers(block, var)
        if consumers:
            groups.setdefault(consumers, []).append(var)
        elif known:
            target = emitter.define(var, loop.let)
            more = "" if var.type.dtype == np.float64 else f", dtype={dtype_text(var.type.dtype)}"
            emitter.line(f"{target} = np.empty({emitter.shape(var.type.dims)}{more})")
            loop.arrays[var] = target
        else:
            loop.lists.append(_new_list(emitter, [var], wanted_name(var, loop.let)))
    for vars in groups.values():
        plain = wanted_name(vars[0], loop.let)
        made = _new_list(emitter, vars, plain if len(vars) == 1 and plain != "state" else "residuals")
        loop.lists.append(made)
        for var in vars:
            block.only_rows.add(var)
            block.row_lists[var] = made


def _new_list(emitter: Emitter, vars: list[Var], wish: str) -> RowList:
    target = emitter.names.fresh(wish)
    emitter.block.names.add(target)
    emitter.line(f"{target} = []")
    return RowList(target, list(vars))


def _row_consumers(block: Block, var: Var) -> tuple:
    """The loops that go through `var` row by row, if nothing else uses it."""
    found = []
    if var in block.function.results:
        return ()
    for let in block.function.lets[block.position + 1:]:
        if var not in let.args:
            continue
        if let.primitive.name != "loop":
            return ()
        roles: Roles = let.attributes["roles"]
        consts, carries, accumulators, rows = roles.parts(let.args)
        if var in consts or var in carries or var in accumulators or let.attributes["length"] is None:
            return ()
        found.append(let)
    return tuple(found)


def _finish_iteration(emitter: Emitter, loop: Loop, inner: Block, count: bool) -> None:
    """The end of the body: rows are stored, then carries get their next values."""
    results = list(loop.body.results)
    kept, rows = results[:len(loop.kept)], results[len(loop.kept):]
    by_var = dict(zip(loop.stacked, rows))
    shared = [s for atom in kept if isinstance(atom, Var) for s in inner.env[atom].storages]
    for var, target in loop.arrays.items():
        emitter.line(f"{target}[{loop.index}] = {emitter.expr(by_var[var]).text}")
    for rows_list in loop.lists:
        items = []
        for var in rows_list.vars:
            expr = strong(emitter.expr(by_var[var]))
            if var.type.ndim > 1 and any(s in shared for s in expr.storages):
                expr = replace(expr, text=f"{expr.at(ATOM)}.copy()", level=ATOM)
            items.append(expr.text)
            if expr.is_name:
                rows_list.wishes[var] = expr.text
        item = items[0] if len(items) == 1 else f"({', '.join(items)})"
        emitter.line(f"{rows_list.name}.append({item})")
    pairs, seen = [], []
    for k, (atom, target) in enumerate(zip(kept, loop.targets)):
        expr = emitter.expr(atom)
        if expr.maybe_python and expr.text != target:
            emitter.need_numpy(expr)
        if loop.owned[k] and loop.kept[k].type.dims:
            exclusive = not expr.storages and expr.operations > 0 or (
                len(expr.storages) == 1 and expr.storages[0].owned and expr.storages[0] not in seen)
            if not exclusive:
                expr = replace(expr, text=f"{expr.at(ATOM)}.copy()", level=ATOM, parts=None)
            seen += expr.storages
        pairs.append((target, expr))
    accumulated = {t for k, t in enumerate(loop.targets) if k >= loop.roles.carries}
    assign_all(emitter, pairs, accumulated)
    if count:
        emitter.line(f"{loop.index} += 1")


def _results(emitter: Emitter, loop: Loop, counted: bool) -> None:
    """Names for what the loop leaves."""
    block, let = emitter.block, loop.let
    operands = tuple(s for a in let.args if isinstance(a, Var) for s in _storages(emitter, a))
    for k, (var, target) in enumerate(zip(loop.kept, loop.targets)):
        storages: tuple[Storage, ...] = ()
        if var.type.dims:
            storages = (Storage(True),) if loop.owned[k] else (*dict.fromkeys(operands), Storage(False))
        emitter.hold(var, name(target, var.type, storages=storages), target)
    for var, target in loop.arrays.items():
        emitter.hold(var, name(target, var.type, storages=(Storage(True),)), target)
    symbol = let.attributes.get("size")
    if symbol is not None:
        text = f"len({loop.lists[0].name})" if loop.lists else loop.index
        emitter.sizes[symbol] = text
        if counted:
            if not loop.lists:
                block.names.add(loop.index)
                emitter.names.taken.add(loop.index)
            assert loop.trips is not None
            block.env[loop.trips] = Expr(text, ATOM, loop.trips.type.plain, weak=INDEX_BITS,
                                         reads=frozenset([loop.index]))
    for rows_list in loop.lists:
        var = rows_list.vars[0]
        if var in block.only_rows:
            for v in rows_list.vars:
                block.env[v] = name(rows_list.name, v.type, storages=(Storage(False),))
            continue
        emitter.hold(var, name(rows_list.name, var.type, storages=(Storage(True),)), rows_list.name)
        emitter.line(f"{rows_list.name} = {_stacked(emitter, rows_list.name, var.type)}", let)


def _stacked(emitter: Emitter, rows: str, type_: Array) -> str:
    """A list of rows as an array, also when there are none."""
    more = "" if type_.dtype == np.float64 else f", dtype={dtype_text(type_.dtype)}"
    if type_.ndim == 1:
        return f"np.array({rows}{more})"
    dims = ", ".join(emitter.dim(d) for d in type_.dims[1:])
    return f"np.array({rows}{more}).reshape(len({rows}), {dims})"


STATEMENTS["loop"] = emit_loop

__all__ = ["emit_loop"]
