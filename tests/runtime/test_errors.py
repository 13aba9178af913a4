"""A failing site becomes an exception whose traceback ends at the user's line."""

from __future__ import annotations

import struct
import traceback

import numpy as np
import pytest

from metaphrase.runtime import entry as E
from metaphrase.runtime.dispatch import Dispatcher
from metaphrase.runtime.errors import Site, SiteTable, decode, exception_type
from metaphrase.source import Span


@pytest.fixture
def user_file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(
        "import numpy as np\n\ndef inner(x, i):\n    é = 1; return x[i] + é\n\ndef outer(x):\n    return inner(x, 7)\n"
    )
    return str(path)


@pytest.fixture
def failing(program, user_file):
    spans = (Span(user_file, 7, 11, 7, 22, function="outer"), Span(user_file, 4, 18, 4, 22, function="inner"))
    table = SiteTable(
        (Site(ValueError, "unused"), Site(IndexError, "index {0} is out of bounds for axis {1} with size {2}", spans))
    )
    call = Dispatcher(None, ())
    call.add(E.Entry(program("return mp_fail(c, 1, 3, 7, 0, 5, 0)").address, (), raise_site=table.raise_site))
    return call


def test_the_traceback_ends_at_the_users_line(failing, user_file):
    with pytest.raises(IndexError) as caught:
        failing()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [(frame.filename, frame.lineno, frame.name) for frame in frames[1:]] == [
        (user_file, 7, "outer"),
        (user_file, 4, "inner"),
    ]
    assert frames[0].filename == __file__  # nothing of the runtime stands between
    text = "".join(traceback.format_exception(caught.value))
    assert text.endswith(
        "    é = 1; return x[i] + é\n                  ~^^^\n"
        "IndexError: index 7 is out of bounds for axis 0 with size 5\n"
    )


def test_a_site_without_a_place(program):
    call = Dispatcher(None, ())
    table = SiteTable((Site("ZeroDivisionError", "division by zero"),))
    call.add(E.Entry(program("return 1").address, (), raise_site=table.raise_site))
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        call()
    with pytest.raises(RuntimeError, match="site 9, of which nothing is known"):
        table.raise_site(9, 0, (0, 0, 0, 0))


def test_recorded_values():
    def bits(value):
        return struct.unpack("=q", struct.pack("=d", value))[0]

    numbers = decode((bits(1.5), 1, -1, -1), ("float32", "bool", "uint64", "int8"))
    assert numbers == [1.5, True, 2**64 - 1, -1]
    assert [type(n) for n in numbers] == [np.float32, bool, np.uint64, np.int8]
    assert decode((3, 4), ()) == [3, 4]
    assert decode((bits(1.5), bits(-2.0), 7), ("complex64", "int8")) == [1.5 - 2j, 7]


def test_exception_types():
    assert exception_type("LinAlgError") is np.linalg.LinAlgError
    assert exception_type("print") is RuntimeError and exception_type("NoSuch") is RuntimeError
    assert exception_type("KeyboardInterrupt") is KeyboardInterrupt and exception_type(KeyError) is KeyError


def test_a_file_that_is_gone_and_a_span_of_many_lines(program):
    table = SiteTable((Site(ValueError, "m", (Span("<notebook 3>", 12, 4, 14, 2, function="cell"),)),))
    with pytest.raises(ValueError) as caught:
        table.raise_site(0, 0, (0, 0, 0, 0))
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.name) == ("<notebook 3>", 12, "cell")


def test_an_error_in_miss_keeps_its_own_frames():
    def miss(args):
        raise LookupError("while compiling")

    call = Dispatcher(None, ("x",), miss=miss)
    with pytest.raises(LookupError) as caught:
        call(1)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_an_error_in_miss_keeps_its_own_frames", "miss"]
