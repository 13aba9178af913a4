"""What code brought from JAX does: functions and layers kept in partials, dataclasses and named tuples."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from metaphrase import lax


def _cell(weights, carry, x):
    state = np.tanh(x @ weights + carry)
    return state, state


def partial_of_a_function(weights, xs):
    step = functools.partial(_cell, weights)
    carry, row = step(np.zeros(2), xs[0])
    carry, row = step(carry, xs[1])
    return carry + row


def partial_scanned(weights, xs):
    carry, rows = lax.scan(functools.partial(_cell, weights), np.zeros(2), xs)
    return (rows**2).mean() + carry[0]


def _square(x):
    return x * x


@dataclass
class Layer:
    weights: Any
    activation: Callable = np.tanh

    def __call__(self, x):
        return self.activation(x @ self.weights)


class Transform(NamedTuple):
    init: Callable
    update: Callable


def layer_of_a_function(weights, x):
    layer = Layer(weights, activation=_square)
    return layer(x) if layer.activation is _square else x


def _no_state(params):
    return np.zeros_like(params)


def _momentum(gradient, state):
    state = gradient + 0.9 * state
    return -0.1 * state, state


def pair_of_functions(params, gradient):
    optimiser = Transform(_no_state, _momentum)
    state = optimiser.init(params)
    for _ in range(3):
        update, state = optimiser.update(gradient, state)
        params = params + update
    return params


def _compose(*functions):
    return functools.reduce(lambda f, g: lambda x: g(f(x)), functions)


def composed(x):
    return _compose(_square, np.sin, functools.partial(np.multiply, 2.0))(x)


@dataclass(frozen=True)
class Line:
    slope: float
    offset: float

    def __call__(self, x):
        return self.slope * x + self.offset


def called_object(slope, x):
    line = Line(slope, 2 * slope)
    total = 0.0
    while total < 10:
        total += line(x) ** 2
    return total


def steps_unless_none(x, n):
    count = np.arange(n).shape[0]
    if count == 0:
        return x
    for i in range(1, count):
        x = x + i
    return x


def rows_unless_none(x, n):
    count = np.arange(n).shape[0]
    if count == 0:
        return np.zeros(0)
    return np.ones(count) * x


def scan_of_n_steps(x, n):
    return lax.scan(lambda carry, k: (carry + k, carry), x, np.arange(n))


@dataclass
class Particle:
    place: Any
    mass: Any = 2.0
    seen: list = field(default_factory=list)

    def __post_init__(self):
        self.place = np.asarray(self.place) * 1.0
        if self.place.sum() > 1:
            self.mass = self.mass * 2
        self.seen.append(self.place)


@dataclass
class Heavy(Particle):
    extra: Any = 1.0

    def __post_init__(self):
        super().__post_init__()
        self.extra = self.extra + self.place.sum()


@dataclass(frozen=True)
class Scaled:
    value: Any
    count: int = field(init=False, default=3)
    scale: InitVar[float] = 1.0

    def __post_init__(self, scale):
        object.__setattr__(self, "scaled", np.asarray(self.value) * scale)


def particle_made(x):
    particle = Particle(x)
    particle.seen.append(x)
    return particle.place * particle.mass + particle.seen[0] + particle.seen[1]


def heavy_made(x):
    heavy = Heavy(x, 3.0, extra=x[0])
    return heavy.extra * heavy.mass


def scaled_made(x):
    scaled = Scaled(x, scale=2.0)
    return scaled.scaled + scaled.count


def particle_replaced(x):
    particle = replace(Particle(x), mass=x[1])
    return particle.mass * particle.place


_WEIGHTS, _XS = np.array([[0.5, -0.25], [1.0, 0.75]]), np.array([[1.0, 2.0], [0.5, -1.0], [0.25, 0.0]])
CASES = [
    (partial_of_a_function, (_WEIGHTS, _XS)),
    (partial_scanned, (_WEIGHTS, _XS)),
    (layer_of_a_function, (_WEIGHTS, _XS[0])),
    (pair_of_functions, (_XS[0], _XS[1])),
    (composed, (0.5,)),
    *((f, (0.5, n)) for f in (steps_unless_none, rows_unless_none, scan_of_n_steps) for n in (0, 1, 4)),
    *((f, (x,)) for f in (particle_made, heavy_made, scaled_made, particle_replaced) for x in _XS[:2]),
    (called_object, (0.5, 3.0)),
    (called_object, (0.25, 1.5)),
]
