"""Programs about what fails, and in which order things happen: try, with, raise, assert, generators, prints.

In: choices. Out: the text of a function of a number, two arrays and a whole number that notes each step it
takes, in an array and by printing, while operations fail on some paths and are caught on some. Example:

    def program(x, y, e, n):
        c = 0
        try:
            e[c % 24] = 1.0
            c += 1
            x = x + y[n + 1]
            for v2 in steps(n, x):
                x = x + v2
        except IndexError:
            print("told 3", n)
            x = x - 1.0
        else:
            x = checked(x)
        return x, c, n
"""

from __future__ import annotations

import random

from .choices import Choices

HELPERS = """import contextlib


class Worse(ValueError):
    pass


def checked(x):
    if x > 2.0:
        raise Worse("told: too large")
    return x * 0.5


def part(y, k):
    assert k < 3, "told: no such part"
    return y[k]


def guarded(y, k):
    try:
        return y[k]
    except IndexError:
        return -1.0


def steps(n, x):
    for k in range(n):
        if k == 2:
            yield x
        yield k * 0.5


@contextlib.contextmanager
def noted(e, k):
    e[k] += 1.0
    yield e[k]
    e[k] += 0.5


class Guard:
    def __init__(self, e, quiet):
        self.e, self.quiet = e, quiet

    def __enter__(self):
        self.e[20] += 1.0
        return self

    def __exit__(self, kind, error, trace):
        self.e[21] += 1.0
        return self.quiet and kind is not None and issubclass(kind, ValueError)


"""
KINDS = ("ValueError", "IndexError", "ZeroDivisionError", "Worse", "KeyError", "(IndexError, KeyError)",
         "LookupError", "ArithmeticError", "Exception", "AssertionError")  # fmt: skip


