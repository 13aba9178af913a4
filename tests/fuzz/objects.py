"""Programs about names of objects: which object a name stands for when one is changed.

In: choices. Out: the text of a function of two arrays and a whole number that binds three names, and places
in objects or lists, to each other's objects and to new ones, on some paths and in loops, and changes what
they stand for. All numbers are whole and small. Example:

    def program(x, y, n):
        a = Cell(x[0])
        b = Cell(y[1])
        c = a
        h = Cell(0.0, b)
        for i1 in range(n):
            if x[i1] > a.v:
                a, b = b, a
            else:
                h.o = Cell(b.v)
            h.o.v += 1.0
        return a.v, b.v, c.v, h.o.v
"""

from __future__ import annotations

from .choices import Choices

CELL = """class Cell:
    def __init__(self, v, o=None):
        self.v, self.o = v, o


def renewed(s, t):
    if t > 1.0:
        s = Cell(t)
    else:
        s.v += 1.0
    return s


def raised(s):
    s.v += 2.0
    return s


"""
ROW = """def renewed(s, t):
    if t > 1.0:
        s = [t]
    else:
        s[0] += 1.0
    return s


def raised(s):
    s[0] += 2.0
    return s


"""


class Objects:
    """One program as it is written: about cells with an attribute, or lists with an item. `apart`: each has
    one name for most of the time, so that little is refused."""

    def __init__(self, choose: Choices, derivative: bool):
        self.choose, self.derivative, self.count = choose, derivative, 0
        self.cells, self.apart = choose.chance(2), choose.chance(4) is False
        self.indices: list[str] = []
        self.left = 14  # statements

    def program(self) -> str:
        third = self.choose.item((self.new("x[2]"), self.new("3.0"), *(() if self.apart else ("a",))))
        lines = [f"a = {self.new('x[0]')}", f"b = {self.new('y[1]')}", f"c = {third}"]
        if self.cells:
            lines += [f"h = Cell(0.0, {self.kept()})", f"k = [{self.kept()}, {self.new('1.0')}]"]
        else:
            lines.append(f"k = [{self.kept()}, {self.kept()}]")
        for _ in range(self.choose.number(2, 5)):
            lines += self.statement(0)
        lines += self.loop(0)
        for _ in range(self.choose.number(0, 2)):
            lines += self.statement(2)
        lines.append(f"return {self.result()}\n")
        return (CELL if self.cells else ROW) + "\n    ".join(["def program(x, y, n):", *lines])

    def result(self) -> str:
        values = [self.value(one) for one in ("a", "b", "c", *self.places())]
        return " + ".join(f"np.tanh({v})" for v in values) if self.derivative else ", ".join(values)

    # --- expressions ---

    def name(self) -> str:
        return self.choose.item(("a", "b", "c"))

    def kept(self) -> str:
        return self.new(self.number()) if self.apart else self.name()

    def places(self) -> tuple[str, ...]:
        return ("h.o", "k[0]", "k[1]") if self.cells else ("k[0]", "k[1]")

    def value(self, one: str) -> str:
        return f"{one}.v" if self.cells else f"{one}[0]"

    def new(self, value: str) -> str:
        return f"Cell({value})" if self.cells else f"[{value}]"

    def number(self) -> str:
        forms = ["2.0", "-1.0", f"x[{self.choose.number(0, 2)}]", f"y[{self.choose.number(0, 2)}]"]
        forms += [self.value(self.name())] * 3 + [f"x[{i}]" for i in self.indices]
        return self.choose.item(forms)

    # --- statements ---

    def statement(self, depth: int) -> list[str]:
        self.left -= 1
        table = [(4, self.bind), (4, self.change), (2, self.put), (1, self.call), (1, self.away)]
        if depth < 3 and self.left > 0:
            table += [(4, self.branch), (2, self.loop)]
        if self.indices and not self.derivative:
            table.append((1, self.leave))
        return self.choose.weighted(table)(depth)

    def block(self, depth: int) -> list[str]:
        return ["    " + line for _ in range(self.choose.number(1, 3)) for line in self.statement(depth + 1)]

    def bind(self, depth: int) -> list[str]:
        one, other = self.name(), self.name()
        if self.apart:
            new, place = self.new(self.number()), self.choose.item(self.places())
            return self.choose.item(
                (
                    [f"{one} = {new}"],
                    [f"{one}, {other} = {other}, {one}"],
                    [f"{one} = {other}", f"{other} = {new}"] if one != other else [f"{one} = {new}"],
                    [f"{one}, {place} = {place}, {one}"],
                    [f"{one} = {one} if {self.test()} else {new}"],
                )
            )
        forms = [f"{one} = {other}", f"{one} = {self.new(self.number())}", f"{one}, {other} = {other}, {one}"]
        forms += [f"{one} = {self.choose.item(self.places())}"]
        forms += [f"{one} = {other} if {self.test()} else {self.new(self.number())}"]
        forms += [] if self.cells else [f"{one} = {other}[:]"]
        return [self.choose.item(forms)]

    def change(self, depth: int) -> list[str]:
        one = self.value(self.choose.item((*"abcabc", *self.places())))
        return [f"{one} {self.choose.item(('=', '+=', '-='))} {self.number()}"]

    def put(self, depth: int) -> list[str]:
        return [f"{self.choose.item(self.places())} = {self.choose.item((self.kept(), self.new('5.0')))}"]

    def call(self, depth: int) -> list[str]:
        one = self.name()
        forms = (f"renewed({one}, {self.number()})", f"raised({one})")
        return [f"{one if self.apart else self.name()} = {self.choose.item(forms)}"]

    def away(self, depth: int) -> list[str]:
        """A name that stands for nothing for a while."""
        one, value = self.name(), self.number()
        self.count += 1
        return [f"v{self.count} = {value}", f"{one} = None", f"{one} = {self.new(f'v{self.count}')}"]

    def test(self) -> str:
        forms = [f"{self.number()} {self.choose.item(('<', '>', '<='))} {self.number()}"] * 3
        if not self.derivative and self.indices:
            forms.append(f"{self.choose.item(self.indices)} == 1")
        return self.choose.item(forms)

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.test()}:", *self.block(depth)]
        return lines + (["else:", *self.block(depth)] if self.choose.chance(2) else [])

    def loop(self, depth: int) -> list[str]:
        self.count += 1
        index = f"i{self.count}"
        before, self.indices = self.indices, [*self.indices, index]
        body = self.block(depth)
        self.indices = before
        return [f"for {index} in range({self.choose.item(('n', 'n', '3'))}):", *body]

    def leave(self, depth: int) -> list[str]:
        kind = self.choose.item(("break", "continue", f"return {self.result()}"))
        return [f"if {self.test()}:", f"    {kind}"]


__all__ = ["Objects"]
