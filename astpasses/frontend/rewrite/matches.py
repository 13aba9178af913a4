"""`match` becomes `if`: each pattern is a test and the names that it binds.

In: statements with `match`, functions inside them included. Out: the same without. Structure (classes,
lengths, keys) is asked of Python values; literals may be compared with staged numbers.

    match shape:                        subject = shape
        case Circle(radius=r) if r > 0:     if isinstance(subject, Circle) and ... and subject.radius > 0:
            return r                            r = subject.radius
        case [x, *_]:                           return r
            return x                        elif ...

So does `raise` of one of two exceptions: the paths need not leave one value.

    raise KeyError(k) if test else ValueError(k)        if test: raise KeyError(k)
                                                        else: raise ValueError(k)
"""

from __future__ import annotations

import ast
from typing import Any

import gast

from metaphrase.late import dataclass, field

from .scopes import Names, Transformer
from .templates import copy_of, expression, statements

SEQUENCE, MAPPING = 1 << 5, 1 << 6  # the flags of types that Python's own `match` asks


def lower_matches(body: list, names: Names) -> list:
    """Rewrite every `match` in these statements and the functions inside them."""
    return [made for node in body for made in _Matches(names).statement(node)]


@dataclass
class _Tested:
    """`tests` hold, in this order, where a pattern fits; then `bound` gives names their values."""

    tests: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)

    def and_(self, other: _Tested) -> None:
        self.tests += other.tests
        self.bound.update(other.bound)


class _Matches:
    def __init__(self, names: Names):
        self.names = names

    def statement(self, node: gast.stmt) -> list:
        if isinstance(node, gast.ClassDef):
            return [node]
        for part in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, part, None), list):
                setattr(node, part, self.block(getattr(node, part)))
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            inner.body = self.block(inner.body)
        if isinstance(node, gast.Raise) and isinstance(node.exc, gast.IfExp):
            return [self.raised(node, node.exc)]
        return self.match(node) if isinstance(node, gast.Match) else [node]

    def block(self, body: list) -> list:
        return [made for node in body for made in self.statement(node)]

    def raised(self, node: gast.Raise, choice: gast.IfExp) -> gast.If:
        sides = []
        for value in (choice.body, choice.orelse):
            cause = node.cause if value is choice.body else copy_of(node.cause)
            sides.append(self.statement(gast.copy_location(gast.Raise(value, cause), node)))
        return gast.copy_location(gast.If(choice.test, *sides), node)

    def match(self, node: gast.Match) -> list:
        subject = self.names.fresh("subject")
        chain: list = []
        for case in reversed(node.cases):
            found = pattern_tests(case.pattern, subject)
            tests: list = [expression(text, case.pattern) for text in found.tests]
            if case.guard is not None:
                tests.append(_Replace(found.bound).visit(copy_of(case.guard)))
            bound = [s for n, text in found.bound.items() for s in statements(f"{n} = {text}", case.pattern)]
            body = bound + case.body
            if not tests:
                chain = body
                continue
            test = tests[0]
            if len(tests) > 1:
                test = gast.copy_location(gast.BoolOp(gast.And(), tests), case.pattern)
            made = statements("if test: body", case.pattern, test=test, body=body)
            made[0].orelse = chain
            chain = made
        return statements(f"{subject} = value", node.subject, value=node.subject) + chain


class _Replace(Transformer):
    """A guard asks the values of the names that its pattern binds."""

    def __init__(self, bound: dict[str, str]):
        self.bound = bound

    def visit_Name(self, node: gast.Name) -> Any:
        if node.id in self.bound and isinstance(node.ctx, gast.Load):
            return expression(self.bound[node.id], node)
        return node


def text(node: gast.expr) -> str:
    return ast.unparse(gast.gast_to_ast(copy_of(node)))


def pattern_tests(pattern: gast.AST, value: str) -> _Tested:
    """What makes `pattern` fit the expression `value`."""
    return globals()[f"_{type(pattern).__name__}"](pattern, value)


def _MatchValue(pattern: gast.MatchValue, value: str) -> _Tested:
    return _Tested([f"{value} == {text(pattern.value)}"])


def _MatchSingleton(pattern: gast.MatchSingleton, value: str) -> _Tested:
    return _Tested([f"{value} is {pattern.value!r}"])


def _MatchAs(pattern: gast.MatchAs, value: str) -> _Tested:
    found = pattern_tests(pattern.pattern, value) if pattern.pattern is not None else _Tested()
    if pattern.name is not None:
        found.bound[pattern.name] = value
    return found


def _MatchOr(pattern: gast.MatchOr, value: str) -> _Tested:
    options = [pattern_tests(p, value) for p in pattern.patterns]
    whole = [" and ".join(f"({t})" for t in option.tests) or "True" for option in options]
    bound = dict(options[-1].bound)
    for option, test in reversed(list(zip(options[:-1], whole))):
        for name, part in option.bound.items():
            bound[name] = part if part == bound[name] else f"({part} if {test} else {bound[name]})"
    return _Tested([" or ".join(f"({t})" for t in whole)], bound)


def _MatchSequence(pattern: gast.MatchSequence, value: str) -> _Tested:
    items = pattern.patterns
    stars = [k for k, p in enumerate(items) if isinstance(p, gast.MatchStar)]
    count = len(items) - len(stars)
    found = _Tested([f"type({value}).__flags__ & {SEQUENCE} != 0"])
    found.tests.append(f"len({value}) >= {count}" if stars else f"len({value}) == {count}")
    for k, item in enumerate(items):
        if isinstance(item, gast.MatchStar):
            after = len(items) - k - 1
            if item.name is not None:
                found.bound[item.name] = f"list({value}[{k}:{-after if after else ''}])"
        else:
            place = k if not stars or k < stars[0] else k - len(items)
            found.and_(pattern_tests(item, f"{value}[{place}]"))
    return found


def _MatchMapping(pattern: gast.MatchMapping, value: str) -> _Tested:
    found = _Tested([f"type({value}).__flags__ & {MAPPING} != 0"])
    keys = [text(key) for key in pattern.keys]
    for key, item in zip(keys, pattern.patterns):
        found.tests.append(f"{key} in {value}")
        found.and_(pattern_tests(item, f"{value}[{key}]"))
    if pattern.rest is not None:
        known = "(" + "".join(f"{key}, " for key in keys) + ")"
        found.bound[pattern.rest] = f"{{key: item for key, item in {value}.items() if key not in {known}}}"
    return found


def _MatchClass(pattern: gast.MatchClass, value: str) -> _Tested:
    kind = text(pattern.cls)
    found = _Tested([f"isinstance({value}, {kind})"])
    for k, item in enumerate(pattern.patterns):
        if k == 0:  # int(x), str(x), ... have no __match_args__: x is the whole value
            named = f"getattr({value}, {kind}.__match_args__[0])"
            part = f'({named} if hasattr({kind}, "__match_args__") else {value})'
        else:
            part = f"getattr({value}, {kind}.__match_args__[{k}])"
        found.and_(pattern_tests(item, part))
    for name, item in zip(pattern.kwd_attrs, pattern.kwd_patterns):
        found.tests.append(f"hasattr({value}, {name!r})")
        found.and_(pattern_tests(item, f"{value}.{name}"))
    return found
