"""Places that wrap around the end of an array: loops without remainders inside, and the first and last rounds apart.

In: perfect nests. Out: the same, where a nest that reads `x[(i + c) % n]` along an axis of n elements is three: most
rounds need no remainder. Around an inner loop that is long a remainder costs nothing, and the loop stays whole. Example
(`y = x - np.roll(x, 1)`):

    for i in range(n):                            for i in range(min(1, n)): y[i] = x[i] - x[(i - 1) % n]
        y[i] = x[i] - x[(i - 1) % n]     ->       for i in range(n - 1): y[i + 1] = x[i + 1] - x[i]

Rounds keep their order. This is index set splitting (Banerjee, "Loop transformations for restructuring compilers",
1993). On a GPU, whose threads branch, nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from metaphrase.core.dims import Atom, DimLike, Sym, dim_max, dim_min

from .nest import Axis, Buf, E, Fn, Index, Load, Map, Nest, Stmt
from .rewrite import map_expression, map_statement, rebound, rename_statement
from .target import Target


def without_remainders(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such nests in parts."""
    return fn.body if target.threads else _in_block(fn.body, fn, target)


def _in_block(block: tuple[Stmt, ...], fn: Fn, target: Target) -> tuple[Stmt, ...]:
    rows: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Nest):
            rows += _parts(stmt, fn, target)
        elif stmt.blocks:
            rows.append(stmt.with_blocks(tuple(_in_block(inner, fn, target) for inner in stmt.blocks)))
        else:
            rows.append(stmt)
    return tuple(rows)


def _parts(nest: Nest, fn: Fn, target: Target) -> list[Stmt]:
    """The nests in the place of one, and statements in the place of one that has one round."""
    for place, axis in enumerate(nest.axes):
        steps = _steps(nest, axis)
        if not steps or _is_rare(nest.axes[place + 1 :], fn, target):
            continue
        n, before, behind = axis.extent, max(0, -min(steps)), max(0, *steps)
        first: DimLike = before
        last: DimLike = n - behind
        if not fn.facts.less_equal(before + behind, n):  # there may be fewer elements
            first = dim_min(before, n)
            last = dim_max(n - behind, first)
        whole = replace(nest, first=())
        return [
            *(_flat(_part(_begun(nest), axis, 0, n, fn)) if nest.first else []),
            *(_flat(_part(whole, axis, 0, first, fn)) if before else []),
            *_parts(_part(whole, axis, before, n - before - behind, fn), fn, target),
            *(_flat(_part(whole, axis, last, n - last, fn)) if behind else []),
        ]
    return _flat(nest)


def _is_rare(inner: tuple[Axis, ...], fn: Fn, target: Target) -> bool:
    """Whether a remainder is taken once for the many rounds of the innermost loop, which it stands around."""
    return len(inner) == 1 and not fn.facts.less_equal(inner[0].extent, target.row - 1)


def _flat(nest: Nest) -> list[Stmt]:
    return [nest] if nest.axes else [*nest.first, *nest.body]


def _begun(nest: Nest) -> Nest:
    """What a nest does before its first round."""
    return replace(nest, axes=tuple(a for a in nest.axes if a.kind == "par"), body=nest.first, first=())


def _steps(nest: Nest, axis: Axis) -> set[int]:
    """The constants c of all places `(axis + c) % n` along an axis of n elements."""
    steps: set[int] = set()

    def note(dim: DimLike) -> DimLike:
        for atom in _atoms(dim):
            step = atom.operands[0] - Sym(axis.name) if atom.kind == "mod" else None
            if isinstance(step, int) and atom.operands[1] == axis.extent:
                n = axis.extent
                steps.add(step - n if isinstance(n, int) and 2 * step > n else step)
        return dim

    for stmt in nest.body:
        _with_dims(stmt, note)
    return steps


def _atoms(dim: DimLike) -> Iterator[Atom]:
    """The divisions, remainders and extremes in a dim, those inside of others too."""
    atoms = () if isinstance(dim, int) else (atom for monomial, _ in dim.terms for atom, _ in monomial)
    for atom in atoms:
        if atom.kind != "sym":
            yield atom
            for operand in atom.operands:
                yield from _atoms(operand)


def _part(nest: Nest, axis: Axis, begin: DimLike, length: DimLike, fn: Fn) -> Nest:
    """The rounds of a nest from `begin` on along an axis, with indices of its own."""
    axes: list[Axis] = []
    values: dict[str, DimLike] = {}
    for old in nest.axes:
        if old.name == axis.name and length == 1:
            values[old.name] = begin
            continue
        new = replace(old, name=fn.names.fresh(old.name), extent=length if old.name == axis.name else old.extent)
        values[old.name] = (begin if old.name == axis.name else 0) + Sym(new.name)
        fn.facts.learn(new.name, 0, new.extent - 1)
        axes.append(new)

    binds = {s.binds: fn.names.fresh(s.binds) for s in nest.body if s.binds is not None}
    body = (_with_dims(rebound(rename_statement(s, values), binds), fn.facts.simplify) for s in nest.body)
    return replace(nest, axes=tuple(axes), body=tuple(body))


def _with_dims(stmt: Stmt, change: Callable[[DimLike], DimLike]) -> Stmt:
    """A statement with other dims in its places and values."""

    def place(buf: Buf, index: Map) -> tuple[Buf, Map]:
        return buf, tuple(expression(i) if isinstance(i, E) else change(i) for i in index)

    def expression(e: E) -> E:
        return map_expression(e, other)

    def other(x: E) -> E | None:
        if isinstance(x, Index):
            return Index(change(x.dim))
        return Load(*place(x.buf, x.index)) if isinstance(x, Load) else None

    return map_statement(stmt, expression, place)


__all__ = ["without_remainders"]
