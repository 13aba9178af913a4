"""Programs about storage as `stores` writes them, with more ways to hold it: a grid, its rows and columns,
slices that share with what they are of, whole numbers that are indices.

In: choices. Out: the text of a function of two arrays and a whole number. Example:

    def program(x, y, n):
        x = x.copy()
        y = y + 1.0
        g = np.stack([x, y, x - y])
        k = np.arange(5) % 3
        for r1 in g[::-1]:
            w1 = r1[1:4]
            if w1[0] > y[2]:
                r1[k] += 2.0
        return y, g
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .stores import Names, Stores

ROWS = 3


@dataclass
class GridNames(Names):
    """And: grids of ROWS x SIZE, arrays of ROWS numbers, arrays of SIZE whole numbers below ROWS."""

    grids: list[str] = field(default_factory=list)
    shorts: list[str] = field(default_factory=list)
    wholes: list[str] = field(default_factory=list)


class Grids(Stores):
    """One program as it is written. A slice is copied before it is stored: where strides differ NumPy 2.4
    reads what it has just written."""

    def prepare(self, names: GridNames) -> list[str]:
        lines = [
            self.choose.item(
                (
                    "g = np.stack([x, y, x - y])",
                    "g = np.zeros((3, 5))",
                    "g = np.outer(np.array([1.0, -2.0, 3.0]), x)",
                    "g = np.vstack([y, x, y]).copy()",
                    "g = np.stack([x, y, x * 2.0], axis=1).T",
                )
            )
        ]
        names.grids.append("g")
        if self.choose.chance(2):
            lines.append("k = np.arange(5) % 3")
            names.wholes.append("k")
        return lines

    def names(self, *arrays: str) -> GridNames:
        return GridNames(list(arrays))

    def parts(self, names: Names) -> list[str]:
        assert isinstance(names, GridNames)
        found = [f"{grid}[{k}] * {k + 2}.0" for grid in names.grids[:2] for k in range(ROWS)]
        found += [f"np.sum({short} * np.array([1.0, 3.0, 7.0]))" for short in names.shorts[-2:]]
        return found + [f"{name} * 5.0" for name in names.wholes]

    # --- expressions ---

    def row(self, names: GridNames) -> str:
        return f"{self.choose.item(names.grids)}[{self.place(names)}]"

    def place(self, names: GridNames) -> str:
        """The number of a row."""
        found = ["0", "1", "2", "-1"]
        found += [f"{name}[{self.index(names)}]" for name in names.wholes]
        return self.choose.item(found + [f"{index} % 3" for index in names.indices[-1:]])

    def array(self, names: Names, shared: bool = False) -> str:
        assert isinstance(names, GridNames)
        if not names.grids or not self.choose.chance(4):
            return super().array(names, shared)
        grid = self.choose.item(names.grids)
        forms = [
            f"{self.row(names)}.copy()",
            f"{self.row(names)} - {self.row(names)}",
            f"{grid}.sum(axis=0)",
            f"np.max({grid}, axis=0)",
            f"{grid}[::2].sum(0)",
        ]
        forms += [f"{self.choose.item(names.arrays)}[{name}]" for name in names.wholes]
        return self.choose.item([*forms, self.row(names)] if shared else forms)

    def number(self, names: Names) -> str:
        assert isinstance(names, GridNames)
        if not names.grids or not self.choose.chance(3):
            return super().number(names)
        forms = [f"{self.choose.item(names.grids)}[{self.place(names)}, {self.index(names)}]"]
        forms += [f"{short}[{self.place(names)}]" for short in names.shorts[-1:]]
        forms += [f"np.sum({short})" for short in names.shorts[-1:]]
        return self.choose.item([*forms, f"{self.row(names)}.sum()"])

    def short(self, names: GridNames, shared: bool) -> str:
        a, grid = self.choose.item(names.arrays), self.choose.item(names.grids)
        forms = [f"{a}[1:4]", f"{a}[::2]", f"{grid}[:, {self.index(names)}]", f"{a}[::-2]", f"{a}[-3:]"]
        forms += [f"{grid}.T[{self.index(names)}]", f"{self.row(names)}[1:4]", f"{grid}.reshape(-1)[4:7]"]
        forms += [f"{short}[::-1]" for short in names.shorts[-1:]]
        text = self.choose.item(forms)
        return text if shared else self.choose.item((f"{text}.copy()", f"{text} * 2.0", f"{text} + 1.0"))

    # --- statements ---

    def statement(self, names: Names, depth: int, leaves: bool = True) -> list[str]:
        assert isinstance(names, GridNames)
        if not names.grids or not self.choose.chance(2):
            return super().statement(names, depth, leaves)
        table = [(2, self.hold), (6, self.put), (2, self.part), (1, self.change), (1, self.trade)]
        table += [(2, self.rows)] * (depth < 3) + [(1, self.whole)] * bool(names.wholes)
        return self.choose.weighted(table)(names, depth)

    def hold(self, names: GridNames, depth: int) -> list[str]:
        """A row by a name of its own."""
        name, text = self.fresh("r"), self.row(names)
        names.arrays.append(name)
        return [f"{name} = {text}"]

    def part(self, names: GridNames, depth: int) -> list[str]:
        """A slice by a name of its own; or a new value for such a name."""
        if names.shorts and self.choose.chance(3):
            return [f"{self.choose.item(names.shorts)} = {self.short(names, not depth)}"]
        name, text = self.fresh("w"), self.short(names, True)
        names.shorts.append(name)
        return [f"{name} = {text}"]

    def change(self, names: GridNames, depth: int) -> list[str]:
        """A new value for a grid's name."""
        grid, other = self.choose.item(names.grids), self.choose.item(names.grids)
        forms = [
            f"{grid} = {other}.copy()",
            f"{grid} = {other} * 2.0",
            f"{grid} = {other}[::-1].copy()",
            f"{grid} = np.where({grid} > {self.number(names)}, {other}, 0.0)",
        ]
        forms += [] if depth else [f"{grid} = {other}[::-1]", f"{grid} = {other}[:, ::-1]", f"h = {other}"]
        text = self.choose.item(forms)
        if text.startswith("h ="):
            names.grids.append("h")
        return [text]

    def trade(self, names: GridNames, depth: int) -> list[str]:
        """Two names, or two rows, change places."""
        grid, a, b = (self.choose.item(items) for items in (names.grids, names.arrays, names.arrays))
        return [
            self.choose.item(
                (
                    f"{grid}[[0, 2]] = {grid}[[2, 0]]",
                    f"{grid}[{self.place(names)}], {a}[:] = {a}.copy(), {self.row(names)}.copy()",
                    f"{a}[0], {b}[1] = {b}[1], {a}[0]",
                    f"{a}, {b} = {b}, {a}" if not depth else f"{a}[:], {b}[:] = {b}.copy(), {a}.copy()",
                )
            )
        ]

    def put(self, names: GridNames, depth: int) -> list[str]:
        """A store into a grid, a slice or at several indices."""
        grid, a = self.choose.item(names.grids), self.choose.item(names.arrays)
        forms = [
            f"{self.row(names)}[{self.index(names)}] = {self.number(names)}",
            f"{grid}[{self.place(names)}, {self.index(names)}] += {self.number(names)}",
            f"{self.row(names)[:-1]}, 1:4] = {self.number(names)}",
            f"{self.row(names)} = {self.array(names)}",
            f"{self.row(names)} -= {a}",
            f"{grid}[1:, :3] -= {grid}[:-1, 2:]",
            f"{grid}[:, {self.index(names)}] = {self.short(names, False)}",
            f"{grid}[{grid} > {self.number(names)}] = {self.number(names)}",
            f"{grid} *= -1.0",
            f"{grid}.T[{self.index(names)}] += {self.number(names)}",
            f"{grid}.reshape(-1)[{self.choose.number(0, 14)}] = {self.number(names)}",
            f"np.add.at({a}, [0, 2, 0], {self.number(names)})",
            f"{a}[[3, 1, 3]] = {self.short(names, True)}",
            f"{a}[1:4] = {self.short(names, False)}",
            f"{a}[1:4] = {self.choose.item(names.arrays)}[2:]",
        ]
        for short in names.shorts[-1:]:
            value = self.number(names)
            forms += [f"{short}[{self.place(names)}] = {value}", f"{short} += {value}"] * 2
            forms.append(f"{short}[:] = {self.short(names, False)}")
        for name in names.wholes:
            forms += [f"{a}[{name}] += {self.number(names)}", f"{a}[{name}[{self.index(names)}]] = -2.0"]
        return [self.choose.item(forms)]

    def whole(self, names: GridNames, depth: int) -> list[str]:
        name = self.choose.item(names.wholes)
        return [
            self.choose.item(
                (
                    f"{name}[{self.index(names)}] = {self.choose.number(0, 2)}",
                    f"{name} = 2 - {name}",
                    f"{name}[1:] = {name}[:-1].copy()",
                    f"{name}[{self.choose.item(names.arrays)} > 1.0] = 1",
                )
            )
        ]

    def rows(self, names: GridNames, depth: int) -> list[str]:
        """A loop over the rows, which share with their grid."""
        row, index, inner = self.fresh("r"), self.fresh("i"), names.inner()
        grid, a = self.choose.item(names.grids), self.choose.item(names.arrays)
        head, own, indices = self.choose.item(
            (
                (f"for {row} in {grid}:", [row], []),
                (f"for {index}, {row} in enumerate({grid}):", [row], [index]),
                (f"for {row} in {grid}[::-1]:", [row], []),
                (f"for {row}, {row}_ in zip({grid}, {a}):", [row], []),
                (f"for {index} in range(len({grid}) - 1, -1, -1):", [], [index]),
            )
        )
        inner.arrays += own
        inner.indices += indices
        inner.scalars += [f"{row}_"] if f"{row}_" in head else []
        return [head, *self.block(inner, depth)]
