"""Structured control flow: `loop`, `cond`, `call`. Their bodies are closed Functions, captures are leading
operands.

In: operands by role. Out: results by role. docs/design.md section 3 has the contract; the transformations
hold their derivative, transpose and batch rules.

Newton's iteration for Kepler's equation E - e sin E = M:

    def keep_going(i: i64, e: f64, M: f64, E: f64) -> bool: ...
    def newton(i: i64, e: f64, M: f64, E: f64) -> f64: ...
    T, E_1 = loop(e, M, M, body=newton, cond=keep_going, length=None, roles=Roles(2, 1, 0, 0), size="T")
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.dims import DimLike, Sym
from ..core.ir import Function, Roles
from ..core.native import Region
from ..core.primitive import ByTransform, Primitive
from ..core.types import Array, Size, i64
from .families import require


def _fits(have: Array, want: Array) -> bool:
    return have.plain == want.plain


def _loop_type(
    *types: Array,
    body: Function,
    cond: Function | None,
    length: DimLike | None,
    roles: Roles,
    reverse: bool = False,
    parallel: bool = False,
    size: str | None = None,
    segment_sizes: tuple[str, ...] = (),
    slots: DimLike = 0,
    chunk: DimLike = 0,
    limit: int = 0,
) -> tuple:
    require(len(segment_sizes) == roles.segments, "loop: each segment names its size")
    require(cond is not None or length is not None, "loop: needs a length or a condition")
    require((cond is None) == (size is None), "loop: `size` names the trip count exactly when there is a condition")
    require(not (reverse and cond is not None), "loop: only a loop of known length runs in reverse")
    require(
        not (parallel and (roles.carries or roles.segments or cond is not None)),
        "loop: a parallel loop carries nothing",
    )
    consts, carries, accumulators, rows = roles.parts(types)
    slices = []
    for row in rows:
        require(
            row.ndim > 0 and (row.dims[0] == length or cond is not None and length is None),
            f"loop: rows {row} do not have the length {length}",
        )
        slices.append(row.with_dims(row.dims[1:]))
    want = (Array(i64), *consts, *carries, *accumulators, *slices)
    require(
        len(body.params) == len(want) and all(map(_fits, want, body.param_types)),
        lambda: f"loop: body takes {body.param_types}, gets {want}",
    )
    kept = (*carries, *accumulators)
    require(
        all(map(_fits, body.result_types, kept)) and len(body.results) >= len(kept) + roles.segments,
        lambda: f"loop: carries {kept} become {body.result_types}",
    )
    if cond is not None:
        want = (Array(i64), *consts, *carries)
        require(
            len(cond.params) == len(want) and all(map(_fits, want, cond.param_types)),
            lambda: f"loop: condition takes {cond.param_types}, gets {want}",
        )
        require(cond.result_types == (Array(np.dtype(bool)),), "loop: the condition gives one bool")
    lead: Any = Sym(size) if size is not None else length
    cut = len(body.results) - roles.segments
    lengths: dict[str, DimLike] = {}
    for name, segment in zip(segment_sizes, body.result_types[cut:]):
        require(
            segment.ndim > 0 and lengths.setdefault(name, segment.dims[0]) == segment.dims[0],
            "loop: segments of one size have one length",
        )
    outs = (
        *(t.plain for t in kept),
        *(Array(t.dtype, (lead, *t.dims)) for t in body.result_types[len(kept) : cut]),
        *(Array(t.dtype, (Sym(name), *t.dims[1:])) for name, t in zip(segment_sizes, body.result_types[cut:])),
    )
    sizes = [size] if size is not None else []
    return (*(Size(Sym(name)) for name in (*sizes, *lengths)), *outs)


def _loop_numpy(
    run: Any,
    *args: Any,
    body: Function,
    cond: Function | None,
    length: int | None,
    roles: Roles,
    reverse: bool = False,
    parallel: bool = False,
    size: Any = None,
    segment_sizes: tuple[str, ...] = (),
    slots: DimLike = 0,
    chunk: DimLike = 0,
    limit: int = 0,
) -> tuple:
    consts, carries, accumulators, rows = roles.parts(args)
    state = (*carries, *accumulators)
    cut = len(body.results) - roles.segments - len(state)
    outs: list[list] = [[] for _ in body.results[len(state) :]]
    trips = 0
    for i in _counter(length, reverse):
        i = np.int64(i)  # type: ignore[assignment]
        if cond is not None and not run(cond, i, *consts, *state[: len(carries)])[0]:
            break
        results = run(body, i, *consts, *state, *(r[i] for r in rows))
        state = tuple(results[: len(state)])
        for out, value in zip(outs, results[len(state) :]):
            out.append(value)
        trips += 1
    stacked = []
    for out, type_ in zip(outs[:cut], body.result_types[len(state) :]):
        out = out[::-1] if reverse else out
        stacked.append(np.stack(out) if out else np.zeros((0, *run.shape(type_)), type_.dtype))
    found: dict[str, np.int64] = {}
    for out, type_, name in zip(outs[cut:], body.result_types[len(state) + cut :], segment_sizes):
        none = np.zeros((0, *run.shape(type_.with_dims(type_.dims[1:]))), type_.dtype)
        stacked.append(np.concatenate([none, *out]))
        found[name] = np.int64(len(stacked[-1]))
    return (*(() if cond is None else (np.int64(trips),)), *found.values(), *state, *stacked)


def _counter(length: int | None, reverse: bool) -> Iterator[int]:
    if length is None:
        i = 0
        while True:
            yield i
            i += 1
    yield from reversed(range(length)) if reverse else range(length)


loop = Primitive(
    "loop",
    type=_loop_type,
    numpy=_loop_numpy,
    jvp=ByTransform,
    transpose=ByTransform,
    dims=ByTransform,
    native=Region("loop"),
    multiple=True,
    region=True,
    doc="The one loop; see docs/design.md.",
)


def _cond_type(index: Array, *types: Array, branches: tuple) -> tuple:
    require(not index.dims and index.dtype.kind in "biu", lambda: f"cond: index is {index}")
    require(len(branches) >= 1 and (index.dtype != bool or len(branches) == 2), "cond: a bool index has two branches")
    for branch in branches:
        taken, given = branch.param_types, branch.result_types
        if not (len(branch.params) == len(types) and all(map(_fits, types, taken))):
            require(False, f"cond: branch takes {taken}, gets {types}")
        first = branches[0].result_types
        if not (len(given) == len(first) and all(map(_fits, given, first))):
            require(False, f"cond: branches give {first} and {given}")
    return tuple(t.plain for t in branches[0].result_types)


cond = Primitive(
    "cond",
    type=_cond_type,
    numpy=lambda run, index, *args, branches: tuple(run(branches[int(index)], *args)),
    jvp=ByTransform,
    transpose=ByTransform,
    dims=ByTransform,
    native=Region("cond"),
    multiple=True,
    region=True,
    doc="branches[index](*operands); a bool index picks branches[0] when False, branches[1] when True.",
)


def _call_type(*types: Array, function: Function) -> tuple:
    require(
        len(function.params) == len(types) and all(map(_fits, types, function.param_types)),
        lambda: f"call: {function.name} takes {function.param_types}, gets {types}",
    )
    return tuple(t.plain for t in function.result_types)


call = Primitive(
    "call",
    type=_call_type,
    numpy=lambda run, *args, function: tuple(run(function, *args)),
    jvp=ByTransform,
    transpose=ByTransform,
    dims=ByTransform,
    native=Region("call"),
    multiple=True,
    region=True,
    doc="function(*operands).",
)
