"""Branches as `if`, `elif`, `else`, or as `a if c else b` where they are small.

In: the emitter and a `cond` Let. Out: statements that bind the results, or an expression that
waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.stores import written

from .numpy_source_blocks import Block, Emitter, assign_all
from .numpy_source_effects import negated
from .numpy_source_expressions import (
    COMPARE,
    TERNARY,
    Expr,
    Storage,
    infix,
    literal,
    name,
    operations_of,
    reads_of,
    strong,
)
from .numpy_source_names import wanted_name
from .numpy_source_spellings import STATEMENTS

TERNARY_WIDTH = 60


def emit_cond(emitter: Emitter, let: Let) -> None:
    block = emitter.block
    branches: tuple[Function, ...] = let.attributes["branches"]
    used = [k for k, v in enumerate(let.outs) if v in block.uses]
    if not used and not let.effects:
        return
    if len(used) == 1 and all(_is_select(b) for b in branches) and not _one_passes_on(emitter, let, used[0]):
        if _as_expression(emitter, let, used[0]):
            return
    operands = [emitter.named(a) for a in let.args[1:]]
    index = emitter.fitting(None, lambda: emitter.expr(let.args[0]), let.args[:1])
    if len(branches) > 2:
        index = emitter.named(let.args[0])
    handed = [
        isinstance(a, Var) and not block.live_after(a) and _alone(emitter, let, k) for k, a in enumerate(let.args[1:])
    ]
    for operand, mine in zip(operands, handed):
        if mine:  # a branch may write into it, or take its name
            emitter.flush_storage(operand.storages)
    targets = _targets(emitter, let, used, handed)
    bodies: list[list[str]] = []
    storages: list[list[Storage]] = [[] for _ in used]
    exclusive = [True for _ in used]
    python: list[list[Expr]] = [[] for _ in used]  # what may be one of the caller's Python numbers
    for branch in branches:
        with emitter.inside(branch) as inner, emitter.captured(deeper=1) as lines:
            borrowed = bind_operands(emitter, inner, operands, handed)
            emitter.run(inner)
            exprs = _leave(emitter, inner, branch, used, targets, borrowed, storages, exclusive)
            for numbers, expr in zip(python, exprs):
                if expr.maybe_python:
                    numbers.append(expr)
        bodies.append(lines)
    _write(emitter, let, index, bodies)
    for k, target, found, own, numbers in zip(used, targets, storages, exclusive, python):
        var = let.outs[k]
        whole = (Storage(True),) if own else (*dict.fromkeys(found), Storage(False))
        made = name(target, var.type, storages=whole if var.type.dims else (), maybe_python=bool(numbers))
        if numbers:
            emitter.roots[target] = emitter.roots_of(numbers)
        emitter.hold(var, made, target)


def _is_select(branch: Function) -> bool:
    """Whether a branch only computes: no effects, few operations, no regions but `and` and `or`."""
    return len(branch.lets) <= 4 and not any(
        x.primitive.effect or x.primitive.region and not _is_logic(x) for x in branch.lets
    )


def _is_logic(let: Let) -> bool:
    one = len(let.outs) == 1 and let.out.type.dtype == bool and not let.out.type.dims
    return one and let.primitive.name == "cond" and all(map(_is_select, let.attributes["branches"]))


def _as_logic(test: Expr, yes: Expr, no: Expr, results: list[Atom], out: Var) -> Expr | None:
    """`c and a` for `a if c else False`, `c or b` for `True if c else b`."""
    if out.type.dtype != bool or out.type.dims:
        return None
    of_no, of_yes = (bool(r.value) if isinstance(r, Literal) else None for r in results)
    made = infix("and", test, yes, out.type) if of_no is False else infix("or", test, no, out.type) if of_yes else None
    return None if made is None or len(made.text) > TERNARY_WIDTH else made


def _as_expression(emitter: Emitter, let: Let, position: int) -> bool:
    """Try `a if c else b`."""
    branches, out = let.attributes["branches"], let.outs[position]
    if len(branches) != 2 or let.args[0].type.dtype != bool:
        return False
    operands = [emitter.expr(a) for a in let.args[1:]]
    if any(e.operations and not e.is_name for e in operands):
        return False
    before = set(emitter.names.taken)
    values = []
    with emitter.captured() as lines:
        for branch in branches:
            with emitter.inside(branch) as inner:
                borrowed = bind_operands(emitter, inner, operands, [False] * len(operands))
                emitter.run(inner)
                value = emitter.expr(branch.results[position])
                outer = tuple(x for s in value.storages for x in borrowed.get(s, (s,)))
                values.append(replace(value, storages=outer))
    if lines or any(v.parts == ("undefined",) for v in values):
        emitter.names.taken = before
        return False
    no, yes = (strong(v) for v in values)
    test = emitter.expr(let.args[0])
    if (either := _as_logic(test, yes, no, [branch.results[position] for branch in branches], out)) is not None:
        emitter.bind(out, either, let)
        return True
    text = f"{yes.at(TERNARY + 1)} if {test.at(TERNARY + 1)} else {no.at(TERNARY)}"
    if len(text) > TERNARY_WIDTH:
        return False
    storages = tuple(dict.fromkeys((*yes.storages, *no.storages)))
    if out.type.dims:
        storages = (*storages, Storage(not storages))
    made = Expr(
        text,
        TERNARY,
        out.type.plain,
        None,
        reads_of([yes, no, test]),
        operations_of([yes, no, test]) + 1,
        storages=storages,
        maybe_python=any(v.maybe_python for v in values),
    )
    emitter.bind(out, made, let)
    return True


def _alone(emitter: Emitter, let: Let, k: int) -> bool:
    """Whether the memory of operand k reaches the branches by this operand only."""
    atom = let.args[1 + k]
    if not isinstance(atom, Var) or not emitter.may_write(atom):
        return False
    mine = emitter.expr(atom).storages
    return not any(s in mine for j, a in enumerate(let.args[1:]) if j != k for s in emitter.expr(a).storages)


def bind_operands(emitter: Emitter, inner: Block, operands: Sequence[Expr], handed: Sequence[bool]) -> dict:
    """Parameters of a branch; gives back which outer memory a borrowed one stands for."""
    borrowed: dict[Storage, tuple[Storage, ...]] = {}
    for param, expr, mine in zip(inner.function.params, operands, handed):
        storages: tuple[Storage, ...] = ()
        if param.type.dims:
            storage = Storage(mine)
            borrowed[storage] = expr.storages
            storages = (storage,)
            storage.add(inner, param)
        inner.env[param] = replace(expr, storages=storages)
        if mine and expr.is_name:
            inner.holder[expr.text] = param
            emitter.keep_track(expr.text, storages)
    return borrowed


def _targets(emitter: Emitter, let: Let, used: Sequence[int], handed: Sequence[bool]) -> list[str]:
    """Names for the results: that of an operand which dies here and which a branch passes on, else a fresh
    one."""
    targets: list[str] = []
    for k in used:
        passed = [_passed_on(emitter, let, branch, k) for branch in let.attributes["branches"]]
        chosen = next((p for p in passed if p is not None and p not in targets), None)
        if chosen is not None:
            emitter.flush(frozenset([chosen]))
        targets.append(chosen or emitter.define(let.outs[k], let))
    return targets


def _passed_on(emitter: Emitter, let: Let, branch: Function, k: int) -> str | None:
    """The name of the dying operand that a branch gives as result k, as it is or written into."""
    block, out, result = emitter.block, let.outs[k], branch.results[k]
    origin = written(branch)[1].get(result, result) if isinstance(result, Var) else None
    if not isinstance(origin, Var) or origin not in branch.params:
        return None
    atom = let.args[1 + branch.params.index(origin)]
    if not isinstance(atom, Var) or block.live_after(atom) or let.args.count(atom) > 1:
        return None
    expr, wish, own = emitter.expr(atom), wanted_name(out, let), atom.name
    if not expr.is_name or block.holder.get(expr.text) is not atom or expr.text in emitter.size_reads:
        return None
    fits = wish == own or out.name == let.primitive.name or expr.text == wish
    return expr.text if fits else None


def _one_passes_on(emitter: Emitter, let: Let, k: int) -> bool:
    """Whether the cond reads best as an `if` without `else`: `if c: s += x`."""
    return sum(_passed_on(emitter, let, b, k) is not None for b in let.attributes["branches"]) == 1


def _leave(
    emitter: Emitter,
    inner: Block,
    branch: Function,
    used: Sequence[int],
    targets: Sequence[str],
    borrowed: dict,
    storages: list[list[Storage]],
    exclusive: list[bool],
) -> list[Expr]:
    """The end of a branch: its results, which go to the names that all branches agree on."""
    raises = any(
        x.primitive.name == "check" and isinstance(x.args[0], Literal) and not x.args[0].value for x in branch.lets
    )
    pairs = []
    exprs = [emitter.expr(branch.results[k]) for k in used]
    for position, e in enumerate(exprs):
        alone = not e.storages and e.operations > 0 or len(e.storages) == 1 and e.storages[0].owned
        shared = any(s in x.storages for x in exprs if x is not e for s in e.storages)
        if not (raises and e.parts == ("undefined",)):
            exclusive[position] &= alone and not shared and sum(x is e for x in exprs) == 1
    for storage in {s for e in exprs for s in e.storages if s.owned and s not in borrowed}:
        holders = [position for position, e in enumerate(exprs) if storage in e.storages]
        if len(holders) > 1:  # two results are the same array: neither may be written in place
            common = Storage(False)
            for position in holders:
                storages[position].append(common)
    for position, target in enumerate(targets):
        expr = exprs[position]
        for storage in expr.storages:
            storages[position] += borrowed.get(storage, () if storage.owned else (storage,))
        if raises and expr.parts == ("undefined",):
            continue
        pairs.append((target, expr))
    if not raises:
        assign_all(emitter, pairs)
    return exprs


def _write(emitter: Emitter, let: Let, index: Expr, bodies: list[list[str]]) -> None:
    if len(bodies) == 2:
        index = index if let.args[0].type.dtype == bool else infix("!=", index, literal(_zero()), index.type)
        no, yes = bodies
        if not no and not yes:
            return
        if not yes:
            emitter.line(f"if {negated(index).text}:", let)
            emitter.lines += no
            return
        if no and _raises(no) and not _raises(yes):
            index, yes, no = negated(index), no, yes
        emitter.line(f"if {index.text}:", let)
        emitter.lines += yes
        if no and _raises(yes):
            emitter.lines += [line[4:] for line in no]
        elif no:
            emitter.line("else:")
            emitter.lines += no
        return
    for k, lines in enumerate(bodies):
        word = "if" if k == 0 else "elif"
        last = k == len(bodies) - 1
        emitter.line("else:" if last and k else f"{word} {index.at(COMPARE + 1)} == {k}:", let if k == 0 else None)
        emitter.lines += lines or ["    " * (emitter.indent + 1) + "pass"]


def _raises(lines: list[str]) -> bool:
    """Whether these lines always raise: by their last one, unless it stands deeper than the first."""
    last = lines[-1].lstrip()
    return last.startswith("raise ") and len(lines[-1]) - len(last) == len(lines[0]) - len(lines[0].lstrip())


def _zero() -> object:
    import numpy as np

    return np.int64(0)


STATEMENTS["cond"] = emit_cond

__all__ = ["emit_cond", "bind_operands"]
