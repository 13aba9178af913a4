"""The checker, run after every stage: scoping, closed regions, types computed again, loop contracts.

In: a Function. Out: nothing, or CheckError that lists every fault with the printed line.
"""

from __future__ import annotations

from .axes import sizes_of_axes
from .dims import Dim
from .ir import Function, Let, Literal, Var
from .types import Array, CoreTypeError, type_symbols


class CheckError(AssertionError):
    """A program that breaks the rules of the core language: a fault of a pass, never of the user."""


def check(function: Function) -> Function:
    """Raise CheckError unless `function` is well formed; returns it, so that checks chain."""
    faults: list[str] = []
    bound = set(sizes_of_axes())
    for param in function.params:
        bound |= {s for s in type_symbols(param.type)}
    _check(function, bound, faults, function.name, set())
    if faults:
        raise CheckError("\n".join(faults[:20]) + f"\nin\n{_shown(function)}")
    return function


def _shown(function: Function) -> str:
    try:
        return str(function)
    except Exception as error:  # a broken program may not print; the faults above say why
        return f"<{function.name} does not print: {error!r}>"


def _check(function: Function, symbols: set[str], faults: list[str], path: str, called: set[Function]) -> None:
    known: set[Var] = set(function.params)
    symbols = set(symbols)
    if len(known) != len(function.params):
        faults.append(f"{path}: a parameter occurs twice")
    for let in function.lets:
        found: list[str] = []
        for arg in let.args:
            if isinstance(arg, Var):
                found += [] if arg in known else [f"{arg.name} is used before it is defined"]
            elif not isinstance(arg, Literal):
                found.append(f"argument {arg!r} is neither a variable nor a literal")
        missing = let.uses_symbols() - symbols
        if missing:
            found.append(f"size {', '.join(sorted(missing))} is not bound here")
        symbols |= let.own_symbols()
        found += _check_types(let)
        for out in let.outs:
            if out in known:
                found.append(f"{out.name} is defined twice")
            known.add(out)
        faults += [f"{path}: {', '.join(v.name for v in let.outs)} = {let.primitive.name}(...): {f}" for f in found]
        for region in let.regions():  # of functions that are called the first call tells
            if region not in called:
                _check(region, symbols | let.handed_symbols(), faults, f"{path}.{region.name}", called)
            if let.primitive.name == "call":
                called.add(region)
    for result in function.results:
        if isinstance(result, Var) and result not in known:
            faults.append(f"{path}: result {result.name} is not defined")


def _check_types(let: Let) -> list[str]:
    """What is wrong with the types of a Let; it never changes, so one that was right is right."""
    if let._typed:
        return []
    try:
        types = let.primitive.type(*(a.type for a in let.args), **let.attributes)
    except CoreTypeError as error:
        return [str(error)]
    types = (types,) if isinstance(types, Array) else tuple(types)
    if len(types) != len(let.outs):
        return [f"has {len(let.outs)} results, its type rule gives {len(types)}"]
    faults = [
        f"{v.name} is {v.type}, its type rule gives {t}"
        for v, t in zip(let.outs, types)
        if v.type.plain != t.plain or (isinstance(t.value, Dim) and v.type.value != t.value)
    ]
    object.__setattr__(let, "_typed", not faults)
    return faults
