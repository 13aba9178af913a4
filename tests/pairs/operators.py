"""Functions that use transformations, callbacks, collectives and stores of their own.

In: nothing. Out: cases. Example: `curvature`.
"""

from __future__ import annotations

import numpy as np

import metaphrase as mp
from metaphrase import lax
from pairs.corpus import case

# ---- derivatives inside -------------------------------------------------------------------------------------


def energy(x):
    return np.sum(x**4) + x[0] * np.sin(x[1])


@case("linear_transpose", np.array([0.4, 1.1]), 0.7)
def a_transpose(x, a):
    def smooth(v):
        return np.stack([v[0] + a * v[1], a * v[0], v[1] - v[0]])

    return mp.linear_transpose(smooth, x)(np.stack([x[0], x[1], x[0] * x[1]]))[0]


@case("linear_transpose", 0.7, jax=False)
def a_transpose_of_a_loop(a):
    def recurrence(v):
        out = np.zeros(3)
        for i in range(3):
            out[i] = v[i] + (a * out[i - 1] if i else 0.0)
        return out

    return mp.linear_transpose(recurrence, np.zeros(3))(np.array([1.0, 0.5, 2.0]) * a)[0]


@case("linearize", np.array([0.4, 1.1]))
def a_linear_map_twice(x):
    y, slope = mp.linearize(lambda x: np.sin(x) * x, x)
    return y + slope(slope(x))


@case("linearize", 0.9, jax=False)
def linearized_while(x):
    def until(x):
        while x < 4.0:
            x = x * x + 0.5
        return np.sqrt(x)

    y, slope = mp.linearize(until, x)
    return y * slope(x)


@case("vjp", np.array([0.4, 1.1]))
def a_pullback_twice(x):
    _, pullback = mp.vjp(lambda x: np.exp(x) * x[::-1], x)
    return pullback(x)[0] + pullback(np.ones(2))[0]


@case("jet", 0.7)
def a_taylor_series(x):
    y, series = mp.jet(lambda x: np.sin(x) * np.exp(x), (x,), ((1.0, 0.0),))
    return y + series[0] * series[1]


@case("jet", 0.7, jax=False)
def a_series_of_a_loop(x):
    def logistic(x):
        for _ in range(3):
            x = 2.5 * x * (1 - x)
        return x

    y, (first, second, third) = mp.jet(logistic, (x,), ((1.0, 0.0, 0.0),))
    return np.stack([y, first * x, second, third * 0.1])


@case("hvp", np.array([0.4, 1.1]), np.array([0.3, -0.5]))
def curvature(x, v):
    return mp.hvp(energy, (x,), (v,)) @ v


@case("jacfwd", np.array([0.4, 1.1]))
def determinant(x):
    return np.linalg.det(mp.jacfwd(lambda x: np.stack([np.sin(x[0] * x[1]), x[0] + x[1] ** 2]))(x))


@case("jacrev", np.array([0.4, 1.1]))
def gram(x):
    jacobian = mp.jacrev(lambda x: np.stack([np.sin(x[0] * x[1]), x[0] + x[1] ** 2, x[0]]))(x)
    return jacobian @ jacobian.T


@case("hessian", np.array([0.4, 1.1]))
def newton_step(x):
    return x - np.linalg.solve(mp.hessian(energy)(x), mp.grad(energy)(x))


@case("jacobian", {"a": np.array([0.4, 1.1]), "b": 0.5})
def a_tree_of_jacobians(p):
    jacobian = mp.jacfwd(lambda p: {"u": p["a"] * p["b"], "v": np.sin(p["b"])})(p)
    return jacobian["u"]["a"] @ p["a"] + jacobian["v"]["b"] * jacobian["u"]["b"]


def blocked(x):
    out = np.zeros(3)
    for i in range(3):
        out[i] = x[i] ** 2 * (x[i - 1] if i else 1.0)
    return out


@case("jacobian sparse", np.array([0.4, 1.1, 0.8]), jax=False)
def rows_with_few_places(x):
    return blocked(x) + np.sin(x)


@case("hessian sparse", np.array([0.4, 1.1, 0.8]), jax=False)
def a_chain(x):
    total = 0.0
    for i in range(2):
        total += (x[i + 1] - x[i] ** 2) ** 2
    return total


@case("gradients of functions that change their arguments", np.array([0.4, 1.1, 0.8]), stores=True, jax=False)
def stored_into(x):
    x[0] = x[1] * x[2]
    x[1:] *= x[0]
    return x


@case("gradients of functions that change their arguments", np.array([0.4, 1.1, 0.8]), jax=False)
def gradient_of_stores(x):
    def stores(x):
        for i in range(1, 3):
            x[i] += x[i - 1] ** 2
        return np.sum(x * x)

    return mp.grad(stores)(x)


@case("gradients of functions that change their arguments", np.array([0.4, 1.1]), 0.5, stores=True, jax=False)
def leapfrog(x, h):
    v = np.zeros_like(x)
    for _ in range(3):
        v -= h * np.sin(x)
        x += h * v
    return {"x": x, "v": v}


@case("gradients of functions that change their arguments", {"x": np.array([0.4, 1.1]), "t": 0.5}, jax=False)
def a_state_that_moves(state):
    def advance(state):
        state["x"] = state["x"] * state["t"]
        state["t"] += 0.1
        return np.sum(state["x"] ** 2) * state["t"]

    value = advance(dict(state))
    return value * mp.grad(lambda x: advance({"x": x, "t": state["t"]}))(state["x"])


@case("closure_convert", np.array([0.4, 1.1]), 0.7)
def a_converted_closure(x, a):
    w = np.sin(x) * a
    converted, consts = mp.closure_convert(lambda y: y * w, x)
    return converted(x, *consts)


