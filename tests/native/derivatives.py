"""The corpus differentiated: the core programs of a case, of its forward and of its reverse derivative.

In: a name of the corpus. Out: `Derived`, with flat arguments. Example:

    derived = derive("kernels.softmax")
    derived.jvp      # (x, x_dot) -> (y, y_dot)
    derived.vjp      # (x, y_bar) -> (y, x_bar)
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from stages import CASES, once, primal, staged

from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.nest import Program
from metaphrase.astpasses.transforms.jvp import jvp
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.ir import Function
from metaphrase.core.types import has_tangent, type_symbols


@dataclass(frozen=True)
class Derived:
    """`args`: flat arguments; `dots`: a direction of those in `wrt`; `smooth`: which results have a tangent;
    `bars`: cotangents of those."""

    primal: Function
    args: list[Any]
    wrt: list[bool]
    dots: list[np.ndarray]
    smooth: list[bool]
    bars: list[np.ndarray]
    jvp: Function
    vjp: Function | None  # None where a result has a size that is only known at run time


@once
def derive(name: str) -> Derived | None:
    """None for a function without float arguments, or whose results do not depend on them smoothly."""
    function = primal(name)
    flat = [np.array(a)[()] for a in staged(name).arguments(CASES[name][1])]
    wrt = [has_tangent(p.type) for p in function.params]
    if not any(wrt):
        return None
    forward, smooth = jvp(function, wrt)
    if not any(smooth):
        return None
    random = np.random.default_rng(zlib.crc32(name.encode()))
    dots = [_direction(random, a) for a, m in zip(flat, wrt) if m]
    forward = optimize(forward, before_transform=False)
    sizes = {s for p in function.params for s in type_symbols(p.type)}
    if not all(type_symbols(r.type) <= sizes for r, s in zip(function.results, smooth) if s):
        return Derived(function, flat, wrt, dots, smooth, [], forward, None)
    marked = [r.type for r, s in zip(function.results, smooth) if s]
    bars = [_direction(random, np.empty(t.dims, t.dtype)) for t in marked]
    backward = optimize(vjp(function, wrt), before_transform=False)
    return Derived(function, flat, wrt, dots, smooth, bars, forward, backward)


def programs(derived: Derived | None) -> dict[str, tuple[Function, list[Any]]]:
    """The derivatives that there are, each with its arguments."""
    if derived is None:
        return {}
    found = {"jvp": (derived.jvp, [*derived.args, *derived.dots])}
    if derived.vjp is not None:
        found["vjp"] = derived.vjp, [*derived.args, *derived.bars]
    return found


@once
def derived_loops(name: str) -> dict[str, Program]:
    """The loops stages of `programs`."""
    return {mode: schedule(function) for mode, (function, _) in programs(derive(name)).items()}


def _direction(random: np.random.Generator, value: Any) -> np.ndarray:
    value = np.asarray(value)
    made = random.uniform(0.5, 1.5, value.shape) * random.choice([-1.0, 1.0], value.shape)
    if value.dtype.kind == "c":
        made = made + 1j * random.uniform(-1.0, 1.0, value.shape)
    return np.asarray(made, value.dtype)[()]


def moved(derived: Derived, step: float) -> list[Any]:
    """The arguments, `step` along the direction."""
    dots = iter(derived.dots)
    return [
        np.asarray(a + step * next(dots), np.asarray(a).dtype)[()] if m else a
        for a, m in zip(derived.args, derived.wrt)
    ]
