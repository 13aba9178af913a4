"""Rewrites as text: a template with holes becomes gast nodes.

In: Python text whose holes are names, and what goes into them (a node, a list of statements, an identifier).
Out: a list of statements (or one expression), located at the node they replace.

    statements("if not flag: rest", at=node, flag="stopped", rest=[...])
"""

from __future__ import annotations

import ast
import contextlib
import functools
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

import gast

from metaphrase.late import module

from .scopes import children

astor: Any = module("astor")
Hole = Any
LOCATION = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def _filled(node: Any, holes: dict[str, Hole], place: dict[str, int]) -> Any:
    """A part of a template with its holes filled: a node, or a list of statements for a hole or none."""
    kind = type(node)
    value = holes.get(node.id) if kind is gast.Name else None
    # what is assigned to, and a parameter, may be a name that is spelled like the hole for the value
    free = kind is gast.Name and isinstance(node.ctx, gast.Load)
    if isinstance(value, gast.AST) and (free or isinstance(getattr(value, "ctx", None), gast.Store)):
        return locate([value], place)[0]
    if kind is gast.Expr and isinstance(held := holes.get(getattr(node.value, "id", "")), list):
        return locate(held, place)
    if not node._fields and not node._attributes:
        return node
    new = kind()
    new.__dict__.update({k: _part(v, holes, place) for k, v in node.__dict__.items()})
    if "lineno" in node._attributes:
        new.__dict__.update(place)
    if isinstance(value, str):
        new.id = value
    elif kind is gast.FunctionDef and isinstance(called := holes.get(node.name), str):
        new.name = called
    elif kind is gast.Nonlocal and isinstance(names := holes.get(node.names[0]), (tuple, list)):
        new.names = list(names)
        return new if names else []
    return new


def _part(value: Any, holes: dict[str, Hole], place: dict[str, int]) -> Any:
    if isinstance(value, gast.AST):
        return _filled(value, holes, place)
    if type(value) is not list:
        return value
    made: list = []
    for item in value:
        part = _part(item, holes, place)
        made += part if type(part) is list else [part]
    return made


def statements(text: str, at: gast.AST, **holes: Hole) -> list:
    """The statements of `text`, holes filled, every new node located at `at`."""
    return _part(_template(text).body, holes, place_of(at))


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


def place_of(at: gast.AST) -> dict[str, int]:
    """The lines and columns of a node."""
    held = at.__dict__
    return {name: held[name] for name in LOCATION if name in held}


def locate(nodes: Sequence, at: gast.AST | dict[str, int]) -> list:
    """Give `at`'s place to every node that has none."""
    nodes = list(nodes)
    place = at if isinstance(at, dict) else place_of(at)
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if "lineno" in node._attributes:
            if "lineno" in node.__dict__:
                continue  # what stands below was located with it
            node.__dict__.update(place)
        waiting += children(node)
    return nodes


def name(identifier: str, at: gast.AST, store: bool = False) -> gast.Name:
    return locate([gast.Name(identifier, gast.Store() if store else gast.Load(), None, None)], at)[0]


def constant(value: Any, at: gast.AST) -> gast.Constant:
    return locate([gast.Constant(value, None)], at)[0]


def copy_of(node: Any) -> Any:
    """A copy of a gast tree that shares nothing with it but contexts and operators."""
    if type(node) is list:
        return [copy_of(x) for x in node]
    if not isinstance(node, gast.AST) or not node._fields and not node._attributes:
        return node
    new = type(node)()
    kept, fields = new.__dict__, node._fields
    for key, value in node.__dict__.items():
        if key in fields:
            kept[key] = copy_of(value) if isinstance(value, (gast.AST, list)) else value
        elif key in LOCATION:
            kept[key] = value
    return new


def as_ast(tree: Any) -> Any:
    """gast nodes as the running Python's own `ast` nodes, locations filled in."""
    module = tree if isinstance(tree, gast.Module) else gast.Module([tree], [])
    return _ast_of(module, dict.fromkeys(LOCATION, 1) | {"col_offset": 0, "end_col_offset": 0})


def _ast_of(node: gast.AST, place: dict[str, int]) -> ast.AST:
    kind, held = type(node), node.__dict__
    if kind is gast.Name and type(node.ctx) is gast.Param:
        new = ast.arg(node.id)
    elif not node._fields and not node._attributes:
        if kind not in _SINGLE:
            _SINGLE[kind] = getattr(ast, kind.__name__)()
        return _SINGLE[kind]
    else:
        new = ast.AST.__new__(getattr(ast, kind.__name__))  # called, it would miss its fields, as Python 3.13 warns
    kept = new.__dict__
    if "lineno" in node._attributes:
        place = {name: held.get(name, value) for name, value in place.items()}
        kept.update(place)
    for name in new._fields:
        if name in held:
            value = held[name]
            if type(value) is list:
                value = [_ast_of(v, place) if isinstance(v, gast.AST) else v for v in value]
            elif isinstance(value, gast.AST):
                value = _ast_of(value, place)
            kept[name] = value
    if kind is gast.ExceptHandler and isinstance(new.name, ast.Name):  # type: ignore[attr-defined]
        new.name = new.name.id  # type: ignore[attr-defined]
    return new


_SINGLE: dict[type, ast.AST] = {}  # contexts and operators


def text_of(tree: Any) -> str:
    """Readable Python: astor's text where it reads back to the same tree, else `ast.unparse`'s."""
    whole = as_ast(tree)
    with warnings.catch_warnings(), contextlib.suppress(Exception):  # newer nodes, of which unparse prints all
        warnings.simplefilter("ignore", DeprecationWarning)  # astor asks for names of `ast` that are going
        text = astor.to_source(whole, pretty_source=lambda parts: "".join(parts))
        if ast.dump(ast.parse(text)) == ast.dump(ast.parse(ast.unparse(whole))):
            return text
    return ast.unparse(whole) + "\n"
