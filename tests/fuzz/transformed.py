"""Programs whose transformations close over what the function around them holds.

In: choices. Out: a program that makes arrays, views, lists and choices of them, and calls `grad`, `vmap`,
`jvp` and others on functions that index, unpack, iterate over and return these. `check`: what it gives by
itself and under `jit`, against the same text with the loops and differences of loops.py in their place.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

import metaphrase as mp
from metaphrase.tree_util import tree_leaves, tree_structure

from .choices import Choices
from .statements import indent

NAMES = "grad, hessian, jacfwd, jacrev, jit, jvp, linearize, value_and_grad, vjp, vmap"
IMPORT = f"from metaphrase import {NAMES}\n"
LOOPS = f"from fuzz.loops import {NAMES}\n"
NEAR = 1e-8

VECTORS = (
    "x * 2.0",
    "x[1:]",
    "x[::-1]",
    "m[0]",
    "m.T[1]",
    "m[:, 2]",
    "np.arange(len(x)) * 0.5",
    "x[x > -9.0]",
    "m.reshape(-1)[2:6]",
    "np.sort(x)",
)
NUMBERS = ("s", "x[1]", "m[0, 1]", "x.sum()", "len(x)", "m.shape[0]", "int(s)", "np.argmax(x)")


class Transformed:
    """The state of one program as it is written."""

    def __init__(self, choose: Choices):
        self.choose, self.count = choose, 0
        self.vectors, self.numbers, self.several = ["x"], ["s"], []

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def program(self) -> str:
        lines = [line for _ in range(self.choose.number(1, 5)) for line in self.holding()]
        results = []
        for _ in range(self.choose.number(1, 3)):
            made, text = self.transformed(2)
            results.append(self.name("r"))
            lines += [*made, f"{results[-1]} = {text}"]
        if self.choose.chance(3):
            lines += ["total = 0.0", "for i, v in enumerate(x):"]
            made, text = self.derivative(1, ["v * 1.0", "x[i]"])
            lines += indent([*made, f"total = total + {text}"])
            results.append("total")
        lines.append(f"return {', '.join(results)}")
        return "\n".join(["def program(x, m, s):", *indent(lines)]) + "\n"

    # --- what the outer function holds ---

    def holding(self) -> list[str]:
        ways = (self.vector, self.number_, self.stored, self.chosen, self.listed, self.gathered, self.maybe, self.boxed)
        return self.choose.item(ways)()

    def vector(self) -> list[str]:
        made = self.name("a")
        text = self.choose.item(VECTORS)
        self.vectors.append(made)
        return [f"{made} = {text}"]

    def number_(self) -> list[str]:
        made = self.name("c")
        text = self.choose.item(NUMBERS)
        self.numbers.append(made)
        return [f"{made} = {text}"]

    def stored(self) -> list[str]:
        made = self.name("b")
        lines = [f"{made} = {self.choose.item(self.vectors)}.copy()", f"{made}[0] = s", f"{made}[-1] += 0.5"]
        self.vectors.append(made)
        return lines

    def chosen(self) -> list[str]:
        made = self.name("d")
        a = self.choose.item(self.vectors)
        self.vectors.append(made)
        return ["if x[0] > 0.3:", f"    {made} = {a} * 3.0", "else:", f"    {made} = {a}"]

    def maybe(self) -> list[str]:
        made = self.name("e")
        self.numbers.append(f"({made} if {made} is not None else 1.5)")
        return [f"{made} = None", "for v in x:", "    if v > 0.6:", f"        {made} = v"]

    def listed(self) -> list[str]:
        made = self.name("l")
        held = [self.choose.item(self.vectors) for _ in range(3)]
        brackets = self.choose.item(("[]", "()"))
        self.several.append(made)
        self.vectors.append(f"{made}[1]")
        return [f"{made} = {brackets[0]}{', '.join(held)}{brackets[1]}"]

    def gathered(self) -> list[str]:
        made = self.name("h")
        self.numbers += [f"{made}[0]", f"{made}[-1]", f"len({made})", f"sum({made})"]
        return [f"{made} = [v * s for v in {self.choose.item(self.vectors)}]"]

    def boxed(self) -> list[str]:
        made, held = self.name("o"), self.choose.item(self.vectors)
        line = f"{made} = {{'v': {held}, 'c': ({self.choose.item(self.numbers)}, {held})}}"
        self.vectors.append(f"{made}['v']")
        self.numbers.append(f"{made}['c'][0]")
        return [line]

    # --- what an inner function does with it ---

    def coefficient(self, near: list[str]) -> tuple[list[str], str]:
        """Lines, and a number that does not depend on the inner function's argument."""
        v = self.choose.item(self.vectors)
        way = self.choose.number(0, 9)
        made = self.name("q")
        if near and way == 9:
            return [], self.choose.item(near)
        if way == 1:
            return [f"{made} = 0.0", f"for w in {v}:", f"    {made} = {made} + w * 0.5"], made
        if way == 2:
            return [f"{made}, *rest = {v}"], f"({made} + rest[-1])"
        if way == 3:
            return [], f"{v}[{self.choose.item(('1:', ':-1', '::-1', '::2'))}].sum()"
        if way == 4 and self.several:
            group = self.choose.item(self.several)
            return [f"{made} = 0.0", f"for u in {group}:", f"    {made} = {made} + u[0]"], made
        if way == 5 and self.several:
            return [f"p, q, r = {self.choose.item(self.several)}"], "(p[0] + q[-1] * r[1])"
        if way == 6:
            return [], self.choose.item(("m[0, 1]", "m[-1][0]", "m.T[1].sum()", "(m[:, 0] @ x)", "m[1:, 1:].sum()"))
        if way == 7:
            return [f"{made} = 1.0 if {v}[0] > 0.3 else {v}[1]"], made
        if way == 8:
            return [], f"{v}[min(1, len({v}) - 1)]"
        return [], self.choose.item((f"{v}[0]", f"{v}[-1]", f"len({v})", *self.numbers))

    def body(self, depth: int, near: list[str]) -> tuple[list[str], str]:
        """Lines and a number: a polynomial of `y` of at most the second degree."""
        lines, terms = [], []
        for _ in range(self.choose.number(1, 2)):
            made, text = self.coefficient(near)
            lines += made
            terms.append(f"{self.choose.item(('y', 'y * y', '0.5'))} * {text}")
        if depth > 1 and self.choose.chance(4):
            made, text = self.derivative(depth - 1, [*near, "y"])
            lines += made
            terms.append(text)
        return lines, " + ".join(terms)

    def function(self, depth: int, near: list[str], more: str = "") -> tuple[list[str], str]:
        """A function of a number; `more`: what it returns beside the number."""
        lines, text = self.body(depth, near)
        made = self.name("f")
        if not lines and self.choose.chance(2):
            result = f"({text}, {more})" if more else text
            return [], f"(lambda y: {result})"
        result = f"{text}, {more}" if more else text
        return [f"def {made}(y):", *indent([*lines, f"return {result}"])], made

    def derivative(self, depth: int, near: list[str]) -> tuple[list[str], str]:
        """A number that a transformation of an inner function gives."""
        lines, f = self.function(depth, near)
        at = self.choose.item(("1.5", "s", "x[0]", *(n for n in near if n != "y")))
        return lines, self.choose.item(
            (
                f"grad({f})({at})",
                f"jit({f})({at})",
                f"jvp({f}, ({at} * 1.0,), (1.0,))[1]",
                f"vjp({f}, {at})[1](1.0)[0]",
                f"vmap({f})(x).sum()",
                f"grad(jit({f}))({at})",
                f"jacrev({f})({at})",
            )
        )

    def transformed(self, depth: int) -> tuple[list[str], str]:
        """Lines, and a call of a transformation with whatever it gives."""
        kept = self.choose.item([*self.vectors, *self.several, "m"])
        way = self.choose.number(0, 9)
        if way < 4:
            lines, f = self.function(depth, [])
            return lines, self.choose.item(
                (
                    f"grad({f})(s)",
                    f"vmap({f})(x)",
                    f"value_and_grad({f})(x[1])",
                    f"hessian({f})(s)",
                    f"vmap(grad({f}))(x)",
                    f"vmap(vmap({f}))(m)",
                    f"jit(vmap({f}))(x)",
                    f"vmap(jit(grad({f})))(m[1])",
                )
            )
        lines, f = self.function(depth, [], kept)
        if way < 6:
            return lines, self.choose.item((f"vmap({f})(x)", f"jit({f})(s)", f"vmap(vmap({f}))(m)"))
        if way < 7:
            return lines, f"grad({f}, has_aux=True)(s)"
        numeric = kept not in self.several
        lines, f = self.function(depth, [], kept if numeric else "x[1:]")
        return lines, self.choose.item(
            (
                f"jvp({f}, (s,), (1.0,))",
                f"linearize({f}, s)[1](2.0)",
                f"jacfwd({f})(s)",
                f"vjp({f}, s)[0]",
                f"jacrev({f})(s)",
            )
        )

    def arguments(self) -> str:
        """Several sets, of two sizes."""
        generator = np.random.default_rng(self.choose.number(0, 99))
        rows = []
        for n in (3, 5, 4):
            x, m = generator.integers(-6, 7, n) / 4, generator.integers(-6, 7, (n, 3)) / 4
            rows.append(f"    ({x!r}, {m!r}, {float(generator.integers(1, 7)) / 4}),\n")
        return "".join(rows)


