"""Kernels that NumPy users write, one file each: plain NumPy programs that know nothing of metaphrase.

In: nothing. Out: `KERNELS`, by name. A file holds the function that bears its name, `arguments(rng, *size)`,
a small size for tests, a large one for timing, and the positions that it can be differentiated in. Example:

    kernel = KERNELS["lu"]
    a, = kernel.arguments(kernel.small)
    kernel.function(a)                      # in place
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

NAMES = (
    "asian_option",
    "cholesky",
    "comb_sort",
    "conv2d_bias",
    "convolved",
    "fdtd_2d",
    "floyd_warshall",
    "gemm",
    "gray_scott",
    "heat_3d",
    "huber",
    "jacobi_1d",
    "jacobi_2d",
    "lu",
    "mandelbrot",
    "metropolis",
    "mlp",
    "nbody",
    "nussinov",
    "random_walk",
    "seidel_2d",
    "sieve",
    "softmax_4d",
    "spmv",
    "symm",
    "syrk",
    "trial_division",
)


@dataclass(frozen=True)
class Kernel:
    """A program and its data."""

    name: str
    function: Callable[..., Any]
    make: Callable[..., tuple]
    small: tuple[int, ...]
    large: tuple[int, ...]
    differentiable: tuple[int, ...]

    def arguments(self, size: tuple[int, ...]) -> tuple:
        """The same arguments every time, fresh arrays."""
        return self.make(np.random.default_rng(0), *size)

    def outcome(self, function: Callable[..., Any], arguments: tuple) -> list[np.ndarray]:
        """All that a call leaves behind: its results, then the arrays it was given as they are afterwards."""
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        results = function(*given)
        results = results if isinstance(results, tuple) else () if results is None else (results,)
        return [np.asarray(r) for r in results] + [a for a in given if isinstance(a, np.ndarray)]


def _load(name: str) -> Kernel:
    module = importlib.import_module(f".{name}", __name__)
    return Kernel(name, getattr(module, name), module.arguments, module.SMALL, module.LARGE, module.DIFFERENTIABLE)


KERNELS = {name: _load(name) for name in NAMES}
