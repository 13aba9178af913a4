"""Functions that `jit` compiles in groups (tests/together.py) and random programs that are judged so."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import together
from fuzz import campaign
from fuzz.programs import Case
from levels import PARTS
from together import Together, translate

import metaphrase as mp
from metaphrase.astpasses.emit.cython_function import FunctionWriter

X = np.arange(5.0)


def failing(x, n):
    total = x.sum()
    assert n > 0, f"n is {n}"
    return total / n


def matrix(x):
    return np.outer(x, x) @ x, "kept", x[1:]


def test_functions_in_one_library_run_as_alone():
    functions = [mp.jit(failing), mp.jit(matrix), mp.jit(mp.grad(lambda x: np.sin(x).sum()))]
    calls = [(X, 2), (X,), (X,)]
    with Together() as builds:
        for k, (function, args) in enumerate(zip(functions, calls)):
            with builds.of(k):
                translate(function, args)
    assert builds.libraries == 1 and not builds.broken
    assert functions[0](X, 2) == 5.0
    with pytest.raises(AssertionError, match="n is -1"):
        functions[0](X, -1)
    product, kept, rest = functions[1](X)
    np.testing.assert_allclose(product, np.outer(X, X) @ X)
    assert kept == "kept" and rest.tolist() == [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_allclose(functions[2](X), np.cos(X))
    assert all(f.cache_info().misses == 1 for f in functions)


def test_slots_are_free_again_when_their_functions_are_gone():
    function, builds = mp.jit(lambda x: x + 3.0), Together()
    with builds, builds.of("one"):
        translate(function, (X,))
    gc.collect()
    count = len(together.free)
    assert function(X)[0] == 3.0
    del function
    gc.collect()
    assert len(together.free) == count + 1


def test_a_part_is_compiled_alone(monkeypatch):
    monkeypatch.setenv("METAPHRASE_TESTS_DAY", "0")
    grouped = []
    native = Together.native
    monkeypatch.setattr(
        Together, "native", lambda self, owner, *rest: grouped.append(owner) or native(self, owner, *rest)
    )
    made = together.jitted({k: (lambda x, k=k: x * k, (X,)) for k in range(3 * PARTS)})
    assert 0 < len(set(made) - set(grouped)) < PARTS and len(grouped) > PARTS
    assert all(np.array_equal(f(X), X * k) for k, f in made.items())


def test_what_runs_before_it_is_compiled_is_an_error():
    function, builds = mp.jit(lambda x: x * 3.0), Together()
    with builds.of("one"):
        translate(function, (X,))
    with pytest.raises(SystemError, match="unknown status"):
        function(X)
    builds.compile()
    np.testing.assert_array_equal(function(X), X * 3.0)


CASES = [
    Case(f"import numpy as np\n\n\ndef program(x):\n    return x * {k}.5\n\n\nARGUMENTS = [(0.5,), (2.0,)]\n", True)
    for k in range(4)
]


def judged(cases):
    search = campaign.Search(0, len(cases))
    search.judge_together(cases)
    return [search.verdicts[case] for case in cases]


def test_random_programs_are_judged_together(monkeypatch):
    built = []
    entries = together.entries
    monkeypatch.setattr(together, "entries", lambda *args: built.append(len(args[0])) or entries(*args))
    assert [v.kind for v in judged(CASES)] == ["agrees"] * 4
    assert built == [4]


@pytest.mark.parametrize("fault", ["not C", "other"])
def test_a_fault_of_one_program_is_that_programs(monkeypatch, fault):
    """Of a group that does not compile each program is compiled by itself."""
    write = FunctionWriter.write

    def planted(writer):
        text = write(writer)
        return text.replace("2.5", "2.75") if fault == "other" else text.replace("2.5", "2.5 $")

    monkeypatch.setattr(FunctionWriter, "write", planted)
    verdicts = judged(CASES)
    assert [verdicts[k].kind for k in (0, 1, 3)] == ["agrees"] * 3
    assert verdicts[2].kind == "native disagrees"
    assert ("did not compile" in verdicts[2].detail) == (fault == "not C")