class Closing:
    """A program by itself, by the NumPy stage and, one in three or `always`, by native code, against the loops."""

    def __init__(self, load: Callable, text: str, always: bool = False):
        self.program, loops = load(text).program, load(text.replace(IMPORT, LOOPS))
        self.turn = 0 if always else zlib.crc32(text.encode())
        self.sets, self.jitted, self.unjitted = loops.ARGUMENTS, mp.jit(self.program), mp.jit(self.program)
        self.wanted = [loops.program(*args) for args in self.sets]

    def python(self) -> None:
        """By itself it compiles each function that it jits: one in four does."""
        for args, want in zip(self.sets, self.wanted):
            with mp.config(native=self.turn % 4 == 0):
                near("by itself", self.program(*args), want, args)
            with mp.config(native=False):
                near("NumPy source", self.unjitted(*args), want, args)

    def calls(self) -> list[tuple[Callable, tuple]]:
        return [(self.jitted, args) for args in self.sets] if self.turn % 3 == 0 else []

    def native(self) -> None:
        for (jitted, args), want in zip(self.calls(), self.wanted):
            near("native", jitted(*args), want, args)


def near(way: str, got: object, want: object, args: tuple) -> None:
    a, b = tree_leaves(got), tree_leaves(want)
    same = tree_structure(got) == tree_structure(want) and all(
        np.shape(g) == np.shape(w) and np.allclose(g, w, NEAR, NEAR) for g, w in zip(a, b)
    )
    assert same, f"{way} gives\n{got!r}\nand not\n{want!r}\nfor {args!r}"
