"""Compiled functions in files, and what `lower` says of a program: costs and memory.

In: functions lowered for types. Out: the same results from a file, in a process that translates nothing; counts that
can be told by hand.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.core.dims import Sym
from metaphrase.source import SourceError

WEIGHTS = np.arange(3.0)


def scaled(x, k=2.0, *, shift=0.5):
    """Weighs x."""
    if x[0] > 100:
        raise ValueError(f"too large: {x[0]}")
    return {"sum": (x * WEIGHTS * k + shift).sum(), "x": x}


LOAD = """
import json, sys
import numpy as np
import metaphrase as mp

f = mp.load(sys.argv[1])
got = [f(np.ones(3))["sum"], f(np.ones(3), 3.0)["sum"], f(np.ones(3), shift=1.0)["sum"]]
heavy = [m for m in sys.modules if m.startswith(("metaphrase.astpasses.schedule", "gast", "Cython"))]
print(json.dumps([list(map(float, got)), heavy]))
"""


@pytest.fixture
def saved(tmp_path):
    compiled = mp.jit(scaled).lower("f64[n]", 2.0, shift=0.5).compile()
    compiled.save(tmp_path / "scaled.mp")
    return tmp_path / "scaled.mp"


def test_another_process_loads_it_and_translates_nothing(saved):
    done = subprocess.run([sys.executable, "-c", LOAD, str(saved)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    want = [float(scaled(np.ones(3), k, shift=s)["sum"]) for k, s in ((2.0, 0.5), (3.0, 0.5), (2.0, 1.0))]
    assert json.loads(done.stdout) == [want, []]


def test_positional_only_parameters_of_a_loaded_function(tmp_path):
    def f(x, /, k):
        return x - k

    mp.jit(f).lower("f64, f64").compile().save(tmp_path / "f.mp")
    made = mp.load(tmp_path / "f.mp")
    assert made(1.0, k=2.0) == made(1.0, 2.0) == -1.0
    with pytest.raises(TypeError, match="positional"):
        made(x=1.0, k=2.0)


SIZES = [
    (lambda x, y: x * y, "f64[n], f64[n]"),
    (lambda a, b: a @ b, "f64[n, n], f64[n]"),
    (lambda x, y: x[1:] - y[:-1], "f64[n], f64[n]"),
]


@pytest.mark.parametrize(("function", "types"), SIZES, ids=["products", "matrices", "slices"])
def test_all_sizes_are_served(function, types, tmp_path):
    compiled = mp.jit(function).lower(types).compile()
    compiled.save(tmp_path / "f.mp")
    for n in (0, 1, 2, 5):
        given = [np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape) for shape in _shapes(types, n)]
        for made in (compiled, mp.load(tmp_path / "f.mp")):
            assert np.array_equal(made(*given), function(*given)), n
    with pytest.raises(SourceError, match="was compiled for"):
        compiled(*(np.ones(shape) for shape in (_shapes(types, 1)[0], (2,))))


def _shapes(types, n):
    return [(n,) * (1 + each.count(",")) for each in types.replace("f64", "").split("], ")]


def test_what_needs_an_element_is_for_sizes_that_have_one(tmp_path):
    compiled = mp.jit(lambda x: x.max() + x.shape[0]).lower("f64[n]").compile()
    assert compiled(np.ones(1)) == 2.0 and compiled(np.ones(3)) == 4.0
    with pytest.raises(ValueError, match="zero-size|was compiled for"):
        compiled(np.ones(0))


def test_a_loaded_function_is_the_function(saved):
    f = mp.load(saved)
    x = np.ones(3)
    assert f(x)["x"] is x and f.__doc__ == "Weighs x." and f.__name__ == "scaled"
    with pytest.raises(ValueError, match="too large: 1000.0"):
        f(x * 1000)
    with pytest.raises(TypeError, match=r"scaled was compiled for \(f64\[n\], float, float\), .* with \(f32\[3\], "):
        f(x.astype(np.float32))
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        f()


def test_what_is_no_file_of_ours_is_refused(saved, tmp_path):
    other = tmp_path / "other.mp"
    other.write_bytes(b"nothing")
    with pytest.raises(SourceError, match="is no saved function"):
        mp.load(other)
    with pytest.raises(FileNotFoundError):
        mp.load(tmp_path / "none.mp")
    for key, message in (("machine", "on a machine with another"), ("metaphrase", "was saved by metaphrase x")):
        with zipfile.ZipFile(saved) as file:
            files = {name: file.read(name) for name in file.namelist()}
        files["saved.json"] = json.dumps({**json.loads(files["saved.json"]), key: "x"}).encode()
        with zipfile.ZipFile(other, "w") as file:
            for name, content in files.items():
                file.writestr(name, content)
        with pytest.raises(SourceError, match=message):
            mp.load(other)


@pytest.mark.parametrize("member", ["plans/scaled.0.py", "kernels/scaled.0.saved.so", "constants.npz", "saved.json"])
def test_a_file_without_a_part_is_refused(saved, tmp_path, member):
    other = tmp_path / "other.mp"
    with zipfile.ZipFile(saved) as file, zipfile.ZipFile(other, "w") as less:
        for name in file.namelist():
            if name != member:
                less.writestr(name, file.read(name))
    with pytest.raises(SourceError, match=f"is no saved function: .*{member}"):
        mp.load(other)


def test_what_a_file_can_not_hold_is_refused(tmp_path):
    class Box:
        pass

    compiled = mp.jit(lambda x, box: x * 2).lower(np.ones(2), Box()).compile()
    with pytest.raises(SourceError, match="a file would have to name"):
        compiled.save(tmp_path / "box.mp")
    assert not list(tmp_path.iterdir())


def larger(v, x):
    found = []
    for e in v:
        if e > x:
            found.append(e)
    return found


def pairs(v, x):
    found = []
    for k, e in enumerate(v):
        if e > x:
            found.append((k, {"row": np.array([e, x])}, None))
    return found, len(found)


@pytest.mark.parametrize("function", [larger, pairs])
def test_lists_whose_length_the_run_knows(function, tmp_path):
    v = np.arange(4.0)
    mp.jit(function).lower("f64[n]", 1.0).compile().save(tmp_path / "list.mp")
    made = mp.load(tmp_path / "list.mp")
    for x in (1.0, 9.0, -1.0):
        found, want = made(v, x), function(v, x)
        assert repr(found) == repr(want)


def worded(x):
    return f"at {x[0]}"


def test_a_text_that_the_run_makes_is_refused(tmp_path):
    compiled = mp.jit(worded).lower(np.arange(3.0)).compile()
    with pytest.raises(SourceError, match="what makes a text or an object of a run's results"):
        compiled.save(tmp_path / "worded.mp")


def factors(a):
    return np.linalg.slogdet(a), np.linalg.qr(a)


def test_numpys_named_tuples_are_results(tmp_path):
    a = np.array([[2.0, 1.0], [1.0, -3.0]])
    mp.jit(factors).lower(a).compile().save(tmp_path / "factors.mp")
    found, want = mp.load(tmp_path / "factors.mp")(a), factors(a)
    assert list(map(type, found)) == list(map(type, want)) and found[0].sign == -1
    np.testing.assert_allclose(found[1].Q, want[1].Q, atol=1e-14)


n, m, k = Sym("n"), Sym("m"), Sym("k")


def triangle(table):
    total = 0.0
    for i in range(len(table)):
        for j in range(i):
            total += table[i, j] * 2.0
    return total


def rounds(x):
    while x > 1.0:
        x = x * 0.5
    return x


@pytest.mark.parametrize(
    "function, types, flops, transcendentals, read_and_written",
    [
        (lambda a, b: a @ b, "f64[n, m], f64[m, k]", 2 * n * m * k, 0, 8 * (n * m + m * k + n * k)),
        (lambda x: np.sin(x) * x, "f64[n]", n, n, 16 * n),
        (lambda x: np.sin(x) * x, "f32[100]", 100, 100, 800),
        (lambda x, y: x + y, "c128[n], c128[n]", n, 0, 48 * n),
        (lambda x: x[::2].copy(), "f64[100]", 0, 0, 800),
        (triangle, "f64[n, n]", 2 * ((n * n - n) // 2), 0, 8 * ((n * n - n) // 2) + 8),
        (rounds, "f64", 2, 0, 16),
    ],
)
def test_costs_are_those_counted_by_hand(function, types, flops, transcendentals, read_and_written):
    lowered = mp.jit(function).lower(types)
    counted = lowered.cost_analysis()
    assert counted == {"flops": flops, "transcendentals": transcendentals, "bytes accessed": read_and_written}
    assert lowered.compile().cost_analysis() == counted


def test_memory_is_told_in_bytes():
    def running(x):
        for i in range(1, len(x)):
            x[i] += x[i - 1]

    stats = mp.jit(running).lower("f64[n]").compile().memory_analysis()
    assert (stats.argument_size_in_bytes, stats.alias_size_in_bytes, stats.temp_size_in_bytes) == (8 * n, 8 * n, 0)
    assert stats.generated_code_size_in_bytes > 1000
    stats = mp.jit(lambda a: np.sort(a)[::-1] * 2.0).lower("f32[1000]").compile().memory_analysis()
    assert stats.output_size_in_bytes == 4000 <= stats.temp_size_in_bytes
