"""`break`, `continue` and `return` become flags; a loop's `else` becomes a branch after it.

In: a function body with any jumps. Out: one `return` at the end, `while` loops that test their flags first,
`for` loops whose only jump is a last statement `if flag: break`. Code is moved, never copied.

    for x in xs:                    stopped = False
        if x > 3: break             for x in xs:
        total += x                      if x > 3: stopped = True
                                        else: total += x
                                        if stopped: break

A `return` in a loop of names that the loop does not rebind (but for `p += d`) hands them out after the loop:
nothing happens in between, and the result need not be carried beside the array that it is. An object that is
made of such names (`return Result(x, history)`) is made there as well. A jump out of a `try` or `with` sets
its flags when the end of that is over, where what the end raises is caught further out.
"""

from __future__ import annotations

from collections.abc import Iterable

import gast

from metaphrase.late import dataclass

from .scopes import (
    COMPREHENSIONS,
    FUNCTIONS,
    Liveness,
    Names,
    Transformer,
    bound_names,
    children,
    closed_over,
    declared_anywhere,
    own_nodes,
    walk,
)
from .templates import constant, expression, statements

JUMPS = (gast.Return, gast.Break, gast.Continue)
_COMPOUND = (gast.If, gast.For, gast.While, gast.With, gast.Try)


@dataclass
class _Loop:
    stopped: str
    skipped: str


def lower_jumps(body: list, names: Names, params: Iterable[str] = ()) -> list:
    """One function body without jumps but its last `return`."""
    return _Jumps(names, params).function(body)


def _rebound(loop: gast.AST) -> set[str]:
    """The names that a loop binds by anything but `name op= value`, in functions inside it as well."""
    updated = {id(n.target) for n in walk(loop) if isinstance(n, gast.AugAssign)}
    found = {n.name for n in walk(loop) if isinstance(getattr(n, "name", None), str)}
    return found | {
        n.id
        for n in walk(loop)
        if isinstance(n, gast.Name) and not isinstance(n.ctx, gast.Load) and id(n) not in updated
    }


def _contains(nodes: list, kinds: tuple) -> bool:
    """Whether a jump of this kind belongs to these statements (and not to a loop or function inside)."""
    for node in nodes:
        if isinstance(node, kinds):
            return True
        if isinstance(node, (*FUNCTIONS, gast.ClassDef, *COMPREHENSIONS)):
            continue
        if isinstance(node, (gast.For, gast.While)):
            inner = tuple(k for k in kinds if k is gast.Return)
            if (inner and _contains(node.body, inner)) or _contains(node.orelse, kinds):
                return True
        elif _contains([c for c in children(node) if isinstance(c, (gast.stmt, gast.ExceptHandler))], kinds):
            return True
    return False


def _ends(body: list) -> bool:
    """Whether control never falls out of the end of these statements."""
    for node in body:
        if isinstance(node, (*JUMPS, gast.Raise)):
            return True
        if isinstance(node, gast.If) and node.orelse and _ends(node.body) and _ends(node.orelse):
            return True
        if isinstance(node, gast.With) and _ends(node.body):
            return True
        if isinstance(node, (gast.For, gast.While)) and not _contains(node.body, (gast.Break,)):
            if _forever(node) or node.orelse and _ends(node.orelse):
                return True
        if isinstance(node, gast.Try) and _ends(node.orelse or node.body):
            if all(_ends(handler.body) for handler in node.handlers):
                return True
    return False


def _names_class(function: gast.expr) -> bool:
    """Whether it looks like the name of a class: a call of it only makes an object."""
    last = function.attr if isinstance(function, gast.Attribute) else getattr(function, "id", "")
    return last[:1].isupper() and (len(last) == 1 or not last.isupper())


def _forever(node: gast.AST) -> bool:
    return isinstance(node, gast.While) and isinstance(node.test, gast.Constant) and bool(node.test.value)


def none_of(flags: list[str], at: gast.AST) -> gast.expr:
    return expression(" and ".join(f"not {flag}" for flag in flags), at)


