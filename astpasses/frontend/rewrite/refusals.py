"""Constructs that are refused by their look, collected over a function and reported together.

In: a gast function and its file. Out: a list of `UnsupportedError`s, each with a place, one cause, one
remedy, a code.
"""

from __future__ import annotations

import gast

from metaphrase.source import Errors, SourceError, Span, UnsupportedError

from .scopes import bound_names, children, own_nodes, walk, yields

STATEMENTS: dict[type, tuple[str, str, str]] = {
    gast.AsyncFunctionDef: ("async-function", "an async function can't be translated", "write a plain `def`"),
    gast.Await: ("async-function", "`await` can't be translated", "call a plain function"),
    gast.AsyncFor: ("async-function", "`async for` can't be translated", "write a plain `for`"),
    gast.AsyncWith: ("async-function", "`async with` can't be translated", "write a plain `with`"),
    gast.TryStar: ("try-star", "`except*` can't be translated", "write a plain `except`"),
}
NAMES: dict[str, tuple[str, str, str]] = {
    "locals": ("frame-access", "`locals()` reads names that the translation keeps elsewhere", "build the dict by hand"),
    "eval": ("eval", "`eval` runs text that can't be translated", "write the expression as code"),
    "exec": ("eval", "`exec` runs text that can't be translated", "write the statements as code"),
    "vars": (
        "frame-access",
        "`vars()` reads names that the translation keeps elsewhere",
        "name the attributes that are meant",
    ),
}


def span_of(node: gast.AST, file: str, function: str = "") -> Span:
    """The place of a node."""
    return Span(file, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, function=function)


def refusals(function: gast.AST, file: str) -> list[SourceError]:
    """Every refusal in `function`, nested functions included, in the order of the source."""
    visitor = _Visitor(file, getattr(function, "name", "<lambda>"))
    visitor.visit(function)
    return sorted(visitor.found, key=lambda e: (e.span.line, e.span.column))  # type: ignore[union-attr]


def refuse_together(found: list[SourceError]) -> None:
    """Raise what was found, if anything."""
    if len(found) == 1:
        raise found[0]
    if found:
        raise Errors(found)


class _Visitor:
    def __init__(self, file: str, function: str):
        self.file, self.function = file, function
        self.found: list[SourceError] = []

    def refuse(self, node: gast.AST, code: str, message: str, remedy: str) -> None:
        self.found.append(UnsupportedError(message, span_of(node, self.file, self.function), remedy=remedy, code=code))

    def visit(self, node: gast.AST) -> None:
        entry = STATEMENTS.get(type(node))
        if entry is not None:
            self.refuse(node, *entry)
        if (look := getattr(self, "visit_" + type(node).__name__, None)) is not None:
            look(node)
        for child in children(node):
            self.visit(child)

    def visit_FunctionDef(self, node: gast.FunctionDef) -> None:
        bound = set(bound_names(node.body, walrus=True))
        for child in own_nodes(node.body):
            if isinstance(child, gast.Global) and bound & set(child.names):
                self.refuse(
                    child,
                    "global-write",
                    f"'{sorted(bound & set(child.names))[0]}' is a global variable, which a translated "
                    "function can't assign",
                    "return the new value and let the caller assign it",
                )

    def visit_Call(self, node: gast.Call) -> None:
        called = node.func.id if isinstance(node.func, gast.Name) else ""
        if called in NAMES and (not node.args or called in ("eval", "exec")):
            self.refuse(node, *NAMES[called])

    def visit_Try(self, node: gast.Try) -> None:
        if node.handlers:
            for statement in node.body:
                if yields(statement):
                    self.refuse(
                        statement,
                        "generator",
                        "a `yield` inside `try` with `except` can't be translated",
                        "yield after the `try` statement",
                    )
        for statement in node.finalbody:
            for child in walk(statement):
                if isinstance(child, (gast.Return, gast.Break, gast.Continue)):
                    self.refuse(
                        child,
                        "jump-in-finally",
                        "a jump out of `finally` can't be translated",
                        "move it after the `try` statement",
                    )

    def visit_Delete(self, node: gast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, gast.Attribute):
                self.refuse(target, "delete-attribute", "`del` of an attribute is not supported", "set it to None")

    def visit_Lambda(self, node: gast.Lambda) -> None:
        self.no_yield(node, "a lambda")

    def visit_BoolOp(self, node: gast.BoolOp) -> None:
        for value in node.values[1:]:
            self.no_yield(value, "`and` or `or`")

    def visit_IfExp(self, node: gast.IfExp) -> None:
        for value in (node.body, node.orelse):
            self.no_yield(value, "a conditional expression")

    def visit_Compare(self, node: gast.Compare) -> None:
        if len(node.ops) > 1:
            self.no_yield(node, "a chained comparison")

    def no_yield(self, node: gast.AST, where: str) -> None:
        """Expressions that become functions can't hold a `yield`."""
        for child in walk(node):
            if isinstance(child, (gast.Yield, gast.YieldFrom)):
                self.refuse(
                    child,
                    "generator",
                    f"a `yield` inside {where} can't be translated",
                    "yield in a statement of its own",
                )

    def visit_comprehension(self, node: gast.comprehension) -> None:
        if node.is_async:
            self.refuse(node.target, "async-function", "`async for` can't be translated", "write a plain `for`")

    def visit_GeneratorExp(self, node: gast.GeneratorExp) -> None:
        self.no_walrus(node, "a generator expression", "write a list comprehension or a loop")

    def no_walrus(self, node: gast.AST, where: str, remedy: str) -> None:
        for child in walk(node):
            if isinstance(child, gast.NamedExpr):
                self.refuse(child, "walrus", f"`:=` inside {where} is not supported", remedy)

    def comprehension(self, node: gast.AST) -> None:
        for child in walk(node):
            if isinstance(child, gast.Lambda):
                self.no_walrus(child, "a lambda in a comprehension", "write the lambda as a `def`")

    visit_ListComp = visit_SetComp = visit_DictComp = comprehension
