"""The test of the registry tests: a wrong rule, planted, must be found."""

import numpy as np
import pytest

from metaphrase.core.primitive import REGISTRY, Accumulate, Joint, NotLinear, Primitive
from metaphrase.core.relation import POINTWISE
from metaphrase.ops.arithmetic import add, mul, neg
from metaphrase.ops.elementary import cos, exp, sin
from metaphrase.ops.families import elementwise, inexact, like, same_type
from metaphrase.ops.indexing import accumulate
from metaphrase.ops.samples import Sample

from .rule_checks import RULES

X, Y = np.array([0.5, -1.0, 2.0]), np.array([1.5, 0.25, -3.0])


@pytest.fixture
def plant():
    """Declare a primitive for the length of one test."""
    before = set(REGISTRY)
    yield elementwise
    for name in set(REGISTRY) - before:
        del REGISTRY[name]


def refused(rule, primitive, *args, **attributes):
    with pytest.raises(AssertionError):
        RULES[rule](primitive, Sample(args, attributes))


def test_sound_rules_pass(plant):
    sound = plant("planted", np.sin, type=inexact, jvp=(lambda x_dot, y, x: mul(x_dot, cos(x)),))
    for rule in RULES.values():
        rule(sound, Sample((X,)))


def test_wrong_sign_of_a_derivative_is_found(plant):
    refused("jvp", plant("planted", np.cos, type=inexact, jvp=(lambda x_dot, y, x: mul(x_dot, sin(x)),)), X)


def test_derivative_said_to_be_zero_is_found(plant):
    refused("jvp", plant("planted", np.exp, type=inexact, jvp=(None,)), X)


def test_forgotten_operand_is_found(plant):
    wrong = plant("planted", np.multiply, jvp=(lambda a_dot, y, a, b: mul(a_dot, b), None))
    refused("jvp", wrong, X, Y)


def test_joint_rule_that_changes_the_result_is_found(plant):
    wrong = plant(
        "planted", np.exp, type=inexact, jvp=Joint(lambda args, dots: ((sin(args[0]),), (mul(dots[0], exp(args[0])),)))
    )
    refused("jvp", wrong, X)


def test_wrong_transpose_is_found(plant):
    wrong = plant("planted", np.negative, jvp=(lambda x_dot, y, x: wrong(x_dot),), transpose=(lambda y_bar, x: y_bar,))
    refused("transpose", wrong, X)


def test_transpose_that_forgets_the_cotangent_so_far_is_found(plant):
    wrong = plant(
        "planted",
        np.negative,
        jvp=(lambda x_dot, y, x: wrong(x_dot),),
        transpose=Accumulate(lambda bars, accs, args: {0: neg(bars[0])}),
    )
    refused("transpose", wrong, X)


def test_accumulating_transpose_passes(plant):
    right = plant(
        "planted",
        np.negative,
        jvp=(lambda x_dot, y, x: right(x_dot),),
        transpose=Accumulate(lambda bars, accs, args: {0: accumulate(accs[0], neg(bars[0]))}),
    )
    RULES["transpose"](right, Sample((X,)))


def test_wrong_type_rule_is_found(plant):
    refused("type", plant("planted", np.sin, type=lambda x: x.with_dtype(np.dtype("float32")), jvp=(None,)), X)


def test_numpy_rule_that_gives_a_python_number_is_found(plant):
    refused("type", plant("planted", lambda x: float(x), jvp=(None,)), np.float64(2.0))


def test_numpy_rule_that_writes_into_its_operand_is_found(plant):
    refused("type", plant("planted", lambda x: np.multiply(x, 2, out=x), jvp=(None,)), X.copy())


def test_wrong_batch_rule_is_found():
    wrong = Primitive(
        "planted",
        type=lambda x: x.with_dims(x.dims[1:]),
        numpy=lambda x: x.sum(axis=0),
        jvp=(None,),
        transpose=NotLinear,
        dims=POINTWISE,
        batch=lambda size, args, batched: (wrong(args[0]), True),
        native=REGISTRY["reduce_sum"].native,
    )
    try:
        with pytest.raises(AssertionError):
            RULES["batch"](wrong, Sample((np.arange(9.0).reshape(3, 3),)))
    finally:
        del REGISTRY["planted"]


def test_dims_that_are_not_independent_are_found():
    cumsum = REGISTRY["cumsum"]
    right, cumsum.dims = cumsum.dims, POINTWISE
    try:
        refused("dims", cumsum, X, axis=0, reverse=False)
    finally:
        cumsum.dims = right


def test_batch_rule_that_mixes_lanes_is_found(plant):
    wrong = Primitive(
        "planted",
        type=same_type,
        numpy=np.add,
        jvp=(None, None),
        transpose=NotLinear,
        dims=POINTWISE,
        batch=lambda size, args, batched: (add(args[0], like(args[0], 1)), True),
        native=REGISTRY["add"].native,
    )
    refused("batch", wrong, X, Y)