class _Jumps:
    def __init__(self, names: Names, params: Iterable[str]):
        self.names, self.own = names, set(params)
        self.returned = self.result = ""
        self.flags: set[str] = set()
        self.kept: set[str] = set()  # names that the outermost loop around here leaves bound to what they are
        self.caught = False  # whether what is raised here may be caught in this function
        self.alone = False  # whether that loop has a single `return`
        self.later: list[tuple[str, gast.expr]] = []  # what is handed out after the loops, each with its flag

    def flag(self, base: str) -> str:
        made = self.names.fresh(base)
        self.flags.add(made)
        return made

    def function(self, body: list) -> list:
        last = body[-1]
        tail = [last] if isinstance(last, gast.Return) else []
        before = body[:-1] if tail else body
        if not _contains(before, (gast.Return,)):
            lowered, _ = self.block(before, None)
            return self.without_dead_flags(lowered, tail) + tail
        inside = [n for s in body for n in walk(s)]
        values = any(isinstance(n, gast.Return) and n.value is not None for n in inside)
        if not any(isinstance(n, gast.With) or isinstance(n, gast.Try) and n.finalbody for n in inside):
            self.own = self.own | set(bound_names(body, walrus=True)) - declared_anywhere(body)
        else:
            self.own = set()
        self.returned = self.flag("returned")
        self.result = self.names.fresh("result") if values else ""
        falls_through = not _ends(body)
        lowered, _ = self.block(body, None)
        start = statements(f"{self.returned} = False", last)
        if values and falls_through:
            start += statements(f"{self.result} = None", last)
        end = statements(f"return {self.result}", last) if values else []
        return self.without_dead_flags(start + lowered, end) + end

    def block(self, body: list, loop: _Loop | None) -> tuple[list, list[str]]:
        """The lowered statements, and the flags that may be set at their end."""
        out: list = []
        for position, node in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(node, gast.Return):
                if self.result and loop is not None and (later := self.handed_out_later(node)):
                    return out + later, [self.returned]
                if self.result:
                    value = node.value or constant(None, node)
                    out += statements(f"{self.result} = value", node, value=value)
                return out + statements(f"{self.returned} = True", node), [self.returned]
            if isinstance(node, (gast.Break, gast.Continue)):
                assert loop is not None
                flag = loop.stopped if isinstance(node, gast.Break) else loop.skipped
                return out + statements(f"{flag} = True", node), [flag]
            if not _contains([node], JUMPS) and not isinstance(node, _COMPOUND):
                out.append(node)
                continue
            if isinstance(node, gast.If):
                done = self.branch(node, rest, loop)
                if done is not None:
                    made, flags = done
                    return out + made, flags
                node.body, first = self.block(node.body, loop)
                node.orelse, second = self.block(node.orelse, loop) if node.orelse else ([], [])
                made, flags = [node], _union(first, second)
            elif isinstance(node, (gast.For, gast.While)):
                made, flags, rest = self.loop(node, rest, loop)
                if loop is None:
                    for flag, value in self.later:
                        if flag != self.returned:
                            out += statements(f"{flag} = False", node)
                        made += statements(f"if {flag}: {self.result} = value", value, value=value)
                    self.later = []
                out += made
                tail, more = self.block(rest, loop)
                return out + self.guarded(tail, flags), _union(flags, more)
            else:
                made, flags = self.with_an_end(node, loop)
            out += made
            if flags:
                tail, more = self.block(rest, loop)
                return out + self.guarded(tail, flags), _union(flags, more)
        return out, []

    def handed_out_later(self, node: gast.Return) -> list | None:
        """What a `return` becomes if a name of its value is kept by the loops around it; else None."""
        whole = node.value
        if whole is None:
            return None
        made = isinstance(whole, gast.Call) and _names_class(whole.func) and not self.caught
        parts = [whole]
        if isinstance(whole, gast.Tuple):
            parts = list(whole.elts)
        elif made:
            parts = [*whole.args, *(k.value for k in whole.keywords)]
        if not any(isinstance(p, gast.Name) and p.id in self.kept for p in parts):
            return None
        out: list = []
        for k, part in enumerate(parts):
            if isinstance(part, gast.Starred):
                return None
            if not (isinstance(part, gast.Constant) or isinstance(part, gast.Name) and part.id in self.kept):
                held = self.names.fresh("part")
                out += statements(f"{held} = value", node, value=part)
                parts[k] = expression(held, part)
        if isinstance(whole, gast.Tuple):
            whole.elts = parts
        elif made:
            count = len(whole.args)
            whole.args = parts[:count]
            for keyword, part in zip(whole.keywords, parts[count:]):
                keyword.value = part
        flag = self.returned if self.alone else self.flag("returned")
        self.later.append((flag, whole))
        set_flags = f"{flag} = True" if self.alone else f"{flag} = True\n{self.returned} = True"
        return out + statements(set_flags, node)

    def guarded(self, tail: list, flags: list[str]) -> list:
        if not tail or not flags:
            return tail
        return statements("if test: tail", tail[0], test=none_of(flags, tail[0]), tail=tail)

    def branch(self, node: gast.If, rest: list, loop: _Loop | None) -> tuple[list, list[str]] | None:
        """A branch that always jumps takes what follows the `if` into the other branch."""
        for side, other in (("body", "orelse"), ("orelse", "body")):
            if _contains(getattr(node, side), JUMPS) and _ends(getattr(node, side)):
                jumping, flags = self.block(getattr(node, side), loop)
                going_on, more = self.block([*getattr(node, other), *rest], loop)
                setattr(node, side, jumping)
                setattr(node, other, going_on)
                node.body = node.body or statements("pass", node)
                return [node], _union(flags, more)
        return None

    def loop(self, node: gast.For | gast.While, rest: list, outer: _Loop | None) -> tuple[list, list[str], list]:
        """The loop with its flags; which of them matter outside; and what follows, the loop's `else` included."""
        breaks, skips = _contains(node.body, (gast.Break,)), _contains(node.body, (gast.Continue,))
        loop = _Loop(self.flag("stopped") if breaks else "", self.flag("skipped") if skips else "")
        forever = _forever(node)
        if outer is None:
            self.kept = self.own - _rebound(node)
            self.alone = sum(isinstance(n, gast.Return) for n in own_nodes(node)) == 1
        node.body, flags = self.block(node.body, loop)
        if skips:
            node.body = statements(f"{loop.skipped} = False", node.body[0]) + node.body
        exits = [flag for flag in (loop.stopped, self.returned) if flag and flag in flags]
        made = statements(f"{loop.stopped} = False", node) if breaks else []
        if exits and isinstance(node, gast.While):
            test = none_of(exits, node.test)
            node.test = test if forever else expression("flags and test", node.test, flags=test, test=node.test)
        elif exits:
            node.body += statements(f"if {' or '.join(exits)}: break", node.body[-1])
        otherwise, node.orelse = node.orelse, []
        leaving = [self.returned] if self.returned in exits else []
        if forever and not breaks:
            rest = []
        if otherwise and breaks:
            test = none_of([loop.stopped], otherwise[0])
            otherwise = statements("if test: body", otherwise[0], test=test, body=otherwise)
        return [*made, node], leaving, otherwise + rest

    def with_an_end(self, node: gast.With | gast.Try, loop: _Loop | None) -> tuple[list, list[str]]:
        """A `with` or `try`. What is raised at its end takes the place of a jump out of it: where something
        around it may go on from there, the flags are set when the end is over."""
        lower = self.attempt if isinstance(node, gast.Try) else self.managed
        ends = isinstance(node, gast.With) or node.finalbody
        if not (self.caught and ends and _contains([node], JUMPS)):
            return [node], lower(node, loop)
        before, names = self.returned, {}
        if self.returned:
            self.returned = self.flag("returned")
            names[self.returned] = before
        inner = loop and _Loop(*(flag and self.flag(flag) for flag in (loop.stopped, loop.skipped)))
        if inner and loop:
            names |= {inner.stopped: loop.stopped, inner.skipped: loop.skipped}
        flags = lower(node, inner)
        self.returned = before
        start = [s for flag in flags for s in statements(f"{flag} = False", node)]
        after = [s for flag in flags for s in statements(f"{names[flag]} = {flag}", node)]
        return [*start, node, *after], [names[flag] for flag in flags]

    def managed(self, node: gast.With, loop: _Loop | None) -> list[str]:
        node.body, flags = self.where_caught(node.body, loop, True)
        return flags

    def where_caught(self, body: list, loop: _Loop | None, caught: bool) -> tuple[list, list[str]]:
        before, self.caught = self.caught, self.caught or caught
        lowered = self.block(body, loop)
        self.caught = before
        return lowered

    def attempt(self, node: gast.Try, loop: _Loop | None) -> list[str]:
        node.body, flags = self.where_caught(node.body, loop, bool(node.handlers))
        if node.orelse:
            orelse, more = self.block(node.orelse, loop)
            node.orelse, flags = self.guarded(orelse, flags), _union(flags, more)
        for handler in node.handlers:
            handler.body, more = self.block(handler.body, loop)
            flags = _union(flags, more)
        if node.finalbody:
            node.finalbody, _ = self.block(node.finalbody, loop)
        return flags

    def without_dead_flags(self, body: list, tail: list) -> list:
        """Drop assignments to flags where nothing reads them afterwards."""
        live = Liveness(body + tail, closed_over(body + tail)).live_out
        flags = self.flags

        class Drop(Transformer):
            def visit_FunctionDef(self, node: gast.FunctionDef) -> gast.AST:
                return node

            def visit_Assign(self, node: gast.Assign) -> gast.AST | None:
                target = node.targets[0]
                dead = isinstance(target, gast.Name) and target.id in flags and target.id not in live[node]
                return None if dead else node

            def generic_visit(self, node: gast.AST) -> gast.AST:
                super().generic_visit(node)
                if isinstance(node, _COMPOUND) and not node.body:
                    node.body = statements("pass", node)
                return node

        return [kept for s in body if (kept := Drop().visit(s)) is not None]


def _union(first: list[str], second: list[str]) -> list[str]:
    return [*first, *(flag for flag in second if flag not in first)]
