"""Programs about storage: what is computed before a store in a nested branch or loop, and read after it.

In: choices. Out: the text of a function of two arrays and a whole number, which rebinds, copies and stores
into arrays on some paths only; results that depend on who holds which array, and on what was read when. All
numbers are whole and small, so that every sum is exact. Example:

    def program(x, y, n):
        x = x.copy()
        m1 = x > y
        if np.sum(x) > y[2]:
            y = x.copy()
        for i1 in range(n):
            y[i1] += x[2]
        return y, np.where(m1, y, 0.0)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .arguments import array_text
from .choices import Choices

SIZE = 5
LARGEST = 1e12  # beyond, sums are not exact in every order


STATE = """class State:
    def __init__(self, a, b):
        self.a, self.b = a, b


"""
HELD = {"": [], "{": ["d['a']", "d['b']"], "[": ["d[0]", "d[1]"], "S": ["d.a", "d.b"]}


@dataclass
class Names:
    """What may be read: float arrays, bool arrays, scalars, loop indices."""

    arrays: list[str]
    masks: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    indices: list[str] = field(default_factory=list)

    def inner(self) -> Names:
        return replace(self, **{name: list(value) for name, value in vars(self).items()})


class Stores:
    """One program as it is written."""

    def __init__(self, choose: Choices, derivative: bool):
        self.choose, self.derivative, self.count, self.helped = choose, derivative, 0, False

    def program(self) -> str:
        helper = self.helper() if self.choose.chance(3) else ""
        names = self.names("x", "y")
        own = self.choose.item(("y = y + 1.0", "y = y.copy()"))
        lines = ["x = x.copy()", own]
        holders = ("d = {'a': x, 'b': y.copy()}", "d = [x, y * 2.0]", "d = State(x, y)")
        holder = self.choose.item(("", "", "", *holders))
        lines += [holder] if holder else []
        names.arrays += HELD[holder[4:5]]
        lines += self.prepare(names)
        for _ in range(self.choose.number(3, 9)):
            lines += self.statement(names, 0)
        kept = [names.arrays[-1], *(self.choose.item(names.arrays) for _ in range(2))]
        parts = [f"{2 * k + 1}.0 * {name}" for k, name in enumerate(kept)]
        parts += [f"np.where({mask}, 1.0, {self.number(names)})" for mask in names.masks[:2]]
        parts += names.scalars[:2] + self.parts(names)
        total = " + ".join(parts)
        result = f"np.sum(np.tanh({total}))" if self.derivative else f"{kept[0]}, {total}"
        state = STATE if "State" in holder else ""
        return state + helper + "\n    ".join(["def program(x, y, n):", *lines, f"return {result}\n"])

    def helper(self) -> str:
        """A function whose variables are gone when it returns."""
        names = self.names("p", "q")
        lines = [s for _ in range(self.choose.number(1, 3)) for s in self.statement(names, 1, leaves=False)]
        result = self.choose.item(("p", "p.copy()", "p + q"))
        self.helped = True
        return "\n    ".join(["def mended(p, q, n):", *lines, f"return {result}\n\n\n"])

    def names(self, *arrays: str) -> Names:
        return Names(list(arrays))

    def prepare(self, names: Names) -> list[str]:
        """What else the program begins with."""
        return []

    def parts(self, names: Names) -> list[str]:
        """What else its result depends on."""
        return []

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    # --- expressions ---

    def array(self, names: Names, shared: bool = False) -> str:
        """An array: one of its own, or (`shared`) perhaps another name of one."""
        item = lambda: self.choose.item(names.arrays)  # noqa: E731
        a = item()
        forms = [
            f"{a}.copy()",
            f"{a} + {item()}",
            f"{a} * 2.0",
            f"np.minimum({a}, {item()})",
            f"np.where({a} > {item()}, {item()}, {self.choose.item(('0.0', item()))})",
            f"{a} - {self.number(names)}",
            f"{a}[::-1].copy()",
            f"np.roll({a}, 1)",
            f"np.clip({a}, -4.0, 9.0)",
        ]
        forms += [f"np.where({mask}, {a}, 0.0)" for mask in names.masks[:1]]
        forms += [f"mended({a}, {item()}, 2)"] * (2 * self.helped)
        return self.choose.item([*forms, a, a, a, f"{a}[::-1]"] if shared else forms)

    def number(self, names: Names) -> str:
        a = self.choose.item(names.arrays)
        forms = ["1.0", "-3.0", f"{a}[{self.index(names)}]", f"np.sum({a})", f"np.max({a}[1:])"]
        return self.choose.item([*forms, f"{a}[{self.index(names)}]", *names.scalars])

    def index(self, names: Names) -> str:
        return self.choose.item([str(self.choose.number(0, SIZE - 1)), *names.indices])

    def test(self, names: Names) -> str:
        if names.indices and self.choose.chance(3):
            compare = self.choose.item(("<", ">=", "=="))
            return f"{self.choose.item(names.indices)} {compare} {self.choose.number(0, 2)}"
        return f"{self.number(names)} {self.choose.item(('<', '>', '<=', '!='))} {self.number(names)}"

    # --- statements ---

    def statement(self, names: Names, depth: int, leaves: bool = True) -> list[str]:
        table = [(4, self.bind), (1, self.mask), (1, self.scalar), (3, self.rebind), (6, self.store)]
        if depth < 3:
            table += [(4, self.branch), (3, self.loop), (1, self.while_loop)]
        if depth and leaves:
            table.append((1, self.leave))
        return self.choose.weighted(table)(names, depth)

    def block(self, names: Names, depth: int) -> list[str]:
        inner, leaves = names.inner(), "p" not in names.arrays  # a helper gives one array
        lines = [s for _ in range(self.choose.number(1, 3)) for s in self.statement(inner, depth + 1, leaves)]
        return ["    " + line for line in lines]

    def bind(self, names: Names, depth: int) -> list[str]:
        name, text = self.fresh("v"), self.array(names, not depth)
        names.arrays.append(name)
        return [f"{name} = {text}"]

    def mask(self, names: Names, depth: int) -> list[str]:
        name, compare = self.fresh("m"), self.choose.item(("==", ">", "<"))
        names.masks.append(name)
        return [f"{name} = {self.choose.item(names.arrays)} {compare} {self.choose.item(names.arrays)}"]

    def scalar(self, names: Names, depth: int) -> list[str]:
        name, text = self.fresh("s"), self.number(names)
        names.scalars.append(name)
        return [f"{name} = {text}"]

    def rebind(self, names: Names, depth: int) -> list[str]:
        return [f"{self.choose.item(names.arrays)} = {self.array(names, not depth)}"]

    def store(self, names: Names, depth: int) -> list[str]:
        a, b = self.choose.item(names.arrays), self.choose.item(names.arrays)
        return [
            self.choose.item(
                (
                    f"{a}[{self.index(names)}] = {self.number(names)}",
                    f"{a}[{self.index(names)}] += {self.number(names)}",
                    f"{a}[1:4] = {self.number(names)}",
                    f"{a}[1:] -= {b}[:-1]",
                    f"{a}[:] = {self.array(names)}",
                    f"{a} *= -1.0",
                    f"{a}[{b} > 1.0] = {self.number(names)}",
                )
            )
        ]

    def branch(self, names: Names, depth: int) -> list[str]:
        lines = [f"if {self.test(names)}:", *self.block(names, depth)]
        return lines + (["else:", *self.block(names, depth)] if self.choose.chance(2) else [])

    def loop(self, names: Names, depth: int) -> list[str]:
        index, length = self.fresh("i"), self.choose.item(("n", "3", "4"))
        inner = names.inner()
        inner.indices.append(index)
        return [f"for {index} in range({length}):", *self.block(inner, depth)]

    def while_loop(self, names: Names, depth: int) -> list[str]:
        index = self.fresh("k")
        inner = names.inner()
        inner.indices.append(index)
        end = [f"    if {self.test(names)}:", "        break"] if self.choose.chance(2) else []
        return [
            f"{index} = -1",
            f"while {index} < {self.choose.item(('n', '2'))}:",
            f"    {index} += 1",
            *end,
            *self.block(inner, depth),
        ]

    def leave(self, names: Names, depth: int) -> list[str]:
        result = (
            f"np.sum(np.tanh({self.array(names)}))" if self.derivative else f"{self.array(names)}, {self.array(names)}"
        )
        return [f"if {self.test(names)}:", f"    return {result}"]


def arguments(choose: Choices, derivative: bool) -> str:
    """Three sets, one a line; `n` stays below the size. For derivatives no two numbers are equal."""
    lines = []
    for n in (2, 3, 0):
        x, y = (
            [choose.number(-3, 4) + (k + 1) * apart if derivative else float(choose.number(-3, 4)) for k in range(SIZE)]
            for apart in (0.0173, 0.0291)
        )
        first, second = (
            array_text(list(map(repr, values)), [SIZE], "f", choose.item(("", "", "apart", "backwards")))
            for values in (x, y)
        )
        lines.append(f"    ({first}, {second}, {n}),\n")
    return "".join(lines)


__all__ = ["LARGEST", "Stores", "arguments"]
