"""Which names a piece of normal form binds, reads, closes over, and which are live where.

In: gast statements. Out: sets of names; `Liveness` also leaves `live_out` (and, on loops and branches,
`live_in`) on the statements it visits, as tables keyed by node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import gast

from .parsing import argument_names

FUNCTIONS = (gast.FunctionDef, gast.AsyncFunctionDef, gast.Lambda)
_SCOPES = (*FUNCTIONS, gast.ClassDef)
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


# Fields that hold nodes, of the classes that are met most.
_PARTS: dict[type, tuple[str, ...]] = {
    gast.Name: ("annotation",),
    gast.Constant: (),
    gast.Attribute: ("value",),
    gast.Call: ("func", "args", "keywords"),
    gast.BinOp: ("left", "right"),
    gast.Subscript: ("value", "slice"),
    gast.Assign: ("targets", "value"),
}
# Fields in which names are bound: not inside expressions, but for `:=`.
_TARGETS = {gast.Assign: ("targets",), gast.AugAssign: ("target",), gast.Expr: ()} | {
    kind: ()
    for kind in vars(gast).values()
    if isinstance(kind, type)
    and issubclass(kind, gast.expr)
    and kind not in (gast.Tuple, gast.List, gast.Starred, gast.Name)
}


def own_nodes(nodes: gast.AST | Iterable[gast.AST], parts: dict[type, tuple[str, ...]] = _PARTS) -> Iterator[gast.AST]:
    """Every node of the same scope: not inside nested functions, lambdas, classes or comprehensions."""
    waiting = [nodes] if isinstance(nodes, gast.AST) else list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        kind = type(node)
        if kind in _SCOPES:
            inside = [*getattr(node, "decorator_list", ()), *_defaults(node)]
        elif kind in COMPREHENSIONS:
            inside = [node.generators[0].iter]
        else:
            inside = children(node, parts)
        if inside:
            waiting += inside[::-1]


def children(node: gast.AST, parts: dict[type, tuple[str, ...]] = _PARTS) -> list[gast.AST]:
    """The nodes right below one, in their order; contexts and operators, which hold nothing, are left out."""
    kind, found = type(node), []
    held = node.__dict__
    for field in parts[kind] if kind in parts else node._fields:
        value = held.get(field)
        if type(value) is list:
            found += [item for item in value if isinstance(item, gast.AST)]
        elif isinstance(value, gast.AST) and value._fields:
            found.append(value)
    return found


class Transformer(gast.NodeTransformer):
    """gast's own, quicker: it does not visit contexts and operators."""

    def visit(self, node: gast.AST) -> Any:
        return getattr(self, "visit_" + type(node).__name__, self.generic_visit)(node)

    def generic_visit(self, node: gast.AST) -> gast.AST:
        kind, held = type(node), node.__dict__
        for field in _PARTS[kind] if kind in _PARTS else node._fields:
            old = held.get(field)
            if type(old) is list:
                made: list = []
                for item in old:
                    new = self.visit(item) if isinstance(item, gast.AST) else item
                    made += new if isinstance(new, list) else [] if new is None and item is not None else [new]
                old[:] = made
            elif isinstance(old, gast.AST) and old._fields:
                held[field] = self.visit(old)
        return node


