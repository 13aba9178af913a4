"""Functions whose source is not in a file: found where it can be, else traced, or refused with words."""

import linecache

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import UnsupportedError

X = np.arange(3.0)
TEXT = """
def smooth(x):
    return np.sin(x).sum()

def branching(x):
    if x.sum() > 0:
        return x * 2
    return x

def looping(x):
    y = 0.0
    for v in x:
        y = y + v
    return y
"""
FUNCTIONS = {"np": np}
exec(TEXT, FUNCTIONS)


def test_straight_code_from_exec_is_traced():
    assert mp.jit(FUNCTIONS["smooth"])(X) == pytest.approx(np.sin(X).sum())
    np.testing.assert_allclose(mp.grad(FUNCTIONS["smooth"])(X), np.cos(X))
    assert mp.jit(FUNCTIONS["looping"])(X) == 3.0
    np.testing.assert_array_equal(mp.jit(eval("lambda x: x + 1"))(X), X + 1)


@pytest.mark.parametrize(
    "function, name, line",
    [(FUNCTIONS["branching"], "'branching'", 6), (eval("lambda x: x if x.sum() > 0 else -x"), "a lambda", 1)],
)
def test_a_branch_without_source_is_refused_by_name(function, name, line):
    with pytest.raises(UnsupportedError, match=f"{name}, whose source was not found") as caught:
        mp.jit(function)(X)
    assert (caught.value.span.file, caught.value.span.line) == ("<string>", line)
    assert "define the function in a file" in caught.value.remedy


def test_it_is_refused_where_a_translated_function_calls_it():
    def caller(x):
        return FUNCTIONS["branching"](x) + 1

    with pytest.raises(UnsupportedError, match="'branching', whose source was not found"):
        mp.jit(caller)(X)


def test_a_cell_of_a_notebook_is_translated():
    text = "def cell(x):\n    if x.sum() > 0:\n        return x * 2\n    return x\n"
    name = "<ipython-input-7-0123456789ab>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    made: dict = {}
    exec(compile(text, name, "exec"), made)
    np.testing.assert_array_equal(mp.jit(made["cell"])(X), X * 2)
    np.testing.assert_array_equal(mp.jit(made["cell"])(-X), -X)


def test_lambdas_on_one_line_are_told_apart():
    first, second = (lambda x: x * 2), (lambda x: x * 3 if x.sum() > 0 else x)
    np.testing.assert_array_equal(mp.jit(first)(X), X * 2)
    np.testing.assert_array_equal(mp.jit(second)(X), X * 3)
    np.testing.assert_array_equal(mp.jit(second)(-X), -X)


def test_functions_of_numpy_are_translated_as_they_are():
    assert mp.jit(np.sum)(X) == 3.0
    np.testing.assert_allclose(mp.grad(np.linalg.norm)(X), X / np.sqrt(5))


OUTSIDE = """
def scaled(x):
    return helper(x) * G + A.sum()

def helper(x):
    return x + G

def told(x):
    print('x is', x)
    return x

def stored(x):
    x[0] = 5.0
    return x.sum()

def kept(o, x):
    o.t = x
    return x

def appended(items, x):
    items.append(x)
    return x

def renewed(x):
    global G
    G = x

def found(x):
    return x * CONFIG['rate']

def counted(x):
    n = 0.0
    def count():
        nonlocal n
        n += x
        return n
    return count() + count()

"""


def outside():
    names = {"np": np, "G": 2.0, "A": np.ones(3), "CONFIG": {"rate": 2.0}}
    exec(OUTSIDE, names)
    return names


def test_what_a_function_without_source_reads_from_outside_is_read_at_each_call():
    names = outside()
    scaled = mp.jit(names["scaled"])
    assert scaled(1.0) == names["scaled"](1.0) == 9.0
    names["G"], names["A"][0] = 3.0, 5.0
    assert scaled(1.0) == names["scaled"](1.0) == 19.0
    names["helper"] = lambda x: -x
    assert scaled(1.0) == names["scaled"](1.0) == 4.0


def test_it_prints_and_stores_as_it_does(capsys):
    names, x = outside(), np.zeros(3)
    told = mp.jit(names["told"])
    assert (told(3.0), told(4.0), capsys.readouterr().out) == (3.0, 4.0, "x is 3.0\nx is 4.0\n")
    assert mp.jit(names["stored"])(x) == x[0] == 5.0


@pytest.mark.parametrize(
    "name, args, what",
    [
        ("kept", (type("Clock", (), {"t": 0.0})(), 1.0), "stores into an attribute"),
        ("appended", ([1.0], 2.0), "changes a list or a dict that it is given"),
        ("renewed", (1.0,), "assigns a global variable"),
        ("found", (1.0,), "reads 'CONFIG', a dict from outside"),
    ],
)
def test_what_it_would_do_to_others_is_refused(name, args, what):
    names = outside()
    with pytest.raises(UnsupportedError, match=f"'{name}', whose source was not found, {what}"):
        mp.jit(names[name])(*args)
    assert names["G"] == 2.0 and args[0] in ([1.0], 1.0) or args[0].t == 0.0


def test_its_own_variables_are_its_own():
    counted = outside()["counted"]
    assert mp.jit(counted)(2.0) == counted(2.0) == 6.0


LIBRARY = """
from metaphrase import debug, lax
from metaphrase.lax import stop_gradient

def held(x):
    return stop_gradient(x) * x

def held_of_module(x):
    return mp.lax.stop_gradient({"a": x})["a"] * x

def imported_inside(x):
    from metaphrase.lax import stop_gradient
    return stop_gradient(x) * x

def chosen(x):
    return lax.cond(x > 1, lambda v: v**2, lambda v: np.sin(v), x)

def repeated(x):
    return lax.fori_loop(0, 3, lambda i, s: lax.dynamic_index_in_dim(x, i, keepdims=False) * s, 1.0)

def told(x):
    debug.callback(lambda v: print("told", v), x)
    return x
"""


def library():
    made: dict = {"np": np, "mp": mp}
    exec(LIBRARY, made)
    return made


@pytest.mark.parametrize("name", ["held", "held_of_module", "imported_inside"])
def test_stop_gradient_holds_without_source(name):
    assert mp.grad(library()[name])(3.0) == 3.0
    assert mp.jvp(library()[name], (3.0,), (1.0,)) == (9.0, 3.0)


def test_functions_of_ours_are_translated_where_what_calls_them_has_no_source():
    f = library()
    np.testing.assert_allclose(mp.vmap(mp.grad(f["chosen"]))(np.array([0.5, 1.5])), [np.cos(0.5), 3.0])
    np.testing.assert_array_equal(mp.grad(f["repeated"])(np.array([2.0, 3.0, 5.0])), [15.0, 10.0, 6.0])


def test_a_callback_without_source_prints(capsys):
    f = mp.jit(library()["told"])
    assert (f(1.0), f(2.0)) == (1.0, 2.0)
    assert capsys.readouterr().out == "told 1.0\ntold 2.0\n"
