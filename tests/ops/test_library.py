"""The library against NumPy: each case is a line of NumPy, run on arrays and run on core atoms."""

import re
import types

import numpy
import pytest

from metaphrase.core.build import Builder
from metaphrase.core.check import check
from metaphrase.core.dims import Sym
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Literal, Var
from metaphrase.core.read import read
from metaphrase.core.show import same, show
from metaphrase.core.types import type_of
from metaphrase.ops.library import LIBRARY, UPDATES

from .library_cases import CASES, OPERANDS
from .rule_checks import batch_holds, jvp_holds, transpose_holds

# Lanes would give results of different sizes, or need sorted operands.
RUN_TIME_SIZES = re.compile(
    "nonzero|argwhere|np.where\\(p\\)|compress|extract|unique|bincount"
    "|searchsorted|digitize|interp|np.histogram\\(a, bins=t"
)


class Staged:
    """numpy, as the front end sees it: every function through the library."""

    def __init__(self, module=numpy):
        self.module = module

    def __getattr__(self, name):
        found = getattr(self.module, name)
        if isinstance(found, (types.ModuleType, numpy.ufunc)):
            return Staged(found)
        return LIBRARY.get(found, found) if callable(found) else found

    def __call__(self, *args, **keywords):
        return LIBRARY[self.module](*args, **keywords)


def flat(value):
    return [leaf for v in value for leaf in flat(v)] if isinstance(value, (tuple, list)) else [value]


def symbolic(type_, names):
    """The same type with a symbol for every size of 2 or more; equal sizes have one symbol."""
    return type_.with_dims(tuple(Sym(names.setdefault(d, f"n{d}")) if d > 1 else d for d in type_.dims))


def staged(case, wanted, with_symbols):
    names: dict = {}
    with Builder("case") as builder:
        given = {}
        for name in wanted:
            type_ = type_of(OPERANDS[name])
            given[name] = builder.parameter(name, symbolic(type_, names) if with_symbols else type_)
        made = case(Staged(), **given)
        results = [r if isinstance(r, (Var, Literal)) else Literal(numpy.asarray(r)[()]) for r in flat(made)]
        return builder.function(results)


def compare(case, wanted, with_symbols):
    function = check(staged(case, wanted, with_symbols))
    assert same(read(show(function)), function)
    arrays = [OPERANDS[name] for name in wanted]
    got = evaluate(function, *arrays)
    with numpy.errstate(all="ignore"):
        want = flat(case(numpy, **{name: OPERANDS[name] for name in wanted}))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        w = numpy.asarray(w)
        assert numpy.shape(g) == w.shape, (numpy.shape(g), w.shape)
        assert numpy.asarray(g).dtype == w.dtype, (numpy.asarray(g).dtype, w.dtype)
        if w.dtype.kind in "fc":
            tolerance = 1e-12 if w.dtype.itemsize >= 8 and w.dtype != numpy.complex64 else 1e-5
            numpy.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)
        else:
            numpy.testing.assert_array_equal(g, w)


def operands_of(case):
    return [name for name in case.__code__.co_varnames[1 : case.__code__.co_argcount]]


@pytest.mark.parametrize("line", CASES)
def test_library(line):
    case = CASES[line].function
    compare(case, operands_of(case), with_symbols=False)


@pytest.mark.turns(4)
@pytest.mark.parametrize("line", [line for line, case in CASES.items() if case.symbolic])
def test_library_with_symbolic_sizes(line):
    case = CASES[line].function
    compare(case, operands_of(case), with_symbols=True)


SMOOTH = [
    line
    for line, case in CASES.items()
    if "np.round(a, 2)" not in line
    and not {"m", "k"} & set(operands_of(case.function))
    and any(OPERANDS[name].dtype in (numpy.float64, numpy.complex128) for name in operands_of(case.function))
]


@pytest.mark.turns(4)
@pytest.mark.parametrize("line", SMOOTH)
def test_derivatives_of_the_library(line):
    case = CASES[line].function
    names = operands_of(case)
    function = staged(case, names, with_symbols=False)
    args = [OPERANDS[name] for name in names]
    along = [k for k, a in enumerate(args) if a.dtype in (numpy.float64, numpy.complex128)]
    jvp_holds(function, args, along)
    transpose_holds(function, args, along)


@pytest.mark.turns(4)
@pytest.mark.parametrize("line", [line for line in CASES if not RUN_TIME_SIZES.search(line)])
def test_batches_of_the_library(line):
    case = CASES[line].function
    names = operands_of(case)
    args = tuple(OPERANDS[name] for name in names)
    lanes = [tuple(numpy.roll(a, k) if a.ndim else a for a in args) for k in range(2)]
    if names:
        batch_holds(staged(case, names, with_symbols=False), lanes, range(len(args)))


def test_every_function_of_the_library_has_a_case():
    text = "\n".join(CASES)
    missing = []
    for function in LIBRARY:
        names = {n for n in dir(numpy) if getattr(numpy, n) is function}
        names |= {f"linalg.{n}" for n in dir(numpy.linalg) if getattr(numpy.linalg, n) is function}
        if names and not any(f"np.{n}(" in text or f"np.{n}." in text for n in names):
            missing.append(sorted(names)[0])
    assert not missing


UPDATES_OF = {
    "put": lambda np, a, j: np.put(a, j, [1.0, 2.0, 3.0, 4.0]),
    "fill_diagonal": lambda np, h: np.fill_diagonal(h, 7),
    "put_along_axis": lambda np, a: np.put_along_axis(a, numpy.array([[1], [0], [-1]]), 9.0, 1),
    "copyto": lambda np, a, b, p: np.copyto(a, b, where=p),
    "add.at": lambda np, v, j: np.add.at(v, j, 2.0),
    "subtract.at": lambda np, a, j: np.subtract.at(a, (j, numpy.array([0, 0, 1, 3])), 2.0),
}


class Updating(Staged):
    """Functions that write, as functions that return what is written."""

    def __getattr__(self, name):
        found = getattr(self.module, name)
        return UPDATES[found] if callable(found) and not isinstance(found, numpy.ufunc) else Updating(found)


@pytest.mark.parametrize("name", UPDATES_OF)
def test_updates(name):
    case = UPDATES_OF[name]
    operands = [OPERANDS[n].copy() for n in operands_of(case)]
    with Builder("update") as builder:
        params = [builder.parameter(n, type_of(o)) for n, o in zip(operands_of(case), operands)]
        function = check(builder.function([case(Updating(), *params)]))
    got = evaluate(function, *operands)[0]
    numpy.testing.assert_array_equal(operands[0], OPERANDS[operands_of(case)[0]])
    case(numpy, *operands)
    numpy.testing.assert_array_equal(got, operands[0])


def test_every_update_is_tested():
    assert len(UPDATES) == len(UPDATES_OF)
