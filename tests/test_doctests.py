"""Every example in a docstring of the package, run under the package's own names.

`pytest --doctest-modules pysrc` would import each module a second time as `pysrc...`, with a second registry.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

# Run as programs, where importing them is an act; and what lies there to be copied into packages.
NOT_IMPORTED = {"metaphrase.__main__", "metaphrase.cli.__main__", "metaphrase.runtime.abi3.dispatch"}


def modules() -> list[str]:
    found = ["metaphrase"]
    for package in list(found):
        for info in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
            found.append(info.name)
    for room in ("astpasses", "runtime", "cli"):
        package = importlib.import_module(f"metaphrase.{room}")
        found.append(package.__name__)
        found += [info.name for info in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
    return sorted(set(found) - NOT_IMPORTED)


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    for public in dir(module):  # not while doctest looks around: some are imported when asked for
        getattr(module, public)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for found in doctest.DocTestFinder().find(module, name):  # `testmod` runs docstrings without examples, too
        if found.examples:
            runner.run(found)
    assert runner.summarize(verbose=False).failed == 0
