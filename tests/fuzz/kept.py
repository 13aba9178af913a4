"""Random programs about which array a name is: names, attributes, rows and views are bound and stored into.

In: a seed. Out: a module's text with `Held` (an object of two arrays) and `program`. `check(seed, native)`
calls it three times in Python and translated, and compares results, arguments, attributes, and which arrays
share memory after each call. What the translator refuses is counted. Example:

    PYTHONPATH=tests python -P -m fuzz.kept --programs 200
"""

from __future__ import annotations

import argparse
import collections
import copy
import itertools
import random
from typing import Any

import numpy as np

import metaphrase as mp
from metaphrase.source import SourceError

HEAD = """import numpy as np


class Held:
    def __init__(self, p, q):
        self.p, self.q = p, q


def program(held, x, y, M, N, P, a, b, c, k, n):
    u, v, w = x, y, x * 0.5
"""
NAMES = ("u", "v", "w")
ATTRIBUTES = ("held.p", "held.q")


class Writer:
    """The state of one program as it is written."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.rows: list[str] = []
        self.indices: list[str] = []
        self.count = itertools.count(1)

    def text(self) -> str:
        self.block(1, 3, self.random.randint(3, 7))
        return HEAD + "\n".join([*self.lines, "    return u, v, w"]) + "\n"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def item(self, *items: str) -> str:
        return self.random.choice(items)

    def index(self, size: int) -> str:
        return self.item(*map(str, range(size)), f"k % {size}", *(f"{i} % {size}" for i in self.indices))

    def array(self) -> str:
        return self.item(*NAMES, *NAMES, *NAMES, *ATTRIBUTES, "x", "y", *self.rows)

    def value(self) -> str:
        """An array of four: one that is there, a view, or a new one."""
        array = self.array()
        views = (f"{array}[::-1]", f"M[{self.index(3)}]", f"N[:, {self.index(4)}]")
        new = (f"{array} * 0.5", f"{array} + {self.array()}", f"{array}.copy()")
        return self.item(array, array, *views, *new)

    def test(self) -> str:
        array = self.array()
        numbers = ("a > 0", "b > 0", "c > 0")
        counted = tuple(f"{i} {self.item('<', '>', '==')} {self.item('1', '2', 'k')}" for i in self.indices)
        stored = f"{array}[{self.index(4)}] {self.item('<', '>')} {self.array()}[1]"
        return self.item(*numbers, *counted, stored)

    def block(self, depth: int, nested: int, count: int) -> None:
        for _ in range(count):
            kinds = [self.bind, self.bind, self.bind, self.keep, self.store, self.store, self.refill]
            kinds += [self.branch, self.branch, self.loop] if nested else []
            self.random.choice(kinds)(depth, nested)

    def bind(self, depth: int, nested: int) -> None:
        if self.random.random() < 0.2:
            one, two = self.random.sample(NAMES, 2)
            self.line(depth, f"{one}, {two} = {self.value()}, {self.value()}")
        else:
            self.line(depth, f"{self.item(*NAMES)} = {self.value()}")

    def keep(self, depth: int, nested: int) -> None:
        self.line(depth, f"{self.item(*ATTRIBUTES)} = {self.value()}")

    def store(self, depth: int, nested: int) -> None:
        number = self.item("1.5", "0.25", "k * 0.5")
        self.line(depth, f"{self.array()}[{self.index(4)}] {self.item('=', '+=')} {number}")

    def refill(self, depth: int, nested: int) -> None:
        whole = f"{self.array()}[:] = {self.array()} * 0.5"
        self.line(depth, self.item(whole, f"{self.item(*NAMES)} += 0.5"))

    def branch(self, depth: int, nested: int) -> None:
        self.line(depth, f"if {self.test()}:")
        self.block(depth + 1, nested - 1, self.random.randint(1, 2))
        if self.random.random() < 0.6:
            self.line(depth, "else:")
            self.block(depth + 1, nested - 1, self.random.randint(1, 2))

    def loop(self, depth: int, nested: int) -> None:
        name = f"i{next(self.count)}"
        kind = self.random.random()
        names = self.rows if kind > 0.75 else self.indices
        if kind > 0.75:
            self.line(depth, f"for {name} in {self.item('M', 'M', 'P')}:")
        elif kind > 0.6:
            self.line(depth, f"{name} = 0")
            self.line(depth, f"while {name} < {self.item('n', '3', '70')} and {self.test()}:")
            self.line(depth + 1, f"{name} += 1")
        else:
            self.line(depth, f"for {name} in range({self.item('3', '70', 'n', 'n')}):")
        names.append(name)
        self.block(depth + 1, nested - 1, self.random.randint(1, 3))
        if self.random.random() < 0.15:
            self.line(depth + 1, f"if {self.test()}:")
            self.line(depth + 2, "break")
        names.remove(name)


def arguments(module: dict, seed: int, call: int) -> tuple:
    choose = np.random.default_rng((seed, call))
    p, q, x, y = (np.round(choose.standard_normal(4), 2) for _ in range(4))
    M, N, P = (np.round(choose.standard_normal(shape), 2) for shape in ((3, 4), (4, 4), (70, 4)))
    a, b, c = map(float, choose.standard_normal(3))
    return module["Held"](p, q), x, y, M, N, P, a, b, c, int(choose.integers(0, 4)), (2, 5, 0)[call]


def check(seed: int, native: bool) -> str:
    """ "agrees", "refused: CODE", or what is different."""
    from .oracle import load

    module = vars(load(Writer(seed).text()))
    translated = mp.jit(module["program"])
    with mp.config(native=native, contract=False), np.errstate(all="ignore"):
        for call in range(3):
            plain, ours = (arguments(module, seed, call) for _ in range(2))
            before = [copy.copy(vars(args[0])) for args in (plain, ours)]
            want = module["program"](*plain)
            try:
                got = translated(*ours)
            except SourceError as error:
                return f"refused: {error.code}"
            held = [[*vars(args[0]).values(), *was.values(), *args[1:6]] for args, was in zip((plain, ours), before)]
            for one, other in zip([*want, *held[0]], [*got, *held[1]]):
                if not np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True):
                    return f"call {call}: {other} is not {one}"
            if sharing(held[0]) != sharing(held[1]):
                return f"call {call}: other arrays share memory"
    return "agrees"


def sharing(arrays: list[Any]) -> list[bool]:
    return [bool(np.shares_memory(one, other)) for one, other in itertools.combinations(arrays, 2)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6) * 1000)
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(options.seed, options.seed + options.programs):
        verdict = check(seed, native=True)
        kind = verdict if verdict == "agrees" or verdict.startswith("refused") else "FAULT"
        counts[kind] += 1
        if kind == "FAULT":
            print(f"FAULT seed {seed}: {verdict}\n{Writer(seed).text()}", flush=True)
    print(f"{options.programs} programs of names and arrays, from seed {options.seed}: {dict(counts)}")
    return 1 if counts["FAULT"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