def integrated(f, low, high):
    converted, consts = mp.closure_convert(f, low)
    return rule_of_integral(converted, low, high, *consts)


def rule_of_integral(converted, low, high, *consts):
    def by_gauss(low, high, consts):
        nodes, weights = np.array([-0.7745966692414834, 0.0, 0.7745966692414834]), np.array([5.0, 8.0, 5.0]) / 9.0
        places = (high + low) / 2 + nodes * (high - low) / 2
        return np.sum(weights * mp.vmap(lambda t: converted(t, *consts))(places)) * (high - low) / 2

    integral = mp.custom_vjp(by_gauss)

    def forward(low, high, consts):
        return by_gauss(low, high, consts), (low, high, consts)

    def backward(residuals, bar):
        low, high, consts = residuals
        back = mp.grad(lambda consts: by_gauss(low, high, consts))(consts)
        return -bar * converted(low, *consts), bar * converted(high, *consts), tuple(bar * c for c in back)

    integral.defvjp(forward, backward)
    return integral(low, high, consts)


@case("closure_convert custom_vjp", 0.3, 1.4, 0.9, forward=False)
def an_integral(low, high, a):
    weight = a * a
    return integrated(lambda t: weight * t**3, low, high)


@case("stop_gradient", np.array([0.4, 1.1, 0.8]))
def log_sum_exp(x):
    largest = lax.stop_gradient(np.max(x))
    return np.log(np.sum(np.exp(x - largest))) + largest


STOPPED = np.array([0.4, 1.1])


@case("stop_gradient", np.array([0.4, 1.1]), frozen=lambda x: x * np.sin(STOPPED) + STOPPED[0])
def partly_stopped(x):
    return x * lax.stop_gradient(np.sin(x)) + lax.stop_gradient(x)[0]


@case("stop_gradient", 0.6, frozen=lambda x: x**2 + 0.64)
def straight_through(x):
    return x**2 + lax.stop_gradient(np.round(x) - x**2)


@case("fwd_and_bwd", np.array([0.4, 1.1]), jax=False)
def two_passes(x):
    forward, backward = mp.fwd_and_bwd(lambda x: np.sin(x) * x, argnums=0)
    y, residuals = forward(x)
    return y + backward(residuals, x * x)


# ---- lanes --------------------------------------------------------------------------------------------------


@case("collectives psum", np.array([0.4, 1.1, 0.8]), 0.5)
def a_softmax_of_lanes(x, scale):
    return mp.vmap(lambda v: np.exp(v * scale) / lax.psum(np.exp(v * scale), "i"), axis_name="i")(x)


@case("collectives pmean", np.array([0.4, 1.1, 0.8]), 0.5)
def gradients_of_lanes(xs, w):
    def loss(w, x):
        return (w * x - 1.0) ** 2

    return mp.vmap(lambda x: w - 0.1 * lax.pmean(mp.grad(loss)(w, x), "batch"), axis_name="batch")(xs)


@case("collectives pmax", np.array([0.4, 1.1, 0.8]), jax=False)
def scaled_by_the_largest(x):
    return mp.vmap(lambda v: v / lax.pmax(v, "i"), axis_name="i")(x)


@case("collectives ppermute", np.array([0.4, 1.1, 0.8]))
def neighbours(x):
    pairs = [(0, 1), (1, 2), (2, 0)]
    return mp.vmap(lambda v: v * lax.ppermute(np.sin(v), "i", pairs), axis_name="i")(x)


@case("collectives all_gather", np.array([0.4, 1.1]))
def all_of_them(x):
    return mp.vmap(lambda v: lax.all_gather(v * v, "i") * v + lax.axis_index("i"), axis_name="i")(x)


@case("collectives in a branch", np.array([0.4, 1.1]), jax=False)
def lanes_that_part(x):
    def lane(v):
        total = lax.psum(v, "i")
        if v > 1.0:
            return v * total
        return np.sin(total) - v

    return mp.vmap(lane, axis_name="i")(x)


@case("vmap of a while", np.array([0.4, 1.1]), 0.5, jax=False)
def lanes_of_their_own_length(x, a):
    def lane(v):
        while v < 3.0:
            v = v * (1.5 + a) + 0.1
        return v * a

    return mp.vmap(lane)(x)


# ---- callbacks ----------------------------------------------------------------------------------------------


@mp.custom_jvp
def outside_sine(x):
    return mp.pure_callback(np_sin, mp.ShapeDtypeStruct(np.shape(x), np.float64), x, vmap_method="sequential")


def np_sin(x):
    import numpy

    return numpy.sin(numpy.asarray(x))


@outside_sine.defjvp
def outside_sine_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return outside_sine(x), outside_cosine(x) * x_dot


@mp.custom_jvp
def outside_cosine(x):
    return mp.pure_callback(np_cos, mp.ShapeDtypeStruct(np.shape(x), np.float64), x, vmap_method="sequential")


def np_cos(x):
    import numpy

    return numpy.cos(numpy.asarray(x))


@outside_cosine.defjvp
def outside_cosine_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return outside_cosine(x), -outside_sine(x) * x_dot


@case("pure_callback", np.array([0.4, 1.1]))
def a_sine_of_elsewhere(x):
    return outside_sine(x) * x


@case("pure_callback", 0.7, jax=False)
def callbacks_in_a_loop(x):
    while x < 2.0:
        x = x + outside_sine(x)
    return x


@case("debug.print", 0.7)
def it_prints(x):
    mp.debug.print("x is {x}", x=x)
    return np.sin(x) * x


@case("debug.print", np.array([0.4, 1.1]), jax=False)
def it_prints_in_a_loop(x):
    total = 0.0
    for v in x:
        mp.debug.print("v is {}", v)
        if v > 1.0:
            total = total + v**3
    return total * x[0]
