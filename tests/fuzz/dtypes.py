"""Programs about types: arrays and numbers of all dtypes that meet in operations, stores, branches and loops.

In: choices. Out: the text of a function of three arrays of three elements and a whole number, and its sets of
arguments: small numbers, the ends of the types, and zeros. What branches and loops rebind keeps its dtype
(where paths differ it would be the common one, docs/limitations.md). Example:

    def program(p, q, r, n):
        t = p + q[0]
        for i1 in range(n):
            if q[i1] > 3:
                r[i1] += n
            else:
                t = (t // 2).astype(t.dtype)
        return p, q, r, t, np.sum(p), r[1] % np.uint8(7)
"""

from __future__ import annotations

import random

from .choices import Choices

INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64")
DTYPES = (*INTS, *FLOATS, "bool", "complex64", "complex128")
ANY, REAL, WHOLE = "any", "real", "whole"  # what an operation takes
BINARY = {
    ANY: """({0} + {1}); ({0} * {1}); ({0} == {1}); ({0} != {1});
        np.where({2}, {0}, {1}); np.add({0}, {1})""",
    REAL: """({0} < {1}); ({0} >= {1}); np.maximum({0}, {1}); np.minimum({0}, {1}); ({0} // {1}); ({0} % {1});
        np.logical_and({0}, {1}); np.fmod({0}, {1}); np.copysign({0}.astype(np.float64), np.float32({1}));
        np.divmod({0}, {1})[0]""",
    WHOLE: """({0} & {1}); ({0} | {1}); ({0} ^ {1})""",
}
UNARY = {
    ANY: """
        {0}.astype(np.{3}); np.sum({0}); np.cumsum({0}); {0}[::-1]; np.zeros_like({0}); np.any({0});
        np.abs(small({0}, {0})); np.prod({0}); {0}.T; np.square({0}); {0}.real; np.roll({0}, 1);
        np.dot(small({0}, {0}), small({0}, {0}));
        np.full_like({0}, 2); np.array([{0}[0], {0}[2], 1]); np.concatenate([{0}, {0}[:0]]);
        np.count_nonzero({0}); np.outer({0}, {0})[1]; np.diff({0})[[0, 1, 0]]; np.mean({0})""",
    REAL: """
        np.max({0}); np.min({0}); np.abs({0}); np.argmax({0}); np.sort({0}); np.sign({0}.astype(np.float32));
        np.argsort({0}, kind="stable"); np.sqrt({0}.astype(np.float32)); np.clip({0}, 1, 5); np.median(np.abs({0}));
        np.ptp({0}); np.unique({0})[0];
        np.cumprod({0}); np.sum({0}, dtype=np.float64); np.trunc({0}.astype(np.float64)); np.floor({0});
        np.round({0}.astype(np.float64)); int({0}[1]); float({0}[0]); bool({0}[2]); np.isfinite({0});
        np.max({0}, initial=3); np.searchsorted(np.sort({0}), 2); {0}.item(1); abs({0}[1])""",
    WHOLE: """
        (~{0}); ({0} >> 1); ({0} << 1); np.bitwise_count({0}); np.add.reduce({0});
        np.bitwise_xor.reduce({0})""",
}


def forms(table: dict[str, str], of: str) -> list[str]:
    """The operations on numbers of a class."""
    return [form.strip() for form in table[of].split(";")]


