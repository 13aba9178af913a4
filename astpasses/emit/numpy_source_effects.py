"""Statements that are no expressions: writes into arrays, sizes.

In: the emitter and a Let. Out: lines such as `x[i] = v`, `acc[rows] += v`, `n = np.sum(mask)`.
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.dims import Sym
from metaphrase.core.guarded import is_count
from metaphrase.core.ir import Atom, Let, Literal, Var

from .numpy_source_arrays import gathered, permuted
from .numpy_source_blocks import Block, Emitter, named
from .numpy_source_expressions import NOT, Expr, Storage, call, infix, prefix, promotes
from .numpy_source_indices import index_of
from .numpy_source_names import DERIVED, named_by_user, wanted_name
from .numpy_source_spellings import STATEMENTS, typed


def target_of(emitter: Emitter, let: Let) -> Expr:
    """The array to write into, by name: the operand itself where nobody reads it later, else a copy."""
    atom, out = let.args[0], let.out
    inputs = [a for a in let.args[1:] if isinstance(a, Var)]
    expr = emitter.expr(atom)
    fresh = isinstance(atom, Var) and not expr.storages and not expr.is_name and expr.operations > 0
    if fresh:
        expr = emitter.assign(out, expr, _chain_name(emitter, out))
    elif atom not in inputs and (emitter.may_write(atom) or _views_apart(emitter, atom)):
        if not expr.is_name:
            expr = emitter.assign(atom, expr)  # type: ignore[arg-type]
        emitter.flush_storage(expr.storages, spare=inputs)
    else:
        copy = Expr(f"{expr.at(14)}.copy()", 14, out.type.plain, None, expr.reads, 1)
        expr = emitter.assign(out, copy, _chain_name(emitter, out) or _same_name(emitter, let, expr))
    emitter.hold(out, named(expr.text, out, expr), expr.text)
    return expr


def _chain_name(emitter: Emitter, out: Var) -> str | None:
    """A name for an array that is written several times: that of the last state that has one of its own."""
    block = emitter.block
    if block.chains is None:
        block.chains = _chains(block)
    found = block.chains.get(out)
    if found is None or found is out:
        return None
    name = emitter.names.fresh(wanted_name(found, block.makers[found]))
    block.names.add(name)
    block.holder[name] = out
    return name


def _same_name(emitter: Emitter, let: Let, expr: Expr) -> str | None:
    """`x = x.copy()` for a write into an array whose name nobody reads later, when the result has no name."""
    block, atom = emitter.block, let.args[0]
    if not isinstance(atom, Var) or not expr.is_name or block.holder.get(expr.text) is not atom:
        return None
    if named_by_user(let.out, let) or emitter._still_needed(atom, expr.text):
        return None
    block.holder[expr.text] = let.out
    return expr.text


def _chains(block: Block) -> dict[Var, Var | None]:
    """For the result of each write, the last state of its array that has a name of its own."""
    named_after: dict[Var, Var | None] = {}
    found: dict[Var, Var | None] = {}
    for let in reversed(block.function.lets):
        if let.primitive.stores:
            own = named_by_user(let.out, let) or DERIVED.search(let.out.name)
            found[let.out] = named_after.get(let.out) or (let.out if own else None)
            if isinstance(let.args[0], Var):
                named_after.setdefault(let.args[0], found[let.out])
    return found


def _views_apart(emitter: Emitter, atom: Atom) -> bool:
    """Where only views of a dying array are read later: copies of these, so that the array can be written."""
    expr, block = emitter.expr(atom), emitter.block
    if not isinstance(atom, Var) or block.live_after(atom) or len(expr.storages) != 1 or not expr.storages[0].owned:
        return False
    members = expr.storages[0].live()
    if expr.storages[0].block is not block or any(b is not block for b, _ in members):
        return False
    live = list(dict.fromkeys(v for _, v in members))
    if not all(
        block.env[v].storages == expr.storages
        and v in block.makers
        and block.makers[v].primitive.name in ("slice", "gather", "reshape")
        for v in live
    ):
        return False
    for v in live:
        view = block.env[v]
        if view.is_name and _copied_at_once(emitter, view.text):
            emitter.hold(v, replace(view, storages=(Storage(True),)), view.text)
            continue
        copy = replace(view, text=f"{view.at(14)}.copy()", level=14, storages=(), parts=None, narrow=None)
        emitter.assign(v, copy, view.text if v in block.holder.values() and view.is_name else None)
    return True


def _copied_at_once(emitter: Emitter, target: str) -> bool:
    """Turn the line `target = x[i:]` just written into `target = x[i:].copy()`."""
    start = f"{'    ' * emitter.indent}{target} = "
    for k in range(len(emitter.lines) - 1, -1, -1):
        row = emitter.lines[k]
        if row.startswith(start):
            if not row.endswith("]") or "#" in row:
                return False
            emitter.lines[k] = f"{row}.copy()"
            return True
        if target in row:
            return False
    return False


def _value(emitter: Emitter, let: Let) -> tuple[Expr, tuple[int, ...]]:
    """The value to write in its shortest form, and the dims of length 1 that the index leaves out for it."""
    v = emitter.expr(let.args[1])
    dims = let.args[1].type.dims
    ones = tuple(k for k, d in enumerate(dims) if d == 1)
    rest = tuple(d for d in dims if d != 1)
    drop: tuple[int, ...] = ()
    if v.narrow is not None and v.narrow.type.dims == rest:
        v, drop = v.narrow, ones
    shortest = _shortest(emitter, let, v)
    if isinstance(let.args[1], Literal) or shortest is not v and not shortest.type.dims:
        drop = ones
    return shortest, drop


def _shortest(emitter: Emitter, let: Let, v: Expr) -> Expr:
    """The loosest form of a value that means the same where it is stored, or added to what is there."""
    adds, there = let.primitive.name in ("slice_add", "scatter_add"), emitter.expr(let.args[0])
    shortest, loose = v, v.loose
    while loose is not None:
        if not adds or promotes([there, loose], there.type.dtype):
            shortest = loose
        loose = loose.loose
    return shortest


def _written(emitter: Emitter, let: Let, operator: str) -> None:
    if let.out not in emitter.block.uses:
        return
    if not let.out.type.dims:  # a scalar has no inside
        x, v = emitter.expr(let.args[0]), emitter.expr(let.args[1])
        emitter.bind(let.out, v if operator == "=" else infix("+", x, v, let.out.type), let)
        return
    v, drop = emitter.fitting(None, lambda: _value(emitter, let)[0], let.args[1:]), _value(emitter, let)[1]
    starts = [emitter.expr(s) for s in let.args[2:]]  # before the target may be copied under a new name
    target = target_of(emitter, let)
    v, drop = _value(emitter, let)
    index = index_of(emitter, target, let.args[2:], let.args[1].type.dims, let.attributes["step"])
    assert len(starts) == len(index.starts)
    place = index.text(emitter, drop) or "..."
    if operator == "+=" and v.parts is not None and v.parts[0] == "neg":
        operator, v = "-=", v.parts[1]
    text = _apart(emitter, let, target, v)
    emitter.line(f"{target.text}[{place}] {operator} {text}", let)


def _apart(emitter: Emitter, let: Let, target: Expr, v: Expr) -> str:
    """The value, copied where it is a view of the target in another order: NumPy (2.4) does not copy every
    such value, and reads what it has overwritten. Rows, and parts of one order, are safe."""
    value = let.args[1]
    if not v.type.dims or not any(storage in target.storages for storage in v.storages):
        return v.text
    made = emitter.block.makers.get(value) if isinstance(value, Var) else None
    reads = {"slice_update": "slice", "scatter": "gather"}.get(let.primitive.name)
    if made is not None and made.primitive.name == reads and made.args[0] is let.args[0]:
        same = ("step",) if reads == "slice" else ("axes",)
        if all(made.attributes[name] == let.attributes[name] for name in same):
            return v.text
    return f"{v.at(14)}.copy()"


def _scattered(emitter: Emitter, let: Let) -> None:
    if let.out not in emitter.block.uses:
        return
    if emitter.block.on_diagonal(let):
        emitter.bind(let.out, call("np.diag", [emitter.expr(let.args[1])], let.out.type), let)
        return
    emitter.fitting(let, lambda: emitter.expr(let.args[1]))
    target = target_of(emitter, let)
    v, indices = emitter.expr(let.args[1]), [emitter.expr(i) for i in let.args[2:]]
    v = _shortest(emitter, let, v)
    axes, dims = let.attributes["axes"], let.args[2].type.dims
    place, text, _ = gathered(target, indices, axes, dims)
    if let.primitive.name == "scatter":
        emitter.line(f"{place.text}[{text}] = {_apart(emitter, let, target, v)}", let)
    elif not dims or let.attributes.get("unique"):
        emitter.line(f"{place.text}[{text}] += {v.text}", let)
    else:
        index = text if len(indices) == 1 else f"({text})"
        emitter.line(f"np.add.at({place.text}, {index}, {v.text})", let)


STATEMENTS["slice_update"] = lambda emitter, let: _written(emitter, let, "=")
STATEMENTS["slice_add"] = lambda emitter, let: _written(emitter, let, "+=")
STATEMENTS["scatter"] = STATEMENTS["scatter_add"] = _scattered


# --- checks and prints -----------------------------------------------------------------------------------

OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def negated(expr: Expr) -> Expr:
    """`not expr`; comparisons of integers are turned round, which NaN forbids for floats, and `not a or b` is
    `a and not b`."""
    if expr.parts is not None and expr.parts[0] == "infix":
        _, a, operator, b = expr.parts
        if operator in OPPOSITE and (a.type.dtype.kind in "iub" or operator in ("==", "!=")):
            return infix(OPPOSITE[operator], a, b, expr.type)
        if operator in ("and", "or") and "not " in expr.text:
            return infix("or" if operator == "and" else "and", negated(a), negated(b), expr.type)
    if expr.level == NOT and expr.text.startswith("not "):
        return replace(expr, text=expr.text[4:], level=NOT)
    return prefix("not ", expr, expr.type, weak=1)


def _as_dim(emitter: Emitter, let: Let) -> None:
    """A number that becomes a size gets a name; later shapes are written with it."""
    value, symbol = emitter.expr(let.args[0]), let.attributes["size"]
    out = let.out
    if not value.is_name:
        wanted = out.name if out.name != "as_dim" else symbol.split("__")[0]
        target = emitter.names.fresh(wanted)
        emitter.block.names.add(target)
        emitter.line(f"{target} = {value.text}", let)
        value = replace(value, text=target, level=14, reads=frozenset([target]), operations=0)
        emitter.block.holder[target] = out
    if value.is_name:
        emitter.sizes_named.add(value.text)
    emitter.sizes[symbol] = value.text
    if isinstance(let.args[0], Var):
        emitter.block.dims[let.args[0]] = Sym(symbol)
    emitter.size_reads |= value.reads
    emitter.block.env[out] = value
    counted = let.attributes.get("counted", False)
    if value.weak is None and not counted and not is_count(let.args[0], emitter.block.makers):
        emitter.line(f"if {value.text} < 0:")
        emitter.line(f'    raise ValueError(f"negative dimensions are not allowed, got {{{value.text}}}")')


STATEMENTS["as_dim"] = _as_dim

__all__ = ["STATEMENTS", "negated", "Storage", "permuted", "typed"]
