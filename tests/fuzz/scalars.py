"""Expressions of scalars: floats, whole numbers and truth values, as text.

In: a scope and how deep an expression may still go. Out: Python text. Whole numbers stay small where they are
bound (`% 7`), so that Python's own unlimited integers are never the difference. Example:

    grammar.float(scope, 2)         # "min(x, v[i % 3] * 0.5)"
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from .choices import Choices
from .scope import BOOL, CLOSURE, FLOAT, INT, LIST, MAYBE, OBJECT, PAIR, RECORD, Kind, Scope

LITERALS = ("0.5", "1.0", "2.0", "-1.5", "0.0", "3.0", "0.25", "-0.0", "0.1")
LOW_INTEGERS = ("1", "2", "0", "3", "-1", "5")
COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")
FLOAT_HELPERS = ("half_or_difference", "settle", "largest_below", "weigh")


class Scalars(ABC):
    """The scalar half of the grammar; `exact` keeps to operations whose bits are defined."""

    choose: Choices
    exact: bool
    helpers: set[str]

    # ---- floats ------------------------------------------------------------

    def float(self, scope: Scope, depth: int) -> str:
        if depth <= 0:
            return self.float_leaf(scope)
        table = [
            (4, self.float_leaf),
            (6, self.float_arithmetic),
            (2, self.float_element),
            (1, self.float_quotient),
            (2, self.float_ternary),
            (2, self.float_function),
            (1, self.float_lazy),
            (1, self.float_reduced),
            (1, self.float_from_integer),
            (1, self.float_part),
            (1, self.float_helper),
            (1, self.float_rare),
        ]
        if not self.exact:
            table.append((4, self.float_smooth))
        return self.choose.weighted(table)(scope, depth)

    def float_leaf(self, scope: Scope, depth: int = 0) -> str:
        names = scope.of(FLOAT)
        if names and not self.choose.chance(4):
            return self.choose.item(names)
        return self.choose.item(LITERALS)

    def float_arithmetic(self, scope: Scope, depth: int) -> str:
        a, b = self.float(scope, depth - 1), self.float(scope, depth - 1)
        return f"({a} {self.choose.item('+-*')} {b})"

    def float_quotient(self, scope: Scope, depth: int) -> str:
        a, b = self.float(scope, depth - 1), self.float(scope, depth - 1)
        if self.choose.chance(8):
            return f"({a} / {b})"
        return f"({a} {self.choose.item(('/', '//', '%') if self.exact else '/')} (abs({b}) + 1.0))"

    def float_ternary(self, scope: Scope, depth: int) -> str:
        a, b = self.float(scope, depth - 1), self.float(scope, depth - 1)
        return f"({a} if {self.bool(scope, depth - 1)} else {b})"

    def float_function(self, scope: Scope, depth: int) -> str:
        a, b = self.float(scope, depth - 1), self.float(scope, depth - 1)
        forms = [
            f"abs({a})",
            f"min({a}, {b})",
            f"max({a}, {b})",
            f"-{a}" if not a.startswith("-") else f"-({a})",
            f"math.sqrt({self.positive(a)})",
            f"np.minimum({a}, {b})",
            f"np.maximum({a}, {b})",
            f"np.sqrt({self.positive(a)})",
            f"min({a}, {b}, 1.0)",
            f"np.where({self.bool(scope, depth - 1)}, {a}, {b})",
            f"np.clip({a}, -2.0, 2.0)",
            f"np.abs({a})",
        ]
        if self.exact:
            forms += [
                f"np.floor({a})",
                f"np.sign({a})",
                f"math.copysign({a}, {b})",
                f"np.square({a})",
                f"float({a})",
                f"np.float64({a})",
                f"np.trunc({a})",
            ]
        return self.choose.item(forms)

    def positive(self, a: str) -> str:
        """What a root is taken of: where derivatives are compared, never 0, at which the root has none."""
        return f"abs({a})" if self.exact else f"abs({a}) + 0.25"

    def float_smooth(self, scope: Scope, depth: int) -> str:
        a = self.float(scope, depth - 1)
        return self.choose.item(
            [
                f"np.sin({a})",
                f"np.tanh({a})",
                f"math.cos({a})",
                f"np.exp(-abs({a}))",
                f"math.tanh({a})",
                f"np.log1p({a} * {a})" if len(a) < 12 else f"np.log1p(abs({a}))",
                f"np.arctan({a})",
                f"np.tanh({a}) ** 2",
                f"np.tanh({a}) ** 3",
            ]
        )

    def float_lazy(self, scope: Scope, depth: int) -> str:
        word = self.choose.item(("or", "and"))
        return f"({self.float(scope, depth - 1)} {word} {self.float(scope, depth - 1)})"

    def float_element(self, scope: Scope, depth: int) -> str:
        names = scope.arrays("f")
        if not names and not scope.partial:
            return self.float_leaf(scope)
        if scope.partial and self.choose.chance(3):
            return f"{self.choose.item(list(scope.partial))}[{self.choose.item(('0', '-1', '1'))}]"
        name = self.choose.item(names)
        return f"{name}[{', '.join(self.index(scope, d, depth) for d in scope.names[name][1])}]"

    def float_reduced(self, scope: Scope, depth: int) -> str:
        dims = self.some_dims(scope)
        array = self.array(("f", dims), scope, depth - 1)
        forms = [
            f"np.max({array}, initial=-3.0)",
            f"np.min({array}, initial=3.0)",
            f"({array}).max()",
            f"np.min({array})",
        ]
        if not self.exact:
            forms += [
                f"np.sum({array})",
                f"sum(({array}).ravel())",
                f"({array}).sum()",
                f"np.mean({array})",
                f"({array}).mean()",
            ]
            if len(dims) == 1:
                forms += [f"({array}) @ ({self.array(('f', dims), scope, depth - 1)})", f"np.dot({array}, {array})"]
        elif len(dims) == 1:
            forms += [f"max({array})", f"np.cumsum({array})[-1]", f"np.sort({array})[0]"]
        return self.choose.item(forms)

    def float_from_integer(self, scope: Scope, depth: int) -> str:
        a = self.int(scope, depth - 1)
        return self.choose.item([f"({a} * 0.5)", f"float({a})", f"({a} / 4)", f"({a} + 0.5)"])

    def float_part(self, scope: Scope, depth: int) -> str:
        """A part of a container."""
        forms = [f"{name}[0]" for name in scope.of(PAIR)]
        forms += [f"{name}[{self.choose.item(('0', '1', '2', '-1'))}]" for name in scope.of(LIST)]
        forms += [f'{name}["a"]' for name in scope.of(RECORD)]
        forms += [f"{name}.a" for name in scope.of(OBJECT)]
        forms += [f"(0.5 if {name} is None else {name})" for name in scope.of(MAYBE)]
        forms += [f"{name}.scaled({self.float_leaf(scope)})" for name in scope.of(OBJECT)]
        forms += [f"{name}({self.float(scope, depth - 1)})" for name in scope.of(CLOSURE)]
        forms += [f"sum({name})" for name in scope.of(LIST)]
        forms += [f'{name}.get("a", 0.0)' for name in scope.of(RECORD)]
        return self.choose.item(forms) if forms else self.float_leaf(scope)

    def float_helper(self, scope: Scope, depth: int) -> str:
        name = self.choose.item(FLOAT_HELPERS)
        self.helpers.add(name)
        a, b = self.float(scope, depth - 1), self.float(scope, depth - 1)
        if name == "weigh":
            return self.choose.item(
                [
                    f"weigh({a}, {b})",
                    f"weigh({a}, scale={b})",
                    f"weigh(*({a}, {b}))",
                    f"weigh({a})",
                    f"weigh(scale={a}, value={b})",
                ]
            )
        if name == "largest_below":
            return f"largest_below({self.array(('f', ('3',)), scope, depth - 1)}, {a})"
        return f"{name}({a}, {b})" if name == "half_or_difference" else f"settle({a})"

    def float_rare(self, scope: Scope, depth: int) -> str:
        a, b = self.float(scope, depth - 1), self.float_leaf(scope)
        fresh = f"w{self.number()}"
        return self.choose.item(
            [
                f"(lambda u: u * 0.5 + {b})({a})",
                f"({fresh} := {a})",
                f"[{a}, {b}, 1.0][{self.small(scope, 3)}]",
                f"({a}, {b})[1]",
                f"max([{a}, {b}])",
                f"sum([u * 0.5 for u in ({a}, {b})])",
                f"(sorted([{a}, {b}])[0] if {a} == {a} and {b} == {b} else {a})" if self.exact else a,  # NaN goes last
            ]
        )

    # ---- whole numbers ------------------------------------------------------------

    def int(self, scope: Scope, depth: int) -> str:
        if depth <= 0:
            return self.int_leaf(scope)
        a, b = self.int(scope, depth - 1), self.int(scope, depth - 1)
        word = self.choose.number(0, 9)
        if word <= 3:
            return self.int_leaf(scope)
        if word <= 6:
            return f"({a} {self.choose.item('+-*')} {b})"
        forms = [
            f"({a} % {self.choose.item(('3', '4', '-3'))})",
            f"({a} // {self.choose.item(('2', '3', '-2'))})",
            f"({a} & 3)",
            f"abs({a})",
            f"min({a}, {b})",
            f"({a} ^ 1)",
            f"({a} | 2)",
            f"(~{a})",
            f"({a} >> 1)",
            f"(({a} & 7) << 2)",
            f"({a} if {self.bool(scope, depth - 1)} else {b})",
            f"int({self.bool(scope, depth - 1)})",
            f"divmod({a}, 3)[{self.choose.item(('1', '0'))}]",
            f"({self.bool(scope, depth - 1)} + {a})",
        ]
        forms += [
            f"{name}[{self.index(scope, dims[0], depth)}]"
            for name, (b_, dims) in scope.names.items()
            if b_ == "i" and len(dims) == 1
        ]
        forms += [f"len({name})" for name in scope.arrays("f")]
        forms += [f"{name}[1]" for name in scope.of(PAIR)]
        forms += [f"np.argmax({self.array(('f', ('3',)), scope, depth - 1)})"]
        forms += [f"np.count_nonzero({self.array(('b', self.some_dims(scope)), scope, depth - 1)})"]
        forms += [f"np.sum({self.array(('i', self.some_dims(scope)), scope, depth - 1)})"]
        if self.exact:
            forms += [
                f"int(min(max({self.float(scope, depth - 1)}, -5.0), 5.0))",
                f"round(min(max({self.float(scope, depth - 1)}, -5.0), 5.0))",
            ]
        return self.choose.item(forms)

    def int_leaf(self, scope: Scope) -> str:
        names = scope.of(INT)
        if names and not self.choose.chance(3):
            return self.choose.item(names)
        return self.choose.item(LOW_INTEGERS)

    def small(self, scope: Scope, size: int) -> str:
        """A whole number from 0 to size - 1."""
        names = scope.of(INT)
        if names and self.choose.chance(2):
            return f"{self.choose.item(names)} % {size}"
        return str(self.choose.number(0, size - 1))

    def index(self, scope: Scope, dim: str, depth: int) -> str:
        """An index into an axis: nearly always one that it has."""
        kind = self.choose.number(0, 11)
        names = scope.of(INT)
        if kind == 11 and names:
            return self.choose.item(names)
        if kind >= 7 and names:
            return f"{self.choose.item(names)} % {dim}"
        if kind == 6:
            return f"{self.int(scope, depth - 1)} % {dim}"
        if dim == "3":
            return self.choose.item(("0", "1", "2", "-1", "-2"))
        return self.choose.item(("0", "-1", "0", f"{dim} - 1", f"{dim} // 2"))

    # ---- truth values ------------------------------------------------------------

    def bool(self, scope: Scope, depth: int) -> str:
        names = scope.of(BOOL)
        kind = self.choose.number(0, 13)
        if kind <= 4 or depth <= 0:
            return f"{self.float(scope, depth - 1)} {self.choose.item(COMPARISONS)} {self.float_leaf(scope)}"
        if kind <= 6:
            return f"{self.int(scope, depth - 1)} {self.choose.item(COMPARISONS)} {self.int_leaf(scope)}"
        if kind == 7:
            return f"({self.bool(scope, depth - 1)} and {self.bool(scope, depth - 1)})"
        if kind == 8:
            return f"({self.bool(scope, depth - 1)} or {self.bool(scope, depth - 1)})"
        if kind == 9:
            return f"not ({self.bool(scope, depth - 1)})"
        if kind == 10:
            a, b, c = self.float_leaf(scope), self.float(scope, depth - 1), self.float_leaf(scope)
            return f"{a} {self.choose.item(('<', '<='))} {b} {self.choose.item(('<', '<=', '>'))} {c}"
        if kind == 11 and names:
            return self.choose.item(names)
        forms = [
            f"np.isnan({self.float(scope, depth - 1)})",
            f"np.any({self.array(('b', self.some_dims(scope)), scope, depth - 1)})",
            f"({self.array(('b', self.some_dims(scope)), scope, depth - 1)}).all()",
            f"{self.int(scope, depth - 1)} in (1, 2, 4)",
            f"bool({self.int(scope, depth - 1)})",
            f"({self.bool(scope, depth - 1)}) == ({self.bool(scope, depth - 1)})",
            f"({self.bool(scope, depth - 1)}) != ({self.bool(scope, depth - 1)})",
            f"any([{self.bool(scope, depth - 1)}, {self.bool(scope, depth - 1)}])",
            f"math.isinf({self.float(scope, depth - 1)})",
            f"{self.int(scope, depth - 1)}",
        ]
        forms += [f"{name} is None" for name in scope.of(MAYBE)]
        return self.choose.item(forms)

    # ---- from the array half ------------------------------------------------------------

    @abstractmethod
    def array(self, kind: Kind, scope: Scope, depth: int) -> str: ...

    @abstractmethod
    def some_dims(self, scope: Scope) -> tuple[str, ...]: ...

    @abstractmethod
    def number(self) -> int: ...
