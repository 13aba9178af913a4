"""Where a kernel declares its variables: in the innermost block that all that has to do with one stands in.

In: the body of a kernel. Out: `Homes`: for each block the variables that are declared in it, and whether the statement
that first gives one its value declares it.

    const f64 t = x[i]*x[i];          rather than          f64 t;  ...  t = x[i]*x[i];
"""

from __future__ import annotations

from metaphrase.astpasses.schedule.nest import (
    Bind,
    For,
    If,
    Stmt,
    Store,
    While,
    expression_symbols,
    loaded,
    other_symbols,
    touched,
    walk,
)

from .spell import c_name

Block = tuple[Stmt, ...]


class Homes:
    """`first[block]`: by the place of a statement in a block, the variables that are declared before it, with their
    types; `begins`: the statements that declare the variable that they give a value to."""

    def __init__(self, body: Block):
        self.first: dict[int, dict[int, list[tuple[str, str]]]] = {}
        self.begins: set[Stmt] = set()
        self.known: dict[Stmt, set[str]] = {}
        for name, kind in _variables(body).items():
            self.settle(body, name, kind)

    def mentions(self, stmt: Stmt) -> set[str]:
        """The variables that a statement and those inside it have to do with."""
        if stmt not in self.known:
            names = self.own(stmt)
            for block in stmt.blocks:
                names = names.union(*map(self.mentions, block))
            self.known[stmt] = names
        return self.known[stmt]

    def own(self, stmt: Stmt) -> set[str]:
        """Those of the statement itself."""
        names = {b.name for b in (*touched(stmt), *(load.buf for load in loaded(stmt))) if not b.dims}
        names |= other_symbols(stmt).union(*map(expression_symbols, stmt.expressions))
        if isinstance(stmt, For):
            names |= {buf.name for buf, _ in stmt.partials}
        elif stmt.binds is not None:
            names.add(stmt.binds)
        return names

    def settle(self, block: Block, name: str, kind: str) -> None:
        """Find the block that is the home of a variable."""
        users = [k for k, stmt in enumerate(block) if name in self.mentions(stmt)]
        stmt = block[users[0]]
        if len(users) == 1 and stmt.blocks and name not in self.own(stmt):
            inside = [b for b in stmt.blocks if any(name in self.mentions(s) for s in b)]
            if len(inside) == 1 and (isinstance(stmt, If) or self.begins_with(inside[0], name)):
                self.settle(inside[0], name, kind)
                return
        if _gives(stmt, name):
            self.begins.add(stmt)
        else:
            self.first.setdefault(id(block), {}).setdefault(users[0], []).append((kind, name))

    def begins_with(self, block: Block, name: str) -> bool:
        """Whether the first that a block does with a variable is to give it a value: no round reads another's."""
        stmt = next(s for s in block if name in self.mentions(s))
        if _gives(stmt, name) or isinstance(stmt, While) and stmt.counter == name:
            return True
        inside = [b for b in stmt.blocks if any(name in self.mentions(s) for s in b)]
        users = [s for s in block if name in self.mentions(s)]
        if len(users) == 1 and len(inside) == 1 and name not in self.own(stmt):
            return self.begins_with(inside[0], name)
        return False


def _gives(stmt: Stmt, name: str) -> bool:
    """Whether a statement gives a variable a value, without reading it, and does nothing else."""
    if isinstance(stmt, Bind) and stmt.name == name:
        return name not in expression_symbols(stmt.value)
    if isinstance(stmt, Store) and stmt.buf.name == name and not stmt.buf.dims and stmt.monoid is None:
        read = {load.buf.name for load in loaded(stmt) if not load.buf.dims}
        return name not in read.union(*map(expression_symbols, stmt.expressions))
    return False


def _variables(body: Block) -> dict[str, str]:
    """The variables of a kernel and their types."""
    kinds: dict[str, str] = {}
    for stmt in walk(body):
        for buf in (*touched(stmt), *(load.buf for load in loaded(stmt))):
            if not buf.dims:
                kinds[buf.name] = c_name(buf.dtype)
        if isinstance(stmt, (Bind, While)):
            kinds.setdefault(stmt.binds or "", "i64")
    return kinds


__all__ = ["Homes"]
