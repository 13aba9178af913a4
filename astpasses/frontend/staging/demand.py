"""Where Python needs a value that is only known at run time.

In: a staged value. Out: `NeedConcrete`, carrying the roots of the value: which arguments and loops it came
from.
"""

from __future__ import annotations

import sys
from typing import Any

from metaphrase.core.dims import symbols
from metaphrase.core.ir import Var

from ..values.staged_values import Number, Staged, StagedArray
from .session import Session, session
from .signals import NeedConcrete
from .under_way import sessions


def need_concrete(value: Staged, why: str, kind: type, remedy: str = "") -> Any:
    """The value as a Python object if it is known after all; else NeedConcrete."""
    here = session()
    if isinstance(value, StagedArray):
        known = value.box.known
        if known is not None and not value.chain:
            return known if kind.__name__ == "ndarray" else kind(known)
    atom = here.atom(value)
    if not isinstance(atom, Var):
        return kind(atom.value)
    raise NeedConcrete(roots_of(here, atom), why, here.span(), remedy)


def truth_value(value: Staged) -> bool:
    """`bool(x)` asked by Python itself, outside of the branches and loops that the stager runs."""
    here = session()
    if isinstance(value, Number) and value.dim is not None and here.facts.less(0, value.dim):
        return True
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code not in here.unsourced:
        frame = frame.f_back
    if frame is not None:
        name = frame.f_code.co_name
        what = "a lambda" if name == "<lambda>" else f"'{name}'"
        why = f"a truth value in {what}, whose source was not found"
        remedy = "define the function in a file or a notebook cell: branches are translated from their source"
        return need_concrete(value, why, bool, remedy)
    return need_concrete(value, "a truth value in Python code that is not translated", bool)


def hash_of(value: Number) -> int:
    """`hash(x)`, which sets and the keys of dicts ask for: an argument is pinned to its value."""
    kinds = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
    why = "the hash of a number (an element of a set, a key of a dict)"
    remedy = "compare numbers (x == a or x == b), mark what was seen in an array of bools, or use np.unique"
    return hash(need_concrete(value, why, kinds[value.dtype.kind], remedy))


def length(value: StagedArray) -> int:
    """`len(x)` asked by Python itself."""
    if value.ndim == 0:
        raise TypeError("len() of unsized object")
    dim = value.type.dims[0]
    if isinstance(dim, int):
        return dim
    here = session()
    remedy = "append its items to a list in a loop, or compute with array operations"
    given = roots_of(here, here.dim_atom(dim))  # numbers that give the size are pinned; of an argument's it has none
    roots = given if given and all(root[0] == "argument" for root in given) else {("size",)}
    raise NeedConcrete(roots, "the length of an array", here.span(), remedy)


def roots_of(here: Session, atom: Any) -> set[tuple]:
    """Where a value comes from: ("argument", leaf), ("outer", number), ("loop", site), ("carry", var) or ("array",)."""
    producers = {out: let for region in here.regions for let in region.builder.lets for out in let.outs}
    found: set[tuple] = set()
    seen: set[Any] = set()
    todo = [atom]
    while todo:
        var = todo.pop()
        if not isinstance(var, Var) or var in seen:
            continue
        seen.add(var)
        if var in here.origins:
            found.add(here.origins[var])
            if here.origins[var][0] != "loop":
                continue
        let = producers.get(var)
        if let is None:
            if var not in here.origins:
                found.add(("array",))
            continue
        todo += let.args
        if let.primitive.name == "dim_value":  # a size comes from where its symbol was bound
            names = symbols(let.attributes["dim"])
            todo += [out for out, made in producers.items() if made.own_symbols() & names]
    return found


def asked_outside(need: NeedConcrete, numbers: list[Number]) -> NeedConcrete | None:
    """What a staging inside another one asks of numbers of that one, if it can settle their values."""
    here = sessions()[-2]
    found = [roots_of(here, here.atom(number)) for number in numbers]
    roots = {root for roots in found for root in roots}
    if not all(found) or any(root[0] not in ("argument", "captured", "outer") for root in roots):
        return None
    return NeedConcrete(roots, need.why, need.span, need.remedy, refusal=need.refusal, most=need.most)


def whole_numbers(here: Session, atom: Any) -> frozenset[tuple]:
    """Where a value comes from that is made of ints alone which are given or captured; else nothing."""
    given = ("argument", "captured", "outer")
    ints = {root for var, root in here.origins.items() if root[0] in given and var.type.dtype.kind == "i"}
    roots = frozenset(roots_of(here, atom)) if ints else frozenset()
    return roots if roots <= ints else frozenset()


def sizes_of(here: Session, entry: Any, out: Any) -> frozenset[tuple]:
    """Where the sizes come from that an array had before a loop, and has not after an iteration."""
    if not isinstance(entry, StagedArray) or not isinstance(out, StagedArray) or entry.ndim != out.ndim:
        return frozenset()
    unlike = [a for a, b in zip(entry.type.dims, out.type.dims) if a != b and not isinstance(a, int)]
    return frozenset(r for d in unlike if here.is_bound(d) for r in roots_of(here, here.dim_atom(d)))
