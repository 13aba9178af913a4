"""Published algorithms in their textbook form, written without a thought of metaphrase. Jitted unchanged
they give plain Python's results; their derivatives are those of differences; batched they are a loop over
lanes."""

import copy
import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from corpus import alike
from turns import turn

import metaphrase as mp
from metaphrase import random

FOLDER = Path(__file__).parent


def load(name):
    """A program's module, whose folder need not be on the path."""
    key = f"textbook_{name}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, FOLDER / f"{name}.py")
        sys.modules[key] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]


lbfgs, dormand_prince, levinson = load("lbfgs"), load("dormand_prince"), load("levinson")
ising, astar, symmetric_eigen = load("ising"), load("astar"), load("symmetric_eigen")
nelder_mead, levenberg_marquardt = load("nelder_mead"), load("levenberg_marquardt")
alignment, barnes_hut, hidden_markov = load("alignment"), load("barnes_hut"), load("hidden_markov")
kalman = load("kalman")
TIMES = np.linspace(0, 10, 60)
DAMPED = 2.0 * np.exp(-0.3 * TIMES) * np.cos(1.7 * TIMES)
X, Y, SIGMA = levenberg_marquardt.spectrum(30)
BODIES = barnes_hut.disc(10)


def centre(y):
    return levenberg_marquardt.fitted_centre(X, y, SIGMA, levenberg_marquardt.GUESS)


def last_abscissas(velocities):
    return barnes_hut.simulate(BODIES[0], velocities, BODIES[2], 0.01, 3)[0][:, 0].sum()


class Run(NamedTuple):
    """A call, and how far native code may be from plain Python: some programs amplify rounding."""

    function: object
    args: tuple
    tolerance: float = 1e-9


RUNS = {
    "lbfgs": Run(lbfgs.minimize_rosenbrock, (np.tile([-1.2, 1.0], 5),)),
    "dormand_prince": Run(dormand_prince.throw, (30.0, 0.8, 0.01, np.linspace(0, 3, 7))),
    "levinson": Run(levinson.spectral_lines, (levinson.two_tones(),), 1e-7),
    "burg": Run(lambda x: levinson.spectral_lines(x, method="burg"), (levinson.two_tones(),), 1e-7),
    "ising": Run(ising.simulate, (random.key(7), 2.269, 8, 5, 10)),
    "astar": Run(astar.shortest, (astar.maze(),)),
    "astar_walled_in": Run(astar.shortest, (np.where(np.eye(6)[::-1] > 0, np.inf, 1.0),)),
    "nelder_mead": Run(nelder_mead.fit_oscillation, (TIMES, DAMPED, np.array([1.0, 0.1, 1.5])), 1e-7),
    "levenberg_marquardt": Run(
        levenberg_marquardt.fit_peaks, (*levenberg_marquardt.spectrum(), levenberg_marquardt.GUESS), 1e-7
    ),
    "alignment": Run(alignment.smith_waterman, (alignment.encode(alignment.FIRST), alignment.encode(alignment.SECOND))),
    "barnes_hut": Run(barnes_hut.simulate, barnes_hut.disc(20)),
    "hidden_markov": Run(hidden_markov.analyse, (hidden_markov.casino(60), *hidden_markov.GUESS), 1e-7),
    "kalman": Run(kalman.track, (kalman.observe(),), 1e-8),
    "symmetric_eigen": Run(symmetric_eigen.eigen, (symmetric_eigen.chain(np.linspace(1, 2, 8)),)),
}


@pytest.mark.parametrize("name", turn(RUNS, 4))
def test_a_program_runs_unchanged(name):
    function, args, tolerance = RUNS[name]
    expected = function(*copy.deepcopy(args))
    jitted = mp.jit(function)
    for _ in range(2):
        found = jitted(*copy.deepcopy(args))
        assert alike(expected, found, tolerance), f"{found}\n{expected}"


def symmetric(shape):
    direction = np.random.default_rng(3).standard_normal(shape)
    return direction + direction.T if len(shape) == 2 and shape[0] == shape[1] else direction


