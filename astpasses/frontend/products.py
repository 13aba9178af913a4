"""Matrix products: `@`, dot, tensordot, einsum, outer and their like, all by `dot_general`.

In: staged arrays. Out: their products, with NumPy's rules for vectors, stacks and promotion.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.ir import Atom
from metaphrase.ops.dot import dot_general
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.shape import permute, reshape

from .arithmetic import broadcast_dims, dtype_of, operand, spread
from .calls import handles
from .session import Session, session
from .values import StagedArray


def _pair(here: Session, a: Any, b: Any) -> tuple[Atom, Atom]:
    """Both operands in one dtype."""
    kinds = [dtype_of(v) for v in (a, b)]
    dtype = np.result_type(*[k(0) if isinstance(k, type) else k for k in kinds])
    return here.atom(a, dtype), here.atom(b, dtype)


def _sizes(here: Session, a: Any, b: Any, what: str, x: Any, y: Any) -> None:
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise here.shape_error(f"{what}: sizes {a} and {b} of {x} and {y} do not fit")


def _contract(here: Session, a: Atom, b: Atom, left: tuple, right: tuple, batch: tuple = ((), ())) -> Atom:
    from .arithmetic import equal_size
    for i, j in zip((*left, *batch[0]), (*right, *batch[1])):
        _sizes(here, a.type.dims[i], b.type.dims[j], "product", a.type, b.type)
        if a.type.dims[i] != b.type.dims[j]:
            b = equal_size(here, b, j, a.type.dims[i])
    return here.emit(dot_general, a, b, contract=(tuple(left), tuple(right)), batch=batch)


@handles(np.matmul)
def matmul(a: Any, b: Any, out: Any = None, **ignored: Any) -> Any:
    """`a @ b`."""
    here = session()
    a, b = operand(a), operand(b)
    if not (isinstance(a, StagedArray) and isinstance(b, StagedArray)) or not a.ndim or not b.ndim:
        raise ValueError("matmul: Input operand does not have enough dimensions")
    x, y = _pair(here, a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        made = _contract(here, x, y, (a.ndim - 1,), (max(b.ndim - 2, 0),))
    elif a.ndim == 1 or b.ndim <= 2:
        made = _contract(here, x, y, (a.ndim - 1,), (max(b.ndim - 2, 0),))
    else:
        lead = broadcast_dims([x.type.dims[:-2], y.type.dims[:-2]])
        x, y = spread(here, x, (*lead, *x.type.dims[-2:])), spread(here, y, (*lead, *y.type.dims[-2:]))
        n = len(lead)
        axes = tuple(range(n))
        made = _contract(here, x, y, (n + 1,), (n,), (axes, axes))
    result = here.wrap(made)
    if out is not None:
        from .numpy_calls import store_out
        return store_out(out, result)
    return result


@handles(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    here = session()
    a, b = operand(a), operand(b)
    if not isinstance(a, StagedArray) or not isinstance(b, StagedArray) or not a.ndim or not b.ndim:
        return a * b
    x, y = _pair(here, a, b)
    result = here.wrap(_contract(here, x, y, (a.ndim - 1,), (max(b.ndim - 2, 0),)))
    if out is not None:
        from .numpy_calls import store_out
        return store_out(out, result)
    return result


@handles(np.vdot)
def vdot(a: Any, b: Any) -> Any:
    a, b = operand(a), operand(b)
    return dot(a.conj().ravel(), b.ravel())


@handles(np.inner)
def inner(a: Any, b: Any) -> Any:
    here = session()
    a, b = operand(a), operand(b)
    if not isinstance(a, StagedArray) or not isinstance(b, StagedArray) or not a.ndim or not b.ndim:
        return a * b
    x, y = _pair(here, a, b)
    return here.wrap(_contract(here, x, y, (a.ndim - 1,), (b.ndim - 1,)))


@handles(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    a, b = operand(a), operand(b)
    a = a.ravel() if isinstance(a, StagedArray) else a
    b = b.ravel() if isinstance(b, StagedArray) else b
    return a[:, None] * b[None, :]


@handles(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    here = session()
    a, b = operand(a), operand(b)
    if isinstance(axes, (int, np.integer)):
        left, right = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    else:
        left, right = [(x,) if isinstance(x, (int, np.integer)) else tuple(x) for x in axes]
    left = tuple(int(k) % a.ndim for k in left)
    right = tuple(int(k) % b.ndim for k in right)
    x, y = _pair(here, a, b)
    return here.wrap(_contract(here, x, y, left, right))


# --- einsum ---------------------------------------------------------------------------------------------------------

@handles(np.einsum)
def einsum(subscripts: str, *operands: Any, **ignored: Any) -> Any:
    here = session()
    values = [operand(v) for v in operands]
    values = [v if isinstance(v, StagedArray) else here.array(here.atom(v)) for v in values]
    terms, output = _parse(here, subscripts, values)
    kinds = [v.dtype for v in values]
    dtype = np.result_type(*kinds)
    atoms = [here.atom(v, dtype) for v in values]
    pairs = [_diagonal(here, atom, term) for atom, term in zip(atoms, terms)]
    (atom, term), rest = pairs[0], pairs[1:]
    for k, (other, names) in enumerate(rest):
        needed = set(output).union(*(t for _, t in rest[k + 1:]))
        atom, term = _sum_out(here, atom, term, needed | set(names))
        other, names = _sum_out(here, other, names, needed | set(term))
        both = [n for n in term if n in names]
        batch = [n for n in both if n in needed]
        contract = [n for n in both if n not in needed]
        atom = _contract(here, atom, other, tuple(term.index(n) for n in contract),
                         tuple(names.index(n) for n in contract),
                         (tuple(term.index(n) for n in batch), tuple(names.index(n) for n in batch)))
        term = batch + [n for n in term if n not in both] + [n for n in names if n not in both]
    atom, term = _sum_out(here, atom, term, set(output))
    order = tuple(term.index(n) for n in output)
    if order != tuple(range(len(order))):
        atom = here.emit(permute, atom, axes=order)
    return here.wrap(atom)


def _parse(here: Session, subscripts: str, values: list) -> tuple[list[list[str]], list[str]]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = [list(t) for t in left.split(",")]
    if len(terms) != len(values):
        raise ValueError("more operands provided to einstein sum function than specified in the subscripts string")
    if "." in text:
        rank = max(v.ndim - len([c for c in t if c != "."]) for t, v in zip(terms, values))
        wide = [chr(0x3b1 + k) for k in range(rank)]
        full = []
        for t, v in zip(terms, values):
            named = "".join(t)
            count = v.ndim - len(named.replace("...", ""))
            head, dots, tail = named.partition("...")
            full.append([*head, *(wide[rank - count:] if dots else []), *tail])
        terms = full
        head, dots, tail = right.partition("...")
        right = "".join([*head, *(wide if dots else []), *tail])
    for t, v in zip(terms, values):
        if len(t) != v.ndim:
            raise ValueError(f"einstein sum subscripts string {''.join(t)!r} does not fit an operand of {v.ndim} "
                             "dimensions")
    if not arrow:
        every = [n for t in terms for n in t]
        right = "".join(sorted(n for n in set(every) if every.count(n) == 1))
    return terms, list(right)


def _diagonal(here: Session, atom: Atom, term: list[str]) -> tuple[Atom, list[str]]:
    """A name that occurs twice in one operand picks the diagonal."""
    while len(set(term)) < len(term):
        name = next(n for n in term if term.count(n) > 1)
        first = term.index(name)
        second = term.index(name, first + 1)
        from .numpy_picking import take_diagonal
        atom = take_diagonal(here, atom, first, second)
        term = [n for k, n in enumerate(term) if k not in (first, second)] + [name]
    return atom, term


def _sum_out(here: Session, atom: Atom, term: list[str], needed: set[str]) -> tuple[Atom, list[str]]:
    gone = tuple(k for k, n in enumerate(term) if n not in needed)
    if not gone:
        return atom, term
    return here.emit(reduce_sum, atom, axes=gone), [n for n in term if n in needed]


@handles(np.kron)
def kron(a: Any, b: Any) -> Any:
    here = session()
    a, b = operand(a), operand(b)
    rank = max(a.ndim, b.ndim)
    a = a.reshape((1,) * (rank - a.ndim) + a.shape)
    b = b.reshape((1,) * (rank - b.ndim) + b.shape)
    x = a[tuple(k for _ in range(rank) for k in (slice(None), None))]
    y = b[tuple(k for _ in range(rank) for k in (None, slice(None)))]
    dims = tuple(p * q for p, q in zip(a.type.dims, b.type.dims))
    return here.wrap(here.emit(reshape, (x * y).read(), shape=dims))
