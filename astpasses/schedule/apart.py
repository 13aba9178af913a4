"""Iterations that are few and long, taken apart on a GPU: each of their long loops becomes one of all iterations.

In: a nest of independent iterations that keep few threads busy, and have long loops of their own. Out: nests that many
threads divide, one after the other; what an iteration hands on from one to the next lies in memory. Example, of few i:

    for i in range(8):                               for i in range(8):
        t = 0                                            t = 0
        for j in range(n): t += x[i, j]                  for j in range(n): t += x[i, j]      # cut (partial_sums.py)
        m = t/n                               ->         t_all[i] = t
        for j in range(n): y[i, j] = x[i, j] - m     for i in range(8): m_all[i] = t_all[i]/n
                                                     for i in range(8):                       # 8*n iterations
                                                         for j in range(n): y[i, j] = x[i, j] - m_all[i]

Each iteration sees its own statements in their order. This is loop distribution (Kennedy and McKinley, "Loop
distribution with arbitrary control flow", 1990).
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.dims import Sym
from metaphrase.core.types import i64
from metaphrase.late import dataclass

from .independence import Roles
from .lifetimes import read_before_given
from .nest import Bind, Buf, Check, For, Grow, Load, Stmt, Store, Swap, loaded, local, touched, used_inside, walk
from .partial_sums import Division, is_long_sum
from .rewrite import rename_statement, with_parts, with_storages
from .shapes import Shape


def taken_apart(of: Division, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with such nests in pieces."""
    rows: list[Stmt] = []
    for stmt in block:
        shape = of.shape(stmt) if isinstance(stmt, For) else None
        if shape is not None:
            rows += _pieces(of, shape) or [stmt]
        elif stmt.blocks:
            rows.append(stmt.with_blocks(tuple(taken_apart(of, inner) for inner in stmt.blocks)))
        else:
            rows.append(stmt)
    return tuple(rows)


@dataclass
class _Piece:
    """Statements of an iteration: a long loop with what begins its sums, or those between such loops."""

    body: list[Stmt]
    loop: Shape | None = None


def _pieces(of: Division, shape: Shape) -> list[Stmt] | None:
    """The nests in the place of one; None where it may as well stay as it is."""
    together = of.together(shape)
    few = of.target.blocks * (1 if together else of.target.threads) // of.target.of_a_thread
    if not isinstance(shape.total, int) or shape.total > few:
        return None
    if any(isinstance(s, (Check, Grow, Swap)) for s in walk(shape.body)):
        return None
    least = of.target.apart_from * (of.target.threads if together else 1)
    pieces = _divided(of, shape, least)
    loops = [k for k, s in enumerate(shape.body) if any(p.loop and p.loop.loops[0] is s for p in pieces)]
    if not loops or len(loops) == 1 and not shape.roles.sums and is_long_sum(of, shape, loops[0], together):
        return None
    return _written(of, shape, pieces)


def _divided(of: Division, shape: Shape, least: int) -> list[_Piece]:
    """The statements of an iteration, long loops apart."""
    pieces = [_Piece([])]
    for stmt in shape.body:
        inner = of.shape(stmt) if isinstance(stmt, For) else None
        if inner is None or not isinstance(inner.total, int) or inner.total < least:
            pieces[-1].body.append(stmt)
            continue
        before = pieces[-1].body
        begun = [s for s in before if isinstance(s, Store) and s.buf in inner.roles.sums and _begins(s, before)]
        pieces[-1].body = [s for s in before if s not in begun]
        pieces += [_Piece([*begun, stmt], inner), _Piece([])]
    return [piece for piece in pieces if piece.body]


def _begins(store: Store, block: list[Stmt]) -> bool:
    """Whether a statement gives a variable a constant that the others of its block have nothing to do with."""
    others = [s for s in block if s is not store]
    read, _ = read_before_given(tuple(others))
    given = {buf for s in walk(tuple(others)) for buf in touched(s)}
    constant = not loaded(store) and not read_before_given((store,))[0]
    return store.monoid is None and constant and store.buf.name not in read and store.buf not in given


def _written(of: Division, shape: Shape, pieces: list[_Piece]) -> list[Stmt] | None:
    extents = tuple(loop.extent for loop in shape.loops)
    here = tuple(Sym(loop.index) for loop in shape.loops)
    handed = _handed_on(shape, pieces)
    if handed is None:
        return None
    wholes = {buf: (Buf(of.fresh(f"{buf.name}_all"), buf.dtype, (*extents, *buf.dims)), here) for buf in handed}
    integers = {buf.name: buf for buf in handed if buf.dtype == i64 and not buf.dims}
    rows: list[Stmt] = []
    for piece in pieces:
        inner = piece.loop.roles if piece.loop is not None else Roles()
        own = {buf: local(of.fresh(buf.name), buf.dtype) for buf in inner.sums if buf in shape.roles.private}
        kept = [buf for buf in own if buf in wholes]
        begun = {s.buf for s in piece.body if isinstance(s, Store)}
        before: list[Stmt] = [Store(own[buf], (), Load(*wholes[buf])) for buf in kept if buf not in begun]
        behind = [Store(*wholes[buf], Load(own[buf])) for buf in kept]
        theirs = {buf: whole for buf, whole in wholes.items() if buf not in inner.private}
        body = [with_parts(with_storages(s, own), theirs) for s in piece.body]
        read, _ = read_before_given(tuple(body))
        names = {name: of.fresh(name) for name in integers if name in read}
        if names and piece.loop:
            return None  # its iterations would have to fetch what sizes may depend on
        before += [Bind(new, Load(*wholes[integers[old]])) for old, new in names.items()]
        body = [rename_statement(s, {old: Sym(new) for old, new in names.items()}) for s in body]
        combines = {buf for s in walk(tuple(piece.body)) for buf in touched(s)} & shape.roles.sums.keys()
        nest = shape.nest((*before, *body, *behind), "", kind="red" if combines else "par")
        rows.append(_renamed(nest, {loop.index: of.fresh(loop.index) for loop in shape.loops}))
    return rows


def _renamed(nest: For, names: dict[str, str]) -> For:
    """The loops with other indices: each nest has its own."""
    loop = rename_statement(nest, {old: Sym(new) for old, new in names.items()})
    assert isinstance(loop, For)

    def changed(loop: For) -> For:
        inner = tuple(changed(s) if isinstance(s, For) and s.index in names else s for s in loop.body)
        return replace(loop, index=names[loop.index], body=inner)

    return changed(loop)


def _handed_on(shape: Shape, pieces: list[_Piece]) -> list[Buf] | None:
    """What an iteration has for itself that one piece leaves for a later one. None where it is an integer that has no
    storage, which sizes may depend on."""
    handed: list[Buf] = []
    uses = [frozenset[Buf]().union(*map(used_inside, piece.body)) for piece in pieces]
    bound: set[str] = set()
    for k, piece in enumerate(pieces):
        read, _ = read_before_given(tuple(piece.body))
        if read & bound:
            return None
        bound |= {s.binds for s in walk(tuple(piece.body)) if s.binds is not None}
        for buf in shape.roles.private:
            wanted = buf in uses[k] if buf.dims else buf.name in read
            if wanted and buf not in handed and any(buf in before for before in uses[:k]):
                handed.append(buf)
    return sorted(handed, key=lambda buf: buf.name)


__all__ = ["taken_apart"]
