"""Functions with derivatives and lanes of their own: custom_jvp, custom_vjp, custom_gradient, custom_vmap.

In: nothing. Out: cases. All rules tell the truth, so that differences are the oracle of each. Example: `log1pexp`.
"""

from __future__ import annotations

import functools

import numpy as np

import metaphrase as mp
from metaphrase import lax
from metaphrase.custom_batching import custom_vmap
from metaphrase.custom_derivatives import SymbolicZero
from pairs.corpus import case

# ---- custom_jvp ---------------------------------------------------------------------------------------------


@mp.custom_jvp
def softplus(x):
    return np.log1p(np.exp(x))


@softplus.defjvp
def softplus_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return softplus(x), x_dot / (1 + np.exp(-x))


@case("custom_jvp", np.array([-1.5, 0.3, 0.8]))
def log1pexp(x):
    return softplus(x)


@mp.custom_jvp
def hypot(x, y):
    return np.sqrt(x * x + y * y)


hypot.defjvps(lambda t, ans, x, y: t * x / ans, lambda t, ans, x, y: t * y / ans)


@case("custom_jvp", np.array([0.5, 1.5]), 0.75)
def lengths(x, y):
    return hypot(x, y * x + 1.0)


@functools.partial(mp.custom_jvp, nondiff_argnums=(0, 2))
def powered(f, x, n):
    return f(x) ** n


@powered.defjvp
def powered_jvp(f, n, primals, tangents):
    (x,), (x_dot,) = primals, tangents
    y, y_dot = mp.jvp(f, (x,), (x_dot,))
    return y**n, n * y ** (n - 1) * y_dot


@case("custom_jvp nondiff", np.array([0.4, 1.1]))
def a_power_of_a_function(x):
    return powered(np.sin, x, 3) + powered(lambda x: x * x + 1.0, x, 2)


@functools.partial(mp.custom_jvp, nondiff_argnums=(1,))
def tapered(x, kind):
    return x / (1 + x) if kind == "rational" else np.tanh(x)


@tapered.defjvp
def tapered_jvp(kind, primals, tangents):
    (x,), (x_dot,) = primals, tangents
    y = tapered(x, kind)
    return y, x_dot / (1 + x) ** 2 if kind == "rational" else x_dot * (1 - y * y)


@case("custom_jvp nondiff", 0.7)
def a_kind_of_taper(x):
    return tapered(x, "rational") * tapered(x, "tanh")


@mp.custom_jvp
def product_of(x, y):
    return x * y


