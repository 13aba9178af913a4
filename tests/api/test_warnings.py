"""`warnings.warn` in translated functions: each run warns, at the user's line, as Python's filters decide."""
# ruff: noqa: B028

import runpy
import sys
import warnings

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import UnsupportedError


class Mine(UserWarning):
    pass


def under_a_test(x):
    if x[0] > 5:
        warnings.warn("large")
    return x * 2


def on_the_only_path(x):
    warnings.warn(f"value {x[0]:.2f} {{}}", RuntimeWarning)
    return x * 2


def of_the_caller(x):
    if x.sum() > 1:
        warnings.warn("of the caller", Mine, stacklevel=2)
    return x + 1


def called(x):
    return of_the_caller(x) * 2


def in_a_loop(x):
    for k in range(len(x)):
        if x[k] > 2:
            warnings.warn(f"{k} is large", category=Mine)
    return x.sum()


def of_an_instance(x):
    warnings.warn(Mine(f"a {x[0]}"))
    return x + 1


def quiet(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if x[0] > 0:
            warnings.warn("not heard")
    return x + 1


def recorded(x):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.warn("heard")
    return len(heard), x + 1


def of_no_category(x):
    warnings.warn("large", 3)
    return x


EVERY = [under_a_test, on_the_only_path, of_the_caller, called, in_a_loop, of_an_instance, quiet, recorded]
X = np.array([6.0, 1.0, 3.0])


def heard_of(f, x, action):
    """What is heard of three calls, which stand in one line, and what they give."""
    vars(sys.modules[__name__]).pop("__warningregistry__", None)
    made = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter(action)
        for _ in range(3):
            try:
                made.append(np.asarray(f(x)[-1]).tolist() if isinstance(f(x), tuple) else f(x).tolist())
            except Warning as error:
                made.append(repr(error))
    return [(str(w.message), w.category, w.filename, w.lineno) for w in heard], made


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("f", EVERY, ids=lambda f: f.__name__)
def test_each_run_warns_as_python_does(f, native):
    jitted = mp.jit(f)
    with mp.config(native=native):
        jitted(X / 10)
        for x in (X, X / 10):
            for action in ("always", "default", "error"):
                assert heard_of(jitted, x, action) == heard_of(f, x, action)


def test_under_transformations():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        mp.grad(in_a_loop)(X)
        mp.vmap(under_a_test)(np.stack([X, X / 10, X * 2]))
    assert [str(w.message) for w in heard] == ["0 is large", "2 is large", "large", "large"]
    assert {w.filename for w in heard} == {__file__}


def test_of_a_function_whose_module_is_nowhere(tmp_path):
    """A module that was run from its file, and that `sys.modules` does not have."""
    (tmp_path / "nowhere.py").write_text("import warnings\n\ndef f(x):\n    warnings.warn('many')\n    return x + 1\n")
    names = runpy.run_path(str(tmp_path / "nowhere.py"))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        mp.jit(names["f"])(X)
    assert [(str(w.message), w.lineno) for w in heard] == [("many", 4)]


def test_the_source_warns():
    text = mp.jit(on_the_only_path).source("numpy", X)
    assert text.startswith("import warnings\n\nimport numpy as np\n")
    assert 'warnings.warn(f"value {x[0]:.2f} {{}}", RuntimeWarning)' in text


def test_no_category():
    with pytest.raises(TypeError, match="category must be a Warning subclass, not 'int'"):
        mp.jit(of_no_category)(X)


def held(x):
    if x[0] > 0:
        message = Mine("large")
        message.place = 3
        warnings.warn(message)
    return x


def caught_under_a_test(x):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        if x[0] > 0:
            warnings.warn("large")
    return x


@pytest.mark.parametrize("f", [held, caught_under_a_test])
def test_what_is_refused(f):
    with pytest.raises(UnsupportedError, match="would be told once, while translating") as error:
        mp.jit(f)(X)
    assert error.value.span.file == __file__ and error.value.remedy == "warn outside of it with a text"
