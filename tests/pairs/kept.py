"""What derivatives keep: checkpoint with each kind of policy, names, and loops that run again.

In: nothing. Out: cases. Example: `a_plain_checkpoint`.
"""

from __future__ import annotations

import functools

import numpy as np

import metaphrase as mp
from metaphrase import lax
from metaphrase.ad_checkpoint import checkpoint_name
from pairs.corpus import case

policies = mp.checkpoint_policies
W = np.array([[0.6, -0.4], [0.3, 0.9]])


def layer(x, w):
    hidden = checkpoint_name(np.sin(w @ x), "hidden")
    return checkpoint_name(np.tanh(hidden * hidden + 0.5 * x), "out")


def network(one, x, scale):
    for _ in range(2):
        x = one(x, W * scale)
    return x


@case("checkpoint", np.array([0.3, 0.8]), 0.5)
def a_plain_checkpoint(x, scale):
    return network(mp.checkpoint(layer), x, scale)


@case("checkpoint everything_saveable", np.array([0.3, 0.8]), 0.5)
def everything_is_kept(x, scale):
    return network(mp.checkpoint(layer, policy=policies.everything_saveable), x, scale)


@case("checkpoint dots_saveable", np.array([0.3, 0.8]), 0.5)
def products_are_kept(x, scale):
    return network(mp.checkpoint(layer, policy=policies.dots_saveable), x, scale)


@case("checkpoint dots_with_no_batch_dims_saveable", np.array([0.3, 0.8]), 0.5)
def products_without_lanes_are_kept(x, scale):
    return network(mp.checkpoint(layer, policy=policies.dots_with_no_batch_dims_saveable), x, scale)


@case("checkpoint save_only_these_names", np.array([0.3, 0.8]), 0.5)
def one_name_is_kept(x, scale):
    return network(mp.checkpoint(layer, policy=policies.save_only_these_names("hidden")), x, scale)


@case("checkpoint save_any_names_but_these", np.array([0.3, 0.8]), 0.5)
def other_names_are_kept(x, scale):
    return network(mp.checkpoint(layer, policy=policies.save_any_names_but_these("hidden")), x, scale)


@case("checkpoint save_anything_except_these_names", np.array([0.3, 0.8]), 0.5)
def all_but_one_name_is_kept(x, scale):
    return network(mp.checkpoint(layer, policy=policies.save_anything_except_these_names("out")), x, scale)


@case("checkpoint save_from_both_policies", np.array([0.3, 0.8]), 0.5)
def what_either_keeps(x, scale):
    policy = policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("out"))
    return network(mp.checkpoint(layer, policy=policy), x, scale)


@case("checkpoint in checkpoint", 0.7)
def twice_checkpointed(x):
    inner = mp.checkpoint(lambda x: np.exp(np.sin(x)) * x, prevent_cse=False)
    return mp.checkpoint(lambda x: inner(inner(x) * 0.5))(x)


@case("checkpoint in scan", np.array([0.5, 1.0]), 0.2)
def a_checkpointed_scan(xs, start):
    @functools.partial(mp.checkpoint, prevent_cse=False)
    def step(carry, x):
        carry = np.sin(carry * x) + x
        return carry, carry * carry

    return lax.scan(step, start, xs)


@case("checkpoint of control flow", np.array([0.4, 1.3]), jax=False)
def a_checkpointed_loop(x):
    @mp.checkpoint
    def body(x):
        out = np.zeros(2)
        for i in range(2):
            y = x[i]
            while y < 3.0:
                y = y * y + 1.0
            out[i] = np.log(y) if i else y
        return out

    return body(np.sin(x)) * x


def swing(x, v, n):
    for _ in range(n):
        v = v - 0.1 * np.sin(x)
        x = x + 0.1 * v
    return x, v


@case("loop_checkpoint", np.array([0.3, 0.8]), np.array([0.1, -0.2]), jax=False)
def a_long_swing(x, v):
    x, v = mp.loop_checkpoint(swing, slots=2)(x, v, 6)
    return x * v


@case("loop_checkpoint", 0.9, jax=False, sparse=False)
def a_while_that_runs_again(x):
    def until(x):
        k = 0
        while x < 4.0:
            x = x + np.sin(x) * 0.8
            k += 1
            if k > 6:
                break
        return x

    return mp.loop_checkpoint(until, slots=2)(x) * x


@case("loop_checkpoint", np.array([0.3, 0.8]), jax=False)
def loops_in_loops_that_run_again(x):
    def grid(x):
        out = np.ones(2)
        for i in range(2):
            total = x[i]
            for _ in range(3):
                total = np.sin(total) + x[i]
            out[i] = out[i - 1] * total
        return out

    return mp.loop_checkpoint(grid, slots=1)(x)


@case("loop_checkpoint in checkpoint", 0.9, jax=False)
def a_loop_in_a_checkpoint(x):
    again = mp.loop_checkpoint(lambda x: swing(x, 0.5, 5)[0], slots=2)
    return mp.checkpoint(lambda x: again(x) ** 2)(x)
