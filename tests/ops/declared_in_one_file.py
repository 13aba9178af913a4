"""An elementwise operation and a reduction that are declared here and nowhere else, sent through every stage.

In: nothing; it is run as a program (test_declarations.py), for a process has one registry. Out: "declared",
when users' code calls both, natively and as NumPy source, and their derivatives and batches are right.
"""

from __future__ import annotations

import numpy as np
import scipy.special

import metaphrase as mp
import metaphrase.ops
from metaphrase.core.foreign import Foreign
from metaphrase.core.native import Reduce
from metaphrase.core.primitive import NotLinear, Primitive
from metaphrase.core.relation import REDUCED
from metaphrase.core.scalars import MEDIUM, Scalar, Text, monoid, number
from metaphrase.ops.arithmetic import div, mul, sub
from metaphrase.ops.elementary import exp
from metaphrase.ops.families import elementwise, library_float
from metaphrase.ops.library_reductions import _folded
from metaphrase.ops.reduce import reduced_type

# --- the declarations ---------------------------------------------------------------------------------------

elementwise(
    "exprel",
    Foreign("scipy.special", "exprel"),
    type=library_float,
    domain=((0.5, 3),),
    scalar=Scalar(MEDIUM, texts=(Text("f", "x == 0 ? 1 : T_expm1(x)/x"),)),
    jvp=(lambda x_dot, y, x: mul(x_dot, div(sub(exp(x), y), x)),),
    doc="(exp(x) - 1)/x, and 1 at 0.",
)


def xor_all(x, axis=None):
    """What users call; run without us it means this."""
    return np.bitwise_xor.reduce(x, axis=axis)


reduce_xor: Primitive = Primitive(
    "reduce_xor",
    type=reduced_type,
    numpy=lambda x, *, axes: np.bitwise_xor.reduce(x, axis=axes),
    jvp=(None,),
    transpose=NotLinear,
    dims=REDUCED,
    native=Reduce(monoid("xor", "xor", number(0), exact=True), numpy="bitwise_xor.reduce"),
)

# --- every stage --------------------------------------------------------------------------------------------


def check_rules() -> None:
    from rule_checks import RULES

    from metaphrase.core.primitive import REGISTRY
    from metaphrase.ops.library import LIBRARY
    from metaphrase.ops.samples import Sample, in_domain, values

    LIBRARY[xor_all] = _folded("xor_all", reduce_xor, np.bitwise_xor, 0)
    whole = values(-9, 9, (3, 4), np.dtype("int64"))
    samples = {
        "exprel": in_domain(REGISTRY["exprel"]),
        "reduce_xor": [Sample((whole,), {"axes": a}) for a in ((0,), (1,), (0, 1))],
    }
    assert len(samples["exprel"]) > 6
    for name, rows in samples.items():
        for sample in rows:
            for rule in RULES.values():
                rule(REGISTRY[name], sample)


def growth(x):
    total = 0.0
    for row in x:
        total += np.sum(scipy.special.exprel(row))
    return total


def parity(bits):
    return xor_all(bits, axis=0), xor_all(bits)


def main() -> None:
    assert metaphrase.ops is not None
    check_rules()
    x = np.linspace(-2.0, 2.0, 12).reshape(3, 4)
    slope = np.exp(x) / x - np.expm1(x) / x**2
    np.testing.assert_allclose(mp.jit(growth)(x), growth(x), rtol=1e-14)
    np.testing.assert_allclose(mp.jit(mp.grad(growth))(x), slope, rtol=1e-12)
    lanes = np.stack([x, x + 0.1])
    np.testing.assert_allclose(mp.jit(mp.vmap(growth))(lanes), [growth(lane) for lane in lanes], rtol=1e-14)
    text = mp.source(mp.grad(growth), x)
    assert "exprel(" in text, text
    bits = np.arange(35).reshape(7, 5) * 77 % 64
    for got, want in zip(mp.jit(parity)(bits), parity(bits)):
        assert np.array_equal(got, want) and got.dtype == want.dtype
    for got, want in zip(mp.jit(mp.vmap(parity))(np.stack([bits, bits + 1])), parity(bits)):
        assert np.array_equal(got[0], want)
    text = mp.source(parity, bits)
    assert "np.bitwise_xor.reduce(bits, axis=0)" in text, text
    assert "np.bitwise_xor.reduce(bits, axis=(0, 1))" in text, text
    print("declared")


if __name__ == "__main__":
    main()