class Failures:
    """One program as it is written."""

    def __init__(self, choose: Choices):
        self.choose, self.count, self.left = choose, 0, 12
        self.indices: list[str] = []
        self.loops, self.finals, self.handlers = 0, 0, 0
        self.inside = False  # a `finally`: no return
        self.noisy = choose.chance(2)

    def program(self) -> str:
        lines = ["c = 0", "z = 0.0", 'd = {"a": x, "b": 2.0}']
        for _ in range(self.choose.number(2, 4)):
            lines += self.statement(0)
        lines += self.attempt(0)
        for _ in range(self.choose.number(0, 2)):
            lines += self.statement(1)
        lines.append("return x, z, c, n, e\n")
        return "\n    ".join(["def program(x, y, e, n):", *lines])

    def arguments(self) -> str:
        seed = self.choose.number(0, 99)
        lines = []
        for k in range(4):
            chance = random.Random(seed + k)
            y = ", ".join(chance.choice(("0.5", "-1.0", "3.0", "0.0", "1.25")) for _ in range(3))
            x = chance.choice(("0.5", "2.5", "-1.0", "1.0"))
            lines.append(f"    ({x}, array([{y}]), np.zeros(24), {chance.choice((0, 1, 2, 3))}),\n")
        return "".join(lines)

    # --- expressions ---

    def number(self) -> str:
        self.count += 1
        return str(self.count)

    def float(self) -> str:
        forms = ["x", "z", "y[1]", "0.5", "e[c % 24]", "x * 0.5", "y[0] - x", "z + 1.0"]
        return self.choose.item(forms + [f"{i} * 0.25" for i in self.indices])

    def may_fail(self) -> str:
        k = self.choose.item(("n", "n + 1", "2", *self.indices, *(f"{i} + 1" for i in self.indices)))
        return self.choose.item(
            (
                f"y[{k}]",
                f"float(6 // {k})",
                f"checked({self.float()})",
                f"part(y, {k})",
                f"guarded(y, {k})",
                f"float(5 % ({k} - 1))",
                f'd["{self.choose.item(("a", "q", "b"))}"]',
                f"[0.5, x, z][{k}]",
                f"float(list(range(n))[{self.choose.item(('0', '-1'))}])",
                f"max([v for v in y if v > {self.float()}])",
                f"next(v for v in y if v > {self.float()})",
            )
        )

    def test(self) -> str:
        return self.choose.item(
            (
                f"{self.float()} > {self.float()}",
                "n > 1",
                f"y[1] < {self.float()}",
                *(f"{i} == 1" for i in self.indices),
            )
        )

    # --- statements ---

    def statement(self, depth: int) -> list[str]:
        self.left -= 1
        table = [(3, self.note), (3, self.change), (3, self.fail), (1, self.throw)]
        if depth < 3 and self.left > 0:
            table += [(3, self.attempt), (2, self.branch), (2, self.loop), (2, self.context)]
        if self.finals == 0:
            table.append((1, self.leave))
        return self.choose.weighted(table)(depth)

    def block(self, depth: int, most: int = 2) -> list[str]:
        lines: list[str] = []
        for _ in range(self.choose.number(1, most)):
            lines += self.statement(depth + 1)
        return ["    " + line for line in lines]

    def note(self, depth: int) -> list[str]:
        k = self.number()
        if self.noisy and self.choose.chance(2):
            return [f'print("told {k}", {self.choose.item(("n", "c", "x > 0.0"))})']
        return [f"e[c % 24] = {k}.0", "c += 1"]

    def change(self, depth: int) -> list[str]:
        name = self.choose.item(("x", "z"))
        return [f"{name} = {self.float()}"]

    def fail(self, depth: int) -> list[str]:
        if self.inside:  # docs/limitations.md: where the `try` fails too, its exception is the one
            return self.change(depth)
        return [f"{self.choose.item(('x', 'z', 'z'))} = {self.may_fail()}"]

    def throw(self, depth: int) -> list[str]:
        k = self.number()
        forms = [
            f'raise ValueError("told {k}")',
            f'raise Worse(f"told {{n}} {k}")',
            f'raise KeyError("told {k}")',
            f"raise IndexError({k})",
        ]
        if self.handlers:
            forms.append("raise")
        if self.choose.chance(3):
            return [f'assert {self.test()}, "told {k}"']
        return [f"if {self.test()}:", f"    {self.choose.item(forms)}"]

    def attempt(self, depth: int) -> list[str]:
        lines = ["try:", *self.block(depth, 3)]
        final = self.choose.chance(3)
        for k in range(self.choose.number(0 if final else 1, 2)):
            kind = self.choose.item(KINDS)
            if k and self.choose.chance(3):
                kind = ""
            name = " as err" if kind and self.choose.chance(4) else ""
            self.handlers += 1
            lines += [f"except{' ' if kind else ''}{kind}{name}:", *self.block(depth)]
            self.handlers -= 1
            if name and self.noisy and self.choose.chance(2):
                lines.append('    print("told", type(err).__name__)')
        if any(line.startswith("except") for line in lines) and self.choose.chance(3):
            lines += ["else:", *self.block(depth)]
        if final:
            inside, self.inside = self.inside, True
            loops, self.loops = self.loops, 0
            self.finals += 1
            lines += ["finally:", *self.block(depth, 1)]
            self.finals, self.inside, self.loops = self.finals - 1, inside, loops
        return lines

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.test()}:", *self.block(depth)]
        return lines + (["else:", *self.block(depth)] if self.choose.chance(2) else [])

    def loop(self, depth: int) -> list[str]:
        k = self.number()
        index, other = f"i{k}", f"v{k}"
        head = self.choose.item(
            (
                f"for {index} in range(n):",
                f"for {index} in range(3):",
                f"for {index}, {other} in enumerate(y):",
                f"for {index}, {other} in enumerate(steps(n, {self.float()})):",
            )
        )
        before, self.indices = self.indices, [*self.indices, index]
        finals, self.finals = self.finals, 0
        self.loops += 1
        body = self.block(depth)
        self.indices, self.finals, self.loops = before, finals, self.loops - 1
        return [head, *body]

    def context(self, depth: int) -> list[str]:
        head = self.choose.item(
            (
                "with contextlib.suppress(ValueError):",
                f"with noted(e, {self.choose.number(15, 19)}):",
                "with Guard(e, True):",
                "with Guard(e, False) as g:",
                "with contextlib.suppress(IndexError, ZeroDivisionError):",
            )
        )
        return [head, *self.block(depth, 3)]

    def leave(self, depth: int) -> list[str]:
        forms = ["return z, x, c, n, e"] * (not self.inside) + ["break", "continue"] * bool(self.loops)
        if not forms:
            return self.note(depth)
        return [f"if {self.test()}:", f"    {self.choose.item(forms)}"]


__all__ = ["HELPERS", "Failures"]