def product_of_jvp(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    parts = []
    if type(x_dot) is not SymbolicZero:
        parts.append(x_dot * y)
    if type(y_dot) is not SymbolicZero:
        parts.append(x * y_dot)
    return x * y, sum(parts[1:], parts[0]) if parts else np.zeros_like(x)


product_of.defjvp(product_of_jvp, symbolic_zeros=True)


@case("custom_jvp symbolic_zeros", np.array([0.4, 1.1]), 0.6)
def zeros_that_are_known(x, y):
    return product_of(x, 2.0) + product_of(x, x * y) + product_of(np.ones(2), x)


@mp.custom_jvp
def split_energy(state):
    return {"kinetic": 0.5 * np.sum(state["v"] ** 2), "potential": (1 - np.cos(state["x"]),)}


@split_energy.defjvp
def split_energy_jvp(primals, tangents):
    (state,), (dot,) = primals, tangents
    kinetic = np.sum(state["v"] * dot["v"])
    return split_energy(state), {"kinetic": kinetic, "potential": (np.sin(state["x"]) * dot["x"],)}


@case("custom_jvp pytree", {"v": np.array([0.3, -0.7]), "x": 0.9})
def energies(state):
    parts = split_energy(state)
    return {"total": parts["kinetic"] + parts["potential"][0], "ratio": parts["kinetic"] * state["x"]}


@mp.custom_jvp
def newton_root(a):
    x = a
    while abs(x * x - a) > 1e-14 * a:
        x = 0.5 * (x + a / x)
    return x


@newton_root.defjvp
def newton_root_jvp(primals, tangents):
    x = newton_root(primals[0])
    return x, tangents[0] / (2 * x)


@case("custom_jvp", 2.25, jax=False)
def roots_in_a_loop(a):
    while a > 0.9:
        a = newton_root(a) * 0.8
    return a


@case("custom_jvp", 1.7, 0.4, jax=False)
def a_root_on_one_path(a, b):
    if a < b:
        return newton_root(b) * a
    return newton_root(a * b)


@case("custom_jvp", np.array([0.6, 1.4, 2.0]), jax=False)
def roots_that_are_stored(a):
    out = np.zeros(3)
    for i in range(3):
        if a[i] < 1.0:
            continue
        out[i] = newton_root(a[i]) * a[i - 1]
    return out


# ---- custom_vjp ---------------------------------------------------------------------------------------------


def scaled_norm(x):
    scale = np.max(np.abs(x))
    return scale * np.sqrt(np.sum((x / scale) ** 2))


stable_norm = mp.custom_vjp(scaled_norm)


def stable_norm_fwd(x):
    length = scaled_norm(x)
    return length, (x, length)


def stable_norm_bwd(residuals, bar):
    x, length = residuals
    return (bar * x / length,)


stable_norm.defvjp(stable_norm_fwd, stable_norm_bwd)


@case("custom_vjp", np.array([3.0, -4.0, 1.0]), forward=False)
def norm(x):
    return stable_norm(x)


def heron_steps(a):
    x = a
    for _ in range(8):
        x = 0.5 * (x + a / x)
    return x


heron = mp.custom_vjp(heron_steps)


def heron_fwd(a):
    x = heron_steps(a)
    return x, x


heron.defvjp(heron_fwd, lambda x, bar: (bar / (2 * x),))


@case("custom_vjp", 2.25, forward=False)
def a_root_times_its_square(a):
    return heron(a) * a


@case("custom_vjp", 3.0, forward=False, jax=False)
def roots_until_they_are_small(a):
    count = 0
    while True:
        a = heron(a)
        count += 1
        if a < 1.2:
            break
    return a * count


@case("custom_vjp", np.array([0.5, 2.0]), forward=False)
def roots_in_lanes(a):
    return mp.vmap(heron)(a) * a


@case("custom_vjp", np.array([0.5, 1.0, 2.0]), forward=False)
def roots_in_a_scan(xs):
    def step(carry, x):
        carry = heron(carry * x + 1.0)
        return carry, carry * x

    return lax.scan(step, 1.0, xs)


def repeated(step, a, start):
    return lax.while_loop(lambda x: abs(step(a, x) - x) > 1e-15, lambda x: step(a, x), start)


fixed_point = mp.custom_vjp(repeated, nondiff_argnums=(0,))


def fixed_point_fwd(step, a, start):
    x = repeated(step, a, start)
    return x, (a, x)


def fixed_point_bwd(step, residuals, bar):
    a, x = residuals
    _, back = mp.vjp(step, a, x)
    slope = mp.grad(step, argnums=1)(a, x)
    a_bar, _ = back(bar / (1 - slope))
    return a_bar, x * 0.0


fixed_point.defvjp(fixed_point_fwd, fixed_point_bwd)


@case("custom_vjp nondiff", 0.8, forward=False, tolerance=1e-5)
def where_cosine_stays(a):
    return fixed_point(lambda a, x: np.cos(a * x) / 2, a, 0.4)


def affine_map(p, x):
    return {"y": p["w"] @ x + p["b"], "size": np.sum(p["w"] ** 2)}


affine = mp.custom_vjp(affine_map)


def affine_bwd(residuals, bar):
    p, x = residuals
    w_bar = np.outer(bar["y"], x) + 2 * bar["size"] * p["w"]
    return {"w": w_bar, "b": np.sum(bar["y"])}, p["w"].T @ bar["y"]


affine.defvjp(lambda p, x: (affine_map(p, x), (p, x)), affine_bwd)


@case("custom_vjp pytree", {"w": np.array([[0.5, -1.0]]), "b": 0.3}, np.array([0.7, 1.2]), forward=False)
def an_affine_map(p, x):
    out = affine(p, x)
    return np.tanh(out["y"]) * out["size"]


@mp.custom_vjp
def ratio(x, y):
    return x / y


def ratio_fwd(x, y):
    result = x.value / y.value
    return result, (x.value if y.perturbed else None, y.value)


def ratio_bwd(residuals, bar):
    x, y = residuals
    if type(bar) is SymbolicZero:
        return None, None
    return bar / y, None if x is None else -bar * x / (y * y)


ratio.defvjp(ratio_fwd, ratio_bwd, symbolic_zeros=True)


@case("custom_vjp symbolic_zeros", 0.8, 1.7, forward=False)
def ratios(x, y):
    return ratio(x, y) + ratio(x * x, 3.0)


def running_sums(x):
    total = np.zeros(3)
    for k in range(3):
        total[k] = x[k] ** 2 + (total[k - 1] if k else 0.0)
    return total


running = mp.custom_vjp(running_sums)


def running_bwd(x, bar):
    out, carry = np.zeros(3), 0.0
    for k in range(2, -1, -1):
        carry = carry + bar[k]
        out[k] = 2 * x[k] * carry
    return (out,)


running.defvjp(lambda x: (running_sums(x), x), running_bwd)


@case("custom_vjp", np.array([0.5, -1.2, 0.7]), forward=False, jax=False)
def running_squares(x):
    return running(x) * x


# ---- custom_gradient ----------------------------------------------------------------------------------------


@mp.custom_gradient
def sine(x):
    return np.sin(x), lambda bar: bar * np.cos(x)


@case("custom_gradient", np.array([0.3, 1.2]), forward=False)
def waves(x):
    return sine(x * 2.0) * x


@mp.custom_gradient
def both(x, y):
    return (x * y, x + y), lambda bars: (bars[0] * y + bars[1], bars[0] * x + bars[1])


@case("custom_gradient", 0.4, np.array([1.5, 0.2]), forward=False)
def two_in_two_out(x, y):
    product, total = both(np.sum(y) * x, x * x)
    return {"product": product, "total": total * y}


# ---- custom_vmap --------------------------------------------------------------------------------------------


@custom_vmap
def solved(a, b):
    return np.linalg.solve(a, b)


@solved.def_vmap
def solved_in_lanes(axis_size, in_batched, a, b):
    if in_batched == [False, True]:
        return np.linalg.solve(a, b.T).T, True
    a = a if in_batched[0] else np.broadcast_to(a, (axis_size, *a.shape))
    b = b if in_batched[1] else np.broadcast_to(b, (axis_size, *b.shape))
    return np.linalg.solve(a, b[..., None])[..., 0], True


@case("custom_vmap", np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([1.0, -0.6]))
def solutions(a, b):
    return solved(a, b) * b


@custom_vmap
def square_sum(x):
    return np.sum(x * x)


@square_sum.def_vmap
def square_sum_in_lanes(axis_size, in_batched, x):
    return np.einsum("ij,ij->i", x, x), True


@case("custom_vmap", np.array([0.5, 1.5]), 0.3)
def sums_of_lanes(x, y):
    inner = mp.vmap(square_sum)(np.stack([x, x * y]))
    return inner * square_sum(x)


@mp.custom_jvp
@custom_vmap
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@sigmoid.fun.def_vmap if hasattr(sigmoid, "fun") else sigmoid.__wrapped__.def_vmap
def sigmoid_in_lanes(axis_size, in_batched, x):
    return 1 / (1 + np.exp(-x)), True


@sigmoid.defjvp
def sigmoid_jvp(primals, tangents):
    y = sigmoid(primals[0])
    return y, tangents[0] * y * (1 - y)


@case("custom_vmap custom_jvp", 0.4)
def a_sigmoid(x):
    return sigmoid(x * x) * x