# name: (function, arguments, which one, relative tolerance: that of the program's own truncation)
GRADIENTS = {
    "landing_by_speed": (dormand_prince.landing_distance, (30.0, 0.8, 0.01), 0, 1e-5),
    "landing_by_angle": (dormand_prince.landing_distance, (30.0, 0.8, 0.01), 1, 1e-5),
    "landing_by_drag": (dormand_prince.landing_distance, (30.0, 0.8, 0.01), 2, 1e-5),
    "prediction_error": (levinson.prediction_error, (levinson.two_tones(64),), 0, 1e-6),
    "likelihood": (
        hidden_markov.likelihood,
        (hidden_markov.GUESS[1], hidden_markov.casino(60), hidden_markov.GUESS[0], hidden_markov.GUESS[2]),
        0,
        1e-6,
    ),
    "process_noise": (kalman.log_likelihood, (0.3, 0.5, kalman.observe()), 0, 1e-6),
    "fitted_centre": (centre, (Y,), 0, 1e-5),
    "tree_gravity": (last_abscissas, (BODIES[1],), 0, 1e-6),
    "smallest_eigenvalue": (
        symmetric_eigen.smallest_eigenvalue,
        (symmetric_eigen.chain(np.linspace(1, 2, 6)),),
        0,
        1e-6,
    ),
}


@pytest.mark.parametrize("name", turn(GRADIENTS, 4))
def test_the_derivative_of_a_program(name):
    function, args, k, tolerance = GRADIENTS[name]
    direction = symmetric(np.shape(args[k]))

    def moved(h):
        return function(*(a + h * direction if j == k else a for j, a in enumerate(args)))

    slope = np.sum(mp.jit(mp.grad(function, k))(*args) * direction)
    np.testing.assert_allclose(slope, (moved(1e-6) - moved(-1e-6)) / 2e-6, rtol=tolerance)


# name: (function, axes, arguments)
BATCHES = {
    "likelihood_of_noises": (
        kalman.log_likelihood,
        (0, None, None),
        (np.array([0.2, 0.3, 0.4]), 0.5, kalman.observe()),
    ),
    "landing": (dormand_prince.landing_distance, (None, 0, None), (30.0, np.linspace(0.5, 1, 5), 0.01)),
    "spectral_lines": (levinson.spectral_lines, (0,), (np.stack([levinson.two_tones(128, s) for s in range(3)]),)),
    "eigen": (
        symmetric_eigen.eigen,
        (0,),
        (np.stack([symmetric_eigen.chain(np.linspace(1, 2 + k, 6)) for k in range(3)]),),
    ),
    "fitted_centre": (centre, (0,), (np.stack([levenberg_marquardt.spectrum(30, s)[1] for s in range(3)]),)),
    "tree_gravity": (last_abscissas, (0,), (np.stack([BODIES[1] * (1 + 0.1 * k) for k in range(3)]),)),
    "lbfgs": (lbfgs.minimize_rosenbrock, (0,), (np.tile([-1.2, 1.0], (3, 2)) + 0.1 * np.arange(3)[:, None],)),
    "astar": (astar.shortest, (0,), (np.stack([astar.maze(8, 9, s) for s in range(4)]),)),
    "ising": (lambda key: ising.simulate(key, 2.3, 6, 3, 5)[0], (0,), (random.split(random.key(1), 3),)),
}


@pytest.mark.parametrize("name", turn(BATCHES, 4))
def test_a_batched_program_is_a_loop_over_its_lanes(name):
    function, axes, args = BATCHES[name]
    found = mp.tree.leaves(mp.jit(mp.vmap(function, axes))(*args))
    lanes = next(len(a) for a, axis in zip(args, axes) if axis is not None)
    rows = [
        mp.tree.leaves(function(*(a if axis is None else a[k] for a, axis in zip(args, axes)))) for k in range(lanes)
    ]
    assert len(found) == len(rows[0]) > 0
    for k, leaf in enumerate(found):
        np.testing.assert_allclose(leaf, np.stack([row[k] for row in rows]), rtol=1e-7, atol=1e-9)
