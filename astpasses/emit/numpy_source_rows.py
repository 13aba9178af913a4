"""What loops go through and leave row by row: arrays read by index, lists of residuals, preallocated arrays.

In: a `Loop` being written. Out: the header of a `for`, names for the rows of an iteration, lists and arrays
for the rows that it gives. Example: `for sin_E, cos_E in reversed(residuals):`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metaphrase.core.ir import Atom, Function, Let, Literal, Roles, Var, attribute_symbols
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import Array
from metaphrase.late import dataclass, field

from .numpy_source_blocks import WIDTH, Block, Emitter
from .numpy_source_expressions import (
    ATOM,
    COMPARE,
    INDEX_BITS,
    Expr,
    Storage,
    dtype_text,
    literal,
    name,
    strong,
    suffix,
)
from .numpy_source_names import wanted_name


@dataclass
class RowList:
    """Rows of a loop kept in a Python list; several that the same loops go through are kept as tuples."""

    name: str
    vars: list[Var] = field(default_factory=list)
    wishes: dict[Var, str] = field(default_factory=dict)  # what the values were called where they were stored
    backward: bool = False  # filled by a loop that runs down: the last row was appended first
    parts: bool = False  # of segments: holds arrays, where others hold their rows


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
    kept: tuple[Var, ...]  # results: carries and accumulators
    stacked: tuple[Var, ...]  # results: rows
    segments: tuple[Var, ...]  # results: segments
    owned: tuple[bool, ...]  # state that the body writes in place
    index: str = ""
    initial: list[Expr] = field(default_factory=list)
    foreign: list[Storage] = field(default_factory=list)  # memory that code around the loop may write to later
    targets: list[str] = field(default_factory=list)
    lists: list[RowList] = field(default_factory=list)
    arrays: dict[Var, str] = field(default_factory=dict)
    joined: list[RowList] = field(default_factory=list)  # lists of segments


def outer_expr(outer: Block, atom: Atom) -> Expr:
    return outer.env[atom] if isinstance(atom, Var) else literal(atom.value)


def borrowed(expr: Expr, param: Var) -> Expr:
    storages = (Storage(False),) if param.type.dims else ()
    return replace(expr, storages=storages, kept=None, loose=expr.loose if expr.operations == 0 else None)


def shifted_counter(body: Function, consts: Sequence[Var]) -> Let | None:
    """The addition of a number to the counter, if that is all that the body does with it: then the range
    begins at that number."""
    index = body.params[0]
    users = [let for let in body.lets if index in let.args]
    if len(users) != 1 or index in body.results or users[0].primitive.name != "add":
        return None
    (other,) = [a for a in users[0].args if a is not index] or [index]
    return users[0] if isinstance(other, Literal) or other in consts else None


def _shifted_range(emitter: Emitter, loop: Loop, shift: Let) -> str:
    """`range(1, n)`; `range(first, n)` where the loop runs n - first times."""
    length = loop.let.attributes["length"]
    (other,) = [a for a in shift.args if a is not loop.body.params[0]]
    if isinstance(other, Literal):
        return f"range({int(other.value)}, {emitter.dim(length + int(other.value))})"
    outer = emitter.blocks[-2]
    first = loop.consts[loop.body.params.index(other) - 1]
    text = outer_expr(outer, first).text
    counts = [let for let in outer.makers.values() if let.primitive.name == "as_dim" and let.out.type.value == length]
    number = outer.makers.get(counts[0].args[0]) if counts else None  # type: ignore[arg-type]
    if number is not None and number.primitive.name == "sub" and number.args[1] is first:
        last = number.args[0]
        end = literal(last.value) if isinstance(last, Literal) else outer.env[last]
        return f"range({text}, {end.text})"
    return f"range({text}, {text} + {emitter.dim_expr(length).at(COMPARE + 1)})"


def for_header(
    emitter: Emitter, loop: Loop, inner: Block, rows: list, length, needs_index: bool, shift: Let | None
) -> tuple:
    """`for i in range(n):` with rows read by index, or `for x, y in zip(xs, ys):`."""
    outer = emitter.blocks[-2]
    reverse = loop.let.attributes.get("reverse", False)
    sources: list[tuple[str, str]] = []  # what to go through, and the pattern for one item
    done: set[str] = set()
    backward: dict[str, bool] = {}
    if shift is not None:
        sources.append((_shifted_range(emitter, loop, shift), loop.index))
        inner.env[shift.out] = replace(inner.env[loop.body.params[0]], type=shift.out.type)
        inner.counted = shift
    for param, atom in rows:
        source = outer.row_lists.get(atom)
        if source is not None:
            if source.name in done:
                continue
            done.add(source.name)
            pattern = _pattern(emitter, inner, source, rows)
            if pattern:
                sources.append((source.name, pattern))
                backward[source.name] = source.backward
        elif param in inner.uses:
            whole = outer_expr(outer, atom)
            if needs_index and inner.uses[param] == 1:
                storages = (Storage(False),) if param.type.dims else ()
                made = suffix(whole, f"[{loop.index}]", param.type, storages)
                inner.env[param] = inner.pending[param] = made
                continue
            target = emitter.names.fresh(wanted_name(param, None))
            inner.names.add(target)
            sources.append((whole.text, target))
            _bind_row(inner, param, target)
    if needs_index and len(sources) == 1 and not reverse and not backward.get(sources[0][0]):
        source, target = sources[0]
        if loop.let.attributes["cond"] is None:
            target = f"({target})" if "," in target else target
            return f"for {loop.index}, {target} in enumerate({source}):", None
    if needs_index and len(sources) > 1 and loop.let.attributes["cond"] is None:
        sources.insert(0, (f"range({emitter.dim(length)})", loop.index))
    elif needs_index:
        span = f"range({emitter.dim(length)})"
        header = f"for {loop.index} in {f'reversed({span})' if reverse else span}:"
        items = []
        for source, target in sources:  # a list filled from the end on has its rows in that order
            place = f"-1 - {loop.index}" if backward.get(source) else loop.index
            items.append(f"{target} = {source}[{place}]")

        def read(e: Emitter) -> None:
            for item in items:
                e.line(item)

        return header, read
    if not sources:
        return f"for _ in range({emitter.dim(length)}):", None
    texts = [f"reversed({s})" if reverse != backward.get(s, False) else s for s, _ in sources]
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
        target = emitter.names.fresh(
            wish if wish and re.sub(r"_\d+$", "", param.name) in REGISTRY else wanted_name(param, None)
        )
        inner.names.add(target)
        _bind_row(inner, param, target)
        for other, a in rows:
            if a is var and other is not param and other in inner.uses:
                inner.env[other] = inner.env[param]
        names.append(target)
    return "" if set(names) == {"_"} else ", ".join(names)


# --- rows out --------------------------------------------------------------------------------------------


def counter_needed(emitter: Emitter, loop: Loop) -> bool:
    """Whether anything later asks for the number of iterations."""
    if loop.trips is None:
        return False
    block, symbol = emitter.block, loop.let.attributes["size"]
    if loop.trips in block.uses:
        return True
    for let in block.function.lets[block.position + 1 :]:
        for key, value in let.attributes.items():
            if key == "length" and any(a in loop.stacked for a in let.args):
                continue
            if symbol in attribute_symbols(value) and not isinstance(value, Function):
                return True
        if any(symbol in attribute_symbols(r) for r in let.regions()):
            return True
    return False


def row_outputs(emitter: Emitter, loop: Loop, used: set[Var]) -> None:
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
            loop.lists.append(_new_list(emitter, [var], wanted_name(var, loop.let), loop))
    for vars in groups.values():
        plain = wanted_name(vars[0], loop.let)
        made = _new_list(emitter, vars, plain if len(vars) == 1 and plain != "state" else "residuals", loop)
        loop.lists.append(made)
        for var in vars:
            block.only_rows.add(var)
            block.row_lists[var] = made
    for var in loop.segments:
        loop.joined.append(_new_list(emitter, [var], wanted_name(var, loop.let), loop))


def _new_list(emitter: Emitter, vars: list[Var], wish: str, loop: Loop) -> RowList:
    target = emitter.names.fresh(wish)
    emitter.block.names.add(target)
    emitter.line(f"{target} = []")
    return RowList(target, list(vars), backward=loop.let.attributes.get("reverse", False))


def _row_consumers(block: Block, var: Var) -> tuple:
    """The loops that go through `var` row by row, if nothing else uses it."""
    found = []
    if var in block.function.results:
        return ()
    for let in block.function.lets[block.position + 1 :]:
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


def store_rows(emitter: Emitter, loop: Loop, inner: Block) -> None:
    """At the end of an iteration its rows go into their arrays and lists."""
    kept, rows = loop.body.results[: len(loop.kept)], loop.body.results[len(loop.kept) :]
    by_var = dict(zip((*loop.stacked, *loop.segments), rows))
    shared = [s for atom in kept if isinstance(atom, Var) for s in inner.env[atom].storages] + loop.foreign
    for var, target in loop.arrays.items():
        emitter.line(f"{target}[{loop.index}] = {emitter.expr(by_var[var]).text}")
    for rows_list in (*loop.lists, *loop.joined):
        items = []
        while sum(len(emitter.expr(by_var[v]).text) for v in rows_list.vars) > WIDTH:
            waiting = [by_var[v] for v in rows_list.vars if by_var[v] in inner.pending]
            waiting = [a for a in waiting if emitter.expr(a).operations and not emitter.expr(a).is_name]
            if not waiting:
                break
            longest = max(waiting, key=lambda a: len(emitter.expr(a).text))
            assert isinstance(longest, Var)
            emitter.assign(longest, emitter.expr(longest))
        for var in rows_list.vars:
            expr = strong(emitter.expr(by_var[var]))
            if by_var[var].type.dims and any(s in shared for s in expr.storages):
                expr = replace(expr, text=f"{expr.at(ATOM)}.copy()", level=ATOM)
            items.append(expr.text)
            if expr.is_name:
                rows_list.wishes[var] = expr.text
        item = items[0] if len(items) == 1 else f"({', '.join(items)})"
        if rows_list in loop.joined:
            if by_var[rows_list.vars[0]] in inner.lists:
                emitter.line(f"{rows_list.name} += {item}")
                continue
            rows_list.parts = True
        emitter.line(f"{rows_list.name}.append({item})")


def join_segments(emitter: Emitter, loop: Loop) -> None:
    """Behind the loop: the segments of all iterations behind one another, and how many rows that makes."""
    names = loop.let.attributes.get("segment_sizes", ())
    for var, rows_list, symbol in zip(loop.segments, loop.joined, names):
        rows = rows_list.name
        emitter.hold(var, name(rows, var.type, storages=(Storage(True),)), rows)
        if rows_list.parts:
            more = "" if var.type.dtype == np.float64 else f", dtype={dtype_text(var.type.dtype)}"
            dims = emitter.shape((0, *var.type.dims[1:])) if var.type.ndim > 1 else "0"
            emitter.line(f"{rows} = np.concatenate({rows}) if {rows} else np.empty({dims}{more})", loop.let)
        elif var in emitter.block.segments:
            emitter.block.lists.add(var)
        else:
            emitter.line(f"{rows} = {stacked(emitter, rows, var.type)}", loop.let)
        if symbol in emitter.sizes and rows_list is not loop.joined[names.index(symbol)]:
            continue
        emitter.sizes[symbol] = f"len({rows})"
        emitter.size_reads.add(rows)
        total = loop.let.binder(symbol)
        emitter.block.env[total] = Expr(
            f"len({rows})", ATOM, total.type.plain, weak=INDEX_BITS, reads=frozenset([rows])
        )


def stacked(emitter: Emitter, rows: str, type_: Array) -> str:
    """A list of rows as an array, also when there are none."""
    more = "" if type_.dtype == np.float64 else f", dtype={dtype_text(type_.dtype)}"
    if type_.ndim == 1:
        return f"np.array({rows}{more})"
    dims = ", ".join(emitter.dim(d) for d in type_.dims[1:])
    return f"np.array({rows}{more}).reshape(len({rows}), {dims})"


__all__ = [
    "Loop",
    "RowList",
    "outer_expr",
    "borrowed",
    "for_header",
    "counter_needed",
    "row_outputs",
    "store_rows",
    "join_segments",
    "stacked",
]
