"""Programs about precision: float32 and float64 arrays and numbers that are converted, stored and mixed.

In: choices. Out: the text of a function of a float32 array, a float64 array, a number and a whole number, and
its sets of arguments, whose numbers have more digits than float32 holds. Each operation rounds once, in its
own type, so that all bits are defined; there are no sums but running ones. Example:

    def program(p, q, a, n):
        t1 = (q * 2)[::-1].astype(np.float32).astype(np.float64)
        p[:] = t1 + a
        for i2 in range(n):
            q[i2] = np.float32(q[i2]) * p[i2]
        return p, q, t1
"""

from __future__ import annotations

import random
import re

from .arguments import array_text
from .choices import Choices

NUMBERS = ("0.1", "1 / 3", "2.5", "-0.7", "1e-3", "3.0", "1e8", "16777217.0")
TYPES = ("np.float32", "np.float64")
VECTORS = (
    "<a>.astype(<type>)", "(<a> + <b>)", "(<a> * <b>)", "(<a> - <b>)", "(<a>)[::-1]", "np.float32(<a>)",
    "<a>.astype(np.float32).astype(np.float64)", "np.abs(<a>)", "np.sqrt(np.abs(<a>))", "-(<a>)", "(<a> / 3)",
    "np.where(<array> > <b>, <a>, <b>)", "np.maximum(<a>, <b>)", "np.concatenate([(<a>)[1:], (<array>)[:1]])",
    "np.asarray(<a>, dtype=<type>)", "np.array(<a>, dtype=<type>)", "np.multiply(<a>, <b>).astype(<type>)",
    "np.add(<a>, <b>, dtype=np.float32, casting='same_kind')", "np.cumsum(<a>)", "np.full_like(<a>, <c>)",
    "np.clip(<a>, -1.0, 2.5)", "(<a> * <array>.astype(<type>))", "np.floor(<a>)",
    "(<a>)[::-1].astype(<type>)",
)  # fmt: skip
SCALARS = (
    "<number>", "<float>", "<array>[<place>]", "<type>(<number>)", "float(<array>[<place>])", "<array>.min()",
    "<type>(<array>[<place>])", "np.max(<array>)", "<type>(<float>)",
)  # fmt: skip
DEEPER = (*SCALARS, "(<c> + <c>)", "(<c> * <c>)", "(<c> - <c>)", "<type>(<c>)", "np.float64(np.float32(<c>))")


class Precision:
    """One program as it is written; `arrays` are names of arrays of as many elements as `p` has."""

    def __init__(self, choose: Choices):
        self.choose, self.number, self.left = choose, 0, 8
        self.arrays = ["p", "q"]
        self.floats = ["a"]
        self.indices: list[str] = []

    def program(self) -> str:
        lines = ["p, q = p.copy(), q.copy()"]
        for _ in range(self.choose.number(1, 3)):
            lines += self.fresh(0)
        for _ in range(self.choose.number(1, 4)):
            lines += self.statement(0)
        return "\n    ".join(
            ["def program(p, q, a, n):", *lines, f"return {', '.join([*self.arrays, *self.floats])}\n"]
        )

    def arguments(self) -> str:
        chance = random.Random(self.choose.number(0, 99))
        first = chance.choice((2, 3, 4, 5, 8, 16))
        sizes = (first, first, chance.choice((4, 7, 8, 33)))
        return "".join(f"    {self.one_set(chance, size)},\n" for size in sizes)

    @staticmethod
    def one_set(chance: random.Random, size: int) -> str:
        def numbers() -> list[str]:
            return [repr(chance.choice((1.0, -1.0, 1e3)) * chance.random()) for _ in range(size)]

        single = f"{array_text(numbers(), [size], 'f')}.astype(np.float32)"
        number = chance.choice((repr(chance.random()), f"np.float32({chance.random()!r})", "3.0"))
        return f"({single}, {array_text(numbers(), [size], 'f')}, {number}, {chance.randint(0, 2)})"

    # --- expressions ---

    def filled(self, form: str, depth: int) -> str:
        """The form with an array of `depth` for <a> and <b>, or a number for the latter; names for others."""
        written = {
            "<a>": lambda: self.vector(depth), "<c>": lambda: self.scalar(depth),
            "<b>": lambda: self.choose.item((self.vector, self.scalar))(depth),
            "<array>": lambda: self.choose.item(self.arrays),
            "<place>": self.place, "<float>": lambda: self.choose.item(self.floats),
            "<number>": lambda: self.choose.item(NUMBERS), "<type>": lambda: self.choose.item(TYPES),
        }  # fmt: skip
        return re.sub(r"<[a-z]+>", lambda hole: written[hole[0]](), form)

    def vector(self, depth: int) -> str:
        """As many elements as `p` has, of either type."""
        return self.filled("<array>" if depth <= 0 else self.choose.item(VECTORS), depth - 1)

    def scalar(self, depth: int) -> str:
        return self.filled(self.choose.item(SCALARS if depth <= 0 else DEEPER), depth - 1)

    def place(self) -> str:
        return self.choose.item(("0", "1", "-1", *self.indices))

    # --- statements ---

    def fresh(self, depth: int) -> list[str]:
        """A new name: an array where no branch or loop is under way."""
        self.number += 1
        if self.choose.chance(4):
            self.floats.append(f"c{self.number}")
            return [f"c{self.number} = {self.scalar(2)}"]
        text = f"t{self.number} = {self.vector(3)}"
        self.arrays.append(f"t{self.number}")
        return [text]

    def statement(self, depth: int) -> list[str]:
        self.left -= 1
        table = [(3, self.store), (2, self.fill)]
        table += [(3, self.fresh)] if not depth else []
        if depth < 2 and self.left > 0:
            table += [(2, self.branch), (3, self.loop)]
        return self.choose.weighted(table)(depth)

    def store(self, depth: int) -> list[str]:
        """A store of a number. A loop that adds to one element is a sum, whose order is not defined."""
        sign, name, place = self.choose.item(("=", "=", "+=", "*=")), self.choose.item(("p", "q")), self.place()
        value = self.scalar(2)
        if self.indices and (sign != "=" or f"{name}[" in value):
            place = self.indices[-1]
        return [f"{name}[{place}] {sign} {value}"]

    def fill(self, depth: int) -> list[str]:
        return [f"{self.choose.item(('p', 'q'))}[:] {self.choose.item(('=', '+=', '*='))} {self.vector(2)}"]

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.scalar(1)} > {self.scalar(1)}:", *self.block(depth)]
        return lines + (["else:", *self.block(depth)] if self.choose.chance(2) else [])

    def loop(self, depth: int) -> list[str]:
        self.number += 1
        index = f"i{self.number}"
        before, self.indices = self.indices, [*self.indices, index]
        body = self.block(depth)
        self.indices = before
        return [f"for {index} in range({self.choose.item(('n', '2', 'len(p)'))}):", *body]

    def block(self, depth: int) -> list[str]:
        lines = [line for _ in range(self.choose.number(1, 2)) for line in self.statement(depth + 1)]
        return ["    " + line for line in lines]


__all__ = ["Precision"]
