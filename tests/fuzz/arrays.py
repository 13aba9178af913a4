"""Expressions of arrays, as text: float, integer and bool arrays of one and two axes.

In: the kind that is wanted, a scope and a depth. Out: Python text of this dtype and these dims. Example:

    grammar.array(("f", ("n",)), scope, 2)      # "np.where(v > x, v, 0.0)"
"""

from __future__ import annotations

from .scalars import Scalars
from .scope import ARRAYS, OBJECT, RECORD, Kind, Scope

ARRAY_HELPERS = ("smoothed", "running", "filled")


class Arrays(Scalars):
    """The array half of the grammar."""

    def some_dims(self, scope: Scope) -> tuple[str, ...]:
        """The dims of an array in scope, or of a new one."""
        found = [scope.names[name][1] for name in scope.arrays("f")]
        return self.choose.item(found) if found else ("3",)

    def array(self, kind: Kind, scope: Scope, depth: int) -> str:
        base, dims = kind
        if depth <= 0:
            return self.array_leaf(kind, scope)
        return {"f": self.floats, "i": self.integers, "b": self.masks}[base](dims, scope, depth)

    def array_leaf(self, kind: Kind, scope: Scope) -> str:
        base, dims = kind
        names = scope.of(kind)
        if names and not self.choose.chance(5):
            return self.choose.item(names)
        shape = self.shape(dims)
        if base == "b":
            return f"({self.array_leaf(('f', dims), scope)} > {self.float_leaf(scope)})"
        dtype = ", dtype=np.int64" if base == "i" else ""
        forms = [f"np.ones({shape}{dtype})", f"np.zeros({shape}{dtype})"]
        if len(dims) == 1:
            forms.append(f"np.arange({dims[0]})" + (" * 0.5" if base == "f" else ""))
        return self.choose.item(forms)

    def shape(self, dims: tuple[str, ...]) -> str:
        return dims[0] if len(dims) == 1 else f"({', '.join(dims)})"

    def operand(self, dims: tuple[str, ...], scope: Scope, depth: int) -> str:
        """Something that broadcasts against a float array of these dims."""
        kind = self.choose.number(0, 6)
        if kind <= 2:
            return self.array(("f", dims), scope, depth - 1)
        if kind <= 4:
            return self.float(scope, depth - 1)
        if kind == 5 and len(dims) == 2:
            last = self.array(("f", dims[1:]), scope, depth - 1)
            first = self.array(("f", dims[:1]), scope, depth - 1)
            return self.choose.item((last, f"({first})[:, None]", f"({first}).reshape(-1, 1)"))
        return self.array(("i", dims), scope, depth - 1)

    # ---- floats ------------------------------------------------------------

    def floats(self, dims: tuple[str, ...], scope: Scope, depth: int) -> str:
        kind = self.choose.number(0, 9)
        whole: Kind = ("f", dims)
        if kind <= 2:
            return self.array_leaf(whole, scope)
        a = self.array(whole, scope, depth - 1)
        if kind <= 5:
            return f"({a} {self.choose.item('+-*')} {self.operand(dims, scope, depth)})"
        mask = ("b", dims)
        forms = [
            f"({a} / (abs({self.operand(dims, scope, depth)}) + 1.0))",
            f"np.where({self.array(mask, scope, depth - 1)}, {a}, {self.operand(dims, scope, depth)})",
            f"np.minimum({a}, {self.operand(dims, scope, depth)})",
            f"np.maximum({self.float_leaf(scope)}, {a})",
            f"np.abs({a})",
            f"({a}).copy()",
            f"-({a})",
            f"({a})[::-1]",
            f"np.sqrt({self.positive(a)})",
            f"np.clip({a}, -1.0, {self.choose.item(('2.0', '1.0'))})",
            f"np.zeros_like({a})",
            f"np.full_like({a}, {self.float_leaf(scope)})",
            f"np.cumsum({a}, axis=0)",
            f"np.roll({a}, {self.choose.item(('1', '-1', '2'))}, axis=0)",
            f"np.flip({a}, 0)",
            f"({a} if {self.bool(scope, depth - 1)} else {self.array(whole, scope, depth - 1)})",
            f"({self.array(('i', dims), scope, depth - 1)} * 0.5)",
            f"np.concatenate([({a})[1:], ({a})[:1]])",
            f"np.concatenate(({self.array(whole, scope, depth - 1)}, {a}))[:{dims[0]}]",
            f"({self.array(mask, scope, depth - 1)}).astype(np.float64)",
            f"np.full({self.shape(dims)}, {self.float_leaf(scope)})",
            f"np.broadcast_to({self.float_leaf(scope)}, {self.shape(dims)})",
        ]
        if self.exact:
            forms += [
                f"np.floor({a})",
                f"np.sign({a})",
                f'np.sort({a}, axis=0, kind="stable")',
                f"({a}) % 2.0",
                f"np.nan_to_num({a})",
                f"np.maximum.accumulate({a})",
                f"({a}) // 0.5",
                f"np.copysign({a}, {self.float_leaf(scope)})",
            ]
        else:
            forms += [
                f"np.sin({a})",
                f"np.tanh({a})",
                f"np.exp(-abs({a}))",
                f"np.tanh({a}) ** 2",
                f"np.arctan({a})",
            ] * 2
        if len(dims) == 1:
            forms += self.vectors(dims[0], a, scope, depth)
        else:
            forms += self.matrices(dims, a, scope, depth)
        return self.choose.item(forms)

    def vectors(self, dim: str, a: str, scope: Scope, depth: int) -> list[str]:
        index = self.array(("i", (dim,)), scope, depth - 1)
        forms = [
            f"({a})[({index}) % {dim}]",
            f"np.take({a}, ({index}) % {dim})",
            f"np.append({a}, 1.0)[1:]",
            f"({a})[np.argsort({self.array_leaf(('f', (dim,)), scope)}, kind='stable')]",
            f"np.repeat({a}, 2)[::2]",
            f"np.tile({a}, 2)[{dim}:]",
            f"np.diff({a}, prepend=0.0)",
            f"np.hstack([{a}, {a}])[:{dim}]",
        ]
        forms += [f"{name}[:, {self.small(scope, 3)}]" for name, k in scope.names.items() if k == ("f", (dim, "3"))]
        forms += [
            f"{name}[{self.index(scope, k[1][0], depth)}]"
            for name, k in scope.names.items()
            if k[0] == "f" and len(k[1]) == 2 and k[1][1] == dim
        ]
        forms += [f"np.max({name}, axis=1)" for name, k in scope.names.items() if k == ("f", (dim, "3"))]
        forms += [
            f"{name}.min(0, initial=9.0)"
            for name, k in scope.names.items()
            if k[0] == "f" and len(k[1]) == 2 and k[1][1] == dim
        ]
        if not self.exact:
            forms += [
                f"{name} @ {self.array_leaf(('f', (k[1][1],)), scope)}"
                for name, k in scope.names.items()
                if k[0] == "f" and len(k[1]) == 2 and k[1][0] == dim
            ]
            forms += [
                f"{name}.sum(axis=0)"
                for name, k in scope.names.items()
                if k[0] == "f" and len(k[1]) == 2 and k[1][1] == dim
            ]
        name = self.choose.item(ARRAY_HELPERS)
        self.helpers.add(name)
        forms.append(f"{name}({a})")
        if dim == "3":
            x, y, z = (self.float(scope, depth - 1) for _ in range(3))
            forms += [
                f"np.array([{x}, {y}, {z}])",
                f"np.stack([{x}, {y}, {z}])",
                f"np.array([u * 0.5 for u in {self.array_leaf(('f', ('3',)), scope)}])",
                f"np.linspace(0.0, 1.0, 3) * {x}",
            ]
            forms += [f'{name}["v"]' for name in scope.of(RECORD)]
            forms += [f"{name}.v" for name in scope.of(OBJECT)]
            forms += [f"{name}[{self.choose.item(('0', '1', '-1'))}]" for name in scope.of(ARRAYS)]
            forms += [f"({a})[{self.small(scope, 3)}:][:1] * np.ones(3)"]
        else:
            forms += [f"np.array([u * 0.5 for u in {a}])", f"np.linspace(0.0, 1.0, {dim})"]
        return forms

    def matrices(self, dims: tuple[str, ...], a: str, scope: Scope, depth: int) -> list[str]:
        one, two = (self.array(("f", (d,)), scope, depth - 1) for d in dims)
        forms = [
            f"np.outer({one}, {two})",
            f"(({one})[:, None] + {two})",
            f"({a})[:, ::-1]",
            f"({a}).T.T",
            f"({a}).T.copy().T",
            f'np.sort({a}, axis=1, kind="stable")' if self.exact else a,
            f"({a}).reshape(-1).reshape({', '.join(dims)})",
            f"np.cumsum({a}, axis=1)",
            f"np.broadcast_to({two}, {self.shape(dims)})",
            f"({a}).ravel().reshape({self.shape(dims)})",
            f"np.array([{two}] * 3)[:1] * np.ones({self.shape(dims)})",
        ]
        if dims[0] == dims[1]:
            forms += [f"({a}).T", f"np.triu({a})", f"np.diag({one})", f"np.transpose({a})", f"np.eye({dims[0]})"]
            if not self.exact:
                forms.append(f"({a}) @ ({self.array_leaf(('f', dims), scope)})")
        return forms

    # ---- integers and masks ------------------------------------------------------------

    def integers(self, dims: tuple[str, ...], scope: Scope, depth: int) -> str:
        whole: Kind = ("i", dims)
        if self.choose.chance(3):
            return self.array_leaf(whole, scope)
        a = self.array(whole, scope, depth - 1)
        forms = [
            f"({a} {self.choose.item('+-*')} {self.int_leaf(scope)})",
            f"({a} % {self.choose.item(('3', '4'))})",
            f"({a} // {self.choose.item(('2', '3'))})",
            f"({self.array(('b', dims), scope, depth - 1)}).astype(np.int64)",
            f"({self.array(('b', dims), scope, depth - 1)} * {self.choose.item(('1', '2'))})",
            f"np.abs({a})",
            f"({a})[::-1]",
            f"({a} & 3)",
            f"({a} - {self.array(whole, scope, depth - 1)})",
            f"np.where({self.array(('b', dims), scope, depth - 1)}, {a}, {self.int_leaf(scope)})",
            f"np.clip({a}, 0, 2)",
            f"np.cumsum({a}, axis=0)",
            f"np.argsort({self.array(('f', dims), scope, depth - 1)}, axis=0, kind='stable')",
            f"np.maximum({a}, {self.int_leaf(scope)})",
            f"(({a} & 7) << 1)",
        ]
        if len(dims) == 1:
            forms += [f"np.searchsorted(np.array([0.0, 1.0, 2.0]), {self.array(('f', dims), scope, depth - 1)})"]
        return self.choose.item(forms)

    def masks(self, dims: tuple[str, ...], scope: Scope, depth: int) -> str:
        whole: Kind = ("b", dims)
        names = scope.of(whole)
        if names and self.choose.chance(3):
            return self.choose.item(names)
        a = self.array(("f", dims), scope, depth - 1)
        word = self.choose.item(("<", ">", "<=", ">=", "==", "!="))
        forms = [
            f"({a} {word} {self.operand(dims, scope, depth)})",
            f"({self.array(('i', dims), scope, depth - 1)} % 2 == 0)",
            f"(~{self.array(whole, scope, depth - 1)})",
            f"({self.array(whole, scope, depth - 1)} & {self.array(whole, scope, depth - 1)})",
            f"({self.array(whole, scope, depth - 1)} | {self.array(whole, scope, depth - 1)})",
            f"np.isnan({a})",
            f"np.isfinite({a})",
            f"np.logical_xor({self.array(whole, scope, depth - 1)}, {self.array(whole, scope, depth - 1)})",
            f"np.zeros({self.shape(dims)}, dtype=bool)",
            f"({self.array(whole, scope, depth - 1)})[::-1]",
        ]
        return self.choose.item(forms)
