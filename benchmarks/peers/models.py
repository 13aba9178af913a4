"""Rows of learning and of differential equations: gradients, batches of gradients, an adaptive integrator.

In: nothing. Out: `models()`, a list of `Seed`s as those of `seeds.py`. Each program is written once for NumPy; its
gradient is ours by `grad`, JAX's by `jax.grad`, and by hand for NumPy and Numba. Example:

    python benchmarks/kernel_times.py "layer norm" "per-example"
"""

from __future__ import annotations

import numpy as np

import metaphrase as mp

from .seeds import Seed, as_jax, as_numba, as_numba_points

# ---- layer norm, and a chain that waits for mathematics -------------------------------------------------------


def layer_norm(x, scale, shift):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


def layer_norm_loops(x, scale, shift):
    out = np.empty_like(x)
    rows, columns = x.shape
    for i in range(rows):
        mean = x[i].mean()
        variance = x.dtype.type(0)
        for j in range(columns):
            variance += (x[i, j] - mean) ** 2
        root = np.sqrt(variance / columns + x.dtype.type(1e-5))
        for j in range(columns):
            out[i, j] = (x[i, j] - mean) / root * scale[j] + shift[j]
    return out


def mathematics(x):
    return np.tanh(np.sin(x) * np.exp(-x * x)) + np.log1p(np.abs(np.cos(x))) * np.sqrt(x * x + 1)


def mathematics_loops(x):
    out = np.empty_like(x)
    for i in range(x.size):
        v = x[i]
        out[i] = np.tanh(np.sin(v) * np.exp(-v * v)) + np.log1p(np.abs(np.cos(v))) * np.sqrt(v * v + 1)
    return out


# ---- a network of two layers: a step of Adam, and the gradients of single examples ----------------------------


def cross_entropy(params, x, label):
    w1, b1, w2, b2 = params
    z = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    largest = np.max(z, axis=-1, keepdims=True)
    log_sum = np.log(np.sum(np.exp(z - largest), axis=-1)) + largest[..., 0]
    return np.mean(log_sum - np.sum(z * label, axis=-1))


def adam_step(params, m, v, x, label, gradient_of):
    new = []
    for p, m0, v0, g in zip(params, m, v, gradient_of(params, x, label)):
        m1 = m0 * 0.9 + g * 0.1
        v1 = v0 * 0.999 + g * g * 0.001
        new.append((p - 0.001 * m1 / (v1**0.5 + 1e-8), m1, v1))
    return new


def step(params, m, v, x, label):
    return adam_step(params, m, v, x, label, mp.grad(cross_entropy))


def gradient_by_hand(params, x, label):
    """Of the mean over the examples."""
    z_bar, hidden = _at_the_top(params, x, label)
    z_bar = z_bar / x.dtype.type(len(x))
    hidden_bar = z_bar @ params[2].T * (hidden > 0)
    return x.T @ hidden_bar, hidden_bar.sum(0), hidden.T @ z_bar, z_bar.sum(0)


def gradients_by_hand(params, x, label):
    """Of each example."""
    z_bar, hidden = _at_the_top(params, x, label)
    hidden_bar = z_bar @ params[2].T * (hidden > 0)
    return x[:, :, None] * hidden_bar[:, None, :], hidden_bar, hidden[:, :, None] * z_bar[:, None, :], z_bar


