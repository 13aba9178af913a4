"""Whether a new array lies in memory as NumPy's default has it, row after row.

In: a box. Out: yes or no; no where NumPy may have kept another order: the result of an operation on a
transposed array is transposed in memory too (`order="K"`), and that of an index array between axes is as it
was gathered. A reshape of such an array is a copy. Example:

    g = x.T * 2.0
    g.reshape(-1)[0] = 1.0      # does not change g

The operation that made an array is asked, and those that made its operands. What a loop carries is not known
while its body is translated: it is taken to lie row after row, and if then something in the program lies
otherwise, the program is translated again and nothing is taken for granted. Arguments are taken to lie row
after row; where a store relies on that, a call is refused for those that don't.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator
from itertools import islice
from weakref import WeakKeyDictionary

from metaphrase.core.build import Builder
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.types import Array

from ..staging.session import Session
from .phi import family
from .staged_values import Box, StagedArray
from .views import Reshape

# What NumPy puts down row after row, whatever its operands; and what keeps the order of its first operand.
_BY_ROWS = frozenset({"dot_general", "reshape", "iota"})


_MADE: WeakKeyDictionary[Builder, tuple] = WeakKeyDictionary()


def has_rows(type: Array) -> bool:
    """Whether there are two orders that differ."""
    return sum(d != 1 for d in type.dims) > 1


def is_rearranging(let: Let) -> bool:
    """Whether the result may lie otherwise though the operand lies row after row."""
    if let.primitive.name != "permute":
        return False
    dims = let.args[0].type.dims
    kept = [k for k in let.attributes["axes"] if dims[k] != 1]
    return kept != sorted(kept)


def lies_by_rows(here: Session, box: Box) -> bool:
    """Whether the elements of the box's array surely lie row after row."""
    if box.by_rows is not None:
        return box.by_rows
    if box.origin is not None or not has_rows(box.atom.type) or not isinstance(box.first, Var):
        return True
    makers = _makers(here)
    reached = list(_origins(here, box.first, makers))
    if any(here.origins.get(atom, ("",))[0] == "carry" for atom in reached):
        if here.decisions.orders == "unknown":
            return False
        here.decisions.orders = "taken"
    return not any(
        atom in here.layouts.otherwise or atom in makers and is_rearranging(makers[atom]) for atom in reached
    )


def put_in_order(box: Box, by_rows: bool) -> None:
    """A new array whose elements were laid down row after row, or column after column."""
    box.by_rows = by_rows or not has_rows(box.atom.type)
    if not box.by_rows and isinstance(box.first, Var):
        box.session.layouts.otherwise.add(box.first)


def rely_on_order(here: Session, box: Box) -> None:
    """A box is written to: views of it by a reshape are views, and copies copies, if the arguments lie row
    after row."""
    for made, base in here.layouts.reshaped:
        if (copy := made()) is not None and box in (copy, base):
            assume_order(here, base)
    if any(isinstance(s, Reshape) and s.relies for h in box.handles if (view := h()) is not None for s in view.chain):
        here.layouts.contiguous |= {id(one) for one in family(box) if one.origin is not None}
        assume_order(here, box)


def assume_order(here: Session, box: Box) -> None:
    """The arguments that an array is made of lie row after row."""
    if isinstance(box.first, Var) and has_rows(box.atom.type) and box.first not in here.layouts.ordered:
        here.layouts.ordered |= set(_origins(here, box.first, _makers(here)))


def lay_like(here: Session, made: StagedArray, others: Iterable[Atom]) -> None:
    """The order of a new array may be that of others: not all of NumPy's functions lay down row after row."""
    if isinstance(made.box.first, Var) and has_rows(made.type):
        here.layouts.like[made.box.first] = tuple(atom for atom in others if has_rows(atom.type))


def _only_ones(let: Let) -> bool:
    """Whether a reshape only puts in or takes out axes of one element: the order stays."""
    if let.primitive.name != "reshape":
        return False
    before, after = ([d for d in type.dims if d != 1] for type in (let.args[0].type, let.out.type))
    return before == after


def _makers(here: Session) -> ChainMap[Var, Let]:
    return ChainMap({}, *(_made_in(region.builder) for region in reversed(here.regions)))


def _made_in(builder: Builder) -> dict[Var, Let]:
    """What has made each value of a region so far; what was asked before is not looked through again."""
    lets = builder.lets
    count, last, made = _MADE.get(builder, (0, None, {}))
    if count > len(lets) or count and lets[count - 1] is not last:  # some were taken back
        count, made = 0, {}
    made.update((out, let) for let in islice(lets, count, None) for out in let.outs)
    _MADE[builder] = len(lets), lets[-1] if lets else None, made
    return made


def _origins(here: Session, atom: Atom, makers: ChainMap[Var, Let]) -> Iterator[Var]:
    """The values whose order that of `atom` may come from."""
    todo, seen = [atom], set()
    while todo:
        atom = todo.pop()
        if not isinstance(atom, Var) or atom in seen or not has_rows(atom.type):
            continue
        seen.add(atom)
        yield atom
        todo += here.layouts.like.get(atom, ())
        let = makers.get(atom)
        if let is None or is_rearranging(let) or let.primitive.name in _BY_ROWS and not _only_ones(let):
            continue
        todo += let.args[:1] if let.primitive.takes or let.primitive.stores else let.args
        for function in let.regions():
            makers.update({out: inner for inner in function.lets for out in inner.outs})
            todo += function.results


def rearranges(function: Function) -> bool:
    """Whether anything in the program may lie otherwise."""
    return any(is_rearranging(let) or any(map(rearranges, let.regions())) for let in function.lets)
