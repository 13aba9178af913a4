"""What a derivative in reverse mode keeps for the way back: `memory_report` and `print_saved_residuals`.

In: a function and its arguments. Out: the arrays that `vjp(fun, *args)` keeps, each with the line that computes it, and
the most memory that its gradient holds at a time.

>>> import metaphrase as mp
>>> def f(x):
...     return mp.numpy.sin(mp.numpy.sin(x))
>>> print(memory_report(f, 0.5).total)
16
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from ..config import config
from ..core.ir import Atom, Function, Var
from ..core.loops import Loop
from ..late import dataclass
from ..runtime.dispatch import measure_scratch
from ..source import Span
from ..tree_util import tree_map
from .arguments import take_apart, takes_any_keywords
from .program import name_of
from .public import jit
from .tracebacks import user_frames
from .transformations import Linear
from .transforms import program_of


@dataclass(frozen=True)
class Residual:
    """An array that is kept. `steps`: of how many steps of a loop it has rows, None where it is of none. `span`: the
    place in the source that computes it, None of an argument."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    nbytes: int
    steps: int | None
    span: Span | None

    def __str__(self) -> str:
        shape = f"{self.dtype.name}[{','.join(map(str, self.shape))}]"
        if self.span is None:
            return f"{self.nbytes:>14,d}  {shape:<24} the argument {self.name}"
        steps = "" if self.steps is None else f" ({self.nbytes // max(self.steps, 1):,d} a step)"
        return f"{self.nbytes:>14,d}  {shape:<24} {self.name}{steps}  {self.span}: {self.span.text().strip()}"


@dataclass(frozen=True)
class MemoryReport:
    """What is kept, the largest first; and `peak`, the most bytes that the gradient holds at a time when it is compiled
    in one piece: residuals, states of loops that run again, cotangents and other temporaries, but neither arguments
    nor results. Prints as a table."""

    name: str
    residuals: tuple[Residual, ...]
    peak: int

    @property
    def total(self) -> int:
        """Bytes of all residuals together."""
        return sum(r.nbytes for r in self.residuals)

    def __str__(self) -> str:
        head = f"vjp of {self.name} keeps {self.total:,d} bytes in {len(self.residuals)} arrays"
        return "\n".join([head, *map(str, self.residuals), f"{self.peak:>14,d}  at the peak of the gradient"])


def memory_report(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> MemoryReport:
    """The arrays that `vjp(fun, *args)` keeps for the way back, with bytes, shapes and the lines that compute them; and
    the most memory that its gradient takes. `fun` and its gradient run, compiled, on one thread.

    A gradient that is compiled in one piece keeps these, or fewer where it is cheaper to compute one again; its peak
    is measured. Without a compiler, or where `native` is False, that is what NumPy and Python take. Raises what `vjp`
    raises.
    """
    with user_frames():
        of_args = (lambda *a: fun(*a, **kwargs)) if kwargs else fun
        made = Linear(of_args, False, "vjp")
        _, pullback = jit(made)(*args)
        call = take_apart(args, {}, in_order=takes_any_keywords(fun))
        function = program_of(made, call.structure, call.specs).function
        values = [np.asarray(value) for value in pullback.residuals]
        atoms = function.results[len(function.results) - len(values) :]
        kept = [_residual(function, *pair) for pair in zip(atoms, values)]
        return MemoryReport(name_of(fun), tuple(sorted(kept, key=lambda r: -r.nbytes)), _peak(of_args, args))


def _peak(fun: Callable[..., Any], args: tuple) -> int:
    """The most bytes that the gradient holds at a time, besides arguments and results."""

    def gradient(*args: Any) -> Any:
        out, pullback = Linear(fun, False, "vjp")(*args)
        return pullback(tree_map(np.ones_like, out))

    compiled: Any = jit(gradient)
    with config(num_threads=1, tier="wait"):
        compiled(*args)
        if not compiled.entries:
            return _traced_peak(lambda: compiled(*args))
        measure_scratch(True)
        try:
            compiled(*args)
        finally:
            most = measure_scratch(False)
    return most


def _traced_peak(run: Callable[[], Any]) -> int:
    """The most bytes that Python and NumPy have taken at a time in `run`, besides what it returns."""
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        result = run()
        after, most = tracemalloc.get_traced_memory()
        del result
    finally:
        if not tracing:
            tracemalloc.stop()
    return most - max(before, after)


def print_saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print `memory_report(fun, *args, **kwargs)`. (JAX's name.)"""
    print(memory_report(fun, *args, **kwargs))


def _residual(function: Function, atom: Atom, value: np.ndarray) -> Residual:
    name, span, looped = _origin(function, atom)
    steps = value.shape[0] if looped and value.ndim else None
    return Residual(name, value.shape, value.dtype, value.nbytes, steps, span)


def _origin(function: Function, atom: Atom) -> tuple[str, Span | None, bool]:
    """The name of a result of `function`, the place in the source that computes it, and whether it is a row of each
    step of a loop there."""
    if not isinstance(atom, Var):
        return "a number", None, False
    let = next((let for let in function.lets if atom in let.outs), None)
    if let is None:
        return atom.name, None, False
    if let.primitive.name == "checkpoint_name":
        _, span, looped = _origin(function, let.args[0])
        return let.attributes["name"], span, looped
    index = let.outs.index(atom)
    if let.primitive.name == "loop":
        loop = Loop.of(let)
        index -= len(loop.sizes)
        if index < 0:
            return atom.name, let.span, False
        name, span, _ = _origin(loop.body.function, [*loop.results][index])
        return name, span or let.span, index >= len(loop.args.state)
    if let.primitive.name == "call":
        name, span, looped = _origin(let.attributes["function"], let.attributes["function"].results[index])
        return name, span or let.span, looped
    if let.primitive.name == "as_dim":
        return "a size", let.span, False
    unnamed = atom.name == let.primitive.name  # by the user
    return f"a result of {atom.name}" if unnamed else atom.name, let.span, False


__all__ = ["MemoryReport", "Residual", "memory_report", "print_saved_residuals"]
