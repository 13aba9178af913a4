"""Programs about Python's containers: lists that grow, dicts, tuples, lists in lists, objects, closures.

In: choices. Out: the text of a function of two arrays and a whole number that puts numbers of the run into
containers, shares and copies these, changes them on some paths and in loops, and returns them. All numbers
are whole and small. Example:

    def program(x, y, n):
        l = [x[0], 2.0, y[1]]
        p = [y[2]]
        q = l
        for i1 in range(n):
            if x[i1] > q[0]:
                q[1] += x[i1]
                p.append(l[1])
        return l, p
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .choices import Choices

CLASS = """class Cell:
    def __init__(self, value, items):
        self.value, self.items = value, items

    def put(self, value):
        self.value = value
        self.items[0] += value


"""


@dataclass
class Held:
    """What may be read: numbers; lists of three, lists that grow, dicts with "a" and "b", lists of two lists
    of two, objects; loop indices below 4."""

    numbers: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    dicts: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    indices: list[str] = field(default_factory=list)

    def inner(self) -> Held:
        return replace(self, **{name: list(value) for name, value in vars(self).items()})


class Containers:
    """One program as it is written."""

    def __init__(self, choose: Choices, derivative: bool):
        self.choose, self.derivative, self.count = choose, derivative, 0

    def program(self) -> str:
        held = Held(["s"], ["l"], ["p"])
        lines = ["s = x[1] + y[2]", "l = [x[0], 2.0, y[1]]", "p = [y[2]]"]
        for name, text, kind in (
            ("d", "{'a': x[0], 'b': 1.0}", held.dicts),
            ("m", "[[1.0, x[2]], [y[0], 2.0]]", held.tables),
            ("o", "Cell(y[1], [1.0, x[1], s])", held.cells),
        ):
            if self.choose.chance(2):
                lines.append(f"{name} = {text}")
                kind.append(name)
        held.lists += [f"{o}.items" for o in held.cells]
        held.numbers += [f"{o}.value" for o in held.cells]
        if self.choose.chance(3):
            lines += self.closure(held)
        for _ in range(self.choose.number(3, 8)):
            lines += self.statement(held, 0)
        lines.append(f"return {self.result(held)}\n")
        return (CLASS if held.cells else "") + "\n    ".join(["def program(x, y, n):", *lines])

    def result(self, held: Held) -> str:
        if self.derivative:
            parts = [f"np.tanh({v})" for v in held.numbers]
            parts += [f"np.tanh({name}[{k}])" for name in held.lists for k in range(3)]
            parts += [f"np.tanh(sum({name}))" for name in held.grown]
            parts += [f"np.tanh({name}['a'])" for name in held.dicts]
            parts += [f"np.tanh({name}[1][0])" for name in held.tables]
            return " + ".join(parts)
        return ", ".join([*held.numbers, *held.lists, *held.grown, *held.dicts, *held.tables])

    def closure(self, held: Held) -> list[str]:
        """A function that changes what is around it."""
        name, target, value = self.fresh("f"), self.choose.item(held.lists), self.number(held)
        held.numbers.append(f"{name}({value})")
        return [
            f"def {name}(v, k={self.choose.number(0, 2)}):",
            "    nonlocal s",
            "    s = s + v",
            f"    {target}[k] += 2.0",
            f"    return v + {target}[0]",
        ]

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    # --- expressions ---

    def number(self, held: Held) -> str:
        forms = ["1.0", "-2.0", self.choose.item(held.numbers), f"x[{self.place(held, 5)}]"]
        forms += [f"y[{self.place(held, 5)}]", f"{self.choose.item(held.lists)}[{self.place(held, 3)}]"]
        grown, more = self.choose.item(held.grown), self.choose.item(held.lists)
        forms += [f"{grown}[-1]", f"{grown}[0]", f"1.0 * len({grown})", f"max({grown})"]
        forms += [f"sum({more})", f"min({more})"]
        forms += [f"{name}['{self.key()}']" for name in held.dicts]
        forms += [f"{name}.get('c', 3.0)" for name in held.dicts]
        forms += [f"{name}[{self.place(held, 2)}][{self.place(held, 2)}]" for name in held.tables]
        return self.choose.item(forms)

    def key(self) -> str:
        return self.choose.item(("a", "b"))

    def place(self, held: Held, size: int) -> str:
        found = [str(k) for k in range(size)] + ["-1"]
        found += [f"{name} % {size}" if size < 4 else name for name in held.indices]
        return self.choose.item(found)

    def test(self, held: Held) -> str:
        forms = [f"{self.number(held)} {self.choose.item(('<', '>', '<=', '=='))} {self.number(held)}"] * 3
        forms.append(f"{self.number(held)} in {self.choose.item(held.lists)}")
        forms.append(f"len({self.choose.item(held.grown)}) > 2")
        forms += [f"'c' in {name}" for name in held.dicts]
        forms += [f"{self.choose.item(held.indices)} == 1"] if held.indices else []
        return self.choose.item(forms)

    def list_(self, held: Held) -> str:
        name = self.choose.item(held.lists)
        return self.choose.item(
            (
                f"{name}[:]",
                f"list({name})",
                f"[v * 2.0 for v in {name}]",
                f"{name}[::-1]",
                f"sorted({name})",
                f"[{self.number(held)}, {self.number(held)}, 1.0]",
                f"[min(v, 2.0) for v in {name}]",
                f"[{name}[2], *{name}[:2]]",
                f"[a + b for a, b in zip({name}, {self.choose.item(held.lists)})]",
            )
        )

    # --- statements ---

    def statement(self, held: Held, depth: int) -> list[str]:
        table = [(5, self.store), (3, self.grow), (2, self.bind), (2, self.share)]
        table += [(2, self.entry)] * bool(held.dicts) + [(2, self.cell)] * bool(held.tables)
        table += [(2, self.attribute)] * bool(held.cells)
        if depth < 3:
            table += [(4, self.branch), (4, self.loop)]
        if depth and not self.derivative:
            table.append((1, self.leave))
        return self.choose.weighted(table)(held, depth)

    def block(self, held: Held, depth: int) -> list[str]:
        inner = held.inner()
        lines = [s for _ in range(self.choose.number(1, 3)) for s in self.statement(inner, depth + 1)]
        return ["    " + line for line in lines]

    def store(self, held: Held, depth: int) -> list[str]:
        name = self.choose.item(held.lists)
        return [
            self.choose.item(
                (
                    f"{name}[{self.place(held, 3)}] = {self.number(held)}",
                    f"{name}[{self.place(held, 3)}] += {self.number(held)}",
                    f"{name}[0], {name}[2] = {name}[2], {name}[0]",
                    f"{name}[:2] = [{self.number(held)}, {self.number(held)}]",
                    f"{name}.reverse()",
                    f"{name}.append({name}.pop(0))",
                    f"{name}[1:] = {self.choose.item(held.lists)}[:2]",
                )
            )
        ]

    def grow(self, held: Held, depth: int) -> list[str]:
        name = self.choose.item(held.grown)
        value = self.number(held)
        forms = [[f"{name}.append({value})"]] * 4
        forms += [
            [f"{name} += [{value}]"],
            [f"{name}.extend([{value}, {self.number(held)}])"],
            [f"if len({name}) > 1:", f"    {name}.pop()"],
            [f"{name}[-1] = {value}"],
            [f"{name}[0] += {value}"],
            [f"{name} = {name} + [{value}]"],
            [f"{name} = [{value}]"],
            [f"{name} = [v + 1.0 for v in {name}]"],
            [f"{name} = {name}[:2]"],
            [f"{name} = {name}[::-1]"],
        ]
        return self.choose.item(forms)

    def bind(self, held: Held, depth: int) -> list[str]:
        name = self.choose.item([*[v for v in held.numbers if v.isidentifier()], self.fresh("v")])
        value = self.number(held)
        if name not in held.numbers:
            held.numbers.append(name)
        return [f"{name} = {value}"]

    def share(self, held: Held, depth: int) -> list[str]:
        """Another name for a list, or another list for a name."""
        plain = [name for name in held.lists if name.isidentifier()]
        other = self.choose.item(held.lists)
        name = self.choose.item([*plain, self.fresh("q")])
        text = self.choose.item((other, self.list_(held))) if not depth else self.list_(held)
        if name not in held.lists:
            held.lists.append(name)
        return [f"{name} = {text}"]

    def entry(self, held: Held, depth: int) -> list[str]:
        name, value = self.choose.item(held.dicts), self.number(held)
        forms = [
            f"{name}['{self.key()}'] = {value}",
            f"{name}['{self.key()}'] -= {value}",
            f"{name}.update(a={value})",
            f"{name} = dict({name}, b={value})",
            f"{name} = {{k: v + 1.0 for k, v in {name}.items()}}",
            f"{name} = {{**{name}, 'a': {value}}}",
        ]
        if not depth:
            forms += [f"{name}['c'] = {value}", f"{name}.pop('c', 0.0)", f"{name}.setdefault('c', {value})"]
        return [self.choose.item(forms)]

    def cell(self, held: Held, depth: int) -> list[str]:
        name, value = self.choose.item(held.tables), self.number(held)
        row = self.fresh("r")
        return self.choose.item(
            (
                [f"{name}[{self.place(held, 2)}][{self.place(held, 2)}] = {value}"],
                [f"{row} = {name}[{self.choose.number(0, 1)}]", f"{row}[{self.place(held, 2)}] += {value}"],
                [f"for {row} in {name}:", f"    {row}[0] += {value}"],
                [f"{name} = [r[:] for r in {name}]"],
                [f"{name}[0], {name}[1] = {name}[1], {name}[0]"],
                [f"{name}[0] = [{value}, 1.0]"],
                [f"{name} = [list(r) for r in zip(*{name})]"],
            )
        )

    def attribute(self, held: Held, depth: int) -> list[str]:
        name, value = self.choose.item(held.cells), self.number(held)
        forms = [
            f"{name}.value = {value}",
            f"{name}.value += {value}",
            f"{name}.put({value})",
            f"{name}.items = {self.list_(held)}",
        ]
        if not depth:
            forms += [f"{name}.items = l", f"l = {name}.items"]
        return [self.choose.item(forms)]

    def branch(self, held: Held, depth: int) -> list[str]:
        lines = [f"if {self.test(held)}:", *self.block(held, depth)]
        return lines + (["else:", *self.block(held, depth)] if self.choose.chance(2) else [])

    def loop(self, held: Held, depth: int) -> list[str]:
        index, value, inner = self.fresh("i"), self.fresh("v"), held.inner()
        name = self.choose.item(held.lists)
        head, indices, numbers = self.choose.item(
            (
                ([f"for {index} in range(n):"], [index], []),
                ([f"for {index} in range(3):"], [index], []),
                ([f"for {value} in {name}[:]:"], [], [value]),
                ([f"for {index}, {value} in enumerate({name}[:2]):"], [index], [value]),
                ([f"for {value} in x:"], [], [value]),
                ([f"for {value} in {self.choose.item(held.grown)}[:3]:"], [], [value]),
                ([f"{index} = -1", f"while {index} < n - 1:", f"    {index} += 1"], [index], []),
            )
        )
        inner.indices += indices
        inner.numbers += numbers
        body = self.block(inner, depth)
        if self.choose.chance(4):
            body += [f"    if {self.test(inner)}:", f"        {self.choose.item(('break', 'continue'))}"]
        return [*head, *body]

    def leave(self, held: Held, depth: int) -> list[str]:
        top = Held(
            *[
                [n for n in names if n in ("s", "l", "p", "d", "m", "o.items", "o.value")]
                for names in (held.numbers, held.lists, held.grown, held.dicts, held.tables)
            ]
        )
        return [f"if {self.test(held)}:", f"    return {self.result(top)}"]


__all__ = ["Containers"]
