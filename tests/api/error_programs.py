"""Programs with one mistake each; tests/api/test_errors.py holds the text of what each raises.

In: nothing. Out: functions without parameters that raise. Example: `grad_of_an_array()`.
"""
import numpy as np

import metaphrase as mp


def not_a_scalar(x):
    y = np.sin(x)
    return y * 2


def grad_of_an_array():
    return mp.grad(not_a_scalar)(np.ones(3))


def grad_of_an_integer():
    return mp.grad(lambda x: x * 2.0)(3)


def grad_of_a_tuple():
    def two_results(x):
        return x, x + 1

    return mp.grad(two_results)(3.0)


def grad_returns_an_integer():
    def count(x):
        return np.sum(x > 0)

    return mp.grad(count)(np.ones(3))


def grad_argnums_too_large():
    return mp.grad(lambda x: x * 2, argnums=1)(3.0)


def grad_of_a_flag():
    return mp.grad(lambda x, flag: x if flag else -x, argnums=(0, 1))(3.0, True)


def grad_of_a_write():
    def overwrite(x):
        KEPT[0] = x[0]
        return x.sum()

    return mp.grad(overwrite)(np.ones(3))


def grad_of_a_complex():
    return mp.grad(lambda z: z * z)(1.0 + 2.0j)


def vmap_in_axes_count():
    return mp.vmap(lambda x, y: x + y, in_axes=(0,))(np.ones(3), np.ones(3))


def vmap_axis_too_large():
    return mp.vmap(lambda x: x * 2, in_axes=2)(np.ones((3, 3)))


def vmap_scalar():
    return mp.vmap(lambda x, y: x * y)(np.ones(3), 2.0)


def vmap_sizes():
    return mp.vmap(lambda p, x: p["w"] * x)({"w": np.ones(4)}, np.ones(3))


def vmap_axes_tree():
    return mp.vmap(lambda p: p["w"], in_axes=({"v": 0},))({"w": np.ones(4)})


def vmap_no_axis():
    return mp.vmap(lambda x: x, in_axes=None)(np.ones(3))


def vmap_out_axes_none():
    def double(x):
        return x * 2

    return mp.vmap(double, out_axes=None)(np.ones(3))


def vmap_axis_not_an_int():
    return mp.vmap(lambda x: x, in_axes="first")(np.ones(3))


def jvp_structures():
    return mp.jvp(lambda x, y: x * y, (1.0, 2.0), (1.0,))


def jvp_tangent():
    return mp.jvp(lambda x: x * 2, (np.ones(3),), (np.ones(2),))


def vjp_cotangent():
    _, pullback = mp.vjp(lambda x: (x, x * 2), 3.0)
    return pullback(1.0)


def vjp_cotangent_type():
    _, pullback = mp.vjp(lambda x: x * 2, np.ones(3))
    return pullback(np.ones(2))


def aux_without_a_pair():
    return mp.grad(lambda x: x * x, has_aux=True)(2.0)


def jit_of_a_number():
    return mp.jit(3)


def shapes_that_do_not_fit():
    @mp.jit
    def add(a, b):
        total = a + b
        return total

    return add(np.ones(3), np.ones(4))


def product_that_does_not_fit():
    @mp.jit
    def product(a, b):
        return a @ b

    return product(np.ones((2, 3)), np.ones((4, 2)))


def no_branch_defined_it():
    @mp.jit
    def half_defined(x):
        if x > 0:
            y = x * 2
        return y + x

    return half_defined(-1.0)


def unsupported_construct():
    @mp.jit
    def generator(x):
        yield x

    return generator(1.0)


def two_unsupported_constructs():
    @mp.jit
    def textual(x):
        if x > 1:
            return eval("x")
        return locals()["x"]

    return textual(1.0)


def branches_of_different_shapes():
    @mp.jit
    def either(x):
        if x.sum() > 0:
            y = x
        else:
            y = x[:, None]
        return y + 1

    return either(np.ones(3))


def static_argument_that_is_not_there():
    return mp.jit(lambda x: x, static_argnames="mode")


def compiled_for_other_types():
    compiled = mp.jit(lambda x: x * 2).lower(np.ones(3)).compile()
    return compiled(np.ones(4))


def needs_a_value():
    @mp.jit
    def axis_from_array(x, axis):
        return np.sum(x, axis=axis[0])

    return axis_from_array(np.ones((2, 2)), np.array([1]))


def unknown_stage():
    return mp.source(lambda x: x, 1.0, stage="assembler")


def vmap_of_a_write():
    def overwrite(x):
        x[0] = 1.0
        return x.sum()

    return mp.vmap(overwrite)(np.ones((2, 3)))


def write_to_overlapping_arguments():
    def overwrite(x, y):
        x[0] = y.sum()

    x = np.ones(4)
    return mp.jit(overwrite)(x[1:], x[:-1])


def write_to_a_read_only_argument():
    def overwrite(x):
        x[0] = 1.0

    return mp.jit(overwrite)(np.broadcast_to(1.0, (3,)))


def reshaped_write_to_a_transposed_argument():
    def overwrite(x):
        x.ravel()[0] = 1.0

    return mp.jit(overwrite)(np.ones((2, 3)).T)


KEPT = np.zeros(3)
PROGRAMS = {name: value for name, value in list(globals().items())
            if callable(value) and getattr(value, "__module__", None) == __name__ and name != "not_a_scalar"}
