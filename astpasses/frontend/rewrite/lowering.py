"""Expressions of the control stage: what may touch a staged value goes through the stager.

In: expressions in normal form. Out: the same with calls, loads and lazy operators as calls of the stager.

    np.sin(x)[1:]        stager.item(stager.call(np.sin, x), stager.slice(1, None))
    a and f(b)           stager.and_(a, lambda: stager.call(f, b))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast

from .parsing import argument_names
from .plain import NAMES
from .scopes import Transformer, bound_names, walk
from .templates import constant, copy_of, expression, locate, name

QUANTIFIERS = ("any", "all")
EAGER = ("sum", "max", "min", "list", "tuple", "sorted", "deque")
COMPARISONS = {gast.Lt: "<", gast.LtE: "<=", gast.Gt: ">", gast.GtE: ">=", gast.Eq: "==", gast.NotEq: "!="}
TESTS = {gast.Is: "is_", gast.IsNot: "is_not", gast.In: "contains", gast.NotIn: "lacks"}
UNARY = {gast.USub: "-", gast.UAdd: "+", gast.Invert: "~"}
_BINARY = "Add Sub Mult Div FloorDiv Mod Pow MatMult BitAnd BitOr BitXor LShift RShift"
OPERATORS = dict(zip((getattr(gast, kind) for kind in _BINARY.split()), NAMES, strict=True))


def point(node: gast.AST, at: gast.AST) -> None:
    """Place `node` at the first character of `at`: were it over several lines, Python would report the last of them."""
    for child in walk(node):
        if "lineno" in child._attributes:
            child.lineno = child.end_lineno = at.lineno
            child.col_offset, child.end_col_offset = at.col_offset, at.col_offset + 1


def _over_names(node: gast.expr | None) -> bool:
    """Whether this is a generator expression over names that binds no others."""
    if not isinstance(node, gast.GeneratorExp):
        return False
    targets = [g.target for g in node.generators]
    flat = [e for t in targets for e in (t.elts if isinstance(t, gast.Tuple) else [t])]
    others = (gast.NamedExpr, gast.Yield, gast.YieldFrom, gast.Await)
    binds = any(isinstance(n, others) for n in walk(node))
    return not binds and all(isinstance(e, gast.Name) for e in flat)


def _used_up(node: gast.Call) -> list[gast.expr]:
    """The parts of a call that do not outlive it: what is called, and a generator expression of which it uses
    all, or that it quantifies."""
    named = isinstance(node.func, gast.Name) and len(node.args) == 1
    eager = named and node.func.id in EAGER  # type: ignore[attr-defined]
    quantified = named and node.func.id in QUANTIFIERS and not node.keywords  # type: ignore[attr-defined]
    return [node.func, *node.args] if eager or quantified and _over_names(node.args[0]) else [node.func]


class Lowering(Transformer):
    """`load(identifier, node)` gives the text-level replacement of a variable that is read, or None."""

    def __init__(
        self,
        stager: str,
        load: Callable[[str, gast.Name], Any],
        is_module: Callable[[str], bool],
        first_parameter: str | None,
    ):
        self.stager, self.load, self.is_module, self.first_parameter = (stager, load, is_module, first_parameter)
        self.hidden: list[set[str]] = []

    def call(self, operation: str, at: gast.AST, *args: gast.AST, keywords: Sequence = ()) -> gast.Call:
        function = gast.Attribute(name(self.stager, at), operation, gast.Load())
        point(function, at)
        return locate([gast.Call(function, list(args), list(keywords))], at)[0]

    def lazy(self, value: gast.expr) -> gast.Lambda:
        return expression("lambda: value", value, value=value)

    def shadowed(self, identifier: str) -> bool:
        return any(identifier in names for names in self.hidden)

    def visit_Name(self, node: gast.Name) -> gast.AST:
        if not isinstance(node.ctx, gast.Load) or self.shadowed(node.id):
            return node
        return self.load(node.id, node) or node

    def visit_Call(self, node: gast.Call) -> gast.AST:
        called = node.func.id if isinstance(node.func, gast.Name) else ""
        if called == "super" and not self.shadowed("super"):
            if not node.args and self.first_parameter:
                node.args = [name("__class__", node), name(self.first_parameter, node)]
            return node
        only: Any = node.args[0] if len(node.args) == 1 else None
        if called in EAGER and isinstance(only, gast.GeneratorExp):  # all of it is used: the same as a list
            node.args = [gast.copy_location(gast.ListComp(only.elt, only.generators), only)]
        if called in QUANTIFIERS and not node.keywords and _over_names(only):
            return self.quantified(node, only.generators, only.elt)
        args = [self.visit(a) for a in node.args]
        keywords = [self.visit(k) for k in node.keywords]
        for keyword in keywords:
            if keyword.arg is None:
                keyword.value = self.call("mapping", keyword.value, keyword.value)
        if isinstance(node.func, gast.Attribute) and not self.module_path(node.func):
            target = self.visit(node.func.value)
            return self.call("method", node, target, constant(node.func.attr, node.func), *args, keywords=keywords)
        return self.call("call", node, self.visit(node.func), *args, keywords=keywords)

    def module_path(self, node: gast.expr) -> bool:
        """`np.linalg.norm`: attributes of a module need no stager."""
        while isinstance(node, gast.Attribute):
            node = node.value
        return isinstance(node, gast.Name) and not self.shadowed(node.id) and self.is_module(node.id)

    def visit_Starred(self, node: gast.Starred) -> gast.AST:
        if isinstance(node.ctx, gast.Load):
            node.value = self.call("iterate", node.value, self.visit(node.value))
        return node

    def visit_Attribute(self, node: gast.Attribute) -> gast.AST:
        if self.module_path(node) or not isinstance(node.ctx, gast.Load):
            return node
        return self.call("attribute", node, self.visit(node.value), constant(node.attr, node))

    def visit_Subscript(self, node: gast.Subscript) -> gast.AST:
        if not isinstance(node.ctx, gast.Load):
            return node
        return self.call("item", node, self.visit(node.value), self.index(node.slice))

    def index(self, node: gast.expr) -> gast.expr:
        """An index, slices as `stager.slice(...)`."""
        if isinstance(node, gast.Slice):
            parts = [self.visit(p) if p else constant(None, node) for p in (node.lower, node.upper, node.step)]
            while len(parts) > 2 and node.step is None:
                parts.pop()
            return self.call("slice", node, *parts)
        if isinstance(node, gast.Tuple):
            node.elts = [self.index(e) for e in node.elts]
            return node
        return self.visit(node)

    def visit_BoolOp(self, node: gast.BoolOp) -> gast.AST:
        first, *rest = [self.visit(v) for v in node.values]
        operation = "and_" if isinstance(node.op, gast.And) else "or_"
        return self.call(operation, node, first, *map(self.lazy, rest))

    def visit_UnaryOp(self, node: gast.UnaryOp) -> gast.AST:
        self.generic_visit(node)
        if isinstance(node.op, gast.Not):
            return self.call("not_", node, node.operand)
        if isinstance(node.operand, gast.Constant):
            return node
        return self.call("unary", node, constant(UNARY[type(node.op)], node), node.operand)

    def visit_IfExp(self, node: gast.IfExp) -> gast.AST:
        self.generic_visit(node)
        return self.call("choose", node, node.test, self.lazy(node.body), self.lazy(node.orelse))

    def visit_Compare(self, node: gast.Compare) -> gast.AST:
        (there,), kind = node.comparators, type(node.ops[0])
        left = self.visit(node.left)
        if kind in (gast.In, gast.NotIn) and isinstance(there, gast.Set):  # asked once
            items = gast.copy_location(gast.Tuple(there.elts, gast.Load()), there)
            right = self.call("members", there, self.visit(items))
        else:
            right = self.visit(there)
        if kind in COMPARISONS:
            return self.call("operate", node, constant(COMPARISONS[kind], node), left, right)
        return self.call(TESTS[kind], node, left, right)

    def visit_JoinedStr(self, node: gast.JoinedStr) -> gast.AST:
        template, values = self.template(node)
        return self.call("text", node, constant(template, node), *values)

    def template(self, node: gast.JoinedStr) -> tuple[str, list]:
        """The text of an f-string with fields for its values, those of format specifications included."""
        template, values = "", []
        for part in node.values:
            if isinstance(part, gast.Constant):
                template += str(part.value).replace("{", "{{").replace("}", "}}")
                continue
            values.append(self.visit(part.value))
            spec, inner = self.template(part.format_spec) if part.format_spec is not None else ("", [])
            values += inner
            conversion = f"!{chr(part.conversion)}" if part.conversion and part.conversion > 0 else ""
            template += "{" + conversion + (f":{spec}" if spec else "") + "}"
        return template, values

    def visit_BinOp(self, node: gast.BinOp) -> gast.AST:
        text = isinstance(node.left, gast.Constant) and isinstance(node.left.value, str)
        self.generic_visit(node)
        if isinstance(node.op, gast.Mod) and text:
            return self.call("percent", node, node.left, node.right)
        if isinstance(node.left, gast.Constant) and isinstance(node.right, gast.Constant):
            return node
        return self.call("operate", node, constant(OPERATORS[type(node.op)], node), node.left, node.right)

    def visit_List(self, node: gast.List) -> gast.AST:
        starred = [isinstance(e, gast.Starred) for e in node.elts]
        if not isinstance(node.ctx, gast.Load) or not any(starred):
            self.generic_visit(node)
            return self.call("fresh", node, node) if isinstance(node.ctx, gast.Load) else node
        values = [
            self.call("items", e, self.visit(e.value)) if star else self.visit(e) for star, e in zip(starred, node.elts)
        ]
        return self.call("spread", node, expression(repr(tuple(starred)), node), *values)

    def visit_Dict(self, node: gast.Dict) -> gast.AST:
        self.generic_visit(node)
        node.values = [v if key is not None else self.call("mapping", v, v) for key, v in zip(node.keys, node.values)]
        return self.call("fresh", node, node)

    def visit_Set(self, node: gast.Set) -> gast.AST:
        self.generic_visit(node)
        return self.call("fresh", node, node)

    def visit_Lambda(self, node: gast.Lambda) -> gast.AST:
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        self.hidden.append(set(argument_names(node.args)))
        node.body = self.visit(node.body)
        self.hidden.pop()
        return node

    def visit_ListComp(self, node: Any) -> gast.AST:
        """Each `for` over names becomes a call that also takes staged counts and tests."""
        parts = [node.elt, *(test for g in node.generators for test in g.ifs)]
        parts += [g.iter for g in node.generators[1:]]
        closures = (gast.Lambda, gast.GeneratorExp, gast.NamedExpr, gast.Yield, gast.YieldFrom)
        children = [child for part in parts for child in walk(part)]
        called = {id(part) for child in children if isinstance(child, gast.Call) for part in _used_up(child)}
        inner = any(isinstance(child, closures) and id(child) not in called for child in children)
        targets = [
            [g.target] if isinstance(g.target, gast.Name) else getattr(g.target, "elts", []) for g in node.generators
        ]
        named = all(names and all(isinstance(n, gast.Name) for n in names) for names in targets)
        if inner or not named:
            return self.comprehension(node)
        if isinstance(node, gast.GeneratorExp):
            return self.call("generator", node, *self.clause(node, 0))
        tested = any(g.ifs for g in node.generators)
        several = [constant(True, node), constant(tested, node)] if len(node.generators) > 1 else []
        return self.call("listed", node, *self.clause(node, 0), *several)

    visit_GeneratorExp = visit_ListComp

    def clause(self, node: Any, k: int) -> list[gast.expr]:
        """What the `for` number k runs over, what it makes of an item, and its test."""
        here = node.generators[k]
        iterable = self.visit(here.iter)
        self.hidden.append(set(bound_names(here.target)))
        if k + 1 < len(node.generators):
            element = self.call("nested", node, *self.clause(node, k + 1))
        else:
            element = self.visit(node.elt)
        tests = [self.visit(t) for t in here.ifs]
        self.hidden.pop()
        test = self.of_item(here.target, self.all_of(node, tests)) if tests else constant(None, node)
        return [iterable, self.of_item(here.target, element), test]

    def all_of(self, node: gast.AST, tests: list[gast.expr]) -> gast.expr:
        """`a and b and c`."""
        first, *rest = tests
        return self.call("and_", node, first, *map(self.lazy, rest)) if rest else first

    def quantified(self, node: gast.Call, generators: list, test: gast.expr) -> gast.AST:
        """`any(t for v in vs if c)`: no test is computed behind the one that decides."""
        (first, *others) = generators
        iterable = self.visit(first.iter)
        self.hidden.append(set(bound_names(first.target)))
        each = self.quantified(node, others, test) if others else self.visit(test)
        if first.ifs:
            whole = self.all_of(node, [self.visit(c) for c in first.ifs])
            if node.func.id == "any":
                each = self.call("and_", node, whole, self.lazy(each))
            else:
                each = self.call("or_", node, self.call("not_", node, whole), self.lazy(each))
        self.hidden.pop()
        function, kind = self.visit(copy_of(node.func)), constant(node.func.id, node)
        return self.call("quantified", node, function, kind, iterable, self.of_item(first.target, each))

    def of_item(self, target: gast.expr, value: gast.expr) -> gast.expr:
        """A function of one item: its names are its parameters."""
        if isinstance(target, gast.Name):
            return expression(f"lambda {target.id}: value", value, value=value)
        names = ", ".join(n.id for n in target.elts)
        item = "item" if "item" not in {n.id for n in target.elts} else "item_"
        unpacked = self.call("unpack", value, name(item, value), constant(len(target.elts), value))
        text = f"lambda {item}: (lambda {names}: value)(*unpacked)"
        return expression(text, value, value=value, unpacked=unpacked)

    def comprehension(self, node: Any) -> gast.AST:
        names = {n for g in node.generators for n in bound_names(g.target)}
        for position, generator in enumerate(node.generators):
            if position == 1:
                self.hidden.append(names)
            iterable = self.visit(generator.iter)
            generator.iter = self.call("iterate", iterable, iterable)
            if position == 0 and len(node.generators) == 1:
                self.hidden.append(names)
        for generator in node.generators:
            generator.ifs = [self.call("truth", test, self.visit(test)) for test in generator.ifs]
        for field in ("elt", "key", "value"):
            if getattr(node, field, None) is not None:
                setattr(node, field, self.visit(getattr(node, field)))
        self.hidden.pop()
        return self.call("fresh", node, node)

    visit_SetComp = visit_DictComp = comprehension
