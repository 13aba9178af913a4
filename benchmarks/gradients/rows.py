"""What the rows of this folder share: C compiled from text, the least CPU time of forms in turn, one table.

In: a `Row` (arguments; objectives written by hand in C; the same as NumPy users write them). Out: lines with the
milliseconds of each objective and each gradient, and gradients over the best objective. Example:

    report(Row("mixture", size, arguments, by_hand={"-O3": objective}, ours={"arrays": function}, argnums=(0, 1, 2)))

All forms run in one process with one thread, in turn; what counts is the least CPU time of the process. Every output is
checked first: our objectives against C, our gradients against central differences of C along random directions.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import metaphrase as mp

FLAGS = {"C": (), "C -ffast-math": ("-ffast-math",)}
SECONDS, ROUNDS = 0.4, 15  # CPU time that each form may take, and rounds at least


@dataclass
class Row:
    """`by_hand`: compiled objectives, called with the arguments; `ours`: NumPy functions of the same arguments."""

    name: str
    size: str
    arguments: tuple
    by_hand: Mapping[str, Callable[..., float]]
    ours: Mapping[str, Callable[..., Any]]
    argnums: tuple[int, ...]


def compiled(text: str, name: str) -> dict[str, Callable]:
    """The C function `name` of `text`, once for each set of flags."""
    functions = {}
    folder = Path(tempfile.mkdtemp(prefix="gradients-"))
    for k, (label, flags) in enumerate(FLAGS.items()):
        source, library = folder / f"{name}.c", folder / f"{name}_{k}.so"
        source.write_text(text)
        command = ["gcc", "-O3", "-march=native", *flags, "-shared", "-fPIC", "-o", library, source, "-lm"]
        subprocess.run(command, check=True)
        functions[label] = getattr(ctypes.CDLL(str(library)), name)
        functions[label].restype = ctypes.c_double
    return functions


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    """Where a contiguous array of doubles begins."""
    assert array.dtype == np.float64 and array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def least(forms: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """The least CPU time of a call of each form, in milliseconds: blocks of calls, the forms in turn."""
    calls, best = {}, dict.fromkeys(forms, np.inf)
    for name, form in forms.items():
        form()
        start = time.process_time()
        form()
        calls[name] = max(1, int(0.01 / max(time.process_time() - start, 1e-6)))
    spent = dict.fromkeys(forms, 0.0)
    rounds = 0
    while rounds < ROUNDS or min(spent.values()) < SECONDS:
        for name, form in forms.items():
            if rounds >= ROUNDS and spent[name] >= SECONDS:
                continue
            start = time.process_time()
            for _ in range(calls[name]):
                form()
            took = time.process_time() - start
            spent[name] += took
            best[name] = min(best[name], took / calls[name])
        rounds += 1
    return {name: 1e3 * seconds for name, seconds in best.items()}


def check(row: Row, gradients: Mapping[str, Callable]) -> None:
    """Raise unless objectives and gradients agree."""
    rng = np.random.default_rng(1)
    values = {name: form(*row.arguments) for name, form in row.by_hand.items()}
    expected = values["C"]
    for name, value in values.items():
        np.testing.assert_allclose(value, expected, rtol=1e-9, err_msg=name)
    for name, function in row.ours.items():
        np.testing.assert_allclose(mp.jit(function)(*row.arguments), expected, rtol=1e-9, err_msg=name)
        value, gradient = gradients[name](*row.arguments)
        np.testing.assert_allclose(value, expected, rtol=1e-9, err_msg=name)
        for _ in range(3):
            direction = [rng.standard_normal(row.arguments[k].shape) for k in row.argnums]
            slope = sum(float(np.sum(g * d)) for g, d in zip(gradient, direction))
            step = 1e-6
            sides = []
            for sign in (1, -1):
                moved = list(row.arguments)
                for k, d in zip(row.argnums, direction):
                    moved[k] = moved[k] + sign * step * d
                sides.append(row.by_hand["C"](*moved))
            scale = sum(float(np.linalg.norm(g) * np.linalg.norm(d)) for g, d in zip(gradient, direction))
            difference = (sides[0] - sides[1]) / (2 * step)
            assert abs(difference - slope) < 1e-6 * scale, (name, difference, slope)


def report(row: Row, only: Sequence[str] = ()) -> dict[str, float]:
    """Print a line for each form of `row`, and return the milliseconds of all."""
    mp.config.num_threads = 1
    ours = {name: f for name, f in row.ours.items() if not only or name in only}
    gradients = {name: mp.jit(mp.value_and_grad(f, row.argnums)) for name, f in ours.items()}
    row.ours = ours
    check(row, gradients)
    forms = dict(row.by_hand)
    for name, function in ours.items():
        forms[name], forms[name + ", gradient"] = mp.jit(function), gradients[name]
    times = least({name: partial(form, *row.arguments) for name, form in forms.items()})
    by_hand = min(times[name] for name in row.by_hand)
    print(f"{row.name}, {row.size}: by hand " + ", ".join(f"{name} {times[name]:.3f} ms" for name in row.by_hand))
    for name in ours:
        objective, gradient = times[name], times[name + ", gradient"]
        print(
            f"  {name:8} objective {objective:8.3f} ms, gradient {gradient:8.3f} ms: "
            f"{gradient / by_hand:5.2f} of the one by hand, {gradient / min(by_hand, objective):5.2f} of the best"
        )
    return times
