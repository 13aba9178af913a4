"""Normal form -> control stage: `if`, `while` and `for` become calls of a stager that carry their state
explicitly.

In: a gast function in normal form. Out: its `Control`. With the stager of `plain.py` the text runs on NumPy; with
that of `staging/operations.py` it runs on staged values. Places stay the user's. Here are the rules for
statements without regions; `regions.py` has the others, and converts.

    while E > tol:          def test(): return E > tol
        E = E / 2           def body():
                                nonlocal E
                                E = E / 2
                            def get_state(): return (E,)
                            def set_state(state):
                                nonlocal E
                                (E,) = state
                            stager.while_(test, body, get_state, set_state, ('E',))
"""

from __future__ import annotations

from collections.abc import Callable

import gast

from metaphrase.late import dataclass, field

from .lowering import OPERATORS, Lowering
from .parsing import argument_names
from .scopes import Liveness, Names, bound_names, closed_over, declared, deleted_names, yields
from .stores import Change
from .templates import constant, name, statements, text_of

Place = tuple[int, int, int, int]
Asks = Callable[[str], bool]


@dataclass
class Control:
    """`hints`: the name a value is bound to, by the place of the expression that makes it. `invented`: the
    names that are none of the user's. `changes`: what the bodies of loops change, by their names."""

    node: gast.FunctionDef
    stager: str
    invented: frozenset[str] = frozenset()
    hints: dict[Place, str] = field(default_factory=dict)
    changes: dict[str, tuple[Change, ...]] = field(default_factory=dict)

    def text(self) -> str:
        """The control stage as Python text, without the definition of its stager."""
        return text_of(self.node)


@dataclass
class Owner:
    """A function of the converted code, and which names are its local variables."""

    names: set[str]
    unbound: list[str] = field(default_factory=list)


