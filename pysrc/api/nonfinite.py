"""debug_nans and debug_infs: a result that has a NaN (an inf) is an error that names the operation that made it.

In: a call, its program, and how it is run. Out: what the call returns, or a NonFiniteError. Native code and NumPy
source run as ever, and only what they return is looked at; where that is bad the program runs once more, on what it
was given then, by `core/origins.py`. Example:

    with config(debug_nans=True):
        grad(loss)(0.0)     # NonFiniteError: model.py:3:11: the first nan in the result of grad_loss is made here
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import config
from ..core.array_classes import is_on_device
from ..late import module
from ..runtime.devices import pass_entries_over
from ..source import SourceError, Span
from ..tree_util import tree_leaves
from . import memory as memory
from .arguments import Call
from .captures import read_capture
from .placement import on_host
from .program import Program, Slot, leaf_labels

if TYPE_CHECKING:
    from ..core import origins
else:
    origins = module("metaphrase.core.origins")

_SETTINGS = {"nan": "debug_nans", "inf": "debug_infs"}
_wanted: set[str] = set()
_LAX_LOOPS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_control.py")


class NonFiniteError(SourceError, FloatingPointError):
    """A result has a NaN or an inf. `operation`: what made the first one, None where the arguments had it;
    `iterations`: of the loops around it, from 0, the outermost first; `lanes`: under vmap, the outermost first;
    `role`: "primal", "tangent", "adjoint" or "recomputed", what the operation was made from the line for."""

    def __init__(self, message: str, found: origins.Origin | None = None, **more: Any):
        super().__init__(message, None if found is None else found.span, **more)
        self.operation = None if found is None else found.shown
        self.iterations = () if found is None else tuple(i + _first(span) for span, i in found.iterations)
        self.lanes = () if found is None else found.lanes
        self.role = "primal" if self.span is None else self.span.role


def _listen(kind: str) -> Callable[[bool], None]:
    def listener(on: bool) -> None:
        if on != (kind in _wanted):
            (_wanted.add if on else _wanted.discard)(kind)
            pass_entries_over(1 if on else -1)

    return listener


for _kind, _name in _SETTINGS.items():
    config.listen(_name, _listen(_kind))


def debug_nans(val: bool = True) -> AbstractContextManager:
    """A context manager: a call whose result has a NaN raises a FloatingPointError, which names what made it."""
    return config(debug_nans=val)


def debug_infs(val: bool = True) -> AbstractContextManager:
    """A context manager: a call whose result has an inf raises a FloatingPointError, which names what made it."""
    return config(debug_infs=val)


def looked_at(
    program: Callable[[], Program],
    run: Callable[[Call], Any],
    call: Call,
    names: Sequence[str] = (),
    captured: Sequence[Any] | None = None,
) -> Any:
    """`run(call)`, whose results are looked at where a setting says so. `names`: of the parameters. `captured`: what
    captures are, if that is not read from them."""
    if not _wanted:
        return run(call)
    kinds, made = " ".join(sorted(_wanted, reverse=True)), program()
    given = _inputs(made, call, captured)
    out = run(call)
    looked = [out, *(call.leaves[w.target] for w in made.writes if w.kind == "argument")]
    if any(origins.is_bad(leaf, kinds).any() for leaf in on_host(_arrays(looked))):
        raise _error(made, given, kinds, names)
    return out


def _arrays(tree: Any) -> list[Any]:
    """The numbers and arrays in a result."""
    leaves = tree_leaves(tree, is_leaf=_is_linear)
    return [x for x in leaves if is_on_device(x) or isinstance(x, (np.ndarray, np.generic, float, complex))]


def _results(program: Program) -> list[int]:
    """The numbers of the results that are looked at."""
    whole = program.out.skeleton(range(program.out.num_leaves))
    slots = [program.slots[k] for k in tree_leaves(whole, is_leaf=_is_linear) if isinstance(k, int)]
    return [s.index for s in slots if isinstance(s, Slot)] + [w.index for w in program.writes if w.kind == "argument"]


def _is_linear(value: Any) -> bool:
    """What a linear function keeps is no result."""
    return getattr(type(value), "keeps_residuals", False)


def _inputs(program: Program, call: Call, captured: Sequence[Any] | None) -> list[Any]:
    """What a run is given, copied where the run stores into it."""
    values = list(captured) if captured is not None else list(map(read_capture, program.captures))
    values += [call.leaves[position] for position in memory.leaf_positions(program)]
    types = program.function.param_types
    take = np.array if program.writes else np.asarray
    return [take(v, t.dtype) for v, t in zip(on_host(values), types, strict=True)]


def _error(program: Program, given: Sequence[Any], kinds: str, names: Sequence[str]) -> NonFiniteError:
    what, name = kinds.replace(" ", " or "), program.title
    found = origins.origin(program.function, given, kinds, _results(program))
    if found is origins.GIVEN:
        return NonFiniteError(
            f"{what} in the result of {name} comes from {_named(program, given, kinds, names)}",
            code="non-finite",
            remedy="look at what made the argument; other operations may have made more",
        )
    if not isinstance(found, origins.Origin):
        return NonFiniteError(
            f"{what} in the result of {name}, which is finite when NumPy's rules of rounding run the program",
            code="non-finite",
            remedy="set config.native (or config.contract, config.fastmath) to False: native code rounds otherwise",
        )
    kind = "nan" if np.isnan(found.value) else "inf"
    return NonFiniteError(
        f"the first {kind} in the result of {name} is made here{_for(found)}: {found.shown} is {found.value}",
        found,
        code="non-finite",
        notes=(*_around(found), *_inf(found)),
    )


def _for(found: origins.Origin) -> str:
    role = "primal" if found.span is None else found.span.role
    return "" if role == "primal" or found.span is None else f", by the {role} code of line {found.span.line}"


def _inf(found: origins.Origin) -> list[tuple[str, Span | None]]:
    """What made the inf that became a NaN."""
    if found.inf is origins.GIVEN:
        return [("  its inf was among the arguments", None)]
    if not isinstance(found.inf, origins.Origin) or found.inf.span is None:
        return []
    return [(f"its inf is made here{_for(found.inf)}: {found.inf.shown}", found.inf.span), *_around(found.inf)]


def _first(span: Span | None) -> int:
    """The iteration with which a loop begins: `lax.scan` takes its first step before its loop."""
    return int(span is not None and span.file == _LAX_LOOPS and span.function == "scan")


def _around(found: origins.Origin) -> list[tuple[str, Span | None]]:
    notes: list[tuple[str, Span | None]] = []
    for span, iteration in reversed(found.iterations):
        where = "an unrolled loop" if span is None else f"the loop at {os.path.basename(span.file)}:{span.line}"
        if span is not None and span.file == _LAX_LOOPS:
            where = f"lax.{span.function}"
        notes.append((f"  in iteration {iteration + _first(span)} (from 0) of {where}", None))
    if found.lanes:
        lanes = found.lanes[0] if len(found.lanes) == 1 else found.lanes
        notes.append((f"  in lane {lanes} of the batch", None))
    return notes


def _named(program: Program, given: Sequence[Any], kinds: str, names: Sequence[str]) -> str:
    """The first argument or captured array that is bad, with the place in it."""
    labels = [f"the captured array {capture}" for capture in program.captures]
    positions = memory.leaf_positions(program)
    every = leaf_labels(program.structure, names)
    labels += [every[position] for position in positions]
    for label, value in zip(labels, given):
        bad = origins.is_bad(value, kinds)
        if bad.any():
            index = ", ".join(map(str, np.argwhere(bad)[0]))
            return f"{label}[{index}]" if index else label
    return "the arguments"


__all__ = ["NonFiniteError", "debug_infs", "debug_nans", "looked_at"]
