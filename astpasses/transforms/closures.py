"""Pieces of core programs, made of Python closures: branches, loops, and rows of arrays.

In: closures over Vars, and the Vars that they are given. Out: Lets in the current Builder.

    while_("search", [n], [k], [], (), lambda consts, carries: lt(carries[0], consts[0]), step)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from metaphrase.core.build import Builder, current, literal, trace
from metaphrase.core.dims import DimLike, fresh_symbol
from metaphrase.core.ir import Atom, Function, Roles, Var
from metaphrase.core.loops import Parts
from metaphrase.core.types import Array, i64
from metaphrase.ops.arrays import as_dim, undefined, zeros
from metaphrase.ops.indexing import slice as slice_primitive
from metaphrase.ops.indexing import slice_update
from metaphrase.ops.regions import cond, loop
from metaphrase.ops.shape import reshape

INDEX = Array(i64)
ZERO, ONE, TWO = (literal(k, i64) for k in range(3))
Atoms = Sequence[Atom]


def while_(
    name: str,
    consts: Atoms,
    carries: Atoms,
    names: Sequence[str],
    sums: Atoms,
    going: Callable[[Atoms, Atoms], Any],
    step: Callable[[Atoms, Atoms, Atoms], list[Any]],
) -> tuple[Atom, ...]:
    """The carries and accumulators when `going(consts, carries)` no longer holds; `names`: of the first carries."""
    roles = Roles(len(consts), len(carries), len(sums), 0)
    asked = [("i", INDEX), *((name_of(a), a.type) for a in consts), *map(_param, carries)]
    for k, name_ in enumerate(names, 1 + len(consts)):
        asked[k] = (name_, asked[k][1])
    body = trace(name, lambda i, *a: step(*roles.parts(a)[:3]), [*asked, *map(_param, sums)])
    condition = trace("going", lambda i, *a: going(*cut(a, len(consts))), asked)
    size = fresh_symbol("T")
    return loop(*consts, *carries, *sums, body=body, cond=condition, length=None, roles=roles, size=size)[1:]


def if_(condition: Atom, yes: Callable[..., Any], no: Callable[..., Any], args: Atoms) -> tuple[Atom, ...]:
    """`yes(*args)` where the condition holds, else `no(*args)`."""
    branches = [trace(name, f, [*map(_param, args)]) for name, f in (("no", no), ("yes", yes))]
    return cond(condition, *args, branches=tuple(branches))


def named(atom: Any, name: str) -> Any:
    """The value, by a name, if an operation has made it."""
    if isinstance(atom, Var) and any(atom in let.outs for let in here().lets[-1:]):
        atom.name = name
    return atom


def name_of(atom: Atom) -> str:
    return atom.name if isinstance(atom, Var) else "number"


def params_of(args: Parts[Atom]) -> Parts[Var]:
    """The parameters that the body of a loop has for these operands. What is a size, and the same all the time, is that
    size in the body, too: what is made there may be as long as it is."""
    params = args.map(lambda a: Var(name_of(a), a.type.plain))
    consts = (Var(name_of(a), a.type) for a in args.consts)
    return params.replace(consts=consts, rows=(Var(p.name, p.type.with_dims(p.type.dims[1:])) for p in params.rows))


def _param(atom: Atom) -> tuple[str, Array]:
    return name_of(atom), atom.type.plain


def here() -> Builder:
    """The Builder that Lets go into."""
    builder = current()
    assert builder is not None
    return builder


def counted(number: Any, name: str) -> Var:
    """A number, which is not negative, as the size that it is."""
    return here().bind(as_dim, (number,), {"size": fresh_symbol(name), "counted": True}, [name])[0]


def dim_of(size: Atom) -> DimLike:
    """The dim that a size is."""
    assert size.type.value is not None
    return size.type.value


def replayed(function: Function, args: Iterable[Atom]) -> tuple[Atom, ...]:
    return here().replay(function, [*args])


def rows_like(length: DimLike, row: Atom, name: str) -> Any:
    """So many rows of zeros that are like one."""
    return named(zeros(Array(row.type.dtype, (length, *row.type.dims))), name)


def room_for(length: DimLike, row: Atom, name: str) -> Any:
    """So many rows that are like one, to be stored before they are read."""
    return named(undefined(dtype=row.type.dtype, shape=(length, *row.type.dims)), name)


def row_of(array: Atom, index: Atom) -> Atom:
    """Row `index` of an array."""
    return reshape(rows_of(array, index, 1), shape=array.type.dims[1:])


def rows_of(array: Atom, first: Atom, count: DimLike, step: int = 1) -> Any:
    """So many rows of an array, or every so many."""
    steps = (step, *(1,) * (array.type.ndim - 1))
    return slice_primitive(array, *corner(array, first), shape=(count, *array.type.dims[1:]), step=steps)


def with_row(array: Atom, row: Atom, index: Atom) -> Atom:
    """The array with another row `index`."""
    return with_rows(array, reshape(row, shape=(1, *row.type.dims)), index)


def with_rows(array: Atom, rows: Atom, first: Atom) -> Any:
    """The array with other rows from `first` on."""
    return slice_update(array, rows, *corner(array, first), step=(1,) * array.type.ndim)


def corner(array: Atom, first: Atom) -> Atoms:
    """The indices of row `first`."""
    return (first, *(ZERO for _ in array.type.dims[1:]))


def cut(items: Sequence[Any], count: int) -> tuple[list[Any], list[Any]]:
    """The first `count`, and the others."""
    return list(items[:count]), list(items[count:])


def merged(marks: Sequence[bool], marked: Any, others: Any) -> list[Any]:
    """Those that are marked and the others, in their order."""
    marked, others = iter(marked), iter(others)
    return [next(marked if mark else others) for mark in marks]


def parted(items: Sequence[Any], marks: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """Those that are marked, and the others."""
    return [x for x, m in zip(items, marks) if m], [x for x, m in zip(items, marks) if not m]
