"""Printing scalar expressions and dims with as few parentheses as the grouping allows.

In: `E` and dims. Out: text. Printers of one target derive from `ExpressionPrinter` and spell the leaves.

    x[i]*(y[i] + 1.0)
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from metaphrase.core.dims import Dim, DimLike, floordiv, mod
from metaphrase.core.scalars import facts

from .nest import Const, E, Index, Load, Map, Op

# How tightly an operator binds; the right operand of an operator of equal strength is put in parentheses,
# so that the text groups exactly as the expression does.
ATOM, UNARY, TIMES, PLUS, SHIFT, AND, XOR, OR, COMPARE, CHOICE = 100, 70, 60, 50, 45, 40, 35, 30, 20, 10
STRENGTHS = {"+": PLUS, "-": PLUS, "*": TIMES, "/": TIMES, "&": AND, "|": OR, "^": XOR}  # and comparisons
Text = tuple[str, int]


def group(text: Text, strength: int) -> str:
    """The text, in parentheses unless it binds at least as tightly as `strength`."""
    return text[0] if text[1] >= strength else f"({text[0]})"


class ExpressionPrinter(ABC):
    """Spells E; subclasses say how constants, places, functions and indices look."""

    compared = COMPARE + 1  # how tightly the operands of a comparison bind: they do not chain

    @abstractmethod
    def constant(self, e: Const) -> Text: ...

    @abstractmethod
    def place(self, e: Load) -> Text: ...

    @abstractmethod
    def index_value(self, dim: DimLike) -> Text:
        """A dim as an i64 value."""

    @abstractmethod
    def function(self, e: Op) -> Text:
        """An operation that is not a plain operator."""

    @abstractmethod
    def is_infix(self, e: Op) -> bool:
        """Whether an operation of two operands that has a sign is written with it."""

    @abstractmethod
    def dim_function(self, kind: str, operands: tuple[str, ...]) -> str:
        """floordiv, mod, max, min of dims."""

    def text(self, e: E, strength: int = 0) -> str:
        """The expression, fit to stand where something binds with `strength`."""
        return group(self.spell(e), strength)

    def spell(self, e: E) -> Text:
        if isinstance(e, Const):
            return self.constant(e)
        if isinstance(e, Load):
            return self.place(e)
        if isinstance(e, Index):
            return self.index_value(e.dim)
        assert isinstance(e, Op), e
        sign = facts(e.name).sign
        if sign and len(e.args) == 2 and self.is_infix(e):
            strength = STRENGTHS.get(sign, COMPARE)
            left = self.text(e.args[0], self.compared if strength == COMPARE else strength)
            right = self.text(e.args[1], self.compared if strength == COMPARE else strength + 1)
            return (f"{left}{sign}{right}" if strength == TIMES else f"{left} {sign} {right}"), strength
        return self.function(e)

    def dim(self, dim: DimLike, strength: int = 0) -> str:
        return group(self.spell_dim(dim), strength)

    def symbol(self, name: str) -> str:
        """How an integer symbol is called in the text."""
        return name

    def whole_number(self, value: int) -> str:
        """A number of 64 bits in a size."""
        return str(value)

    def spell_dim(self, dim: DimLike) -> Text:
        if isinstance(dim, int):
            return self.whole_number(dim), ATOM if dim >= 0 else UNARY
        rows = ""
        for monomial, coefficient in sorted(dim.terms, key=lambda term: term[1] < 0):
            factors = [self.whole_number(abs(coefficient))] if abs(coefficient) != 1 or not monomial else []
            for atom, power in monomial:
                if atom.kind == "sym":
                    name = self.symbol(atom.name)
                else:
                    name = self.dim_function(atom.kind, tuple(self.dim(x) for x in atom.operands))
                factors += [name] * power
            text = "*".join(factors)
            if rows:
                rows += (" - " if coefficient < 0 else " + ") + text
            else:
                rows = ("-" if coefficient < 0 else "") + text
        single = len(dim.terms) == 1
        atom = (
            single
            and dim.terms[0][1] == 1  # type: ignore[assignment]
            and sum(p for _, p in dim.terms[0][0]) == 1
        )
        negative = rows.startswith("-")
        return rows, ATOM if atom else PLUS if not single or negative else TIMES

    def index_entry(self, entry: DimLike | E) -> str:
        return self.text(entry) if isinstance(entry, E) else self.dim(entry)


def address(index: Map, dims: tuple[DimLike, ...], printer: ExpressionPrinter) -> str:
    """The offset of `index` in a C-contiguous storage of `dims`: `(i + 1)*m + j`."""
    entries, extents = merge_split_indices(list(index), list(dims))
    text: Text = ("0", ATOM)
    for entry, extent in zip(entries, extents):
        if text[0] != "0":
            text = f"{group(text, TIMES)}*{printer.dim(extent, TIMES + 1)}", TIMES
        spelled = printer.spell(entry) if isinstance(entry, E) else printer.spell_dim(entry)
        if spelled[0] == "0":
            continue
        if text[0] == "0":
            text = spelled
        elif spelled[0].startswith("-"):
            text = (
                f"{group(text, PLUS)} - {spelled[0][1:]}"
                if " " not in spelled[0]
                else (f"{group(text, PLUS)} + ({spelled[0]})"),
                PLUS,
            )
            text = (text[0], PLUS) if isinstance(text[0], str) else text
        else:
            text = f"{group(text, PLUS)} + {group(spelled, PLUS)}", PLUS
    return text[0]


def merge_split_indices(index: list, dims: list) -> tuple[list, list]:
    """Undo `(f // m, f % m)` and `(f // m, f - m*(f // m))` over dims (_, m): that is place f of the two as one."""
    k = 0
    while k + 1 < len(index):
        high, low, extent = index[k], index[k + 1], dims[k + 1]
        if isinstance(high, Dim) and isinstance(low, Dim) and (whole := _joined(high, low, extent)) is not None:
            index[k : k + 2] = [whole]
            dims[k : k + 2] = [dims[k] * extent]
            k = max(k - 1, 0)
        else:
            k += 1
    return index, dims


def _joined(high: Dim, low: Dim, extent: DimLike) -> DimLike | None:
    """f, if high = f // extent and low = f % extent."""
    if not only_symbols(high) and only_symbols(whole := high * extent + low):
        return whole
    upper = _only_atom(high)
    if upper is not None and upper.kind == "floordiv" and upper.operands[1] == extent:
        if mod(upper.operands[0], extent) == low:
            return upper.operands[0]
    atom = _only_atom(low)
    if atom is None or atom.kind != "mod" or atom.operands[1] != extent:
        return None
    f = atom.operands[0]
    # mod drops multiples of the extent from its operand; the quotient keeps them.
    inner, quotient = _only_atom(f), f // extent
    if (
        inner is not None
        and inner.kind == "floordiv"
        and floordiv(inner.operands[0], inner.operands[1] * extent) == high
    ):
        quotient = high  # f // m // n is f // (m*n)
    rest = high - quotient
    if not isinstance(rest, int) and _only_atom(high) is None and not only_symbols(rest):
        return None
    return f + rest * extent


def _only_atom(dim: DimLike):
    if isinstance(dim, Dim) and len(dim.terms) == 1 and dim.terms[0][1] == 1 and len(dim.terms[0][0]) == 1:
        atom, power = dim.terms[0][0][0]
        return atom if power == 1 else None
    return None


def only_symbols(dim: DimLike) -> bool:
    return isinstance(dim, int) or all(atom.kind == "sym" for monomial, _ in dim.terms for atom, _ in monomial)
