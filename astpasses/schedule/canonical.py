"""Pieces of programs under names that say nothing, so that equal ones are one function.

In: statements, and what they take from around them. Out: a `Fn`, and which of its storages stands for which; `text_of`,
which two equal functions share.

    for i in range(n): w[i] = w[i] - lr*dw[i]     ->   def (y0, x0, a0, n0): for _i0 in range(n0): y0[_i0] = ...
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from metaphrase.core.dims import Sym, substitute

from .names import Names
from .nest import Bind, Buf, Fn, For, Stmt, Store, While, loaded, local, walk
from .python_loops import function_text
from .rewrite import rename_statement, with_storages


def canonical(
    body: tuple[Stmt, ...],
    arrays: Sequence[Buf],
    own: Sequence[Buf],
    scalars: Sequence[Buf],
    variables: Sequence[Buf],
    sizes: Sequence[str],
    written: Collection[Buf],
    words: frozenset[str],
) -> tuple[Fn, dict[Buf, Buf]]:
    """A function of `arrays`, `scalars` and `sizes`, without a name. Its own are the arrays `own` and `variables`."""
    values = {s: Sym(f"n{k}") for k, s in enumerate(sizes)}
    bound: dict[str, str] = {}
    for stmt in walk(body):
        if stmt.binds is not None:  # both sides of an `if` bind one name
            bound.setdefault(stmt.binds, f"{'_i' if isinstance(stmt, For) else 'p'}{len(bound)}")
    values.update({old: Sym(new) for old, new in bound.items()})
    bufs: dict[Buf, Buf] = {}
    for k, buf in enumerate(arrays):  # how many rows there are says nothing about where they lie
        dims = (0, *(substitute(d, values) for d in buf.dims[1:]))
        bufs[buf] = Buf(f"{'y' if buf in written else 'x'}{k}", buf.dtype, dims, "arg")
    for k, buf in enumerate(own):
        bufs[buf] = Buf(f"row{k}", buf.dtype, tuple(substitute(d, values) for d in buf.dims), buf.space)
    for k, buf in enumerate(scalars):
        bufs[buf] = Buf(f"a{k}", buf.dtype, ())
    for k, buf in enumerate(variables):
        bufs[buf] = local(f"t{k}", buf.dtype)
    for buf, new in bufs.items():
        new.unbound, new.dynamic, new.carried = buf.unbound, buf.dynamic, buf.carried
    body = tuple(_headed(with_storages(rename_statement(s, values), bufs), bound) for s in body)
    params, names = tuple(bufs[b] for b in (*arrays, *scalars)), Names(words)
    for name in (*(b.name for b in bufs.values()), *(f"n{k}" for k in range(len(sizes))), *bound.values()):
        names.fresh(name)
    return Fn("", params, tuple(f"n{k}" for k in range(len(sizes))), body, names=names), bufs


def _headed(stmt: Stmt, names: dict[str, str]) -> Stmt:
    """Loops and bindings under their new names, and no lines of the user's: those of one of the equal pieces."""
    blocks = tuple(tuple(_headed(s, names) for s in b) for b in stmt.blocks)
    stmt = replace(stmt.with_blocks(blocks) if blocks else stmt, span=None)  # type: ignore[type-var]
    if isinstance(stmt, For):
        return replace(stmt, index=names[stmt.index])
    if isinstance(stmt, While):
        return replace(stmt, counter=names[stmt.counter])
    return replace(stmt, name=names[stmt.name]) if isinstance(stmt, Bind) else stmt


def text_of(fn: Fn) -> str:
    """What functions share that do the same."""
    types = [f"{b.name}:{b.dtype}:{b.dims}" for b in fn.bufs]
    places = [f"{s.buf.name}:{s.buf.dtype}:{s.buf.dims}" for s in walk(fn.body) if isinstance(s, Store)]
    kinds = [s.kind for s in walk(fn.body) if isinstance(s, For)]
    tables = sorted({load.buf.name for s in walk(fn.body) for load in loaded(s) if load.buf.space == "const"})
    return "\n".join([function_text(fn), *types, *places, *kinds, *tables, str(fn.result and fn.result.name)])


__all__ = ["canonical", "text_of"]
