"""Expressions and assignment targets in their simple forms.

In: statements whose jumps are lowered. Out: no chained comparison, no `:=`, one target an assignment, tuple
targets whose leaves are names, no annotations. The order in which a person's code is evaluated stays.

    a < f(x) < c        (lambda left, right: left < right and right < c)(a, f(x))
    x[i], y = pair      first, second = pair; x[i] = first; y = second
    while (n := g()):   n = g(); going = n; while going: ...; n = g(); going = n
"""

from __future__ import annotations

from typing import Any

import gast

from .scopes import COMPREHENSIONS, Names, Transformer, bound_names, children, walk
from .templates import constant, copy_of, expression, name, statements

SIMPLE = (gast.Name, gast.Constant)


def simplify(body: list, names: Names) -> list:
    """Apply every rewrite of this file to the statements of one function body (nested functions are left alone)."""
    return _Simplify(names).block(body)


def has_walrus(node: gast.AST) -> bool:
    """Whether evaluating `node` binds a name."""
    if isinstance(node, gast.NamedExpr):
        return True
    if isinstance(node, (gast.Lambda, gast.FunctionDef, gast.GeneratorExp)):
        return False
    return any(has_walrus(child) for child in children(node))


class _Chains(Transformer):
    """`a < b < c` becomes `a < b and b < c`, the middle evaluated once."""

    def __init__(self, names: Names):
        self.names = names

    def visit_FunctionDef(self, node: gast.FunctionDef) -> gast.AST:
        return node

    def visit_Compare(self, node: gast.Compare) -> gast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        middle, rest = (node.comparators[0], gast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:]))
        rest = gast.copy_location(rest, node)
        rest.col_offset, rest.lineno = middle.col_offset, middle.lineno
        first = gast.copy_location(gast.Compare(node.left, node.ops[:1], [middle]), node)
        first.end_lineno, first.end_col_offset = middle.end_lineno, middle.end_col_offset
        if isinstance(middle, SIMPLE):
            rest.left = copy_of(middle)
            return expression("first and rest", node, first=first, rest=self.visit(rest))
        if has_walrus(node):
            kept = self.names.fresh("middle")
            first.comparators = [expression(f"({kept} := value)", middle, value=middle)]
            rest.left = name(kept, middle)
            return expression("first and rest", node, first=first, rest=self.visit(rest))
        left, right = self.names.fresh("left"), self.names.fresh("right")
        start, first.left, first.comparators = node.left, name(left, node.left), [name(right, middle)]
        rest.left = name(right, middle)
        return expression(
            f"(lambda {left}, {right}: first and rest)(start, middle)",
            node,
            first=first,
            rest=self.visit(rest),
            start=start,
            middle=middle,
        )


def as_def(node: gast.Lambda, called: str) -> gast.FunctionDef:
    """A lambda as a function of this name."""
    (made,) = statements(f"def {called}(): return value", node, value=node.body)
    made.args = node.args
    return made


class _Lambdas(Transformer):
    """A lambda that binds names becomes a `def` before the statement."""

    def __init__(self, names: Names):
        self.names = names
        self.made: list = []

    def visit_Lambda(self, node: gast.Lambda) -> gast.AST:
        if not any(isinstance(child, gast.NamedExpr) for child in walk(node.body)):
            return node
        called = self.names.fresh("function")
        self.made.append(as_def(node, called))
        return name(called, node)


class _Rename(Transformer):
    def __init__(self, names: dict[str, str]):
        self.names = names

    def visit_Name(self, node: gast.Name) -> gast.AST:
        node.id = self.names.get(node.id, node.id)
        return node


