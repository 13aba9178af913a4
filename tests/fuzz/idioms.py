"""What people write in several lines: containers that change, searches, lists that loops fill, closures.

In: a scope and how deep blocks may still nest. Out: lines. Example:

    grammar.search(scope, 1)
    # ["for i1 in range(len(v)):", "    if v[i1] > 0.5:", "        x = v[i1]", "        break", ...]
"""

from __future__ import annotations

from .scope import ARRAYS, CLOSURE, FLOAT, INT, LIST, MAYBE, OBJECT, PAIR, RECORD, Scope
from .statements import CAP, Statements, indent


class Idioms(Statements):
    """The compound half of the statements."""

    owned: set[str]

    # ---- containers ------------------------------------------------------------

    def container(self, scope: Scope, depth: int) -> list[str]:
        """Change a list, dict or object that is in scope, or make one."""
        kind = self.choose.item([RECORD, LIST, PAIR, OBJECT, MAYBE, ARRAYS])
        names = scope.writable(kind)
        three = ("f", ("3",))
        x = f"bounded({self.float(scope, 1)})"
        self.uses("bounded")
        if not names:
            name = f"c{self.number()}"
            if kind == OBJECT:
                self.uses("State")
            scope.names[name] = kind
            inner = scope.inner()
            del inner.names[name]
            vector = self.array(three, inner, 1)
            text = {
                RECORD: f'{{"a": {x}, "v": {vector}}}',
                LIST: f"[{x}, {self.float(inner, 1)}, 1.0]",
                PAIR: f"({x}, {self.int(inner, 1)} % 5)",
                OBJECT: f"State({x}, {vector})",
                MAYBE: self.choose.item(("None", x)),
                ARRAYS: f"[{vector}, {self.array(three, inner, 1)}]",
            }
            return [f"{name} = {text[kind]}"]
        name = self.choose.item(names)
        vector = f"np.clip({self.array(three, scope, 1)}, -{CAP}, {CAP})"
        at = self.choose.item(("0", "1", "2", "-1"))
        forms = {
            RECORD: [
                f'{name}["a"] = {x}',
                f'{name}["v"] = {vector}',
                f'{name}["v"][{at}] = {x}',
                f'{name}["a"] += {x}',
                f'{name} = {{**{name}, "a": {x}}}',
                f'{name}["v"] += {x}',
                f"{name}.update(a={x})",
                f'{name} = {{"a": {x}, "v": {name}["v"]}}',
            ],
            LIST: [
                f"{name}[{at}] = {x}",
                f"{name}[{at}] += {x}",
                f"{name} = [{name}[1], {name}[2], {x}]",
                f"{name}.append({name}.pop(0))",
                f"{name}.reverse()",
            ],
            PAIR: [f"{name} = ({x}, {self.int(scope, 1)} % 5)", f"{name} = ({name}[0], {name}[1] + 1)"],
            OBJECT: [
                f"{name}.a = {x}",
                f"{name}.v[{at}] = {x}",
                f"{name}.v = {vector}",
                f"{name}.a += {x}",
                f"{name}.push({x})",
                f"{name}.v *= 0.5",
            ],
            MAYBE: [
                f"{name} = {x}",
                f"{name} = None",
                f"if {name} is None or {name} < {x}:\n    {name} = {x}",
                f"if {name} is not None:\n    {name} = bounded({name} * 0.5)",
            ],
            ARRAYS: [
                f"{name}[{self.choose.item(('0', '1'))}] = {vector}",
                f"{name}[1][{at}] = {x}",
                f"{name}[0], {name}[1] = {name}[1], {name}[0]",
                f"{name}[0] += {x}",
                f"{name} = {name}[::-1]",
            ],
        }
        return self.choose.item(forms[kind]).split("\n")

    # ---- idioms ------------------------------------------------------------

    def search(self, scope: Scope, depth: int) -> list[str]:
        """The first element for which something holds; parts whose size is known when the program runs."""
        names = [n for n, k in scope.names.items() if k[0] == "f" and len(k[1]) == 1]
        floats = scope.writable(FLOAT)
        if not names or not floats:
            return self.branch(scope, depth)
        v, x, i = self.choose.item(names), self.choose.item(floats), f"i{self.number()}"
        bound = self.float_leaf(scope)
        return self.choose.item(
            [
                [
                    f"for {i} in range(len({v})):",
                    f"    if {v}[{i}] > {bound}:",
                    f"        {x} = {v}[{i}]",
                    "        break",
                    "else:",
                    f"    {x} = {bound}",
                ],
                [
                    f"{i}b = None",
                    f"for {i} in {v}:",
                    f"    if {i}b is None or {i} < {i}b:",
                    f"        {i}b = {i}",
                    f"{x} = 0.0 if {i}b is None else {i}b",
                ],
                [
                    f"{i} = 0",
                    f"while {i} < len({v}) and {v}[{i}] <= {bound}:",
                    f"    {i} += 1",
                    f"if {i} < len({v}):",
                    f"    {x} = {v}[{i}]",
                ],
                [f"{i} = {v}[{v} > {bound}]", f"if len({i}):", f"    {x} = {i}[0]"],
                [
                    f"{i} = {v}[{v} > {bound}]",
                    f"{x} = np.max({i}, initial=0.5)",
                    f"for {i}e in {i}:",
                    f"    {x} = bounded({x} - {i}e)",
                ]
                if self.uses("bounded")
                else [],
                [f"{i} = np.nonzero({v} > {bound})[0]", f"{v}[{i}] = {x}", f"{x} = {x} + {i}.size"],
                [
                    f"{i} = int(np.count_nonzero({v} > {bound}))",
                    f"{v}[:{i}] = {x}",
                    f"{x} = np.max({v}[{i}:], initial=0.5)",
                ],
                [
                    f"{i} = np.zeros({self.int(scope, 1)} % 4)",
                    f"{i}[:] = {x}",
                    f"{i}[1:] += 1.0",
                    f"{x} = np.max({i}, initial={x})",
                ],
            ]
        )

    def collect(self, scope: Scope, depth: int) -> list[str]:
        """A list that a loop fills, then used as an array."""
        number = self.number()
        name, i = f"l{number}", f"i{number}"
        floats = scope.writable(FLOAT)
        if not floats:
            return self.branch(scope, depth)
        x = self.choose.item(floats)
        inner = scope.inner({i: INT}, loops=scope.loops + 1, frozen=scope.frozen | {i})
        self.uses("bounded")
        item = self.float(inner, 1)
        scope.names[f"a{number}"] = ("f", ("3",))
        return self.choose.item(
            [
                [
                    f"{name} = []",
                    f"for {i} in range(3):",
                    f"    {name}.append(bounded({item}))",
                    f"    {x} = bounded({x} + {name}[-1])",
                    f"a{number} = np.array({name})",
                ],
                [f"{name} = [bounded({item}) for {i} in range(3)]", f"a{number} = np.array({name}) * {x}"],
                [f"a{number} = np.empty(3)", f"for {i} in range(3):", f"    a{number}[{i}] = bounded({item})"],
                [f"{name} = {{{i}: bounded({item}) for {i} in range(3)}}", f"a{number} = np.array([*{name}.values()])"],
            ]
        )

    def define(self, scope: Scope, depth: int) -> list[str]:
        """A function defined inside: it reads, and may rebind, what is around it."""
        number = self.number()
        name, u = f"g{number}", f"u{number}"
        inner = scope.inner({u: FLOAT}, loops=0, frozen=frozenset([*scope.names, u]))
        inner.partial.clear()
        result, self.result = self.result, "0.5"
        floats = [n for n in scope.writable(FLOAT) if n in self.owned]
        lines: list[str] = []
        self.uses("bounded")
        if floats and self.choose.chance(2):
            x = self.choose.item(floats)
            lines += [f"nonlocal {x}", f"{x} = bounded({x} + {u} * 0.5)"]
        owned, self.owned = self.owned, set()
        lines += self.block(inner.inner(loops=0, frozen=inner.frozen), min(depth - 1, 1), 2)
        lines.append(f"return {self.float(inner, 1)}")
        self.result, self.owned = result, owned
        scope.names[name] = CLOSURE
        return [f"def {name}({u}):", *indent(lines)]
