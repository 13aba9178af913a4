"""Printing: a Function as legal Python, one operation a line, names made unique.

In: a Function. Out: text that `read` turns back into the same Function. Source places stand in comments, and each line
of the text knows its own (`SourceText.places`).
"""

from __future__ import annotations

import keyword
from typing import Any

import numpy as np

from ..source import Span, rows_at, with_places
from .dims import Dim, Sym, substitute
from .ir import Atom, ConstantArray, Function, Let, Literal, Roles, Var
from .primitive import REGISTRY, Primitive
from .types import SHORT, Array, dtype_name, substitute_type

RESERVED = set(keyword.kwlist) | set(SHORT) | {"size", "Roles", "array", "nan", "inf", "min", "max", "None"}


def show(function: Function, *, comments: bool = True, canonical: bool = False) -> str:
    """The text of `function`. `canonical=True` renames every variable by position: equal text, equal
    program."""
    rows = _Printer(comments and not canonical, canonical).program(function)
    text = "\n".join(rows) + "\n"
    return text if canonical else with_places(text, rows)


def same(f: Function, g: Function) -> bool:
    """Structural equality up to names, spans excluded."""
    return f is g or show(f, canonical=True) == show(g, canonical=True)


class _Printer:
    def __init__(self, comments: bool, canonical: bool):
        self.comments, self.canonical = comments, canonical
        self.used: dict[str, int] = {}
        self.names: dict[Any, str] = {}
        self.sizes: dict[str, Dim] = {}
        self.called: dict[Function, str] = {}  # functions that a `call` above calls, by their names here

    def unique(self, base: str) -> str:
        base = "v" if self.canonical else base if base.isidentifier() else "v"
        while True:
            count = self.used.get(base, 0)
            self.used[base] = count + 1
            name = base if count == 0 else f"{base}_{count}"
            if name not in RESERVED and name not in REGISTRY and (count == 0 or name not in self.used):
                if count:
                    self.used[name] = 1
                return name

    def define(self, var: Var) -> str:
        self.names[var] = self.unique(var.name)
        return self.names[var]

    def size_name(self, symbol: str) -> str:
        if symbol not in self.sizes:
            base = "S" if self.canonical else symbol.split("__")[0]
            taken = {d.name for d in self.sizes.values()}
            name, count = base, 0
            while name in taken or name in REGISTRY or name in RESERVED or (count == 0 and self.canonical):
                count += 1
                name = f"{base}_{count}"
            self.sizes[symbol] = Sym(name)
        return self.sizes[symbol].name

    def type(self, type_: Array) -> str:
        from .types import type_symbols

        for symbol in sorted(type_symbols(type_)):
            self.size_name(symbol)
        return repr(substitute_type(type_, self.sizes))

    def atom(self, atom: Atom) -> str:
        return self.names[atom] if isinstance(atom, Var) else literal_text(atom)

    def attribute(self, value: Any, functions: dict[Function, str]) -> str:
        if isinstance(value, Dim):
            from .dims import symbols

            for symbol in sorted(symbols(value)):
                self.size_name(symbol)
            return str(substitute(value, self.sizes))
        if isinstance(value, Array):
            return self.type(value)
        if isinstance(value, Function):
            return functions[value]
        if isinstance(value, tuple):
            inner = ", ".join(self.attribute(v, functions) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if isinstance(value, np.dtype):
            return dtype_name(value)
        if isinstance(value, Roles):
            counts = (value.consts, value.carries, value.accumulators, value.rows, value.segments)
            return f"Roles({', '.join(map(str, counts))})"
        if isinstance(value, ConstantArray):
            data = value.value
            if data.dtype.kind == "f" and not np.isfinite(data).all() or dtype_name(data.dtype) == "bf16":
                return f"array({dtype_name(data.dtype)}, {data.shape}, bits={data.tobytes().hex()!r})"
            return f"array({dtype_name(data.dtype)}, {data.shape}, {data.ravel().tolist()})"
        if isinstance(value, Primitive):
            return value.name
        if isinstance(value, Span):
            return "None"
        return repr(value)

    def program(self, function: Function, indent: int = 0, name: str | None = None) -> list[str]:
        pad = "    " * indent
        name = name or self.unique(function.name if function.name not in REGISTRY else function.name + "_")
        # Regions are closed, each is a scope of its own; but functions that are called again are not said again.
        outer = self.used, self.called
        self.used, self.called = dict.fromkeys(self.called.values(), 1), dict(self.called)
        params = ", ".join(f"{self.define(p)}: {self.type(p.type)}" for p in function.params)
        returns = [self.type(r.type) for r in function.results]
        arrow = f" -> {returns[0]}" if len(returns) == 1 else f" -> ({', '.join(returns)})" if returns else ""
        rows = [f"{pad}def {name}({params}){arrow}:"]
        for let in function.lets:
            rows += self.let(let, indent + 1)
        results = [self.atom(r) for r in function.results]
        rows.append(f"{pad}    return {', '.join(results) if results else 'None'}")
        self.used, self.called = outer
        return rows

    def let(self, let: Let, indent: int) -> list[str]:
        pad = "    " * indent
        rows: list[str] = []
        functions = dict(self.called)
        for region in let.regions():
            if region not in functions:
                name = region.name + "_" if region.name in REGISTRY else region.name
                functions[region] = self.unique(name)
                rows += self.program(region, indent, functions[region])
                if let.primitive.name == "call":
                    self.called[region] = functions[region]
        args = [self.atom(a) for a in let.args]
        for key, value in let.attributes.items():
            text = self.attribute(value, functions)
            if key == "size" and isinstance(value, str):
                text = repr(self.size_name(value))
            elif key == "segment_sizes":
                text = repr(tuple(map(self.size_name, value)))
            args.append(f"{key}={text}")
        call = f"{let.primitive.name}({', '.join(args)})"
        if not let.outs:
            line = f"{pad}{call}"
        elif len(let.outs) == 1:
            line = f"{pad}{self.define(let.out)}: {self.type(let.out.type)} = {call}"
        else:
            line = f"{pad}{', '.join(self.define(v) for v in let.outs)} = {call}"
        if self.comments and len(let.outs) > 1:
            line = f"{line}  # {', '.join(self.type(v.type) for v in let.outs)}"
        elif self.comments and let.span:
            import os

            line = f"{line:<56}  # {os.path.basename(let.span.file)}:{let.span.line}"
        return rows + (rows_at([line], let.span) if let.span and not self.canonical else [line])


def literal_text(literal: Literal) -> str:
    """A literal as Python: 2.0, f32(2.0), 2, i32(2), True, nan, -inf, complex(re, im)."""
    value = literal.value
    name = dtype_name(value.dtype)
    if value.dtype.kind == "c":
        parts = ", ".join(_float_text(float(x)) for x in (value.real, value.imag))
        return f"complex({parts})" if name == "c128" else f"{name}({parts})"
    if value.dtype.kind in "fV" or name in ("bf16", "f16"):
        if value != value and value.tobytes() != np.asarray(np.nan, value.dtype).tobytes():
            return f"array({name}, (), bits={value.tobytes().hex()!r})"
        text = _float_text(float(value))
        return text if name == "f64" else f"{name}({text})"
    if name == "bool":
        return str(bool(value))
    return str(int(value)) if name == "i64" else f"{name}({int(value)})"


def _float_text(value: float) -> str:
    return repr(value)