class _Simplify:
    def __init__(self, names: Names):
        self.names = names

    def block(self, body: list) -> list:
        return [made for node in body for made in self.statement(node)]

    def statement(self, node: gast.stmt) -> list:
        if isinstance(node, (gast.FunctionDef, gast.ClassDef)):
            return [node]
        for field in ("body", "orelse", "finalbody"):
            if getattr(node, field, None):
                setattr(node, field, self.block(getattr(node, field)))
        for handler in getattr(node, "handlers", ()):
            handler.body = self.block(handler.body)
        lambdas = _Lambdas(self.names)
        for field, value in gast.iter_fields(node):
            if isinstance(value, gast.expr):
                setattr(node, field, lambdas.visit(value))
        self.chains(node)
        before = lambdas.made + self.hoist(node)
        return before + self.targets(node)

    def chains(self, node: gast.stmt) -> None:
        for field, value in gast.iter_fields(node):
            if isinstance(value, gast.expr):
                setattr(node, field, _Chains(self.names).visit(value))
            elif isinstance(value, list) and value and isinstance(value[0], (gast.expr, gast.withitem)):
                setattr(node, field, [_Chains(self.names).visit(v) for v in value])

    def hoist(self, node: gast.stmt) -> list:
        """Statements that bind the `:=` names of `node`'s expressions before it."""
        for field in ("test", "value", "iter", "exc"):
            value = getattr(node, field, None)
            if not isinstance(value, gast.expr) or not has_walrus(value):
                continue
            before, plain = self.linear(value)
            setattr(node, field, plain)
            if isinstance(node, gast.While):
                going = self.names.fresh("going")
                before += statements(f"{going} = test", value, test=plain)
                node.test = name(going, value)
                node.body = node.body + copy_of(before)
            return before
        return []

    def linear(self, node: gast.expr) -> tuple[list, gast.expr]:
        """Statements to run first, then an expression without `:=`."""
        if not has_walrus(node):
            return [], node
        if isinstance(node, gast.NamedExpr):
            before, value = self.linear(node.value)
            return before + statements(f"{node.target.id} = value", node, value=value), name(node.target.id, node)
        if isinstance(node, gast.BoolOp):
            kept = self.names.fresh("truth")
            before, value = self.linear(node.values[0])
            before += statements(f"{kept} = value", node.values[0], value=value)
            rest = node.values[1:]
            if rest:
                following = rest[0] if len(rest) == 1 else gast.copy_location(gast.BoolOp(node.op, rest), rest[0])
                inner, value = self.linear(following)
                inner += statements(f"{kept} = value", following, value=value)
                test = f"if {kept}: inner" if isinstance(node.op, gast.And) else f"if not {kept}: inner"
                before += statements(test, following, inner=inner)
            return before, name(kept, node)
        if isinstance(node, gast.IfExp):
            kept = self.names.fresh("chosen")
            before, test = self.linear(node.test)
            then, value = self.linear(node.body)
            then += statements(f"{kept} = value", node.body, value=value)
            otherwise, value = self.linear(node.orelse)
            otherwise += statements(f"{kept} = value", node.orelse, value=value)
            before += statements("if test:\n then\nelse:\n otherwise", node, test=test, then=then, otherwise=otherwise)
            return before, name(kept, node)
        if isinstance(node, COMPREHENSIONS):
            return self.loops(node)
        return self.operands(node)

    def loops(self, node: gast.AST) -> tuple[list, gast.expr]:
        """A comprehension that binds names outside of itself, as loops over variables of their own."""
        made = self.names.fresh("made")
        own = {n: self.names.fresh(n) for g in node.generators for n in bound_names(g.target)}
        if isinstance(node, gast.DictComp):
            inner = statements(f"{made}[key] = value", node, key=node.key, value=node.value)
        else:
            add = "append" if isinstance(node, gast.ListComp) else "add"
            inner = statements(f"{made}.{add}(value)", node, value=node.elt)
        for generator in reversed(node.generators):
            for test in reversed(generator.ifs):
                inner = statements("if test: inner", node, test=test, inner=inner)
            (loop,) = statements("for item in values: inner", node, values=generator.iter, inner=inner)
            loop.target, inner = generator.target, [loop]
        empty = {gast.ListComp: "[]", gast.SetComp: "set()", gast.DictComp: "{}"}[type(node)]
        first, inner[0].iter = inner[0].iter, constant(None, node)
        _Rename(own).visit(inner[0])
        inner[0].iter = first  # it is evaluated outside, where the names are those around
        return self.block(statements(f"{made} = {empty}", node) + inner), name(made, node)

    def operands(self, node: gast.expr) -> tuple[list, gast.expr]:
        """Everything evaluated before the last `:=` is kept in a name, in order."""
        places: list[tuple[Any, Any]] = []  # what holds an operand, and the operand's name or number in that
        for field, value in gast.iter_fields(node):
            held, keys = (value, range(len(value))) if isinstance(value, list) else (node.__dict__, (field,))
            for key in keys:
                if isinstance(held[key], (gast.keyword, gast.Starred)):
                    places.append((held[key].__dict__, "value"))
                elif isinstance(held[key], gast.expr):
                    places.append((held, key))
        last = max(k for k, (held, key) in enumerate(places) if has_walrus(held[key]))
        before: list = []
        for k, (held, key) in enumerate(places[: last + 1]):
            inner, plain = self.linear(held[key])
            before += inner
            if k < last and not isinstance(plain, gast.Constant):
                kept = self.names.fresh("operand")
                before += statements(f"{kept} = value", plain, value=plain)
                plain = name(kept, plain)
            held[key] = plain
        return before, node

    def targets(self, node: gast.stmt) -> list:
        if isinstance(node, gast.AnnAssign):
            if node.value is None:
                return statements("pass", node)
            plain = gast.copy_location(gast.Assign([node.target], node.value, None), node)
            return self.targets(plain)
        if isinstance(node, gast.For) and not isinstance(node.target, gast.Name):
            item = self.names.fresh("item")
            node.body = self.unpack(node.target, name(item, node.target), node.target) + node.body
            node.target = name(item, node.target, store=True)
            return [node]
        if isinstance(node, gast.With):
            for item in node.items:
                if item.optional_vars is not None and not isinstance(item.optional_vars, gast.Name):
                    entered = self.names.fresh("entered")
                    node.body = self.unpack(item.optional_vars, name(entered, node), node) + node.body
                    item.optional_vars = name(entered, node, store=True)
            return [node]
        if not isinstance(node, gast.Assign):
            return [node]
        if len(node.targets) == 1:
            return self.unpack(node.targets[0], node.value, node)
        first = node.targets[0]
        if isinstance(node.value, gast.Constant):
            return [s for t in node.targets for s in self.unpack(t, copy_of(node.value), node)]
        kept, out, rest = None, [], node.targets
        rebound = bound_names(rest[isinstance(first, gast.Name) : -1])
        if isinstance(node.value, gast.Name) and node.value.id not in rebound:
            kept = node.value.id
        elif isinstance(first, gast.Name) and first.id not in rebound:
            kept, rest = first.id, node.targets[1:]
            out = statements(f"{kept} = value", node, value=node.value)
        else:
            kept = self.names.fresh("value")
            out = statements(f"{kept} = value", node, value=node.value)
        return out + [s for target in rest for s in self.unpack(target, name(kept, node), node)]

    def unpack(self, target: gast.expr, value: gast.expr, at: gast.AST) -> list:
        """`target = value`, cut until every tuple target holds names only. Places are stored to from left to
        right: a name that stands after `a[i]` is bound after that store, which may read it."""
        if not isinstance(target, (gast.Tuple, gast.List)) or _names_only(target):
            return [gast.copy_location(gast.Assign([target], value, None), at)]
        parts: list = []
        after: list = []
        for element in target.elts:
            inner = element.value if isinstance(element, gast.Starred) else element
            if isinstance(inner, gast.Name) and not after:
                parts.append(element)
                continue
            kept = self.names.fresh("part")
            part = name(kept, inner, store=True)
            if isinstance(element, gast.Starred):
                part = gast.copy_location(gast.Starred(part, gast.Store()), element)
            parts.append(part)
            after += self.unpack(inner, name(kept, inner), at)
        packed = gast.copy_location(gast.Tuple(parts, gast.Store()), target)
        return [gast.copy_location(gast.Assign([packed], value, None), at), *after]


def _names_only(target: gast.expr) -> bool:
    if isinstance(target, (gast.Tuple, gast.List)):
        return all(map(_names_only, target.elts))
    return isinstance(target.value if isinstance(target, gast.Starred) else target, gast.Name)
