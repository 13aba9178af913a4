"""Branches, loops and `try` of normal form as calls of the stager: what they change is their state.

In: a statement, and which names are live around it. Out: the functions of its parts, the pair that reads and
sets its state, and the call; and for a whole function the control stage. Examples stand in `control.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import gast

from .control import Asks, Control, Function, Owner
from .scopes import Names, all_names, bound_names, leaving, walk, yields
from .stores import changes_of
from .templates import constant, copy_of, expression, locate, name, statements


class Regions(Function):
    """The converter: the rules for statements with regions, beside those for the others."""

    def region(self, label: str, params: list[str], body: list, state: list[str], at: gast.AST) -> list:
        """A function of no (or one) argument that runs `body` on the state around it."""
        bound = set(bound_names(body))
        owner = Owner(bound - set(state) - self.outer)
        kept, self.bound = self.bound, set(self.bound)
        self.owners.append(owner)
        shared = [n for n in state if n in bound] + sorted(self.outer & bound)
        made = self.block(body)
        self.owners.pop()
        self.bound = kept
        made = self.starts(owner, at) + made or statements("pass", at)
        if shared:
            made = [gast.copy_location(gast.Nonlocal(shared), at), *made]
        return statements(f"def label({', '.join(params)}): body", at, label=label, body=made)

    def state_functions(self, state: list[str], at: gast.AST) -> tuple[list, str, str]:
        getter, setter = self.names.fresh("get_state"), self.names.fresh("set_state")
        given = "state"
        while given in self.around or given in state:
            given += "_"
        read, bound = ([name(n, at, store) for n in state] for store in (False, True))
        packed, target = gast.Tuple(read, gast.Load()), gast.Tuple(bound, gast.Store())
        change = statements(
            "nonlocal names\ntarget = given" if state else "pass", at, names=state, target=target, given=given
        )
        text = "def getter(): return packed\ndef setter(given): change"
        holes = {"getter": getter, "setter": setter, "packed": packed, "change": change, "given": given}
        return statements(text, at, **holes), getter, setter

    def called(
        self,
        operation: str,
        node: gast.stmt,
        head: gast.AST,
        given: list[gast.expr],
        made: list,
        regions: list[str],
        state: list[str],
        *last: gast.expr,
    ) -> list:
        """The functions of a statement, which are `made`, those of its state, and the call of the stager with all."""
        functions, getter, setter = self.state_functions(state, node)
        names = [name(n, head) for n in (*regions, getter, setter)]
        call = self.expressions.call(operation, head, *given, *names, expression(repr(tuple(state)), head), *last)
        return [*functions, *made, gast.copy_location(gast.Expr(call), node)]

    def state_of(self, node: gast.stmt, body: list) -> list[str]:
        """Names that the region changes and that matter after it or at its start."""
        matter = self.live.live_out[node] | self.live.live_in[node]
        state = [n for n in bound_names(body) if n in matter and n in self.own]
        for identifier in state:
            self.needs_start(identifier)
        return state

    def do_If(self, node: gast.If) -> list:
        if self.generator and yields(node):
            node.test = self.static(node.test)
            before = set(self.bound)
            node.body, first = self.block(node.body), self.bound
            self.bound = set(before)
            node.orelse, second = self.block(node.orelse), self.bound
            self.bound = first & second
            return [node]
        head = _place(node.test)
        test = self.visit(node.test)
        body = [*node.body, *node.orelse]
        state = self.state_of(node, body)
        then, otherwise = self.names.fresh("then"), self.names.fresh("otherwise")
        both = self.surely(node.body) & self.surely(node.orelse)
        made = self.region(then, [], node.body, state, node)
        made += self.region(otherwise, [], node.orelse or statements("pass", node), state, node)
        self.bound |= both & set(state)
        return self.called("if_", node, head, [test], made, [then, otherwise], state)

    def surely(self, body: list) -> set[str]:
        """Names that a block binds on every path that reaches its end."""
        found: set[str] = set()
        for node in body:
            if isinstance(node, gast.If):
                found |= self.surely(node.body) & self.surely(node.orelse)
            elif isinstance(node, gast.Raise):
                return set(self.own)
            else:
                found |= self.definitely(node)
        return found

    def static(self, test: gast.expr) -> gast.expr:
        """A test that must be known while translating: a `yield` depends on it."""
        return self.expressions.call("known", test, self.visit(test))

    def do_While(self, node: gast.While) -> list:
        if self.generator and yields(node):
            before = set(self.bound)
            node.test, node.body = self.static(node.test), self.block(node.body)
            self.bound = before
            return [node]
        state = self.state_of(node, node.body)
        test, body = self.names.fresh("test"), self.names.fresh("body")
        self.changes[body] = changes_of(node.body)
        head = _place(node.test)
        tested = self.visit(node.test)
        made = statements(f"def {test}(): return tested", node.test, tested=tested)
        made += self.region(body, [], node.body, state, node)
        return self.called("while_", node, head, [], made, [test, body], state)

    def do_For(self, node: gast.For) -> list:
        if self.generator and yields(node):
            before = set(self.bound)
            node.iter = self.expressions.call("iterate", node.iter, self.visit(node.iter))
            last = leaving(node)
            self.bound.add(node.target.id)
            node.body = self.block(node.body[:-1] if last else node.body)
            if last:
                last.test = self.static(last.test)
                node.body.append(last)
            self.bound = before
            return [node]
        head = _place(node.target)
        head.end_lineno, head.end_col_offset = node.iter.end_lineno, node.iter.end_col_offset
        self.hint(head, node.target.id)
        iterable = self.visit(node.iter)
        last = leaving(node)
        stop = self.names.fresh("stop") if last else ""
        item = self.names.fresh("element")
        self.own.add(item)
        self.around.add(item)
        bind = gast.copy_location(gast.Assign([node.target], name(item, node.target), None), node.target)
        inner = [bind, *(node.body[:-1] if last else node.body)]
        state = self.state_of(node, inner)
        body = self.names.fresh("body")
        self.changes[body] = changes_of(inner)
        made = self.region(body, [item], inner, state, node)
        if last:
            made += statements(f"def {stop}(): return stopped", node, stopped=self.visit(last.test))
        stops = name(stop, head) if stop else constant(None, head)
        return self.called("for_", node, head, [iterable], made, [body], state, stops)

    # --- try ---

    def do_Try(self, node: gast.Try) -> list:
        """With handlers the statement is a function, which is called once for each way it can go."""
        if getattr(node, "whole", False) or not node.handlers or self.generator and yields(node):
            return self.plain_try(node)
        if node.finalbody:  # runs once, whichever way the body goes
            inner = gast.copy_location(gast.Try(node.body, node.handlers, node.orelse, []), node)
            self.live.live_in[inner] = self.live.live_in[node]
            self.live.live_out[inner] = self.live.live_in[node]
            return self.plain_try(gast.copy_location(gast.Try([inner], [], [], node.finalbody), node))
        node.whole = True
        taken = {h.name.id if isinstance(h.name, gast.Name) else h.name for h in node.handlers}
        state = [n for n in self.state_of(node, [node]) if n not in taken]  # Python unbinds `as` names
        ways = [[*node.body, *node.orelse], *(h.body for h in node.handlers)]
        surely = set.intersection(*map(self.surely, ways))
        return self.attempted(node, state, surely)

    def do_With(self, node: gast.With) -> list:
        if getattr(node, "swallows", False) and not (self.generator and yields(node)):
            return self.swallowing_with(node)
        for item in node.items:
            manager = self.visit(item.context_expr)
            item.context_expr = self.expressions.call("managed", manager, manager)
            if item.optional_vars is not None:
                self.bound |= set(bound_names(item.optional_vars))
        node.body = self.block(node.body)
        return [node]

    def swallowing_with(self, node: gast.With) -> list:
        """A `with` whose manager may end an exception is a `try` whose handlers it has."""
        if getattr(node, "whole", False):
            (item,) = node.items
            manager = self.names.fresh("manager")
            made = self.visit(item.context_expr)
            given = statements(
                f"{manager} = value", item.context_expr, value=self.expressions.call("managed", made, made)
            )
            item.context_expr = name(manager, item.context_expr)
            if item.optional_vars is not None:
                self.bound |= set(bound_names(item.optional_vars))
            body = self.block(node.body)
            node.body = statements(
                f"with {self.stager}.attempt(lambda: {self.stager}.taken_by({manager})): body", body[0], body=body
            )
            return [*given, node]
        node.whole = True
        return self.attempted(node, self.state_of(node, [node]), set())

    def attempted(self, node: gast.stmt, state: list[str], surely: set[str]) -> list:
        """A statement as a function that `try_` calls once for each way that it can go."""
        label = self.names.fresh("attempt")
        made = self.region(label, [], [node], state, node)
        self.bound |= surely & set(state)
        return self.called("try_", node, _place(node), [], made, [label], state)

    def plain_try(self, node: gast.Try) -> list:
        before = set(self.bound)
        node.body = self.block(node.body)
        if node.handlers:
            classes = self.expressions.lazy(_classes(node))
            node.body = statements(
                f"with {self.stager}.attempt(classes): body", node.body[0], classes=classes, body=node.body
            )
        node.orelse = self.block(node.orelse)
        self.bound = set(before)
        for handler in node.handlers:
            handler.body = self.block(handler.body)
            self.bound = set(before)
        if any(_may_take_all(h.type) for h in node.handlers):
            signals = gast.Attribute(name(self.stager, node.handlers[0]), "signals", gast.Load())
            passed = gast.ExceptHandler(signals, None, [gast.Raise(None, None)])
            node.handlers[:0] = locate([passed], node.handlers[0])
        last, paused = self.block(node.finalbody), self.generator and yields(node)
        if not last or paused:
            node.finalbody = last
            return [node]
        node.finalbody = statements(f"with {self.stager}.finishing(): body", last[0], body=last)
        return statements(f"with {self.stager}.finally_(): body", node, body=[node])


def control(
    node: gast.FunctionDef,
    invented: frozenset[str],
    *,
    plain: Asks,
    is_module: Asks,
    swallows: Callable[[tuple[str, ...]], bool] = lambda path: False,
) -> Control:
    """Convert `node`, in place. `plain(name)`: whether an outer name is read as it is (a function, a class,
    ...). `swallows(path)`: whether what stands at a.b.c makes context managers that may end an exception.

    `invented`: names that normal form made; they are never read before they are bound.
    """
    mark_swallowing(node, swallows)
    names = Names(all_names(node))
    whole = Control(node, names.fresh("stager"), invented)
    Regions(node, whole, names, set(), plain, is_module).convert()
    return whole


def mark_swallowing(node: gast.AST, swallows: Callable[[tuple[str, ...]], bool]) -> None:
    """Mark each `with` whose manager may end an exception; one with several managers becomes several."""
    for outer in [n for n in walk(node) if isinstance(n, gast.With)]:
        found = [swallows(_path(item.context_expr)) for item in outer.items]
        inner = outer
        while any(found) and len(inner.items) > 1:
            item, *rest = inner.items
            made = gast.copy_location(gast.With(rest, inner.body, None), inner)
            inner.items, inner.body, inner.swallows = [item], [made], found.pop(0)
            inner = made
        inner.swallows = found[0]


def _path(made: gast.expr) -> tuple[str, ...]:
    """("contextlib", "suppress") of `contextlib.suppress(...)`; () of other things."""
    node = made.func if isinstance(made, gast.Call) else made
    attributes: list[str] = []
    while isinstance(node, gast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, gast.Name) else ()


def _may_take_all(kind: gast.expr | None) -> bool:
    """Whether a handler may take every BaseException, and so what the stager raises to be told of: `except:`,
    or a class or a tuple that no one knows by its look."""
    if isinstance(kind, gast.Tuple):
        return any(map(_may_take_all, kind.elts))
    last = kind.attr if isinstance(kind, gast.Attribute) else getattr(kind, "id", "")
    return last == "BaseException" or not last[:1].isupper()


def _classes(node: gast.Try) -> gast.expr:
    """What the handlers of a `try` take: a class, or classes in a tuple."""
    types = [name("BaseException", h) if h.type is None else copy_of(h.type) for h in node.handlers]
    if len(types) == 1:
        return types[0]
    return gast.copy_location(gast.Tuple(types, gast.Load()), node.handlers[0])


def _place(node: gast.AST) -> gast.AST:
    """A node that only stands where `node` stands."""
    return gast.copy_location(gast.Pass(), node)
