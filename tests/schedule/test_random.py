"""Random programs: whatever is composed with whatever, every way of running it agrees. The seed is in the
test's name."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

from metaphrase.core.build import Builder, literal
from metaphrase.core.ir import Function, Roles
from metaphrase.core.types import Array, bool_, f64, i64
from metaphrase.ops.arithmetic import add, max_, mul, neg, sub
from metaphrase.ops.arrays import iota, zeros
from metaphrase.ops.compare import gt, lt, select
from metaphrase.ops.dot import dot_general
from metaphrase.ops.elementary import cos, sin, tanh
from metaphrase.ops.indexing import gather, scatter_add, slice, slice_add, slice_update
from metaphrase.ops.reduce import argmax, reduce_max, reduce_sum
from metaphrase.ops.regions import cond, loop
from metaphrase.ops.scan import cumsum
from metaphrase.ops.shape import broadcast, permute, reshape
from metaphrase.ops.structure import concatenate, pad

I = Array(i64)


class Composer:
    """Adds random operations to the current Builder; `values` are the arrays so far."""

    def __init__(self, seed: int, values: list):
        self.random, self.values = np.random.default_rng(seed), list(values)

    def pick(self, rank=None, dims=None):
        fit = [
            v for v in self.values if (rank is None or v.type.ndim == rank) and (dims is None or v.type.dims == dims)
        ]
        # Late values more often: chains are what fusion works on.
        return fit[max(self.random.integers(len(fit)), self.random.integers(len(fit)))] if fit else None

    def integer(self, high):
        return int(self.random.integers(high))

    def step(self, depth: int) -> None:
        choices = [
            self.unary,
            self.binary,
            self.binary,
            self.reduce,
            self.spread,
            self.turn,
            self.flatten,
            self.cut,
            self.write,
            self.write,
            self.join,
            self.frame,
            self.choose,
            self.running,
            self.product,
            self.take,
            self.place,
        ]
        if depth:
            choices += [self.loop, self.loop, self.branch]
        made = choices[self.integer(len(choices))](depth)
        if made is not None:
            self.values.append(made)

    def unary(self, depth):
        return (neg, sin, cos, tanh)[self.integer(4)](self.pick())

    def binary(self, depth):
        a = self.pick()
        return (add, mul, sub, max_)[self.integer(4)](a, self.pick(dims=a.type.dims))

    def reduce(self, depth):
        x = self.pick()
        if not x.type.ndim or 0 in x.type.dims:
            return None
        axes = tuple(k for k in range(x.type.ndim) if self.integer(2)) or (0,)
        if self.integer(6) == 0:
            first = argmax(x, axes=(axes[0],))
            from metaphrase.ops.shape import convert

            return convert(first, dtype=f64)
        return (reduce_sum, reduce_max)[self.integer(2)](x, axes=axes)

    def spread(self, depth):
        x = self.pick()
        if x.type.ndim > 1:
            return None
        size = 1 + self.integer(4)
        return broadcast(x, shape=(size, *x.type.dims), axes=tuple(range(1, x.type.ndim + 1)))

    def turn(self, depth):
        x = self.pick()
        return permute(x, axes=tuple(int(k) for k in self.random.permutation(x.type.ndim))) if x.type.ndim else None

    def flatten(self, depth):
        x = self.pick()
        dims = x.type.dims
        if x.type.ndim < 2:
            return reshape(x, shape=(*dims, 1))
        return reshape(x, shape=(dims[0] * dims[1], *dims[2:]))

    def region(self, dims):
        starts, shape, steps = [], [], []
        for d in dims:
            length = 1 + self.integer(d)
            step = 1 + self.integer((d - 1) // (length - 1)) if length > 1 and d > length else 1
            first = self.integer(d - (length - 1) * step)
            if self.integer(4) == 0:
                first, step = first + (length - 1) * step, -step
            starts.append(literal(first, i64)), shape.append(length), steps.append(step)
        return starts, tuple(shape), tuple(steps)

    def cut(self, depth):
        x = self.pick()
        if not x.type.ndim:
            return None
        starts, shape, steps = self.region(x.type.dims)
        return slice(x, *starts, shape=shape, step=steps)

    def write(self, depth):
        x = self.pick()
        if not x.type.ndim:
            return None
        starts, shape, steps = self.region(x.type.dims)
        other, _, back = self.region(x.type.dims)
        v = self.pick(dims=shape) or slice(x, *starts, shape=shape, step=steps)
        return (slice_update, slice_add)[self.integer(2)](x, v, *starts, step=steps)

    def join(self, depth):
        x = self.pick()
        return concatenate(x, self.pick(dims=x.type.dims), axis=self.integer(x.type.ndim)) if x.type.ndim else None

    def frame(self, depth):
        x = self.pick()
        rank = x.type.ndim
        low, high = (tuple(self.integer(3) for _ in range(rank)) for _ in range(2))
        return pad(x, literal(0.5), low=low, high=high, interior=tuple(self.integer(2) for _ in range(rank)))

    def choose(self, depth):
        a = self.pick()
        return select(gt(a, self.pick(dims=a.type.dims)), a, self.pick(dims=a.type.dims))

    def running(self, depth):
        x = self.pick()
        return cumsum(x, axis=self.integer(x.type.ndim), reverse=bool(self.integer(2))) if x.type.ndim else None

    def product(self, depth):
        a = self.pick(rank=2)
        if a is None:
            return None
        fit = [v for v in self.values if v.type.ndim == 2 and v.type.dims[0] == a.type.dims[1]]
        b = fit[self.integer(len(fit))] if fit else permute(a, axes=(1, 0))
        return tanh(dot_general(a, b, contract=((1,), (0,)), batch=((), ())))

    def take(self, depth):
        x = self.pick()
        if not x.type.ndim:
            return None
        d = x.type.dims[0]
        index = iota(length=d, dtype=i64)
        flipped = sub(broadcast(literal(d - 1, i64), shape=(d,), axes=()), index)
        return gather(x, flipped, axes=(0,))

    def place(self, depth):
        x = self.pick()
        if not x.type.ndim:
            return None
        d = x.type.dims[0]
        from metaphrase.ops.arithmetic import floor_div

        half = floor_div(iota(length=d, dtype=i64), broadcast(literal(2, i64), shape=(d,), axes=()))
        return scatter_add(zeros(x.type) if self.integer(2) else x, self.pick(dims=x.type.dims), half, axes=(0,))

    def body(self, name, params, results, depth):
        """A region of its own over `params`, giving values of the types of `results`."""
        with Builder(name) as builder:
            given = [builder.parameter(f"p{k}", t) for k, t in enumerate(params)]
            inner = Composer(self.integer(2**31), [g for g in given if g.type.dtype == f64])
            for _ in range(4):
                inner.step(depth - 1)
            outs = []
            for k, t in enumerate(results):
                made = inner.pick(dims=t.dims)
                outs.append(given[k + 1] if made is None else made)
            return builder.function([tanh(o) if self.integer(2) else o for o in outs])

    def loop(self, depth):
        const, carry = self.pick(), [self.pick() for _ in range(1 + self.integer(2))]
        types = [c.type for c in carry]
        step = self.body("step", [I, const.type, *types], [const.type, *types][1:], depth)
        step = _aligned(step, types)
        outs = loop(
            const,
            *carry,
            body=step,
            cond=None,
            length=self.integer(4),
            roles=Roles(1, len(carry), 0, 0),
            reverse=bool(self.integer(2)),
        )
        self.values += outs
        return None

    def branch(self, depth):
        a, b = self.pick(), self.pick()
        sides = tuple(_aligned(self.body(f"side{k}", [a.type, b.type], [b.type], depth), [b.type]) for k in range(2))
        test = self.pick(rank=0)
        test = literal(0.1) if test is None else test
        return cond(lt(test, literal(0.2)), a, b, branches=sides)[0]


def _aligned(function: Function, types: list) -> Function:
    assert [r.type.plain for r in function.results] == [t.plain for t in types]
    return function


def compose(seed: int, depth: int = 2, steps: int = 9) -> tuple[Function, list]:
    random = np.random.default_rng(seed)
    dims = [tuple(int(d) for d in random.integers(1, 5, size=rank)) for rank in (2, 2, 1, 0)]
    with Builder(f"random_{seed}") as builder:
        params = [builder.parameter(f"x{k}", Array(f64, d)) for k, d in enumerate(dims)]
        composer = Composer(seed, params)
        for _ in range(steps):
            composer.step(depth)
        made = composer.values[len(params) :]
        results = [composer.pick() for _ in range(3)] + made[-1:]
        function = builder.function(results)
    return function, [random.normal(size=d) for d in dims]


@pytest.mark.turns(4)
@pytest.mark.parametrize("seed", range(60))
def test_loops_agree(seed, monkeypatch):
    monkeypatch.setenv("METAPHRASE_CHECK", "1")
    function, arrays = compose(seed)
    check(function, *arrays, native=False, ulps=2**12)


@pytest.mark.turns(4)
@pytest.mark.parametrize("seed", range(1000, 1012))
def test_native_agrees(seed):
    function, arrays = compose(seed, steps=14)
    check(function, *arrays, ulps=2**12)


def test_a_random_program_has_regions_and_writes():
    names = {let.primitive.name for seed in range(60) for let in compose(seed)[0].lets}
    assert {"loop", "cond", "slice_update", "dot_general", "pad", "cumsum"} <= names
    assert bool_ == np.dtype(bool)
