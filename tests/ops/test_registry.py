"""Every primitive of the registry against its samples: type, reading, jvp, transpose, batch. No list here."""

import numpy as np
import pytest

import metaphrase.ops  # noqa: F401  (registers the primitives)
from metaphrase.core.native import Composite
from metaphrase.core.primitive import REGISTRY
from metaphrase.ops.samples import SAMPLES

from .rule_checks import RULES, check_composite

NAMES = sorted(REGISTRY)


def test_every_primitive_has_samples():
    assert not set(REGISTRY) ^ set(SAMPLES)
    assert all(SAMPLES[name] for name in REGISTRY)


@pytest.mark.turns(4)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMES)
def test_rule(name, rule):
    for sample in SAMPLES[name]:
        try:
            RULES[rule](REGISTRY[name], sample)
        except Exception as error:
            shown = ", ".join(f"{np.asarray(a).dtype}{list(np.shape(a))}" for a in sample.args)
            raise AssertionError(f"{rule} rule of {name}({shown}; {sample.attributes}): {error}") from error


@pytest.mark.parametrize("name", [n for n in NAMES if isinstance(REGISTRY[n].native, Composite)])
def test_composite(name):
    for sample in SAMPLES[name]:
        check_composite(REGISTRY[name], sample)
