"""Pytrees in and out: dicts, lists, tuples, NamedTuples, registered dataclasses."""

import dataclasses
from typing import NamedTuple

import numpy as np

from metaphrase import tree


class State(NamedTuple):
    position: np.ndarray
    velocity: np.ndarray
    step: int


@tree.register_dataclass
@dataclasses.dataclass
class Particle:
    mass: float
    place: np.ndarray


def linear(params, x):
    return params["w"] @ x + params["b"]


def two_layers(params, x):
    for layer in params:
        x = np.tanh(layer["w"] @ x + layer["b"])
    return x


def mse(params, x, y):
    return ((linear(params, x) - y) ** 2).mean()


def update(params, gradient, rate):
    return {k: params[k] - rate * gradient[k] for k in params}


def tree_map(params):
    return tree.map(lambda p: p * 2 if p.sum() > 0 else p - 1, params)


def advance(state, dt):
    return State(state.position + dt * state.velocity, state.velocity, state.step + 1)


def simulate(state, n):
    for _ in range(n):
        state = advance(state, 0.1)
    return state


def replace_field(state):
    return state._replace(step=state.step + 10)


def move(particle, by):
    return Particle(particle.mass, particle.place + by / particle.mass)


def heavier(a, b):
    return a if a.mass > b.mass else b


def swap_pair(pair):
    a, b = pair
    return b, a


def dict_in_loop(params, n):
    for _ in range(n):
        params = {"a": params["a"] + params["b"], "b": params["b"] * 0.5}
    return params


def list_store(x):
    items = [x, x + 1, x + 2]
    items[1] = items[0] * 10
    return items


def list_state_in_loop(x):
    s = [0.0, 1.0]
    for _ in range(10):
        s[0] = s[0] + s[1] * x
        s[1] = s[1] * 0.9
    return s


def dict_branch(x, flag):
    d = {"y": 0.0, "n": 0}
    if x > 0:
        d["y"] = x
    else:
        d["n"] = d["n"] + 1
    if flag:
        d["extra"] = x * 2
    return d


def none_inside(x, extra=None):
    if extra is None:
        return x, None
    return x + extra, extra


def nested_unpacking(t):
    (a, b), [c, *rest] = t
    return a + b * c + sum(rest)


def momentum(params, velocity, gradient):
    new_velocity = tree.map(lambda v, g: 0.9 * v - 0.1 * g, velocity, gradient)
    return tree.map(lambda p, v: p + v, params, new_velocity), new_velocity


def mutated_dict(d):
    d["a"] = d["a"] * 2
    return d["a"].sum()


_W = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 1.0]])
_P = {"w": _W, "b": np.array([0.1, -0.2])}
_X = np.array([1.0, 2.0, 3.0])
_S = State(np.zeros(2), np.array([1.0, 2.0]), 0)
CASES = [
    (linear, (_P, _X)),
    (two_layers, ([{"w": np.eye(3), "b": _X}, {"w": np.ones((3, 3)), "b": _X * 0}], _X)),
    (mse, (_P, _X, np.array([0.0, 1.0]))),
    (update, (_P, _P, 0.1)),
    (tree_map, (_P,)),
    (advance, (_S, 0.5)),
    (simulate, (_S, 10)),
    (replace_field, (_S,)),
    (move, (Particle(2.0, _X), 1.0)),
    (heavier, (Particle(2.0, _X), Particle(3.0, -_X))),
    (swap_pair, ((1.0, _X),)),
    (dict_in_loop, ({"a": 1.0, "b": 2.0}, 8)),
    (list_store, (1.0,)),
    (list_state_in_loop, (0.5,)),
    (dict_branch, (1.0, True)),
    (dict_branch, (-1.0, False)),
    (none_inside, (1.0,)),
    (none_inside, (1.0, 2.0)),
    (nested_unpacking, (((1.0, 2.0), [3.0, 4.0, 5.0]),)),
    (momentum, (_P, _P, _P)),
    (mutated_dict, ({"a": _X},)),
]
