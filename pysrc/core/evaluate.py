"""Running a program by the NumPy rules: the meaning of the core language.

In: a Function and arrays. Out: a list of arrays, one a result. A `Watch` sees each operation as it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from .build import substitute_attribute
from .dims import Dim, substitute
from .ir import Function, Let, Literal, Var, attribute_symbols
from .primitive import Primitive
from .types import Array


class Watch(Protocol):
    """Asked for the results of each Let in place of `run_let`, and told of each region that begins to run."""

    def __call__(self, let: Let, values: Sequence[Any], sizes: dict[str, int]) -> tuple: ...

    def entered(self, region: Function, args: Sequence[Any]) -> None: ...


def evaluate(
    function: Function, *args: Any, sizes: Mapping[str, int] | None = None, watch: Watch | None = None
) -> list[Any]:
    """Run `function`. `sizes` gives size symbols of the surrounding program; those of its parameters are read
    off.

    Floating-point faults are silent, as in native code.
    """
    with np.errstate(all="ignore"):
        return _run(function, args, dict(sizes or {}), watch)


def _run(function: Function, args: Sequence[Any], known: dict[str, int], watch: Watch | None = None) -> list[Any]:
    env: dict[Var, Any] = {}
    if len(args) != len(function.params):
        raise TypeError(f"{function.name} takes {len(function.params)} arguments, {len(args)} were given")
    for param, arg in zip(function.params, args):
        env[param] = bind_argument(param.type, arg, known)
    counts = _last_uses(function)
    for position, let in enumerate(function.lets):
        values = [a.value if isinstance(a, Literal) else env[a] for a in let.args]
        for dead in counts.get(position, ()):
            env.pop(dead, None)
        outs = run_let(let, values, known) if watch is None else watch(let, values, known)
        for var, value in zip(let.outs, outs):
            env[var] = value
            if isinstance(var.type.value, Dim) and var.type.value.is_sym:
                known[var.type.value.name] = int(value)
    return [r.value if isinstance(r, Literal) else env[r] for r in function.results]


def _last_uses(function: Function) -> dict[int, list[Var]]:
    """For each Let, the variables that nobody reads after it; lets NumPy reuse memory."""
    last: dict[Var, int] = {}
    for position, let in enumerate(function.lets):
        for arg in let.args:
            if isinstance(arg, Var):
                last[arg] = position
    kept = {r for r in function.results if isinstance(r, Var)}
    table: dict[int, list[Var]] = {}
    for var, position in last.items():
        if var not in kept:
            table.setdefault(position, []).append(var)
    return table


def bind_argument(type_: Array, arg: Any, sizes: dict[str, int]) -> Any:
    """Check an argument against a parameter's type, binding size symbols."""
    value = np.asarray(arg)
    if value.dtype != type_.dtype or value.ndim != type_.ndim:
        raise TypeError(f"expected {type_}, got {value.dtype}{list(value.shape)}")
    for want, have in zip(type_.dims, value.shape):
        if isinstance(want, Dim) and want.is_sym and want.name not in sizes:
            sizes[want.name] = have
    for want, have in zip(type_.dims, value.shape):
        if (known := substitute(want, sizes)) != have and isinstance(known, int):
            raise TypeError(f"expected {type_} with {want} = {known}, got shape {list(value.shape)}")
    if isinstance(type_.value, Dim) and type_.value.is_sym:
        sizes.setdefault(type_.value.name, int(value))
    return value[()] if value.ndim == 0 else value


def run_let(let: Let, values: Sequence[Any], sizes: dict[str, int], watch: Watch | None = None) -> tuple:
    """The results of one Let on concrete operands; `watch` is for its regions."""
    primitive, attributes = let.primitive, let.attributes
    if primitive.region:
        outs = _region(primitive, values, attributes, sizes, watch)
    else:
        if any(map(attribute_symbols, attributes.values())):
            attributes = {k: substitute_attribute(v, sizes) for k, v in attributes.items()}
        outs = primitive.numpy(*values, **attributes)
    if not primitive.multiple:
        outs = (outs,) if let.outs else ()
    return outs


def _region(
    primitive: Primitive,
    values: Sequence[Any],
    attributes: Mapping[str, Any],
    sizes: Mapping[str, int],
    watch: Watch | None = None,
) -> Any:
    run = _Runner(sizes, watch)
    concrete = {
        k: v
        if isinstance(v, Function) or (isinstance(v, tuple) and any(isinstance(x, Function) for x in v))
        else substitute_attribute(v, sizes)
        for k, v in attributes.items()
    }
    return primitive.numpy(run, *values, **concrete)


class _Runner:
    """Handed to the NumPy rules of regions: runs a body under the sizes known here."""

    def __init__(self, sizes: Mapping[str, int], watch: Watch | None):
        self.sizes, self.watch = sizes, watch

    def __call__(self, function: Function, *args: Any) -> list[Any]:
        if self.watch is not None:
            self.watch.entered(function, args)
        return _run(function, args, dict(self.sizes), self.watch)

    def shape(self, type_: Array) -> tuple[int, ...]:
        return tuple(substitute(d, self.sizes) for d in type_.dims)  # type: ignore[misc]


def run_region(primitive: Primitive, args: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """A region primitive called on arrays, outside any program."""
    return _region(primitive, args, attributes, {})
