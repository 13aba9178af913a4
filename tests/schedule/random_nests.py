"""Random loops around loops whose elements wait for each other, as text: what waves.py may take, or must not.

In: a seed. Out: the text of a function `nest(a, b, c)` of two planes and a line, which it changes. Sums and quotients
only, so that Python's numbers are the native ones to the bit. Example:

    def nest(a, b, c):
        for i in range(2, a.shape[0] - 2):
            v = c[i] - 1.5
            a[i, 2:-2] += b[i, 1:-3] + a[i - 1, 3:-1]
            for j in range(2, a.shape[1] - 2):
                a[i, j] = (a[i, j - 1] + a[i - 1, j + 1] + v)/3.0
            c[i] = a[i, 4]
"""

from __future__ import annotations

import numpy as np


class _Writer:
    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.variables: list[str] = []

    def often(self, chance: float) -> bool:
        return bool(self.random.random() < chance)

    def one_of(self, *choices):
        return choices[self.random.integers(len(choices))]

    def offset(self, name: str, low: int = -2, high: int = 2) -> str:
        by = int(self.random.integers(low, high + 1))
        return name if by == 0 else f"{name} {'+' if by > 0 else '-'} {abs(by)}"

    def read(self) -> str:
        """An element; mostly one of this round or of one before, near by."""
        plane = self.one_of("a", "a", "a", "b")
        row = self.offset("i", -2, self.one_of(0, 0, 2))
        return f"{plane}[{row}, {self.offset('j')}]"

    def combined(self, first: str, reads: int) -> str:
        text = first
        for _ in range(reads):
            if self.often(0.2):
                text = f"{self.one_of('min', 'max')}({text}, {self.read()})"
            else:
                text += f" {self.one_of('+', '-')} {self.read()}"
        return text

    def slices(self) -> str:
        by = int(self.random.integers(-2, 3))
        columns = f"{2 + by}:{by - 2 or ''}"
        return f"{self.one_of('a', 'a', 'b')}[{self.offset('i', -2, 1)}, {columns}]"

    def before(self) -> list[str]:
        rows = []
        if self.often(0.3):
            rows.append("v = c[i] - 1.5")
            self.variables.append("v")
        if self.often(0.2):
            rows.append(f"{self.one_of('a', 'b')}[{self.offset('i', 0, 1)}, {self.one_of(1, 2, 3)}] = c[i]")
        for _ in range(self.random.integers(3)):
            if self.often(0.6):
                rows.append(f"a[i, 2:-2] {self.one_of('+=', '=')} {self.slices()} + {self.slices()}")
        return rows

    def inner(self) -> list[str]:
        first = "a[i, j - 1]" if self.often(0.8) else self.read()
        value = self.combined(first, int(self.random.integers(1, 4)))
        if self.variables and self.often(0.7):
            value += " + v"
        rows = [f"a[i, j] = ({value})/3.0"]
        if self.often(0.3):
            rows.append(f"{self.one_of('b', 'b', 'a')}[i, {self.offset('j')}] = {self.combined(self.read(), 1)}")
        if self.often(0.2):
            rows.insert(0, f"t = {self.read()}")
            rows.append("a[i, j] -= t")
        if self.often(0.2):
            rows.append(f"s {self.one_of('+=', '-=')} {self.read()}")
        return rows

    def behind(self) -> list[str]:
        rows = []
        if self.often(0.3):
            rows.append(f"c[{self.offset('i', 0, 1)}] = {self.one_of('a', 'b')}[i, {self.one_of(2, 4)}]")
        if self.often(0.15):
            rows.append(f"a[i, {self.one_of(2, 3)}] = c[i]/2.0")
        return rows

    def whole(self) -> str:
        before, inner, behind = self.before(), self.inner(), self.behind()
        if any(row.startswith("s ") for row in inner):
            before.insert(0, "s = c[i]")
            behind.append("c[i] = s/2.0")
        last = self.one_of("a.shape[1] - 2", "a.shape[1] - 2", "a.shape[1] - 2", "min(i, a.shape[1] - 2)")
        rows = ["def nest(a, b, c):", "    for i in range(2, a.shape[0] - 2):"]
        rows += [f"        {row}" for row in before]
        rows += [f"        for j in range(2, {last}):", *(f"            {row}" for row in inner)]
        rows += [f"        {row}" for row in behind]
        if self.often(0.3):
            rows[1:] = ["    for _ in range(3):", *("    " + row for row in rows[1:])]
        return "\n".join(rows) + "\n"


def nest(seed: int) -> str:
    return _Writer(seed).whole()


__all__ = ["nest"]
