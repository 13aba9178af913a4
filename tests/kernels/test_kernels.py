"""The kernels of benchmarks/kernels: jitted unchanged they give NumPy's numbers and leave NumPy's arrays
behind, at a second size too; and their gradients are those of differences along random directions."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import metaphrase as mp

FOLDER = Path(__file__).parents[2] / "benchmarks" / "kernels"


def load_kernels():
    """The package benchmarks/kernels under a name of its own: benchmarks/ itself need not be on the path."""
    name = "benchmark_kernels"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name].KERNELS


KERNELS = load_kernels()
DIFFERENTIABLE = [name for name, kernel in KERNELS.items() if kernel.differentiable]


def larger(size):
    """Another size of the same program: sizes become symbols when it is called."""
    return tuple(n + 1 + k for k, n in enumerate(size))


def assert_same_outcome(kernel, function, arguments):
    expected = kernel.outcome(kernel.function, arguments)
    found = kernel.outcome(function, arguments)
    assert len(found) == len(expected) > 0
    for mine, theirs in zip(found, expected):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_runs_unchanged(name):
    kernel = KERNELS[name]
    jitted = mp.jit(kernel.function)
    assert_same_outcome(kernel, jitted, kernel.arguments(kernel.small))
    assert_same_outcome(kernel, jitted, kernel.arguments(larger(kernel.small)))


def pure_objective(kernel, arguments):
    """A number that depends on all that the kernel leaves behind, as a function that changes no argument."""
    rng = np.random.default_rng(1)
    outcome = kernel.outcome(kernel.function, arguments)
    weights = [rng.standard_normal(out.shape) for out in outcome if out.dtype.kind == "f"]
    arrays = [k for k, a in enumerate(arguments) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    function = kernel.function

    def objective(*given):
        given = list(given)
        for k in arrays:
            given[k] = given[k].copy()
        results = function(*given)
        results = results if isinstance(results, tuple) else () if results is None else (results,)
        total = 0.0
        for weight, left in zip(weights, (*results, *(given[k] for k in arrays)), strict=True):
            total = total + np.sum(weight * left)
        return total

    return objective


def slope_by_differences(objective, arguments, positions, h):
    """The slope of the objective along a random direction of the arguments at `positions`; the direction."""
    rng = np.random.default_rng(2)
    directions = {k: rng.standard_normal(np.shape(arguments[k])) for k in positions}

    def moved(step):
        return objective(*(a + step * directions[k] if k in directions else a for k, a in enumerate(arguments)))

    return (moved(h) - moved(-h)) / (2 * h), directions


@pytest.mark.turns(4)
@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "native"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_gradient_of_a_kernel(name, compiled):
    kernel = KERNELS[name]
    arguments = kernel.arguments(kernel.small)
    objective = pure_objective(kernel, arguments)
    difference, directions = slope_by_differences(objective, arguments, kernel.differentiable, 1e-6)
    gradient = mp.grad(objective, kernel.differentiable)
    found = (mp.jit(gradient) if compiled else gradient)(*arguments)
    slope = sum(np.sum(g * directions[k]) for g, k in zip(found, kernel.differentiable))
    np.testing.assert_allclose(slope, difference, rtol=2e-6, atol=1e-6)
