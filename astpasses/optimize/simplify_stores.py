"""Rules of stores: one that adds to what stands there, one behind another at the same place, and what is read
back.

In: operands of an operation. Out: something simpler that is equal bit for bit, or None.

    v: f64 = gather(a, i)                    w: f64 = neg(t)
    w: f64 = sub(v, t)                ->     b: f64[n] = scatter_add(a, w, i)
    b: f64[n] = scatter(a, w, i)

The derivative of a store takes the cotangent out of its place; that of an addition leaves it there.
"""

from __future__ import annotations

from typing import Any

from metaphrase.core.ir import Atom, Let, Literal
from metaphrase.core.primitive import Primitive
from metaphrase.ops.arithmetic import add, neg
from metaphrase.ops.indexing import gather, scatter, scatter_add, slice_add, slice_update
from metaphrase.ops.indexing import slice as slice_
from metaphrase.ops.shape import reshape

from .simplify import Rewriter, rule

FLOATS = ("f4", "f8", "c8", "c16")
LONGEST = 6  # additions that a store is looked for behind
DERIVED = ("adjoint", "tangent")  # the roles of what transformations made


@rule("scatter", "slice_update")
def addition_in_place(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """`x[i] = x[i] + v` is `x[i] += v`, and `x[i] = x[i] - v` too, of the negative."""
    x, value, *places = args
    if types[0].dtype.str[1:] not in FLOATS or not _single(places, attributes):
        return None
    regions = "step" in attributes
    shaped = rewriter.maker(value, "reshape")
    result = value if shaped is None else shaped.args[0]
    total = rewriter.maker(result, "add") or rewriter.maker(result, "sub")
    if total is None:
        return None
    for k, term in enumerate(total.args):
        if k and total.primitive.name == "sub" or not _reads(rewriter, term, x, value, places, attributes):
            continue
        other = total.args[1 - k]
        if isinstance(other, Literal) and value.type.dims:
            return None
        names, rewriter.names = rewriter.names, ()
        more = rewriter.make(neg, other) if total.primitive.name == "sub" else other
        more = rewriter.make(reshape, more, shape=value.type.dims) if shaped is not None else more
        rewriter.names = names
        return rewriter.make(slice_add if regions else scatter_add, x, more, *places, **attributes)
    return None


def _reads(rewriter: Rewriter, term: Atom, x: Atom, value: Atom, places: Any, attributes: Any) -> bool:
    """Whether `term` is what `x` holds in the place where `value` goes."""
    shaped = rewriter.maker(term, "reshape")
    term = shaped.args[0] if shaped is not None else term
    read = rewriter.maker(term, "slice" if "step" in attributes else "gather")
    if read is None or term.type.dims != value.type.dims or not _same_place(read, read.args[1:], places, attributes):
        return False
    for _ in range(LONGEST):  # stores elsewhere may stand between
        let = None if read.args[0] is x else rewriter.store(x)
        if let is None or not _apart(rewriter, let, value, places, attributes):
            break
        x = let.args[0]
    return read.args[0] is x


def _same_place(one: Let, at: Any, places: Any, attributes: Any) -> bool:
    key = "step" if "step" in attributes else "axes"
    return one.attributes[key] == attributes[key] and len(at) == len(places) and all(a == b for a, b in zip(at, places))


def _single(places: Any, attributes: Any) -> bool:
    """Whether no place is named twice."""
    return "step" in attributes or bool(attributes.get("unique", False)) or not places[0].type.dims


def _places_of_a_mask(primitive: Primitive) -> None:
    @rule(primitive.name)
    def places_of_a_mask(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
        """The places where a mask is true are named once each."""
        if len(args) != 3 or attributes.get("unique") or rewriter.maker(args[2], "nonzero") is None:
            return None
        return rewriter.make(primitive, *args, **{**attributes, "unique": True}) if args[2].type.ndim == 1 else None


_places_of_a_mask(scatter)
_places_of_a_mask(scatter_add)


@rule("scatter")
def part_of_row(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """A row put back after a store into a part of it is a store into that part: a view was written to."""
    x, value, *places = args
    inner = rewriter.maker(value, "slice_update") or rewriter.maker(value, "slice_add")
    if inner is None or places[0].type.dims or attributes["axes"] != tuple(range(len(places))):
        return None
    if not rewriter.read_once(value):
        return None
    row, part, *starts = inner.args
    read = rewriter.maker(row, "gather")
    same = read is not None and read.args[0] is x and _same_place(read, read.args[1:], places, attributes)
    if not same:
        there, here = (
            rewriter.uniform(rewriter.make(gather, x, *places, axes=attributes["axes"])),
            (rewriter.uniform(row)),
        )
        if there is None or here is None or there.tobytes() != here.tobytes():
            return None
    lead = (1,) * len(places)
    names, rewriter.names = rewriter.names, ()
    shaped = rewriter.make(reshape, part, shape=(*lead, *part.type.dims))
    rewriter.names = names
    step = (*lead, *inner.attributes["step"])
    return rewriter.make(inner.primitive, x, shaped, *places, *starts, step=step)


@rule("gather", "slice")
def read_elsewhere(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """What an array held before a store somewhere else: a number, or the only thing that is read."""
    x, *starts = args
    let = rewriter.store(x)
    if let is None or x in rewriter.sums or types[0].dims and not rewriter.read_once(x):
        return None  # a part that is read behind a store would be copied before it
    one = _place(rewriter, attributes, starts, x.type.dims, attributes.get("shape"))
    other = _place(rewriter, let.attributes, let.args[2:], x.type.dims, let.args[1].type.dims)
    if one is None or other is None or not rewriter.places.apart(one, other):
        return None
    return rewriter.make(slice_ if "step" in attributes else gather, let.args[0], *starts, **attributes)


@rule("gather")
def read_back(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """What was just stored, or added."""
    x, *places = args
    written = rewriter.maker(x, "scatter")
    if (
        written is not None
        and _single(places, written.attributes)
        and _same_place(written, written.args[2:], places, attributes)
    ):
        return written.args[1]
    added = rewriter.maker(x, "scatter_add")
    if (
        added is not None
        and added.out.type.dtype.str[1:] in FLOATS
        and _single(places, added.attributes)
        and _same_place(added, added.args[2:], places, attributes)
    ):
        return rewriter.make(add, rewriter.make(gather, added.args[0], *places, **attributes), added.args[1])
    return None


@rule("scatter")
def over_another(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """A store over another makes that one useless."""
    x, value, *places = args
    before = rewriter.maker(x, "scatter") or rewriter.maker(x, "scatter_add")
    if before is not None and rewriter.read_once(x) and _same_place(before, before.args[2:], places, attributes):
        return rewriter.make(scatter, before.args[0], value, *places, **attributes)
    return None


@rule("slice_update")
def over_an_addition(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    x, value, *places = args
    before = rewriter.maker(x, "slice_add")
    if (
        before is not None
        and rewriter.read_once(x)
        and _same_place(before, before.args[2:], places, attributes)
        and before.args[1].type.dims == value.type.dims
    ):
        return rewriter.make(slice_update, before.args[0], value, *places, **attributes)
    return None


@rule("scatter_add", "slice_add")
def onto_a_store(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    """What is added to something just stored is stored with it; a derivative's own zero (which makes -0.0 to
    0.0) is left out. Additions elsewhere may stand between; where one of them may be at the same place too,
    only with such a zero: two terms of a sum change places."""
    x, value, *places = args
    store = "slice_update" if "step" in attributes else "scatter"
    between: list[Let] = []
    meeting = 0
    while (before := rewriter.maker(x, store)) is None or not _same_place(before, before.args[2:], places, attributes):
        before = rewriter.maker(x, "slice_add") or rewriter.maker(x, "scatter_add")
        if before is None or len(between) == LONGEST or not rewriter.read_once(x):
            return None
        between.append(before)
        meeting += not _apart(rewriter, before, value, places, attributes)
        x = before.args[0]
    if (
        not _single(places, before.attributes)
        or not rewriter.read_once(x)
        or x in rewriter.sums
        or (before.args[1].type.dims != value.type.dims or meeting > 1)
    ):
        return None
    ours = rewriter.span is not None and rewriter.span.role in DERIVED
    zero = rewriter.uniform(before.args[1])
    names, rewriter.names = rewriter.names, ()
    if ours and zero is not None and zero == 0:
        total = value
    elif not meeting:
        total = rewriter.make(add, before.args[1], value)
    else:
        rewriter.names = names
        return None
    rewriter.names = names
    write = slice_update if "step" in attributes else scatter
    made = rewriter.make(write, before.args[0], total, *places, **before.attributes)
    for let in reversed(between):
        names, rewriter.names, rewriter.span = rewriter.names, [let.out.name], let.span
        made = rewriter.make(let.primitive, made, *let.args[1:], **let.attributes)
        rewriter.names = names
    return made


def _apart(rewriter: Rewriter, let: Let, value: Atom, places: Any, attributes: Any) -> bool:
    """Whether a write is elsewhere than that of `value`."""
    dims = let.args[0].type.dims
    one = _place(rewriter, let.attributes, let.args[2:], dims, let.args[1].type.dims)
    other = _place(rewriter, attributes, places, dims, value.type.dims)
    return one is not None and other is not None and rewriter.places.apart(one, other)


def _place(rewriter: Rewriter, attributes: Any, starts: Any, dims: Any, shape: Any) -> list | None:
    """Where a read or a write begins along each axis, and how far it reaches; None where nobody knows."""
    of = rewriter.places.of
    if "step" in attributes:
        whole = all(s == 1 for s in attributes["step"])
        return [(of(s), n) for s, n in zip(starts, shape)] if whole else None
    if starts[0].type.dims:
        return None
    at = dict(zip(attributes["axes"], starts))
    return [(of(at[k]), 1) if k in at else (0, d) for k, d in enumerate(dims)]


__all__ = ["addition_in_place"]
