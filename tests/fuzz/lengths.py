"""Programs about sizes: lengths in arithmetic, in indices, as bounds of slices and ranges, and as sizes.

In: choices. Out: the text of a function of two arrays, a matrix and a whole number, and sets of arguments of
several sizes: from the second on the sizes are symbols in the program. Divisors are positive and negative
constants, lengths, and remainders, which may be 0; most indices are inside their array, the others raise.
Numbers are whole and small, so that every sum is exact. Example:

    def program(x, y, M, n):
        x, y = x.copy(), y.copy()
        a = len(x) % -3
        x[a] = 7.0
        t = y[: len(y) // 2].sum()
        for i1 in range(a + 4):
            y[(i1 - a) % len(y)] += t
        return x, y, a, t, M.size % 5
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from .arguments import array_text
from .choices import Choices

DIVISORS = ("2", "3", "-3", "-2", "4", "-5", "7", "-1")
SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 9)
SUMS = (
    "(<a> + <a>)", "(<a> - <a>)", "(<a> % <divisor>)", "(<a> // <divisor>)", "(<a> * <divisor>)", "-<a>",
    "<a> * (<a> % <divisor>)", "min(<a>, <a>)", "max(<a>, <a>)", "abs(<a>)", "(-<a> % <divisor>)",
    "divmod(<a>, <divisor>)[1]", "(<a> % (abs(<a>) + 1))", "(<a> // -(abs(<a>) + 1))",
    "(<a> if <test> else <a>)",
)  # fmt: skip
QUOTIENTS = ("(<a> // (<a> % <divisor>))", "(<a> % (<a> % <divisor>))", "(<a> // <a>)")
INSIDE = ("<whole1> % {0}", "<whole2> % {0}", "-1 - <whole1> % {0}")
PLACES = (*INSIDE, *INSIDE, "max(-{0}, min(<whole2>, {0} - 1))", "{0} % <divisor>", "-1", "<whole1>")
VALUES = (
    "<array>[<cut>].sum()", "M[<cut>].sum()", "<whole2> * 1.0", "float(<whole2>)", "float(len(<array>[<cut>]))",
    "np.zeros(<small>).size * 1.0", "np.ones(<whole2>).sum()", "np.arange(<whole1>, <whole1>).sum() * 1.0",
    "np.arange(<small>)[<cut>].sum() * 1.0", "M.reshape(-1, len(M)).sum()", "M.reshape(<small>, -1)[0, 0]",
    "M.reshape(n, -1)[-1].sum()", "M.reshape(len(M), -1)[<cut>].sum()", "np.roll(<array>, <whole2>)[-1]",
    "np.repeat(<array>, <small>).sum()", "np.eye(3, k=<whole1>).sum()", "np.tri(<whole1>, <small>).sum()",
    "np.linspace(0.0, 4.0, <small> + 1)[-1]", "np.full((<small>, 2), 0.5)[<cut>].sum()",
)  # fmt: skip


class Lengths:
    """One program as it is written: `counts` are names of whole numbers, `indices` of loops under way."""

    def __init__(self, choose: Choices):
        self.choose, self.number, self.left = choose, 0, 12
        self.counts: list[str] = []
        self.indices: list[str] = []
        self.floats = ["t"]

    def program(self) -> str:
        lines = ["x, y, M, t = x.copy(), y.copy(), M.copy(), 0.0"]
        for _ in range(self.choose.number(1, 3)):
            lines += self.count(0)
        for _ in range(self.choose.number(2, 5)):
            lines += self.statement(0)
        lines.append(f"return x, y, M, {', '.join([*self.floats, *self.counts])}, {self.whole(2)}\n")
        return "\n    ".join(["def program(x, y, M, n):", *lines])

    def arguments(self) -> str:
        chance = random.Random(self.choose.number(0, 99))
        first = [chance.choice(SIZES[3:]) for _ in range(3)]
        sets = [first, [size + 1 for size in first], [chance.choice(SIZES[1:]) for _ in range(3)]]
        sets += [[2 * size for size in first], [chance.choice((0, 1, 1)), 1, chance.choice(SIZES[1:])]]
        return "".join(f"    {self.one_set(chance, *sizes)},\n" for sizes in sets)

    @staticmethod
    def one_set(chance: random.Random, x: int, y: int, rows: int) -> str:
        def array(*shape: int) -> str:
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            return array_text([str(float(chance.randint(-4, 9))) for _ in range(count)], [*shape], "f")

        return f"({array(x)}, {array(y)}, {array(rows, 2)}, {chance.randint(0, 6)})"

    # --- whole numbers ---

    def filled(self, forms: Sequence[str]) -> str:
        """One of the forms; `<whole2>` in it stands for what the method `whole` gives at the depth 2."""

        def written(hole: re.Match) -> str:
            return getattr(self, hole[1])(*map(int, hole[2]))

        return re.sub(r"<([a-z]+)(\d?)>", written, self.choose.item(forms))

    def size(self) -> str:
        return self.choose.item(("len(x)", "len(y)", "x.shape[0]", "M.shape[0]", "M.size", "y.size"))

    def divisor(self) -> str:
        return self.choose.item(DIVISORS)

    def whole(self, depth: int) -> str:
        if depth <= 0 or self.choose.chance(5):
            names = (*self.counts, *self.indices, "<size>", "<size>", "n", str(self.choose.number(-3, 6)))
            return self.filled(names)
        forms = SUMS if not self.choose.chance(30) else QUOTIENTS
        return self.filled([form.replace("<a>", f"<whole{depth - 1}>") for form in forms])

    def test(self) -> str:
        return self.filled([f"<whole1> {sign} <whole1>" for sign in ("<", "<=", ">", "==", "!=", ">=")])

    def count(self, depth: int) -> list[str]:
        self.number += 1
        lines = [f"k{self.number} = {self.whole(2)}"]
        self.counts += [f"k{self.number}"] if not depth else []
        return lines

    # --- where they are used ---

    def array(self) -> str:
        return self.choose.item(("x", "y"))

    def index(self, length: str) -> str:
        """Mostly one that the axis has, if it has any."""
        return self.filled([form.format(length) for form in PLACES])

    def element(self) -> str:
        array = self.array()
        return f"{array}[{self.index(f'len({array})')}]"

    def row(self) -> str:
        return f"M[{self.index('len(M)')}, {self.choose.item(('0', '1', '-1'))}]"

    def cut(self) -> str:
        """A slice of any bounds."""
        return f"{self.end()}:{self.end()}{self.choose.item(('', '', ':2', ':-1', ':-3'))}"

    def end(self) -> str:
        return self.filled(("", "<whole1>", "<whole2>"))

    def small(self) -> str:
        return self.filled(("min(abs(<whole1>), 6)", "abs(<whole1>) % 4", "-(<whole1> % -5)"))

    def value(self) -> str:
        """A float."""
        return self.filled((*self.floats, "<element>", "<row>", *VALUES, "<element>"))

    # --- statements ---

    def statement(self, depth: int) -> list[str]:
        self.left -= 1
        table = [(3, self.store), (3, self.total), (2, self.count)]
        if depth < 2 and self.left > 0:
            table += [(3, self.loop), (2, self.branch), (1, self.search)]
        return self.choose.weighted(table)(depth)

    def store(self, depth: int) -> list[str]:
        place = self.filled(("<element>", "<element>", "<array>[<cut>]", "<row>"))
        """What loops store stays small: sums of it are exact."""
        sign, value = self.choose.item(("=", "+=")), self.value()
        return [f"{place} {sign} {f'({value}) % 64.0' if depth else value}"]

    def total(self, depth: int) -> list[str]:
        if depth or self.choose.chance(2):
            return [f"{self.choose.item(self.floats)} += {f'({self.value()}) % 64.0' if depth else self.value()}"]
        self.number += 1
        lines = [f"t{self.number} = {self.value()}"]
        self.floats.append(f"t{self.number}")
        return lines

    def loop(self, depth: int) -> list[str]:
        rows = ("min(<whole2>, 9)", "<whole1> % <divisor>, 4", "len(x)", "6, <whole1> % <divisor>, -2",
                "len(y) - 1, -1, -1", "1, len(M)")  # fmt: skip
        self.number += 1
        return self.inside(f"i{self.number}", f"for i{self.number} in range({self.filled(rows)}):", depth)

    def search(self, depth: int) -> list[str]:
        self.number += 1
        name, end = f"j{self.number}", self.filled(("len(x)", "min(<whole1>, 9)", "len(y) // 2"))
        lines = self.inside(name, f"while {name} < {end}:", depth)
        return [f"{name} = 0", *lines, f"    {name} += {self.choose.item('12')}"]

    def inside(self, index: str, head: str, depth: int) -> list[str]:
        before, self.indices = self.indices, [*self.indices, index]
        lines = [head, *self.block(depth)]
        self.indices = before
        return lines

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.test()}:", *self.block(depth)]
        return lines + (["else:", *self.block(depth)] if self.choose.chance(2) else [])

    def block(self, depth: int) -> list[str]:
        lines = [line for _ in range(self.choose.number(1, 2)) for line in self.statement(depth + 1)]
        return ["    " + line for line in lines]


__all__ = ["Lengths"]
