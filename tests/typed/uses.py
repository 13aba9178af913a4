"""Typical uses of the public names, for type checkers; tests/typed/test_uses.py runs mypy and pyright on it.

In: annotated and plain functions. Out: `assert_type` holds everywhere, and each line that ends in
`# an error` is one for both checkers. At the lines that end in `# Any for mypy` two overloads fit an array of
any dtype, of which mypy takes none. Never run.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, assert_type, overload, reveal_type

import numpy as np

import metaphrase as mp
from metaphrase import lax, nn, random, tree


class Params(NamedTuple):
    w: np.ndarray
    b: np.ndarray


def area(radius: float, *, half: bool = False) -> float:
    return 3.0 * radius * radius


def loss(params: Params, x: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((x @ params.w + params.b - y) ** 2))


def shifted(x: np.ndarray, by: float = 1.0) -> np.ndarray:
    return x + by


def with_aux(params: Params, x: np.ndarray) -> tuple[float, str]:
    return float(x @ params.w), "aux"


def plain(x, y):
    return x * y


x: np.ndarray = np.ones(3)
params = Params(x, x)

# jit: the same parameters and result, and what a jitted function offers
jitted = mp.jit(area)
assert_type(jitted(2.0), float)
assert_type(jitted(2.0, half=True), float)
assert_type(jitted.lower(2.0).compile()(3.0), float)
assert_type(jitted.lower("f64").as_text("loops"), str)
assert_type(jitted.cache_info().hits, int)
assert_type(jitted.source("core", 2.0), str)
jitted.clear_cache()
jitted("two")  # an error
jitted()  # an error
jitted(2.0, halved=True)  # an error
jitted.compile()  # an error


@mp.jit
def decorated(x: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    return x, k


@mp.jit(static_argnums=1)
def with_options(x: np.ndarray, k: int) -> np.ndarray:
    return x * k


@mp.jit(static_argnames=["k"])
def by_name(x: np.ndarray, k: int) -> np.ndarray:
    return x * k


assert_type(decorated(x, 2), tuple[np.ndarray, int])
assert_type(with_options(x, 2), np.ndarray)
assert_type(by_name(x, k=2), np.ndarray)
with_options(x, "2")  # an error
mp.jit(area, nopython=True)  # an error
mp.jit(3)  # an error


class Model:
    weight: float = 1.0

    @mp.jit
    def step(self, x: np.ndarray) -> np.ndarray:
        return x * self.weight

    @mp.jit(static_argnums=2)
    def steps(self, x: np.ndarray, n: int) -> np.ndarray:
        return x * n


model = Model()
assert_type(model.step(x), np.ndarray)
assert_type(model.steps(x, 3), np.ndarray)
assert_type(Model.step(model, x), np.ndarray)
model.step(x, 3)  # an error

# grad and value_and_grad: the gradient has the first argument's type
assert_type(mp.grad(loss)(params, x, x), Params)
assert_type(mp.grad(area)(2.0), float)
assert_type(mp.grad(area)(2.0, half=True), float)
assert_type(mp.grad(loss, argnums=0)(params, x, x), Params)
assert_type(mp.grad(loss, argnums=1)(params, x, x), Any)
assert_type(mp.grad(loss, argnums=(0, 1))(params, x, x), tuple[Any, ...])
assert_type(mp.grad(with_aux, has_aux=True)(params, x), tuple[Params, str])
assert_type(mp.value_and_grad(loss)(params, x, x), tuple[float, Params])
assert_type(mp.value_and_grad(with_aux, has_aux=True)(params, x), tuple[tuple[float, str], Params])
value, gradient = mp.jit(mp.value_and_grad(loss))(params, x, x)
assert_type(value, float)
assert_type(gradient, Params)
assert_type(mp.grad(mp.grad(area))(2.0), float)
assert_type(mp.jit(mp.grad(mp.jit(area)))(2.0), float)
mp.grad(loss)(x, x, x)  # an error
mp.grad(loss)(params, x)  # an error
mp.grad(loss, argnums="params")  # an error
mp.grad(3.0)  # an error

# vmap: arrays where there were numbers
assert_type(mp.vmap(shifted)(x), np.ndarray)
assert_type(mp.vmap(area)(x), np.ndarray)
assert_type(mp.vmap(mp.grad(loss), (None, 0, 0))(params, x, x), Params)
assert_type(mp.jit(mp.vmap(shifted, in_axes=(0, None)))(x, 1.0), np.ndarray)
assert_type(mp.jit(mp.vmap(area))(x), np.ndarray)
assert_type(mp.vmap(mp.vmap(area))(x), np.ndarray)
assert_type(mp.grad(lambda v: mp.vmap(area)(v).sum())(x), Any)
assert_type(mp.vmap(mp.vmap(shifted))(x), np.ndarray)
mp.vmap(x)  # an error

# jvp, vjp, linearize
assert_type(mp.jvp(area, (2.0,), (1.0,)), tuple[float, float])
out, pullback = mp.vjp(shifted, x)
assert_type(out, np.ndarray)
assert_type(pullback(x), tuple[Any, ...])
result, transposed = mp.vjp(loss, params, x, x)
assert_type(result, float)
assert_type(transposed(1.0), tuple[Any, ...])
transposed("one")  # an error
primal, pushforward = mp.linearize(shifted, x)
assert_type(pushforward(x), np.ndarray)
assert_type(mp.vjp(with_aux, params, x, has_aux=True)[2], str)

# jacfwd, jacrev, hessian
assert_type(mp.jacfwd(shifted)(x), np.ndarray)  # Any for mypy
assert_type(mp.jacrev(shifted)(x, 2.0), np.ndarray)  # Any for mypy
assert_type(mp.jacrev(loss)(params, x, x), Any)

# functions without annotations, and lambdas
assert_type(mp.jit(plain)(1, 2), Any)
assert_type(mp.jit(lambda x: x + 1)(2.0), Any)
grad_of_lambda = mp.grad(lambda v: v * v)
grad_of_lambda(3.0)
mp.vmap(lambda v: v * 2)(x)
mp.jit(mp.vmap(mp.grad(plain), (0, None)))(x, 1.0)

# shapes, text, settings
assert_type(mp.eval_shape(shifted, x), mp.ShapeDtypeStruct)  # Any for mypy
reveal_type(jitted)
reveal_type(mp.vmap(mp.grad(loss)))
assert_type(mp.source(loss, params, x, x, stage="core"), str)
assert_type(mp.stages(), tuple[str, ...])
with mp.config(fuse=False), mp.disable_jit():
    mp.config.bounds = False

# libraries
lax.fori_loop(0, 3, lambda i, c: c + i, 0.0)
lax.scan(lambda carry, v: (carry + v, carry), 0.0, x)
lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)
lax.cond(True, lambda: 1.0, lambda: 2.0)
nn.softmax(x)
random.normal(random.key(0), (3,))
tree.map(lambda leaf: leaf * 2, params)


def apply(function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return function(x)


apply(mp.jit(shifted))
apply(mp.jit(area))  # an error
annotated: mp.Array = mp.jit(shifted)(x)


# derivative rules: the parameters and result of the function
@mp.custom_jvp
def soft(x: float, scale: float = 1.0) -> float:
    return x * scale


@soft.defjvp
def soft_jvp(primals: tuple[float, float], tangents: tuple[float, float]) -> tuple[float, float]:
    return soft(*primals), tangents[0]


soft.defjvps(lambda t, ans, x, scale: t, None)
assert_type(soft(2.0, scale=3.0), float)
assert_type(mp.grad(soft)(2.0), float)
soft("two")  # an error
clipped = mp.custom_vjp(shifted, nondiff_argnums=(1,))
clipped.defvjp(lambda x, by: (x, None), lambda by, res, bar: (bar,))
assert_type(clipped(x), np.ndarray)
clipped.defjvp(soft_jvp)  # an error


@mp.derivative_of(shifted, forward=lambda x, by: (x, None), samples="f64[3], f64", check=True)
def shifted_backward(residuals: None, bar: np.ndarray) -> tuple[np.ndarray, None]:
    return bar, None


assert_type(shifted_backward(None, x), tuple[np.ndarray, None])
assert_type(mp.derivative(shifted, "f64[n], f64", file="shifted_grad.py", argnums=0), str)
mp.derivative_of(shifted, checks=True)  # an error
mp.derivative_of(shifted)(None)
mp.derivative_of(shifted)(3)  # an error


# what derivatives keep, errors as values: the parameters and result of the function, with options and without
@mp.checkpoint
def layer(x: np.ndarray, w: np.ndarray, *, scale: float = 1.0) -> np.ndarray:
    return x @ w * scale


@mp.checkpoint(policy=mp.checkpoint_policies.dots_saveable)
def dotted(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x @ w


@mp.loop_checkpoint(slots=10)
def long_loop(x: float, n: int) -> float:
    return x * n


assert_type(layer(x, x, scale=2.0), np.ndarray)
assert_type(mp.remat(shifted)(x), np.ndarray)
assert_type(dotted(x, x), np.ndarray)
assert_type(long_loop(2.0, 3), float)
assert_type(mp.grad(long_loop)(2.0, 3), float)
assert_type(mp.checked(area)(2.0)[1], float)
layer(x)  # an error
dotted(x, "w")  # an error
long_loop("two", 3)  # an error
mp.checkpoint(area, policies=None)  # an error


class Layered:
    weight: np.ndarray = np.ones(3)

    @mp.checkpoint
    def apply(self, x: np.ndarray) -> np.ndarray:
        return x * self.weight

    def loss(self, x: np.ndarray) -> float:
        return float(x.sum())

    @staticmethod
    @mp.jit
    def doubled(x: float) -> float:
        return 2.0 * x


assert_type(Layered().apply(x), np.ndarray)
assert_type(mp.grad(Layered().loss)(x), np.ndarray)
assert_type(Layered.doubled(2.0), float)


@overload
def either(x: float) -> float: ...
@overload
def either(x: np.ndarray) -> np.ndarray: ...
@mp.jit
def either(x: Any) -> Any:
    return x * 2


assert_type(either(2.0), float)
assert_type(either(x), np.ndarray)
either("two")  # an error
assert_type(mp.jit(functools.partial(shifted, by=2.0))(x), np.ndarray)


@mp.export("f64, f64")
def energy(mass: float, speed: float) -> float:
    """What is exported keeps its signature."""
    return mass * speed**2 / 2


assert_type(energy(2.0, 3.0), float)
energy(2.0)  # an error
slope: float = mp.export("f64, f64")(mp.grad(energy))(2.0, 3.0)
