"""Rewrites as text: a template with holes becomes gast nodes.

In: Python text whose holes are names, and what goes into them (a node, a list of statements, an identifier).
Out: a list of statements (or one expression), located at the node they replace.

    statements("if not flag: rest", at=node, flag="stopped", rest=[...])
"""

from __future__ import annotations

import ast
import functools
import textwrap
from collections.abc import Sequence
from typing import Any

import astor
import gast

from .scopes import children

Hole = Any
LOCATION = ("lineno", "col_offset", "end_lineno", "end_col_offset")


class _Fill(gast.NodeTransformer):
    def __init__(self, holes: dict[str, Hole]):
        self.holes = holes

    def visit_Expr(self, node: gast.Expr) -> Any:
        if isinstance(node.value, gast.Name) and isinstance(self.holes.get(node.value.id), list):
            return self.holes[node.value.id]
        self.generic_visit(node)
        return node

    def visit_Name(self, node: gast.Name) -> Any:
        value = self.holes.get(node.id)
        if isinstance(value, str):
            node.id = value
            return node
        # what is assigned to, and a parameter, may be a name that is spelled like the hole for the value
        bound = isinstance(node.ctx, (gast.Store, gast.Param))
        stored = bound and not isinstance(getattr(value, "ctx", None), gast.Store)
        return node if value is None or stored else value

    def visit_FunctionDef(self, node: gast.FunctionDef) -> Any:
        if isinstance(self.holes.get(node.name), str):
            node.name = self.holes[node.name]
        self.generic_visit(node)
        return node

    def visit_Nonlocal(self, node: gast.Nonlocal) -> Any:
        names = self.holes.get(node.names[0])
        if isinstance(names, (tuple, list)):
            node.names = list(names)
            return node if names else []
        return node


def statements(text: str, at: gast.AST, **holes: Hole) -> list:
    """The statements of `text`, holes filled, every new node located at `at`."""
    filled = _Fill(holes).visit(copy_of(_template(text))).body
    return locate(filled, at)


@functools.lru_cache(maxsize=512)
def _template(text: str) -> gast.Module:
    """The parsed text, without places."""
    tree = gast.parse(textwrap.dedent(text))
    for node in gast.walk(tree):
        for name in LOCATION:
            if hasattr(node, name):
                delattr(node, name)
    return tree


def expression(text: str, at: gast.AST, **holes: Hole) -> Any:
    """The expression of `text`, holes filled."""
    (statement,) = statements(text, at, **holes)
    return statement.value


def locate(nodes: Sequence, at: gast.AST) -> list:
    """Give `at`'s place to every node that has none."""
    nodes = list(nodes)
    place = {name: getattr(at, name) for name in LOCATION if hasattr(at, name)}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if "lineno" in node._attributes:
            if hasattr(node, "lineno"):
                continue  # what stands below was located with it
            for name, value in place.items():
                setattr(node, name, value)
        waiting += children(node)
    return nodes


def name(identifier: str, at: gast.AST, store: bool = False) -> gast.Name:
    return locate([gast.Name(identifier, gast.Store() if store else gast.Load(), None, None)], at)[0]


def constant(value: Any, at: gast.AST) -> gast.Constant:
    return locate([gast.Constant(value, None)], at)[0]


def copy_of(node: Any) -> Any:
    """A copy of a gast tree that shares nothing with it."""
    if isinstance(node, list):
        return [copy_of(x) for x in node]
    if not isinstance(node, gast.AST):
        return node
    new = type(node)()
    kept = new.__dict__
    for key, value in node.__dict__.items():
        if key in node._fields:
            kept[key] = copy_of(value) if isinstance(value, (gast.AST, list)) else value
        elif key in LOCATION:
            kept[key] = value
    return new


def as_ast(tree: Any) -> Any:
    """gast nodes as the running Python's own `ast` nodes, locations filled in."""
    module = tree if isinstance(tree, gast.Module) else gast.Module([tree], [])
    return ast.fix_missing_locations(gast.gast_to_ast(module))


def text_of(tree: Any) -> str:
    """Readable Python: astor's text where it reads back to the same tree, else `ast.unparse`'s."""
    module = as_ast(copy_of(tree))
    try:
        text = astor.to_source(module, pretty_source=lambda parts: "".join(parts))
        if ast.dump(ast.parse(text)) == ast.dump(ast.parse(ast.unparse(module))):
            return text
    except Exception:  # astor stumbles over some newer nodes; unparse prints them all
        pass
    return ast.unparse(module) + "\n"