def _at_the_top(params, x, label):
    w1, b1, w2, b2 = params
    hidden = np.maximum(x @ w1 + b1, 0)
    z = hidden @ w2 + b2
    e = np.exp(z - np.max(z, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True) - label, hidden


def step_by_hand(params, m, v, x, label):
    return adam_step(params, m, v, x, label, gradient_by_hand)


# ---- a recurrent network, and a mixture of Gaussians ----------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_loss(w, u, b, xs, target):
    size = u.shape[0]
    h = np.zeros((xs.shape[1], size))
    c = np.zeros((xs.shape[1], size))
    for x in xs:
        z = x @ w + h @ u + b
        i, f, o = sigmoid(z[:, :size]), sigmoid(z[:, size : 2 * size]), sigmoid(z[:, 2 * size : 3 * size])
        c = f * c + i * np.tanh(z[:, 3 * size :])
        h = o * np.tanh(c)
    return np.mean((h - target) ** 2)


def lstm_by_hand(w, u, b, xs, target):
    size = u.shape[0]
    h = c = np.zeros((xs.shape[1], size))
    kept = []
    for x in xs:
        z = x @ w + h @ u + b
        i, f, o = sigmoid(z[:, :size]), sigmoid(z[:, size : 2 * size]), sigmoid(z[:, 2 * size : 3 * size])
        g = np.tanh(z[:, 3 * size :])
        kept.append((x, h, c, i, f, o, g))
        c = f * c + i * g
        h = o * np.tanh(c)
    h_bar, c_bar = 2 * (h - target) / h.size, np.zeros_like(c)
    w_bar, u_bar, b_bar = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
    for x, h0, c0, i, f, o, g in reversed(kept):
        t = np.tanh(f * c0 + i * g)
        c_bar = c_bar + h_bar * o * (1 - t * t)
        gates = (c_bar * g * i * (1 - i), c_bar * c0 * f * (1 - f), h_bar * t * o * (1 - o), c_bar * i * (1 - g * g))
        z_bar = np.concatenate(gates, axis=1)
        w_bar += x.T @ z_bar
        u_bar += h0.T @ z_bar
        b_bar += z_bar.sum(0)
        h_bar, c_bar = z_bar @ u.T, c_bar * f
    return w_bar, u_bar, b_bar


def mixture_loss(weights, means, scales, x):
    """-mean log sum_k w_k N(x; m_k, diag exp(2 s_k)), but for a constant."""
    log_w = weights - np.log(np.sum(np.exp(weights)))
    distance = np.sum(((x[:, None, :] - means) * np.exp(-scales)) ** 2, axis=-1)
    terms = log_w - 0.5 * distance - np.sum(scales, axis=-1)
    largest = np.max(terms, axis=1)
    return -np.mean(np.log(np.sum(np.exp(terms - largest[:, None]), axis=1)) + largest)


def mixture_by_hand(weights, means, scales, x):
    scaled = (x[:, None, :] - means) * np.exp(-scales)
    soft = np.exp(weights - weights.max())
    soft /= soft.sum()
    terms = np.log(soft) - 0.5 * np.sum(scaled**2, axis=-1) - np.sum(scales, axis=-1)
    part = np.exp(terms - terms.max(axis=1, keepdims=True))
    part /= part.sum(axis=1, keepdims=True)
    part /= len(x)
    means_bar = -np.einsum("nk,nkd->kd", part, scaled) * np.exp(-scales)
    scales_bar = part.sum(axis=0)[:, None] - np.einsum("nk,nkd->kd", part, scaled**2)
    return soft - part.sum(axis=0), means_bar, scales_bar


# ---- `while`: an adaptive integrator, and the gradient of Newton's method -------------------------------------


def van_der_pol(mu, start):
    """The place at t = 10 by Bogacki and Shampine's pair, steps chosen by the error."""
    t, h, x, y = 0.0, 0.01, start, 0.0
    while t < 10.0:
        h = min(h, 10.0 - t)
        a1, b1 = y, mu * (1 - x * x) * y - x
        x2, y2 = x + 0.5 * h * a1, y + 0.5 * h * b1
        a2, b2 = y2, mu * (1 - x2 * x2) * y2 - x2
        x3, y3 = x + 0.75 * h * a2, y + 0.75 * h * b2
        a3, b3 = y3, mu * (1 - x3 * x3) * y3 - x3
        x4, y4 = x + h * (2 * a1 + 3 * a2 + 4 * a3) / 9, y + h * (2 * b1 + 3 * b2 + 4 * b3) / 9
        a4, b4 = y4, mu * (1 - x4 * x4) * y4 - x4
        ex = h * (-5 * a1 / 72 + a2 / 12 + a3 / 9 - a4 / 8)
        ey = h * (-5 * b1 / 72 + b2 / 12 + b3 / 9 - b4 / 8)
        error = max(abs(ex), abs(ey)) / 1e-6
        if error <= 1.0:
            t, x, y = t + h, x4, y4
        h = h * min(5.0, max(0.2, 0.9 * max(error, 1e-10) ** (-1 / 3)))
    return x


def van_der_pol_arrays(mu, start):
    """With NumPy: one after the other."""
    return np.array([van_der_pol(float(a), float(b)) for a, b in zip(mu, start)])


def anomaly(e, m):
    a = m
    for _ in range(25):
        if abs(a - e * np.sin(a) - m) <= 1e-12:
            break
        a = a - (a - e * np.sin(a) - m) / (1 - e * np.cos(a))
    return a


def anomaly_slope(e, m):
    """By the implicit function theorem, for all points at once."""
    a = m.copy()
    for _ in range(25):
        a = a - (a - e * np.sin(a) - m) / (1 - e * np.cos(a))
    return np.sin(a) / (1 - e * np.cos(a))


def anomaly_slope_point(e, m):
    a = m
    while abs(a - e * np.sin(a) - m) > 1e-12:
        a = a - (a - e * np.sin(a) - m) / (1 - e * np.cos(a))
    return np.sin(a) / (1 - e * np.cos(a))


# ---- the same for JAX -----------------------------------------------------------------------------------------


def in_jax(function, *helpers):
    """A function of NumPy with `jax.numpy` in NumPy's place, and in its helpers', too."""

    def make(jax):
        import types

        scope = dict(function.__globals__) | {"np": jax.numpy}
        for helper in (*helpers, function):
            scope[helper.__name__] = types.FunctionType(helper.__code__, scope, helper.__name__, helper.__defaults__)
        return scope[function.__name__]

    return make


def _jax_step(jax):
    loss = in_jax(cross_entropy)(jax)
    return lambda params, m, v, x, label: adam_step(params, m, v, x, label, jax.grad(loss))


def _jax_lstm(jax):
    jnp = jax.numpy

    def loss(w, u, b, xs, target):
        size = u.shape[0]

        def cell(state, x):
            h, c = state
            z = x @ w + h @ u + b
            i, f, o = (jax.nn.sigmoid(z[:, k * size : (k + 1) * size]) for k in range(3))
            c = f * c + i * jnp.tanh(z[:, 3 * size :])
            return (o * jnp.tanh(c), c), None

        zeros = jnp.zeros((xs.shape[1], size))
        (h, _), _ = jax.lax.scan(cell, (zeros, zeros), xs)
        return jnp.mean((h - target) ** 2)

    return jax.grad(loss, argnums=(0, 1, 2))


def _jax_van_der_pol(jax):
    jnp = jax.numpy

    def point(mu, start):
        def go_on(state):
            return state[0] < 10.0

        def attempt(state):
            t, h, x, y = state
            h = jnp.minimum(h, 10.0 - t)
            slope = lambda x, y: (y, mu * (1 - x * x) * y - x)
            a1, b1 = slope(x, y)
            a2, b2 = slope(x + 0.5 * h * a1, y + 0.5 * h * b1)
            a3, b3 = slope(x + 0.75 * h * a2, y + 0.75 * h * b2)
            x4, y4 = x + h * (2 * a1 + 3 * a2 + 4 * a3) / 9, y + h * (2 * b1 + 3 * b2 + 4 * b3) / 9
            a4, b4 = slope(x4, y4)
            ex = h * (-5 * a1 / 72 + a2 / 12 + a3 / 9 - a4 / 8)
            ey = h * (-5 * b1 / 72 + b2 / 12 + b3 / 9 - b4 / 8)
            error = jnp.maximum(jnp.abs(ex), jnp.abs(ey)) / 1e-6
            good = error <= 1.0
            t, x, y = jnp.where(good, t + h, t), jnp.where(good, x4, x), jnp.where(good, y4, y)
            grown = jnp.minimum(5.0, jnp.maximum(0.2, 0.9 * jnp.maximum(error, 1e-10) ** (-1 / 3)))
            return t, h * grown, x, y

        return jax.lax.while_loop(go_on, attempt, (0.0, 0.01, start, 0.0))[2]

    return jax.vmap(point)


def _jax_slope(jax):
    """Reverse mode needs a bound: 25 steps of a scan, each of which may do nothing."""
    jnp = jax.numpy

    def point(e, m):
        def step(a, _):
            error = a - e * jnp.sin(a) - m
            return jnp.where(jnp.abs(error) > 1e-12, a - error / (1 - e * jnp.cos(a)), a), None

        return jax.lax.scan(step, m, None, length=25)[0]

    return jax.vmap(jax.grad(point))


# ---- the rows -------------------------------------------------------------------------------------------------


def network(rng, sizes, batch):
    """(parameters, inputs, labels one-hot) in float32."""
    inputs, hidden, classes = sizes
    shapes = ((inputs, hidden), (hidden,), (hidden, classes), (classes,))
    params = tuple((rng.standard_normal(s) * 0.1).astype("f4") for s in shapes)
    label = np.eye(classes, dtype="f4")[rng.integers(0, classes, batch)]
    return params, rng.standard_normal((batch, inputs)).astype("f4"), label


def models() -> list[Seed]:
    """The rows of learning and of differential equations."""
    rng = np.random.default_rng(1)
    found = []
    for dtype, name in (("f4", "f32"), ("f8", "f64")):
        x = rng.standard_normal((1024, 1024)).astype(dtype)
        scale, shift = rng.standard_normal((2, 1024)).astype(dtype)
        found.append(
            Seed(
                f"layer norm 1024x1024 {name}",
                layer_norm,
                (x, scale, shift),
                mp.jit(layer_norm),
                as_numba(None, layer_norm_loops),
                as_jax(in_jax(layer_norm)),
                1e-3 if dtype == "f4" else 1e-9,
            )
        )
    for dtype, name in (("f4", "f32"), ("f8", "f64")):
        x = rng.standard_normal(1_000_000).astype(dtype)
        found.append(
            Seed(
                f"sin exp tanh cos log1p sqrt, 1e6 {name}",
                mathematics,
                (x,),
                mp.jit(mathematics),
                as_numba(mathematics, mathematics_loops),
                as_jax(in_jax(mathematics)),
                1e-4 if dtype == "f4" else 1e-9,
            )
        )
    params, x, label = network(rng, (784, 128, 10), 128)
    zeros = tuple(np.zeros_like(p) for p in params)
    arguments = (params, zeros, zeros, x, label)
    found.append(
        Seed("MLP 784-128-10, Adam, 128 f32", step_by_hand, arguments, mp.jit(step), jax=as_jax(_jax_step), rtol=2e-3)
    )
    of_examples = mp.jit(mp.vmap(mp.grad(cross_entropy), (None, 0, 0)))
    for sizes, batch in (((784, 128, 10), 32), ((784, 128, 10), 128), ((64, 32, 10), 1024)):
        found.append(
            Seed(
                f"per-example gradients {'-'.join(map(str, sizes))}, {batch} f32",
                gradients_by_hand,
                network(rng, sizes, batch),
                of_examples,
                jax=as_jax(lambda jax: jax.vmap(jax.grad(in_jax(cross_entropy)(jax)), (None, 0, 0))),
                rtol=2e-3,
            )
        )
    inputs, size, batch, steps = 32, 64, 32, 50
    lstm = (
        rng.standard_normal((inputs, 4 * size)) * 0.1,
        rng.standard_normal((size, 4 * size)) * 0.1,
        rng.standard_normal(4 * size) * 0.1,
        rng.standard_normal((steps, batch, inputs)),
        rng.standard_normal((batch, size)),
    )
    found.append(
        Seed(
            "LSTM gradient, 50 steps, 32 x 64 f64",
            lstm_by_hand,
            lstm,
            mp.jit(mp.grad(lstm_loss, argnums=(0, 1, 2))),
            jax=as_jax(_jax_lstm),
        )
    )
    k, d, n = 25, 10, 1000
    mixture = (rng.standard_normal(k), rng.standard_normal((k, d)), 0.1 * rng.standard_normal((k, d)))
    found.append(
        Seed(
            "mixture gradient, 1,000 points, d 10, K 25 f64",
            mixture_by_hand,
            (*mixture, rng.standard_normal((n, d))),
            mp.jit(mp.grad(mixture_loss, argnums=(0, 1, 2))),
            jax=as_jax(lambda jax: jax.grad(in_jax(mixture_loss)(jax), argnums=(0, 1, 2))),
        )
    )
    found.append(
        Seed(
            "Van der Pol, adaptive, 1,000 (`while`)",
            van_der_pol_arrays,
            (np.linspace(0.5, 3.0, 1000), np.linspace(1.0, 2.0, 1000)),
            mp.jit(mp.vmap(van_der_pol)),
            as_numba_points(van_der_pol, np.float64),
            as_jax(_jax_van_der_pol),
            rtol=1e-6,
        )
    )
    e = np.linspace(0.01, 0.9, 10_000)
    found.append(
        Seed(
            "gradient of Newton's method, 10,000 (`while`)",
            anomaly_slope,
            (e, np.full_like(e, 1.0)),
            mp.jit(mp.vmap(mp.grad(anomaly))),
            as_numba_points(anomaly_slope_point, np.float64),
            as_jax(_jax_slope),
            rtol=1e-6,
        )
    )
    return found
