"""Python source -> normal form: Python with one kind of branch, one kind of loop each, and one return.

In: a function. Out: `Normal(node, source, names)`; `text()` prints it, and the text runs as Python.

    def first(xs):                      def first(xs):
        for x in xs:                        returned = False
            if x > 0:                       result = None
                return x                    for x in xs:
                                                if x > 0:
                                                    result = x
                                                    returned = True
                                                if returned:
                                                    break
                                            return result

The grammar that holds afterwards, in this function and those nested in it:
  statement  = target `=` e | target op`=` e | `if` e: block `else`: block | `while` e: block
             | `for` name `in` e: block [`if` flags: `break`]
             | def | with | try | assert | raise | del | import | pass | e
  body       = statements [`return` e]
  expression : no chained comparison, no `:=` outside comprehensions
"""

from __future__ import annotations

import functools
import types

import gast

from metaphrase.late import dataclass

from .expressions import as_def, has_walrus, simplify
from .jumps import lower_jumps
from .matches import lower_matches
from .parsing import Source, argument_names, find_source
from .refusals import refusals, refuse_together
from .scopes import Names, all_names, children
from .templates import copy_of, statements, text_of


@dataclass(frozen=True)
class Normal:
    """`node` is a gast function in normal form; a lambda has become a `def`. `invented`: names we made."""

    node: gast.FunctionDef
    source: Source
    invented: frozenset[str]

    def text(self) -> str:
        """The normal form as Python text."""
        return text_of(self.node)


def normal(function: types.FunctionType) -> Normal:
    """The normal form of a function. Raises every syntactic refusal together."""
    return _normal(find_source(function))


@functools.lru_cache(maxsize=4096)
def _normal(source: Source) -> Normal:
    refuse_together(refusals(source.node, source.file))
    node = copy_of(source.node)
    names = Names(all_names(node))
    if isinstance(node, gast.Lambda):
        node = as_def(node, "function")
    node.decorator_list = []
    node.body = lower_matches(node.body, names)
    made = normalise(node, names)
    return Normal(made, source, frozenset(names.invented))


def normalise(node: gast.FunctionDef, names: Names) -> gast.FunctionDef:
    """Bring one function, and those nested in it, into normal form, in place."""
    node.returns, node.type_params = None, []
    for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
        if arg is not None:
            arg.annotation = None
    lowered = lower_jumps(node.body, names, argument_names(node.args))
    node.body = simplify(lowered, names) or statements("pass", node)
    for inner in _nested(node.body):
        normalise(inner, names)
    check_grammar(node)
    return node


def _nested(body: list) -> list[gast.FunctionDef]:
    """Functions defined directly in this body, at any depth of statements; methods of classes stay as they are."""
    found = []
    for node in body:
        if isinstance(node, gast.FunctionDef):
            found.append(node)
        elif not isinstance(node, gast.ClassDef):
            found += _nested([c for c in children(node) if isinstance(c, (gast.stmt, gast.ExceptHandler))])
    return found


def check_grammar(node: gast.FunctionDef) -> None:
    """The promises of the normal form; a failure here is a fault of this package."""

    def visit(statement: gast.AST, last_in_for: bool) -> None:
        assert not isinstance(statement, (gast.Continue, gast.AnnAssign)), statement
        assert not (isinstance(statement, (gast.For, gast.While)) and statement.orelse), "loop else"
        assert not isinstance(statement, gast.Return), "return inside"
        if isinstance(statement, gast.Assign):
            assert len(statement.targets) == 1
        if isinstance(statement, gast.FunctionDef):
            return
        for field in ("test", "value", "iter"):
            if isinstance(getattr(statement, field, None), gast.expr):
                assert not has_walrus(getattr(statement, field))
        if last_in_for and isinstance(statement, gast.If) and isinstance(statement.body[0], gast.Break):
            return
        assert not isinstance(statement, gast.Break), "break inside"
        for field in ("body", "orelse", "finalbody", "handlers"):
            inner = getattr(statement, field, None)
            if isinstance(inner, list):
                for k, child in enumerate(inner):
                    visit(child, isinstance(statement, gast.For) and k == len(inner) - 1)

    body = node.body[:-1] if isinstance(node.body[-1], gast.Return) else node.body
    for statement in body:
        if not isinstance(statement, gast.ClassDef):
            visit(statement, False)