class Dtypes:
    """One program as it is written; `of`: what is known of a name, its class of numbers."""

    def __init__(self, choose: Choices):
        self.choose, self.count, self.left = choose, 0, 7
        self.types = {name: choose.item(DTYPES) for name in "pqr"}
        self.names = [*self.types]
        self.indices: list[str] = []

    def program(self) -> str:
        lines = [f"{name} = {name}.copy()" for name in "pqr" if self.choose.chance(2)]
        for _ in range(self.choose.number(1, 3)):
            lines += self.fresh(0)
        for _ in range(self.choose.number(1, 4)):
            lines += self.statement(0)
        results = [*self.names, self.value(2), self.value(2)]
        lines.append(f"return {', '.join(results)}\n")
        return "\n    ".join(["def program(p, q, r, n):", *lines])

    def arguments(self) -> str:
        seed = self.choose.number(0, 99)
        lines = [self.one_set(random.Random(seed + k), ends) for k, ends in enumerate((False, True, False))]
        return "".join(f"    {line},\n" for line in lines)

    def one_set(self, chance: random.Random, ends: bool) -> str:
        parts = []
        for dtype in self.types.values():
            values = [self.element(dtype, chance, ends and chance.random() < 0.6) for _ in range(3)]
            parts.append(f"array([{', '.join(values)}], np.{dtype})")
        return f"({', '.join(parts)}, {chance.choice((0, 1, 2, 3))})"

    @staticmethod
    def element(dtype: str, chance: random.Random, end: bool) -> str:
        if dtype in INTS:
            bits, signed = int(dtype.lstrip("uint")), dtype[0] == "i"
            if end:
                return str(chance.choice((-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1)))
            return str(chance.choice((0, 1, 2, 3, 5, *((-1, -2, -7) if signed else (7,)))))
        if dtype == "bool":
            return chance.choice(("True", "False"))
        real = lambda: chance.choice(("nan", "inf", "-0.0", "-inf") if end else ("0.5", "-1.0", "3.0", "0.0", "2.25"))  # noqa: E731
        return real() if dtype in FLOATS else f"complex({real()}, {real()})"

    # --- expressions ---

    def value(self, depth: int) -> str:
        """Of any dtype, of three elements or one."""
        if depth == 0 or self.choose.chance(6):
            return self.leaf()
        of = self.choose.item((ANY, ANY, REAL, REAL, WHOLE))
        a = self.taken(of, depth - 1)
        if self.choose.chance(2):
            test = self.choose.item((f"{self.vector()} != 0", "n > 1"))
            b = self.taken(of, depth - 1) if self.choose.chance(2) else self.number(of)
            return self.choose.item(forms(BINARY, of) + (forms(BINARY, ANY) if of != ANY else [])).format(
                a, b, test, ""
            )
        dtype = self.choose.item(INTS + FLOATS if of == WHOLE else FLOATS) if of != ANY else "complex128"
        return self.choose.item(forms(UNARY, of)).format(a, a, a, dtype)

    def taken(self, of: str, depth: int) -> str:
        """An array of three elements that an operation can take."""
        a = self.value(depth) if depth else self.vector()
        if of == ANY:
            return f"np.atleast_1d({a})[[0, -1, 0]]" if depth else a
        dtype = self.choose.item(INTS if of == WHOLE else (*INTS, *FLOATS))
        fits = [n for n, t in self.types.items() if t in INTS or of == REAL and t in (*FLOATS, "bool")]
        if fits and self.choose.chance(2) is False:
            return self.choose.item(fits)
        return f"kept({a}, np.{dtype})" if depth == 0 else f"kept(np.atleast_1d({a})[[0, -1, 0]], np.{dtype})"

    def vector(self) -> str:
        return self.choose.item(self.names)

    def number(self, of: str) -> str:
        forms = ["1", "2", "n", "True", "-1", "np.int8(3)", "np.uint8(200)", "np.int64(2)"]
        if of != WHOLE:
            forms += ["0.5", "1e-3", "np.float32(1.5)", "float(n)", "np.float64(0.25)"]
        if of == ANY:
            forms += ["1j", "np.complex64(1j)", *(f"{v}[{self.place()}]" for v in self.names)]
        return self.choose.item(forms)

    def place(self) -> str:
        return self.choose.item(("0", "1", "-1", *self.indices))

    def leaf(self) -> str:
        return self.choose.item((self.vector(), f"{self.vector()}[{self.place()}]", self.vector()))

    # --- statements ---

    def fresh(self, depth: int) -> list[str]:
        """A new name for three elements of whatever dtype comes."""
        self.count += 1
        name = f"t{self.count}"
        text = f"{name} = np.atleast_1d({self.value(2)})[[0, -1, 0]]"
        self.names.append(name)
        return [text]

    def statement(self, depth: int) -> list[str]:
        self.left -= 1
        table = [(3, self.store), (3, self.rebind), (2, self.add)]
        if depth < 2 and self.left > 0:
            table += [(3, self.branch), (2, self.loop)]
        return self.choose.weighted(table)(depth)

    def store(self, depth: int) -> list[str]:
        name = self.vector()
        place = self.choose.item((self.place(), ":", ":2", f"{name} != 0", "[0, 0]"))
        return [f"{name}[{place}] = small({self.leaf()}, {name})" + ("[:2]" if place in (":2", "[0, 0]") else "[0]")]

    def rebind(self, depth: int) -> list[str]:
        name = self.vector()
        return [f"{name} = small(np.atleast_1d({self.value(1)})[[0, -1, 0]], {name})"]

    def add(self, depth: int) -> list[str]:
        name = self.vector()
        return (
            [f"{name} {self.choose.item(('+=', '-=', '*='))} small({self.leaf()}, {name})"]
            if self.types.get(name) != "bool"
            else []
        )

    def branch(self, depth: int) -> list[str]:
        test = self.choose.item((f"{self.vector()}[{self.place()}] != 0", "n > 1", f"np.any({self.vector()})"))
        lines = [f"if {test}:", *self.block(depth)]
        return lines + (["else:", *self.block(depth)] if self.choose.chance(2) else [])

    def loop(self, depth: int) -> list[str]:
        self.count += 1
        index = f"i{self.count}"
        before, self.indices = self.indices, [*self.indices, index]
        body = self.block(depth)
        self.indices = before
        return [f"for {index} in range({self.choose.item(('n', '3'))}):", *body]

    def block(self, depth: int) -> list[str]:
        lines = [line for _ in range(self.choose.number(1, 2)) for line in self.statement(depth + 1)]
        return ["    " + line for line in lines or ["pass"]]


HELPERS = '''def kept(a, dtype):
    """Whole numbers up to 100 where `a` has them, of `dtype`."""
    b = np.real(a).astype(np.float64)
    return np.where(np.abs(b) < 100, np.abs(b), 3.0).astype(dtype)


def small(a, like):
    """Numbers that every dtype but bool holds, as many as `like` has, of its dtype."""
    b = np.real(np.atleast_1d(a)).astype(np.float64)
    return (np.where(np.abs(b) < 50, np.floor(np.abs(b)), 1.0) + np.zeros(3)).astype(like.dtype)


'''

__all__ = ["HELPERS", "Dtypes"]