class Function:
    """Converts one function, but for statements with regions; nested functions get their own converter, with the names
    of this one around them."""

    def __init__(
        self, node: gast.FunctionDef, whole: Control, names: Names, around: set[str], plain: Asks, is_module: Asks
    ):
        self.node, self.whole, self.names, self.plain, self.is_module = node, whole, names, plain, is_module
        self.stager, self.hints, self.invented, self.changes = whole.stager, whole.hints, whole.invented, whole.changes
        self.outer = declared(node.body, gast.Nonlocal)
        self.params = argument_names(node.args)
        self.own = (set(self.params) | set(bound_names(node.body))) - self.outer
        self.around = around | self.own
        self.live = Liveness(node.body, closed_over(node.body) | self.outer)
        self.owners = [Owner(self.own)]
        self.bound = set(self.params)
        self.maybe: set[str] = set()
        self.deleted = deleted_names(node.body)
        self.generator = any(map(yields, node.body))
        self.setters: dict[str, str] = {}
        first = self.params[0] if node.args.args or node.args.posonlyargs else None
        self.expressions = Lowering(self.stager, self.load, lambda n: n not in self.around and is_module(n), first)

    # --- names ---

    def load(self, identifier: str, node: gast.Name) -> gast.AST | None:
        """A variable that is read: checked if it may be unbound, captured if it comes from outside."""
        if identifier in self.own:
            if identifier in self.bound or identifier not in self.maybe or identifier in self.invented:
                return None
            return self.expressions.call("use", node, node)
        if identifier in self.around or self.plain(identifier):
            return None
        return self.expressions.call("captured", node, node, constant(identifier, node))

    def needs_start(self, identifier: str) -> None:
        """A variable that a region's state reads must exist: it starts as undefined where it is local."""
        if identifier in self.bound:
            return
        self.maybe.add(identifier)
        for owner in reversed(self.owners):
            if identifier in owner.names:
                if identifier not in owner.unbound:
                    owner.unbound.append(identifier)
                return

    def starts(self, owner: Owner, at: gast.AST) -> list:
        return [
            s
            for n in owner.unbound
            for s in statements(
                f"{n} = {self.stager}.undefined(label)", at, label=constant(None if n in self.invented else n, at)
            )
        ]

    # --- function and blocks ---

    def convert(self) -> gast.FunctionDef:
        node = self.node
        body, docs = node.body, []
        if (
            isinstance(body[0], gast.Expr)
            and isinstance(body[0].value, gast.Constant)
            and isinstance(body[0].value.value, str)
        ):
            docs, body = body[:1], body[1:]
        outer = [s for s in body if isinstance(s, gast.Nonlocal)]
        made = self.block([s for s in body if not isinstance(s, gast.Nonlocal)])
        setters = [
            s
            for identifier, setter in self.setters.items()
            for given in ["new_value" if identifier == "value" else "value"]
            for s in statements(
                f"def {setter}({given}):\n nonlocal {identifier}\n {identifier} = {given}", node.body[0]
            )
        ]
        node.body = docs + outer + self.starts(self.owners[0], node.body[0]) + setters + made
        if not node.body:
            node.body = statements("pass", node)
        return node

    def block(self, body: list) -> list:
        return [made for node in body for made in self.statement(node)]

    def visit(self, node: gast.expr) -> gast.expr:
        return self.expressions.visit(node)

    def statement(self, node: gast.stmt) -> list:
        handler = getattr(self, f"do_{type(node).__name__}", None)
        deleted = {n for n in bound_names(node) if n in self.deleted} if self.deleted else set()
        made = handler(node) if handler else self.simple(node)
        self.bound |= self.definitely(node)
        if deleted and not isinstance(node, (gast.Assign, gast.AugAssign)):
            gone = deleted_names([node]) if isinstance(node, gast.Delete) else deleted
            self.bound -= gone
            self.maybe |= gone
        return made

    def definitely(self, node: gast.stmt) -> set[str]:
        """Names that are bound for sure after a statement."""
        unsure = isinstance(node, (gast.If, gast.While, gast.For, gast.Try, gast.With, gast.Delete))
        return set() if unsure else set(bound_names(node))

    def simple(self, node: gast.stmt) -> list:
        """Statements without a rule of their own: their expressions are lowered in place."""
        for fieldname, value in gast.iter_fields(node):
            if isinstance(value, gast.expr):
                setattr(node, fieldname, self.visit(value))
        return [node]

    def step(self, operation: str, at: gast.AST, *args: gast.AST) -> list:
        """The statement that calls an operation of the stager."""
        return [gast.copy_location(gast.Expr(self.expressions.call(operation, at, *args)), at)]

    # --- assignment ---

    def hint(self, node: gast.AST, identifier: str) -> None:
        self.hints.setdefault((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset), identifier)

    def do_Assign(self, node: gast.Assign) -> list:
        (target,) = node.targets
        if isinstance(target, gast.Tuple | gast.List) and any(
            isinstance(e, gast.Tuple | gast.List) for e in target.elts
        ):
            return self.nested(node, target)
        if isinstance(target, gast.Name):
            self.hint(node.value, target.id)
        elif isinstance(target, gast.Tuple) and isinstance(node.value, gast.Tuple):
            for t, v in zip(target.elts, node.value.elts):
                if isinstance(t, gast.Name):
                    self.hint(v, t.id)
        value = self.visit(node.value)
        if isinstance(target, gast.Tuple | gast.List) and not isinstance(value, gast.Tuple):
            starred = [k for k, e in enumerate(target.elts) if isinstance(e, gast.Starred)]
            count = constant(len(target.elts) if not starred else -1, node)
            value = self.expressions.call("unpack", node.value, value, count)
        return self.store(target, value, node)

    def nested(self, node: gast.Assign, target: gast.Tuple | gast.List) -> list:
        """`(a, b), c = value`, one level after the other."""
        names = [self.names.fresh("part") for _ in target.elts]
        outer = [name(n, target, store=True) for n in names]
        inner = [name(n, target) for n in names]
        elts = list(target.elts)
        for k, element in enumerate(elts):
            if isinstance(element, gast.Starred):
                elts[k] = element.value
                outer[k] = gast.copy_location(gast.Starred(outer[k], gast.Store()), element)
        self.own.update(names)
        self.around.update(names)
        whole = gast.copy_location(gast.Tuple(outer, gast.Store()), target)
        steps = [gast.Assign([e], v, None) for e, v in zip([whole, *elts], [node.value, *inner])]
        return [made for step in steps for made in self.do_Assign(gast.copy_location(step, node))]

    def store(self, target: gast.expr, value: gast.expr, at: gast.AST) -> list:
        if isinstance(target, gast.Subscript):
            return self.step("store_item", at, value, self.visit(target.value), self.expressions.index(target.slice))
        if isinstance(target, gast.Attribute):
            return self.step("store_attribute", at, value, self.visit(target.value), constant(target.attr, target))
        if isinstance(target, gast.Name) and target.id in self.outer:
            setter = self.setters.setdefault(target.id, "") or self.names.fresh(f"set_{target.id}")
            self.setters[target.id] = setter
            return self.step("store_cell", at, value, name(setter, at))
        return [gast.copy_location(gast.Assign([target], value, None), at)]

    def do_AugAssign(self, node: gast.AugAssign) -> list:
        target, symbol = node.target, constant(OPERATORS[type(node.op)], node)
        if isinstance(target, gast.Name):
            self.hint(node, target.id)
            value = self.visit(node.value)
            read = self.visit(name(target.id, target))
            return self.store(target, self.expressions.call("inplace", node, symbol, read, value), node)
        value = self.expressions.lazy(self.visit(node.value))
        owner = self.visit(target.value)
        if isinstance(target, gast.Subscript):
            return self.step("update_item", node, owner, self.expressions.index(target.slice), symbol, value)
        return self.step("update_attribute", node, owner, constant(target.attr, target), symbol, value)

    def do_Delete(self, node: gast.Delete) -> list:
        out = []
        for target in node.targets:
            if isinstance(target, gast.Subscript):
                out += self.step("delete_item", node, self.visit(target.value), self.expressions.index(target.slice))
            elif isinstance(target, gast.Name):
                self.bound.discard(target.id)
                self.maybe.add(target.id)
                out += statements(
                    f"{target.id} = {self.stager}.undefined(label)", node, label=constant(target.id, node)
                )
        return out

    # --- assert, raise, def ---

    def do_Assert(self, node: gast.Assert) -> list:
        message = self.expressions.lazy(self.visit(node.msg) if node.msg else constant(None, node))
        return self.step("assert_", node, self.visit(node.test), message)

    def do_Raise(self, node: gast.Raise) -> list:
        if node.exc is not None:
            node.exc = self.expressions.call("raised", node, self.visit(node.exc))
        if node.cause is not None:
            node.cause = self.visit(node.cause)
        return [node]

    def do_FunctionDef(self, node: gast.FunctionDef) -> list:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        return [type(self)(node, self.whole, self.names, self.around, self.plain, self.is_module).convert()]

    def do_ClassDef(self, node: gast.ClassDef) -> list:
        made = self.expressions.call("fresh", node, name(node.name, node))
        return [node, gast.copy_location(gast.Assign([name(node.name, node, store=True)], made, None), node)]