def walk(node: gast.AST) -> Iterator[gast.AST]:
    """A node and all below it, in no order."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def _defaults(node: gast.AST) -> list:
    args = getattr(node, "args", None)
    return [d for d in [*args.defaults, *args.kw_defaults] if d] if isinstance(args, gast.arguments) else []


def bound_names(nodes: gast.AST | Iterable[gast.AST], walrus: bool = False) -> list[str]:
    """Names these statements bind, in order of first binding. `walrus`: there may be `:=`."""
    found: dict[str, None] = {}
    for node in own_nodes(nodes, _PARTS if walrus else _TARGETS):
        if type(node) is gast.Name:
            if isinstance(node.ctx, (gast.Store, gast.Del)):
                found[node.id] = None
        elif isinstance(node, (gast.FunctionDef, gast.ClassDef)):
            found[node.name] = None
        elif isinstance(node, (gast.Import, gast.ImportFrom)):
            found.update({(a.asname or a.name).split(".")[0]: None for a in node.names})
        elif isinstance(node, gast.ExceptHandler) and node.name is not None:
            found[node.name.id if isinstance(node.name, gast.Name) else node.name] = None
    return list(found)


def deleted_names(nodes: Iterable[gast.AST]) -> set[str]:
    """Names that a `del` in this scope unbinds."""
    return {n.id for n in own_nodes(nodes) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Del)}


def yields(node: gast.AST) -> bool:
    """Whether a `yield` of this scope stands in a statement."""
    return any(isinstance(n, (gast.Yield, gast.YieldFrom)) for n in own_nodes(node))


def read_names(nodes: gast.AST | Iterable[gast.AST]) -> set[str]:
    """Names that may be read when this code runs; those of comprehensions included."""
    found = set()
    for root in [nodes] if isinstance(nodes, gast.AST) else nodes:
        for node in walk(root):
            if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Load):
                found.add(node.id)
            elif isinstance(node, gast.AugAssign) and isinstance(node.target, gast.Name):
                found.add(node.target.id)
    return found


def free_names(node: gast.AST) -> set[str]:
    """Names a nested function or lambda takes from outside, as far as syntax tells."""
    own = set(argument_names(node.args))
    body = node.body if isinstance(node.body, list) else [node.body]
    outer = declared(body, gast.Nonlocal) | declared(body, gast.Global)
    own |= set(bound_names(body)) - outer
    inner = read_names(body) | outer | declared_anywhere(body)
    return inner - own


def declared(body: Iterable[gast.AST], kind: type[gast.Nonlocal | gast.Global]) -> set[str]:
    """Names declared `nonlocal` (or `global`) in this scope."""
    return {name for node in own_nodes(body) if isinstance(node, kind) for name in node.names}


def declared_anywhere(body: Iterable[gast.AST]) -> set[str]:
    return {name for root in body for node in walk(root) if isinstance(node, gast.Nonlocal) for name in node.names}


def closed_over(body: Iterable[gast.AST]) -> set[str]:
    """Names of this scope that nested functions and lambdas mention: they are live at all times."""
    found = set()
    for root in body:
        for node in walk(root):
            if isinstance(node, FUNCTIONS):
                found |= free_names(node)
            elif isinstance(node, gast.ClassDef):
                found |= read_names(node.body)
    return found


def all_names(node: gast.AST) -> set[str]:
    """Every identifier in a tree, for the invention of new ones."""
    found = set()
    for child in walk(node):
        if isinstance(child, gast.Name):
            found.add(child.id)
        elif isinstance(child, (gast.FunctionDef, gast.ClassDef)):
            found.add(child.name)
        elif isinstance(child, (gast.Nonlocal, gast.Global)):
            found.update(child.names)
        elif isinstance(child, (gast.MatchAs, gast.MatchStar, gast.MatchMapping)):
            found.add(getattr(child, "name", None) or getattr(child, "rest", None) or "")
    return found


class Names:
    """Invents identifiers that the function does not use: `stopped`, then `stopped_2`, ..."""

    def __init__(self, used: set[str]):
        self.used = set(used)
        self.invented: set[str] = set()

    def fresh(self, base: str) -> str:
        name, count = base, 1
        while name in self.used:
            count += 1
            name = f"{base}_{count}"
        self.used.add(name)
        self.invented.add(name)
        return name


def leaving(node: gast.For) -> gast.If | None:
    """The `if flags: break` at the end of a `for` of normal form, if it has one."""
    last = node.body[-1]
    return last if isinstance(last, gast.If) and last.body and isinstance(last.body[0], gast.Break) else None


def _stop_names(node: gast.For) -> set[str]:
    """Names of the test that ends a `for` of normal form; it is asked before each iteration, too."""
    last = leaving(node)
    return read_names(last.test) if last else set()


class Liveness:
    """Backward pass over the normal form of one function body."""

    def __init__(self, body: list, always: set[str]):
        self.always = frozenset(always)
        self.live_out: dict[gast.AST, frozenset[str]] = {}
        self.live_in: dict[gast.AST, frozenset[str]] = {}
        self.known: dict[tuple[Any, gast.AST], Any] = {}  # loops are gone through several times
        self.block(body, self.always)

    def names(self, question: Any, node: gast.AST) -> set[str]:
        """`bound_names` or `read_names` of a node."""
        if (question, node) not in self.known:
            self.known[question, node] = set(question(node))
        return self.known[question, node]

    def block(self, body: list, live: frozenset[str]) -> frozenset[str]:
        for statement in reversed(body):
            self.live_out[statement] = live
            live = self.statement(statement, live) | self.always
        return live

    def statement(self, node: gast.AST, live: frozenset[str]) -> frozenset[str]:
        """What is live before `node` when `live` is live after it."""
        if isinstance(node, gast.If):
            inner = self.block(node.body, live) | self.block(node.orelse, live)
            self.live_in[node] = inner
            return inner | self.names(read_names, node.test)
        if isinstance(node, (gast.While, gast.For)):
            counted = isinstance(node, gast.For)
            header = self.names(_stop_names, node) if counted else self.names(read_names, node.test)
            killed = set(bound_names(node.target)) if counted else set()
            around = live | header
            while True:
                entry = self.block(node.body, around) - killed
                if entry <= around:
                    break
                around = around | entry
            self.live_in[node] = frozenset(entry | header)
            return around | (self.names(read_names, node.iter) if counted else frozenset())
        if isinstance(node, gast.Try):
            final = self.block(node.finalbody, live)
            orelse = self.block(node.orelse, final)
            handled = frozenset().union(*(self.block(h.body, final) for h in node.handlers), final)
            handled |= read_names([h.type for h in node.handlers if h.type is not None])
            always, self.always = self.always, self.always | handled  # the body may end anywhere
            entry = self.block(node.body, orelse) | handled
            self.always = always
            self.live_in[node] = entry
            return entry
        if isinstance(node, gast.With):
            always = self.always
            if getattr(node, "swallows", True):  # as far as is known: the body may end anywhere
                self.always = always | live
            inner = self.block(node.body, live) | (self.always - always)
            self.always = always
            killed = {n for i in node.items if i.optional_vars for n in bound_names(i.optional_vars)}
            self.live_in[node] = (inner - killed) | read_names(node.items)
            return self.live_in[node]
        if isinstance(node, (gast.FunctionDef, gast.ClassDef)):
            return (live - {node.name}) | self.names(read_names, node)
        return (live - self.names(bound_names, node)) | self.names(read_names, node)
