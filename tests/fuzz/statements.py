"""Statements, as lines of text: assignments, branches, loops, jumps, and stores in every form.

In: a scope and how deep blocks may still nest. Out: lines. A name that a block binds is seen only inside it;
one that was there before keeps its kind. Example:

    grammar.block(scope, 2)
    # ["if x > v[0]:", "    v[1:] = v[:-1]", "else:", "    x -= 0.5"]
"""

from __future__ import annotations

from abc import abstractmethod

from .arrays import Arrays
from .scope import ARRAYS, BOOL, FLOAT, INT, LIST, SCALARS, Scope

CAP = 40.0  # floats carried by loops are kept below: products would reach infinity in all programs


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


class Statements(Arrays):
    """Blocks of statements."""

    result: str  # what an early return gives

    def block(self, scope: Scope, depth: int, most: int = 3) -> list[str]:
        lines: list[str] = []
        for _ in range(self.choose.number(1, most)):
            lines += self.statement(scope, depth)
        return lines

    def statement(self, scope: Scope, depth: int) -> list[str]:
        table = [
            (7, self.assign),
            (5, self.store),
            (2, self.augment),
            (2, self.bind),
            (1, self.views),
            (1, self.container),
            (1, self.swap),
            (1, self.fail),
        ]
        if depth > 0:
            table += [
                (5, self.branch),
                (4, self.count_loop),
                (3, self.while_loop),
                (2, self.row_loop),
                (1, self.cleanup),
                (1, self.search),
                (1, self.collect),
                (1, self.define),
            ]
        if not scope.finals:
            table.append((2, self.jump))
        return self.choose.weighted(table)(scope, depth)

    # ---- simple statements ------------------------------------------------------------

    def value(self, name: str, scope: Scope, depth: int = 2) -> str:
        """An expression for a name of scalar or array kind that stays in the bounds that its kind has."""
        kind = scope.names[name]
        if kind == FLOAT:
            text = self.float(scope, depth)
            return f"bounded({text})" if scope.loops and self.uses("bounded") else text
        if kind == INT:
            return f"{self.int(scope, depth)} % {self.choose.item(('7', '5', '11', '-4'))}"
        if kind == BOOL:
            return f"bool({self.bool(scope, depth)})"
        text = self.array(kind, scope, depth)
        if kind[0] == "i":
            return f"({text}) % 5"
        if scope.loops and kind[0] == "f":
            return f"np.clip({text}, -{CAP}, {CAP})"
        return text

    def uses(self, helper: str) -> bool:
        self.helpers.add(helper)
        return True

    def simple(self, scope: Scope) -> list[str]:
        """Names of scalars and arrays that may be bound again."""
        return [n for n, k in scope.names.items() if (k in SCALARS or k[1]) and n not in scope.frozen]

    def assign(self, scope: Scope, depth: int) -> list[str]:
        names = self.simple(scope)
        if not names:
            return ["pass"]
        name = self.choose.item(names)
        kind = scope.names[name]
        form = self.choose.number(0, 11)
        if form == 11:
            others = [n for n in scope.writable(kind) if n != name]
            if others:
                return [f"{name} = {self.choose.item(others)} = {self.value(name, scope)}"]
        if form == 10:
            other = self.choose.item(names)
            if other != name:
                return [f"{name}, {other} = {self.value(name, scope)}, {self.value(other, scope)}"]
        return [f"{name} = {self.value(name, scope)}"]

    def augment(self, scope: Scope, depth: int) -> list[str]:
        names = [n for n in self.simple(scope) if scope.names[n] != BOOL and scope.names[n][0] != "b"]
        if not names:
            return ["pass"]
        name = self.choose.item(names)
        base, dims = scope.names[name]
        if base == "i":
            if dims:
                return [f"{name} {self.choose.item(('+=', '-='))} {self.int(scope, 1)}"]
            return [f"{name} {self.choose.item(('+=', '-=', '*='))} {self.int(scope, 1)}", f"{name} %= 9"]
        word = self.choose.item(("+=", "-=", "*="))
        if not dims:
            return [
                f"{name} {word} {self.float(scope, 2)}",
                *([f"{name} = bounded({name})"] if scope.loops and self.uses("bounded") else []),
            ]
        lines = [f"{name} {word} {self.operand(dims, scope, 1)}"]
        if scope.loops:
            lines.append(
                f"np.clip({name}, -{CAP}, {CAP}, out={name})"
                if self.choose.chance(3)
                else f"{name} = np.clip({name}, -{CAP}, {CAP})"
            )
        return lines

    def bind(self, scope: Scope, depth: int) -> list[str]:
        """A new name, from an expression or as another name of an array."""
        name = f"t{self.number()}"
        dims = self.some_dims(scope)
        kind = self.choose.item([FLOAT, ("f", dims), INT, ("i", dims), BOOL, ("b", dims), ("f", dims)])
        found = scope.of(kind)
        if kind[1] and found and self.choose.chance(3):
            scope.names[name] = kind
            return [f"{name} = {self.choose.item(found)}{self.choose.item(('', '[:]', '[::-1]', ''))}"]
        scope.names[name] = kind
        inner = scope.inner()
        del inner.names[name]
        text = (
            {"f": self.float, "i": self.int, "b": self.bool}[kind[0]](inner, 2)
            if not kind[1]
            else self.array(kind, inner, 2)
        )
        if kind == INT:
            text = f"{text} % 9"
        if kind == BOOL:
            text = f"bool({text})"
        return [f"{name} = {text}"]

    def views(self, scope: Scope, depth: int) -> list[str]:
        """A view of another size than its base; stores through it change the base."""
        names = scope.arrays("f")
        if not names:
            return self.bind(scope, depth)
        base, name = self.choose.item(names), f"s{self.number()}"
        dims = scope.names[base][1]
        forms = ["1:", ":-1", "::2", ":2", "::-2", f"{self.small(scope, 3)}:"]
        if len(dims) == 2:
            view = self.choose.item(
                [
                    f"{base}[{self.choose.item(forms)}, 1]",
                    f"{base}.T[0][{forms[0]}]",
                    f"{base}[1, {self.choose.item(forms)}]",
                    f"{base}.reshape(-1)",
                    f"{base}.ravel()",
                ]
            )
        else:
            view = self.choose.item([f"{base}[{self.choose.item(forms)}]", f"{base}[1:][:-1]"])
        lines = [f"{name} = {view}"]
        scope.partial[name] = ("f", ("?",))
        form = self.choose.number(0, 3)
        if form == 0:
            lines.append(f"{name}[{self.choose.item(('0', '-1'))}] = {self.float(scope, 1)}")
        elif form == 1:
            lines.append(f"{name} {self.choose.item(('+=', '*='))} {self.float_leaf(scope)}")
        elif form == 2:
            lines.append(f"{name}[:] = {self.float(scope, 1)}")
        return lines

    def swap(self, scope: Scope, depth: int) -> list[str]:
        names = self.simple(scope)
        if not names:
            return ["pass"]
        one = self.choose.item(names)
        same = scope.writable(scope.names[one])
        two = self.choose.item(same)
        if len(same) > 2 and self.choose.chance(3):
            three = self.choose.item(same)
            return [f"{one}, {two}, {three} = {two}, {three}, {one}"]
        return [f"{one}, {two} = {two}, {one}"]

    def fail(self, scope: Scope, depth: int) -> list[str]:
        if self.choose.chance(2):
            return [f"assert {self.bool(scope, 1)} or {self.float_leaf(scope)} > -2.0"]
        return [
            f"if {self.float_leaf(scope)} > {self.choose.item(('30.0', '3.0', '100.0'))}:",
            f"    raise {self.choose.item(('ValueError', 'ArithmeticError', 'IndexError'))}('too large')",
        ]

    # ---- stores ------------------------------------------------------------

    def store(self, scope: Scope, depth: int) -> list[str]:
        base = self.choose.item(("f", "f", "f", "i", "b"))
        names = scope.arrays(base)
        if not names:
            return self.assign(scope, depth)
        name = self.choose.item(names)
        dims = scope.names[name][1]
        scalar = {"f": self.float, "i": lambda s, d: f"{self.int(s, d)} % 6", "b": self.bool}[base](scope, 2)
        word = "=" if base == "b" else self.choose.item(("=", "=", "+=", "-="))
        if base == "f" and scope.loops:
            self.uses("bounded")
            scalar = f"bounded({scalar})"
        form = self.choose.number(0, 9)
        if form <= 3 or len(dims) == 1 and form == 4:
            where = ", ".join(self.index(scope, d, 1) for d in dims)
            return [f"{name}[{where}] {word} {scalar}"]
        if form == 5:
            mask = self.array(("b", dims), scope, 1)
            return [f"{name}[{mask}] {word} {scalar}"]
        first = dims[0]
        cut = self.choose.item((":", "1:", "::2", ":-1", "::-1", f"{self.small(scope, 3)}:", "-2:", ":1"))
        if form == 6 and len(dims) == 1:
            index = self.array(("i", (first,)), scope, 1)
            if self.choose.chance(2) and base != "b":
                if base == "f" and self.exact:  # several numbers at one place are a sum, which has no order
                    index = f"np.arange({first}) + {self.small(scope, 3)}"
                return [f"np.add.at({name}, ({index}) % {first}, {scalar})"]
            return [f"{name}[({index}) % {first}] {word} {scalar}"]
        if form == 7:
            whole = self.array((base, dims), scope, 1)
            return [f"{name}[...] = {whole}" if self.choose.chance(2) else f"{name}[{cut}] = ({whole})[{cut}]"]
        if len(dims) == 2:
            target = self.choose.item(
                [
                    f"{name}[{self.index(scope, first, 1)}]",
                    f"{name}[:, {self.index(scope, dims[1], 1)}]",
                    f"{name}.T[{self.index(scope, dims[1], 1)}]",
                    f"{name}[{cut}, {self.small(scope, 3)}]",
                    f"{name}[{self.index(scope, first, 1)}][{self.index(scope, dims[1], 1)}]",
                    f"{name}.reshape(-1)[{self.choose.item(('0', '-1', '1:'))}]",
                ]
            )
            return [f"{target} {word} {scalar}"]
        if form == 8 and base == "f":
            return [f"{name}[1:] {word} {name}[:-1]"]
        return [f"{name}[{cut}] {word} {scalar}"]

    # ---- branches and jumps ------------------------------------------------------------

    def branch(self, scope: Scope, depth: int) -> list[str]:
        lines = [f"if {self.bool(scope, 2)}:", *indent(self.block(scope.inner(), depth - 1, 3))]
        for _ in range(self.choose.number(0, 1)):
            lines += [f"elif {self.bool(scope, 1)}:", *indent(self.block(scope.inner(), depth - 1, 2))]
        if self.choose.chance(2):
            lines += ["else:", *indent(self.block(scope.inner(), depth - 1, 3))]
        return lines

    def jump(self, scope: Scope, depth: int) -> list[str]:
        words = ["break", "continue"] if scope.loops else []
        words.append(f"return {self.result}")
        if not scope.loops and not self.choose.chance(3):
            return self.assign(scope, depth)
        return [f"if {self.bool(scope, 1)}:", f"    {self.choose.item(words)}"]

    def cleanup(self, scope: Scope, depth: int) -> list[str]:
        return [
            "try:",
            *indent(self.block(scope.inner(), depth - 1, 2)),
            "finally:",
            *indent(self.block(scope.inner(finals=1, loops=scope.loops), 0, 1)),
        ]

    # ---- loops ------------------------------------------------------------

    def body(self, scope: Scope, depth: int, names: dict | None = None) -> list[str]:
        names = names or {}
        inner = scope.inner(names, loops=scope.loops + 1, frozen=scope.frozen | frozenset(names), finals=0)
        lines = self.block(inner, depth - 1)
        return indent(lines)

    def otherwise(self, scope: Scope, depth: int) -> list[str]:
        if self.choose.chance(5):
            return ["else:", *indent(self.block(scope.inner(), depth - 1, 2))]
        return []

    def count_loop(self, scope: Scope, depth: int) -> list[str]:
        name = f"i{self.number()}"
        limit = self.int(scope, 1)
        sizes = sorted({d for names in scope.names.values() for d in names[1]})
        spans = [
            "range(3)",
            "range(5)",
            f"range({limit} % 6)",
            "range(12)",
            "range(4, -1, -1)",
            "range(1, 6, 2)",
            f"range(abs({limit}) % 4, 5)",
            f"range(5, {limit} % 3, -2)",
            "reversed(range(4))",
            "range(0)",
            f"range(min(int({limit}), 4))",
            f"range(0, 6, {limit} % 2 + 1)",
        ]
        spans += [f"range({d})" for d in sizes] + [f"range(1, {d})" for d in sizes]
        lines = [f"for {name} in {self.choose.item(spans)}:", *self.body(scope, depth, {name: INT})]
        return lines + self.otherwise(scope, depth)

    def while_loop(self, scope: Scope, depth: int) -> list[str]:
        count = f"k{self.number()}"
        limit = self.choose.item(("3", "6", "1", "10"))
        form = self.choose.number(0, 2)
        inner = {count: INT}
        if form == 0:
            head = [f"{count} = 0", f"while {count} < {limit} and {self.bool(scope, 1)}:", f"    {count} += 1"]
        elif form == 1:
            head = [f"{count} = {limit}", "while True:", f"    {count} -= 1", f"    if {count} < 0:", "        break"]
        else:
            head = [f"{count} = 0", f"while ({count} := {count} + 1) < {limit}:"]
        lines = [*head, *self.body(scope, depth, inner)]
        return lines + (self.otherwise(scope, depth) if form != 1 else [])

    def row_loop(self, scope: Scope, depth: int) -> list[str]:
        """Over elements, rows, pairs, and tuples of values."""
        number = self.number()
        e, i, f = f"e{number}", f"i{number}", f"f{number}"
        vectors = [(n, k[1][0]) for n, k in scope.names.items() if k[0] == "f" and len(k[1]) == 1]
        matrices = [(n, k[1]) for n, k in scope.names.items() if k[0] == "f" and len(k[1]) == 2]
        forms: list[tuple[str, dict]] = [
            (f"for {e} in ({self.float_leaf(scope)}, {self.float_leaf(scope)}, 0.5):", {e: FLOAT}),
            (f"for {i}, {e} in enumerate(({self.float_leaf(scope)}, 1.0)):", {i: INT, e: FLOAT}),
        ]
        for v, d in vectors:
            forms += [
                (f"for {e} in {v}:", {e: FLOAT}),
                (f"for {i}, {e} in enumerate({v}):", {e: FLOAT, i: INT}),
                (f"for {e} in {v}[1:]:", {e: FLOAT}),
                (f"for {e} in reversed({v}):", {e: FLOAT}),
                (f"for {e}, {f} in zip({v}, {self.array(('f', (d,)), scope, 1)}):", {e: FLOAT, f: FLOAT}),
                (f'for {i} in np.argsort({v}, kind="stable"):', {i: INT}),
                (f"for {i}, {e} in enumerate({v}, start=1):", {i: INT, e: FLOAT}),
            ]
        for m, dims in matrices:
            forms += [
                (f"for {e} in {m}:", {e: ("f", dims[1:])}),
                (f"for {e} in {m}.T:", {e: ("f", dims[:1])}),
                (f"for {i}, {e} in enumerate({m}):", {e: ("f", dims[1:]), i: INT}),
            ]
        for name in scope.of(LIST):
            forms.append((f"for {e} in {name}:", {e: FLOAT}))
        for name in scope.of(ARRAYS):
            forms.append((f"for {e} in {name}:", {e: ("f", ("3",))}))
        head, names = self.choose.item(forms)
        return [head, *self.body(scope, depth, names), *self.otherwise(scope, depth)]

    # ---- from the idioms ------------------------------------------------------------

    @abstractmethod
    def container(self, scope: Scope, depth: int) -> list[str]: ...

    @abstractmethod
    def search(self, scope: Scope, depth: int) -> list[str]: ...

    @abstractmethod
    def collect(self, scope: Scope, depth: int) -> list[str]: ...

    @abstractmethod
    def define(self, scope: Scope, depth: int) -> list[str]: ...
