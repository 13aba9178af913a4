"""What fails while a program runs shows the user's frames only, and ends at the user's line: compiled or
not, in derivatives and lanes too."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.runtime.errors import placed
from metaphrase.source import SourceError, Span


def picked(x, k):
    y = np.sin(x)
    return y[k] * 2  # fails here


def summed(x):
    s = 0.0
    i = 0
    while s < 100:
        s += x[i]  # fails here
        i += 1
    return s


def kept(x):
    return (x[x > 9].max() + 1) * 2  # fails here


X, K = np.ones(3), np.int64(5)
CALLS = {
    "jit": lambda: mp.jit(picked)(X, K),
    "grad": lambda: mp.grad(picked)(X, K),
    "jvp": lambda: mp.jvp(lambda x: picked(x, 5), (X,), (X,)),
    "jit_vmap_grad": lambda: mp.jit(mp.vmap(mp.grad(picked), (None, 0)))(X, np.array([0, 7])),
    "jit_grad_while": lambda: mp.jit(mp.grad(summed))(X),
    "vmap_while": lambda: mp.vmap(summed)(np.ones((2, 3))),
    "grad_of_a_check": lambda: mp.grad(kept)(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_frames_are_the_users(name):
    with pytest.raises((IndexError, ValueError)) as caught:
        CALLS[name]()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
    assert frames[-1].line.endswith("# fails here")


def test_a_refusal_shows_the_call_only():
    """It is raised before any code of the user's runs: no frame of theirs lies below the call."""
    with pytest.raises(SourceError) as caught:
        mp.grad(lambda x: x * 2)(X)
    assert {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)} == {__file__}


def test_all_frames_on_request(monkeypatch):
    monkeypatch.setenv("METAPHRASE_FULL_TRACEBACK", "1")
    with pytest.raises(IndexError) as caught:
        mp.grad(picked)(X, K)
    assert len({frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}) > 1


def test_a_derivative_says_of_which_line():
    error = placed(ValueError("no"), (Span(__file__, 18, 4, role="adjoint"),))
    assert error.__notes__ == ["while computing the adjoint of line 18"]
    assert not hasattr(placed(ValueError("no"), (Span(__file__, 18, 4),)), "__notes__")


def masked(x):
    return mp.nn.softmax(x, axis=3)  # fails here


def parting(x):
    return mp.lax.cond(x[0] > 0, lambda: (1.0, 2.0), lambda: 1.0)  # fails here


def drawn(x):
    return mp.random.normal(x, (3,))  # fails here


def scattered(x):
    np.maximum.at(x, K, 2.0)  # fails here
    return x


@pytest.mark.parametrize("function", [masked, parting, drawn, scattered])
def test_a_fault_in_a_library_of_ours_is_shown_at_the_users_call(function):
    with pytest.raises((SourceError, TypeError, IndexError)) as caught:
        mp.jit(function)(X)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
    if isinstance(caught.value, SourceError):
        text = str(caught.value)
        assert "# fails here" in text and text.count(".py:") == text.count(__file__)
    else:
        assert frames[-1].line.endswith("# fails here")


def test_equal_code_in_two_files_fails_in_its_own(tmp_path):
    """Python takes code to be equal that differs by its file and columns only."""
    for name, line in (("a", "    return x[k]"), ("b", "    return x[k]"), ("c", "    return (x [k])")):
        path = tmp_path / f"{name}.py"
        path.write_text(f"def picked(x, k):\n{line}\n")
        scope: dict = {}
        exec(compile(path.read_text(), str(path), "exec"), scope)
        with pytest.raises(IndexError) as caught:
            mp.jit(scope["picked"])(X, K)
        last = traceback.extract_tb(caught.tb)[-1]
        assert (last.filename, last.lineno, last.line) == (str(path), 2, line.strip())
        assert line[last.colno : last.end_colno].replace(" ", "") == "x[k]"
