"""An example of a program that uses a C library: it calls each function once, with numbers made up, and prints results.

In: the functions of a library. Out: the text of `main.c`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.dims import product, substitute, symbols
from ..core.types import SHORT
from .c_functions import TYPES, CFunction, Parameter

SIZE = 3  # of each axis that may be any


def example(name: str, written: Sequence[CFunction]) -> str:
    """The program."""
    rows = [f"/* Calls each function of {name}.h once; the numbers are made up.", "", "       make && ./example", "*/"]
    rows += ["#include <stdio.h>", "#include <stdlib.h>", "", f'#include "{name}.h"', ""]
    for one in written:
        rows += [f"static void {one.name}_example(void) {{", *(f"    {row}" for row in _call(one)), "}", ""]
    rows += ["int main(void) {", f"    {name}_set_num_threads(0); /* long loops are shared by all processors */"]
    rows += [*(f"    {one.name}_example();" for one in written), "    return 0;", "}", ""]
    return "\n".join(rows)


def _call(one: CFunction) -> Iterator[str]:
    yield "metaphrase_error error;"
    given, shown = [], []
    for p in one.parameters:
        type_, count = TYPES[p.dtype], _count(p)
        if p.kind == "size":
            yield f"int64_t {p.name} = {SIZE};"
        elif p.kind == "number":
            yield f"{type_} {p.name} = {_number(p.dtype, 0)};"
        elif p.kind == "array":
            values = ", ".join(_number(p.dtype, k) for k in range(min(count, 12))) or "0"
            yield f"{type_} {p.name}[{max(count, 1)}] = {{{values}}};"
        elif p.kind == "result":
            yield f"{type_} {p.name}[{max(count, 1)}];" if p.dims else f"{type_} {p.name};"
        elif p.kind == "made":
            yield f"{type_} *{p.name};"
        else:
            yield f"{p.declaration};"
        by_address = p.kind == "made" or p.kind == "result" and not p.dims
        given.append(f"&{p.name}" if by_address else p.name)
        if p.kind in ("result", "made") or p.written:
            shown.append(p)
    yield f"if ({one.name}({', '.join([*given, '&error'])})) {{"
    yield f'    printf("{one.name}: %s: %s\\n", error.exception, error.message);'
    yield "    return;"
    yield "}"
    yield f'printf("{one.name}:");'
    for p in shown:
        yield from _printed(one, p)
    yield 'printf("\\n");'
    yield from (f"free({p.name});" for p in one.parameters if p.kind == "made")


def _printed(one: CFunction, p: Parameter) -> Iterator[str]:
    count: Any = _count(p)
    if p.kind == "made":
        at = one.parameters.index(p) + 1
        (rank,) = one.parameters[at].dims
        assert isinstance(rank, int)
        count = "*".join(f"{one.parameters[at].name}[{k}]" for k in range(rank))
    format_, parts = _format(p.dtype)
    if p.kind == "result" and not p.dims:
        yield f'printf(" {p.name} = {format_}", {", ".join(part.format(p.name) for part in parts)});'
        return
    values = ", ".join(part.format(f"{p.name}[k]") for part in parts)
    yield f'printf(" {p.name} =");'
    yield f'for (int64_t k = 0; k < {count}; k++) printf(" {format_}", {values});'


def _format(short: str) -> tuple[str, list[str]]:
    kind = np.dtype(SHORT[short]).kind
    if kind == "c":
        return "%g%+gj", ["{}.real", "{}.imag"]
    if kind == "f" and short != "f16":
        return "%g", ["{}"]
    return "%lld", ["(long long){}"]


def _number(short: str, k: int) -> str:
    kind = np.dtype(SHORT[short]).kind
    if kind == "c":
        return f"{{{0.5 + 0.25 * k}, 0.0}}"
    if kind == "f" and short != "f16":
        return f"{0.5 + 0.25 * k}"
    return "true" if kind == "b" else str(k + 1)


def _count(p: Parameter) -> int:
    """How many elements there are where each size is SIZE."""
    names = {s for dim in p.dims if not isinstance(dim, int) for s in symbols(dim)}
    whole = substitute(product(p.dims), {name: SIZE for name in names})
    assert isinstance(whole, int)
    return whole


__all__ = ["example"]
