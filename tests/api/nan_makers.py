"""Functions that make a NaN or an inf, and where: the line that ends in `# here`, the iterations, the lanes, the role.

In: a function and the call that makes it run. Out: `MAKERS`, and `SILENT`, whose results are finite.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import metaphrase as mp
from metaphrase import lax

X = np.array([1.0, -0.5, 0.3, -3.0, -1.5])
LANES = np.stack([abs(X), X, 2 * abs(X)])


@dataclass
class Maker:
    """`call(transformed function)` raises, once `transform(function)` is made."""

    function: Callable[..., Any]
    transform: Callable[..., Any]
    call: Callable[[Any], Any]
    iterations: tuple[int, ...] = ()
    lanes: tuple[int, ...] = ()
    role: str = "primal"
    kind: str = "nan"

    @property
    def line(self) -> int:
        lines, first = inspect.getsourcelines(self.function)
        return first + next(k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))

    def text(self) -> str:
        return linecache.getline(__file__, self.line).strip()


MAKERS: dict[str, Maker] = {}
SILENT: dict[str, Callable[[], Any]] = {}


def makes(*args: Any, by: Callable[..., Any] = mp.jit, name: str = "", **where: Any) -> Callable:
    """The function, transformed by `by`, makes one when it is called with `args`."""

    def kept(function: Callable) -> Callable:
        MAKERS[name or function.__name__] = Maker(function, by, lambda f: f(*args), **where)
        return function

    return kept


def silent(*args: Any, by: Callable[..., Any] = mp.jit) -> Callable:
    def kept(function: Callable) -> Callable:
        SILENT[function.__name__] = lambda: by(function)(*args)
        return function

    return kept


def jit_vmap(f: Callable) -> Callable:
    return mp.jit(mp.vmap(f))


def jit_grad(f: Callable) -> Callable:
    return mp.jit(mp.grad(f))


def vmap_grad(f: Callable) -> Callable:
    return mp.jit(mp.vmap(mp.grad(f)))


def grad_of_vmap(f: Callable) -> Callable:
    return mp.grad(lambda x: mp.vmap(f)(x).sum())


def forward(f: Callable) -> Callable:
    return lambda x: mp.jvp(f, (x,), (np.ones_like(x),))


def pullback(f: Callable) -> Callable:
    return lambda x: mp.vjp(f, x)[1](1.0)


# ---- no loops --------------------------------------------------------------------------------------------------------


@makes(-1.0)
@makes(-1.0, by=mp.value_and_grad, name="log_grad")
def log(x):
    y = x * 2.0
    z = np.log(y)  # here
    return z + 1.0


@makes(X)
def root_of_an_element(x):
    y = x + 1.0
    return np.sqrt(y).sum() * 2.0  # here


@makes(0.0)
def zero_by_zero(x):
    numerator = np.sin(x)
    return numerator / x  # here


@makes(1e300)
def inf_less_inf(x):
    a = x * 1e10
    b = x * 1e11
    return b - a  # here


@makes(X)
def the_first_of_two(x):
    a = np.log(x)  # here
    b = np.arcsin(x * 3.0)
    return (a + b).sum()


@makes(X)
def not_the_one_dropped(x):
    safe = np.where(x > 0, np.log(x), 0.0)
    y = np.sqrt(x + 1.0)  # here
    return (safe + y).sum()


@makes(X)
def not_the_one_never_read(x):
    unused = np.log(x)
    kept = np.arccos(x * 2.0)  # here
    return kept.sum(), unused.shape[0]


@makes(np.zeros((3, 3)))
def singular(a):
    b = a + 1.0
    norms = (b - 1.0) / np.linalg.norm(b - 1.0, axis=1)  # here
    return norms


@makes(X, kind="inf")
def overflow(x):
    y = x * 800.0
    z = np.exp(y)  # here
    return z - 1.0


@makes(X - X, kind="inf")
def one_by_zero(x):
    return (1.0 / x).sum()  # here


@makes(np.float32(3e38), kind="inf")
def overflow_of_float32(x):
    y = x * np.float32(0.5)
    return y * y  # here


@makes(np.array([1 + 1j, 0]), kind="inf")
def complex_log(z):
    w = z * 2.0
    return np.log(w)  # here


@makes(X)
def by_a_constant(x):
    y = x + 1.0
    return y * np.nan  # here


@makes(X)
def in_a_branch(x):
    s = x.sum()
    if s < 0:
        y = np.log(s)  # here
    else:
        y = np.sqrt(s)
    return y


def helper(x):
    return np.log(x) * 2.0  # here


@makes(X)
def in_a_function(x):
    y = helper(x)
    return y.sum()


MAKERS["in_a_function"].function = helper


@makes(X)
def after_a_store(x):
    y = np.zeros(5)
    y[1:4] = x[1:4]
    y[2] = np.sqrt(x[3])  # here
    return y


@makes([X, {"a": 2.0}])
def in_a_tree(tree):
    x, rest = tree
    return {"fine": x * 2.0, "bad": np.arccos(rest["a"])}  # here


# ---- loops -----------------------------------------------------------------------------------------------------------


@makes(X, iterations=(3,))
@makes(X, by=jit_grad, name="roots_grad", iterations=(3,))
@makes(LANES, by=jit_vmap, name="roots_vmap", iterations=(3,), lanes=(1,))
@makes(LANES, by=vmap_grad, name="roots_vmap_grad", iterations=(3,), lanes=(1,))
@makes(LANES, by=grad_of_vmap, name="roots_grad_of_vmap", iterations=(3,), lanes=(1,))
@makes(X, by=forward, name="roots_jvp", iterations=(3,))
def roots(x):
    s = 0.0
    for i in range(len(x)):
        t = np.where(x[i] > 0, np.log(x[i]), 0.0)
        s = s + t + np.sqrt(x[i] + 1.0)  # here
    return s


@makes(X, iterations=(1, 2))
def nested(x):
    s = 0.0
    for i in range(3):
        for j in range(4):
            s = s + np.sqrt(4.0 - i * j - 2.5 * i)  # here
    return s * x[0]


@makes(X, iterations=(3, 1))
def rolled_around_unrolled(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(3):
            s = s + np.sqrt(x[i] + 3.5 - j * (i - 2.0))  # here
    return s


@makes(np.ones((6, 5)), iterations=(4, 3), kind="inf")
@makes(np.ones((3, 6, 5)), by=jit_vmap, name="grid_vmap", iterations=(4, 3), lanes=(0,), kind="inf")
@makes(
    np.ones((2, 3, 6, 5)),
    by=lambda f: mp.jit(mp.vmap(mp.vmap(f))),
    name="grid_vmap_vmap",
    iterations=(4, 3),
    lanes=(0, 0),
    kind="inf",
)
def grid(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s = s + 1.0 / (a[i, j] * (10.0 * i + j) - 43.0)  # here
    return s


@makes(3.0, iterations=(4,))
@makes(np.array([8.0, 3.0]), by=jit_vmap, name="halving_vmap", iterations=(4,), lanes=(1,))
def halving(x):
    n = 0
    while n < 6:
        x = x - 0.7
        if n == 4 and x < 4.0:
            x = np.log(x - 4.0)  # here
        n = n + 1
    return x


@makes(np.array([40.0, 9.0, 3.0]), by=jit_vmap, iterations=(1,), lanes=(1,))
def lanes_that_part(x):
    steps = 0.0
    while x > 2.0 and steps < 3:
        x = np.sqrt(x - 4.0 - steps)  # here
        steps = steps + 1.0
    return x


@makes(X, iterations=(3,))
@makes(LANES, by=jit_vmap, name="scanned_vmap", iterations=(3,), lanes=(1,))
def scanned(x):
    def step(carry, row):
        carry = carry + row
        return carry, np.log(carry + 1.5)  # here

    return lax.scan(step, 0.0, x)[1].sum()


@makes(2.0, iterations=(4,))
def until(x):
    return lax.while_loop(lambda s: s[1] < 8, lambda s: (np.sqrt(s[0] - 0.5), s[1] + 1), (x, 0))[0]  # here


@makes(X, iterations=(0,), kind="inf")
def powers(x):
    p = 1e200
    for _ in range(len(x)):
        p = p * 1e200  # here
    return p


@makes(X, iterations=(3,), kind="nan")
def stored_in_a_loop(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = np.log(x[i] + 1.0) if i > 2 else 1.0  # here
    return out


# ---- derivatives -----------------------------------------------------------------------------------------------------


@makes(0.0, by=mp.grad, role="adjoint")
@makes(0.0, by=jit_grad, name="masked_root_jit", role="adjoint")
@makes(0.0, by=pullback, name="masked_root_vjp", role="adjoint")
def masked_root(x):
    y = x * 2.0
    return np.where(y > 0, np.sqrt(y), 0.0)  # here


@makes(np.array([4.0, 0.0, 1.0]), by=vmap_grad, role="adjoint", lanes=(1,))
def masked_root_of_lanes(x):
    return np.where(x > 0, np.sqrt(x), 0.0)  # here


@makes(np.zeros(3), by=mp.grad, role="adjoint")
def norm(x):
    y = x * 3.0
    return np.sqrt((y * y).sum())  # here


@makes(np.array([4.0, 0.0, 1.0]), by=mp.grad, role="adjoint", iterations=(1,))
def norms_in_a_loop(x):
    s = 0.0
    for i in range(len(x)):
        s = s + np.sqrt(x[i] * x[i]) * (i + 1.0)  # here
    return s


@makes(0.0, by=mp.grad, role="adjoint", kind="inf")
def steep(x):
    y = x + 0.0
    return np.sqrt(y)  # here


@makes(0.0, by=forward, role="tangent")
def zero_times_steep(x):
    y = x * x
    return np.sqrt(y)  # here


# ---- none ------------------------------------------------------------------------------------------------------------


@silent(X)
def dropped(x):
    return np.where(x > 0, np.log(x), 0.0)


@silent(X)
def asked_for(x):
    return np.isnan(np.sqrt(x)), x + 1.0


@silent(X)
def ignored(x):
    return np.nansum(np.sqrt(x))


@silent(X, by=mp.grad)
def square(x):
    return (x * x).sum()


@silent(LANES, by=jit_vmap)
def exponentials(x):
    return np.exp(-x * x)


@silent(X)
def infinities_on_the_way(x):
    return 1.0 / (1.0 + np.exp(x * 1000.0))


@silent(np.arange(4))
def integers(x):
    return x // 2


@silent(X)
def never_taken(x):
    return np.log(x[0]) if x[0] > 0 else np.log(-x[0])
