"""Every primitive with samples: evaluate = Python loops = native, fused and unfused."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check_all
from turns import turn

from metaphrase import ops  # noqa: F401
from metaphrase.core.build import trace
from metaphrase.core.ir import ConstantArray
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import type_of
from metaphrase.ops.samples import SAMPLES

NAMES = sorted(name for name in set(REGISTRY) & set(SAMPLES) if not REGISTRY[name].transient)


def test_every_primitive_has_samples():
    assert sorted(name for name, primitive in REGISTRY.items() if not primitive.transient) == NAMES


@pytest.mark.parametrize("name", turn(NAMES, 9))
def test_primitive(name):
    cases = []
    for sample in SAMPLES[name]:
        args = tuple(np.asarray(a)[()] for a in sample.args)
        function = trace(
            f"try_{name}",
            lambda *xs, attributes=sample.attributes: REGISTRY[name](*xs, **attributes),
            [(f"x{k}", type_of(a)) for k, a in enumerate(args)],
        )
        cases.append((function, args))
    iterated = name in ("eigh", "svd", "eig")  # another LAPACK may stop at other last bits
    cancels = name == "irfft"  # real parts of sums, next to which the imaginary ones are large
    check_all(cases, ulps=2**14 if iterated else 2**9 if cancels else 16)


def test_constant_array_is_told_from_a_parameter():
    assert ConstantArray(np.zeros(2)) == ConstantArray(np.zeros(2))
