"""`derivative`: files of NumPy source, their tests, and what they do where they are imported.

In: a module of functions, written into a folder of its own. Out: files that run without metaphrase, whose tests pass as
they are and fail when a line is edited; rules that give what the functions have without them.
"""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import metaphrase as mp
from metaphrase.core.attached import rule_of
from metaphrase.source import SourceError
from metaphrase.tree_util import tree_leaves

MODEL = '''
import collections
import dataclasses

import numpy as np

import metaphrase as mp

scale = 2.0
W = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 1.0], [1.0, 0.0, 3.0]])
Pair = collections.namedtuple("Pair", "a b")


@mp.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: float


def energy(x, k):
    """Of a spring."""
    r = np.sqrt(1 + x * x)
    return k * np.sum(r**3)


def period(e, M):
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def network(params, x):
    h = np.tanh(params["w"] @ x + params["b"])
    return {"h": h, "total": h.sum(), "count": 3}


def stores(x, n):
    y = np.zeros(len(x))
    for i in range(n):
        y[i] = x[i % 2] ** 2 * i
    return y


def captures(x, mode="sin", n=2):
    for _ in range(n):
        x = W @ x * scale
    return np.sin(x) if mode == "sin" else x


def pairs(p, k):
    return Pair(p.a * k, p.b**2)


def layers(q, k, *, power=1.0):
    return Layer(q.w * k**power, q.b**2), q.w.sum()


def of_complex(z, x):
    return np.abs(z**2 * x).sum(), z * x


def of_floats(x):
    return np.exp(x) / np.sum(np.exp(x))


def writes(x):
    x[0] = 3.0
    return np.sum(x)


def made(a):
    def local(x):
        return np.sum(x * a)

    return local
'''
X = np.array([0.3, 0.4, 0.5])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder that the module is in, where it can be imported."""
    path = tmp_path_factory.mktemp("derivatives")
    (path / "model_of_files.py").write_text(MODEL)
    sys.path.insert(0, str(path))
    yield path
    sys.path.remove(str(path))
    for name in [n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(str(path))]:
        del sys.modules[name]


@pytest.fixture
def model(folder):
    importlib.invalidate_caches()
    module = importlib.import_module("model_of_files")
    yield module
    for function in vars(module).values():
        if hasattr(function, "__code__"):
            mp.derivative_of(function)(None)


def imported(name):
    importlib.invalidate_caches()
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def cotangents(function, *args):
    result, pullback = mp.vjp(function, *args)
    return pullback(
        mp.tree_util.tree_map(lambda leaf: np.cos(leaf) if np.asarray(leaf).dtype.kind in "fc" else leaf, result)
    )


def cases(model):
    return {
        "energy": ("f64[n], f64", (X, 2.0)),
        "period": ("f64, f64", (0.3, 1.0)),
        "network": ("{'w': f64[m, n], 'b': f64[m]}, f64[n]", ({"w": np.ones((2, 3)), "b": np.ones(2)}, X)),
        "stores": ("f64[n], i64", (X, 3)),
        "captures": ("f64[3]", (X,)),
        "pairs": (None, (model.Pair(X, 2.0), 1.5)),
        "layers": (None, (model.Layer(X, 2.0), 1.5)),
        "of_complex": ("c128[n], f64", (X + 1j, 2.0)),
        "of_floats": ("f32[n]", (X.astype(np.float32),)),
    }


def test_files_of_all_kinds_are_right_and_run_alone(model, folder):
    """One process of pytest for all of them, without metaphrase."""
    for name, (types, args) in cases(model).items():
        function = getattr(model, name)
        want = cotangents(function, *args)
        given = args if types is None else (types,)
        mp.derivative(function, *given, file=folder / f"{name}_grad.py")
        module = imported(f"{name}_grad")
        assert rule_of(function).backward is getattr(module, f"{name}_backward")
        have = cotangents(function, *args)
        for a, b in zip(tree_leaves(have), tree_leaves(want), strict=True):
            assert_allclose(a, b, rtol=1e-5 if np.asarray(b).dtype == np.float32 else 1e-10)
        assert rule_of(function).checked
    (folder / "conftest.py").write_text("import sys\n\nsys.modules['metaphrase'] = None\n")
    plain = MODEL.replace("import metaphrase as mp\n", "").replace("@mp.tree_util.register_dataclass\n", "")
    (folder / "model_of_files.py").write_text(plain)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "18 passed" in done.stdout, done.stdout
    edited = folder / "energy_grad.py"
    edited.write_text(edited.read_text().replace("product_bar = k *", "product_bar = 1.01 * k *"))
    (folder / "model_of_files.py").write_text(MODEL)
    imported("energy_grad")
    with pytest.raises(AssertionError, match=r"the cotangent of \(0,\) at \(0,\) is"):
        imported("test_energy_grad").test_the_cotangents_are_central_differences()


ENERGY = '''"""The derivative of `energy` (model_of_files, line 21) in reverse mode, to be edited.

For (f64[n], f64), sizes from 2 on. `energy_forward` gives the result and residuals, `energy_backward` the cotangents
of the arguments. test_shown.py compares them with central differences.
"""

import numpy as np


def energy_forward(x, k):
    """energy(x, k), and the residuals: what the backward part needs of it."""
    r = np.sqrt(1.0 + x * x)
    total = np.sum(r ** 2 * r)
    product = k * total
    product_1 = 3.0 * r ** 2
    return (product, (total, product_1, r, x, k))


def energy_backward(residuals, energy_bar):
    """The cotangents of x and k, from that of the result."""
    total, product_1, r, x, k = residuals
    product_bar = k * energy_bar * product_1 / r * 0.5  # adjoint of: r = np.sqrt(1 + x * x)
    return (product_bar + product_bar) * x, energy_bar * total


SAMPLES = [  # arguments that the derivative is checked at
    (np.array([0.61, 0.32, 0.13]), 0.11),
    (np.array([0.51, 0.86, 0.22]), 0.86),
]

try:
    import metaphrase
except ImportError:  # the functions above run without it
    metaphrase = None

if metaphrase is not None:  # importing this module makes it the derivative of energy
    import model_of_files

    metaphrase.derivative_of(
        model_of_files.energy,
        forward=energy_forward,
        samples=SAMPLES,
'''


def test_what_a_file_looks_like(model, folder):
    text = mp.derivative(model.energy, "f64[n], f64", file=folder / "shown.py")
    assert text.startswith(ENERGY) and (folder / "shown.py").read_text() == text
    assert mp.derivative(model.energy, np.ones(3), k=2.0).count("def ") == 2
    mp.derivative_of(model.energy, check=False)(lambda x, k, bar: (7.0 * x, None))
    assert mp.derivative(model.energy, "f64[n], f64").startswith(ENERGY.partition(" test_shown")[0])
    some = mp.derivative(model.energy, "f64[n], f64", argnums=0)
    assert "return ((product_bar + product_bar) * x,)" in some and "argnums=(0,)," in some


def test_an_edited_file_is_left_as_it_is(model, folder):
    file = folder / "kept.py"
    mp.derivative(model.energy, "f64[n], f64", file=file)
    mp.derivative(model.energy, "f64[n], f64", file=file)  # as it was written: nothing is lost
    text = file.read_text().replace("(product_bar + product_bar) * x", "2 * product_bar * x")
    file.write_text(text)
    with pytest.raises(FileExistsError, match=r"kept.py is there, and is not as metaphrase wrote it.*overwrite=True"):
        mp.derivative(model.energy, "f64[n], f64", file=file)
    assert file.read_text() == text
    mp.derivative(model.energy, "f64[n], f64", file=file, overwrite=True)
    assert "2 * product_bar" not in file.read_text()
    (folder / "test_kept.py").write_text("# mine\n")
    with pytest.raises(FileExistsError, match="test_kept.py"):
        mp.derivative(model.energy, "f64[n], f64", file=file)


def test_an_edit_is_the_derivative_and_a_wrong_one_is_told(model, folder):
    file = folder / "edited.py"
    mp.derivative(model.period, "f64, f64", file=file)
    text = file.read_text()
    first = text.index("    E = M")
    implicit = (
        text[:first]
        + (
            "    E = M\n"
            "    for _ in range(50):\n"
            "        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))\n"
            "    return E, (e, E)\n\n\n"
            "def period_backward(residuals, period_bar):\n"
            "    e, E = residuals\n"
            "    slope = period_bar / (1 - e * np.cos(E))\n"
            "    return np.sin(E) * slope, slope\n\n\n"
        )
        + text[text.index("SAMPLES") :]
    )
    want = mp.grad(model.period, (0, 1))(0.3, 1.0)
    file.write_text(implicit)
    imported("edited")
    assert_allclose(mp.grad(model.period, (0, 1))(0.3, 1.0), want, rtol=1e-12)
    assert "slope" in mp.source(mp.grad(model.period), 0.3, 1.0)
    file.write_text(implicit.replace("np.sin(E) * slope, slope", "np.sin(E) * slope, 2 * slope"))
    imported("edited")
    with pytest.raises(
        SourceError, match=r"the rule period_backward gives .* for the cotangent of M at e=0.61, M=0.32"
    ):
        mp.grad(model.period)(0.3, 1.0)


def test_a_file_is_for_the_values_that_it_was_written_for_and_reads_the_module(model, folder):
    mp.derivative(model.captures, "f64[3]", file=folder / "reads.py")
    text = (folder / "reads.py").read_text()
    assert "W, scale = model_of_files.W, model_of_files.scale" in text and "if mode != 'sin':" in text
    imported("reads")
    model.scale = 3.0
    have = cotangents(model.captures, X)
    with pytest.raises(ValueError, match="written for mode = sin"):
        mp.grad(lambda x: model.captures(x, "cos").sum())(X)
    mp.derivative_of(model.captures)(None)
    assert_allclose(have, cotangents(model.captures, X))
    model.scale = 2.0


def test_a_function_that_no_module_has(model, folder):
    local = model.made(2.0)
    text = mp.derivative(local, "f64[n]", file=folder / "local_grad.py")
    told = "#     metaphrase.derivative_of(local, forward=local_grad.local_forward, samples=local_grad.SAMPLES"
    assert told in text and "import metaphrase\n" not in text
    module = imported("local_grad")
    assert rule_of(local) is None
    mp.derivative_of(local, forward=module.local_forward, samples=module.SAMPLES)(module.local_backward)
    assert_allclose(mp.grad(local)(X), [2.0, 2.0, 2.0])
    imported("test_local_grad").test_the_cotangents_are_central_differences()


def test_a_module_may_import_its_rule_at_its_end(model, folder):
    mp.derivative(model.energy, "f64[n], f64", file=folder / "at_the_end.py")
    (folder / "model_of_files.py").write_text(MODEL + "\n\nimport at_the_end\n")
    again = imported("model_of_files")
    assert rule_of(again.energy).backward.__module__ == "at_the_end"
    (folder / "model_of_files.py").write_text(MODEL)


def test_the_types_of_export_and_a_source_that_has_changed(model, folder):
    exported = mp.export("f64[n], f64")(model.energy)
    assert "For (f64[n], f64), sizes from 2 on." in mp.derivative(exported, file=folder / "energy_of_types.py")
    changed = MODEL.replace("r = np.sqrt(1 + x * x)", "r = np.sqrt(2 + x * x)")
    (folder / "model_of_files.py").write_text(changed)
    again = imported("model_of_files")
    imported("energy_of_types")
    with pytest.raises(SourceError, match="energy has changed since the rule was written"):
        mp.grad(again.energy)(X, 2.0)
    (folder / "model_of_files.py").write_text(MODEL.replace('"""Of a spring."""', "# of a spring"))
    again = imported("model_of_files")
    imported("energy_of_types")
    assert_allclose(mp.grad(again.energy)(X, 2.0), mp.grad(model.energy)(X, 2.0))


def test_what_has_no_such_file(model):
    with pytest.raises(SourceError, match=r"derivative of writes, which writes to x.*\[transformed-write\]"):
        mp.derivative(model.writes, "f64[n]")
    with pytest.raises(TypeError, match="with respect to arguments that are no floats"):
        mp.derivative(model.energy, "i64[n], i64")
    with pytest.raises(TypeError, match=r"derivative\(energy\): missing a required argument: 'k'"):
        mp.derivative(model.energy, "f64[n]")
    with pytest.raises(SourceError, match=r"derivative\(energy\): energy-grad.py is no name of a module"):
        mp.derivative(model.energy, "f64[n], f64", file="energy-grad.py")
    with pytest.raises(SourceError, match=r"derivative\(sin\), which is no function written in Python"):
        mp.derivative(np.sin, 1.0)

    def as_long(n, x):
        return np.ones(n) * x

    with pytest.raises(SourceError, match="whose result has a size that only its run knows"):
        mp.derivative(as_long, "i64, f64")

    def far(x, i):
        return x[i + 100]

    with pytest.raises(SourceError, match="far can't be run at arguments drawn for the types: IndexError"):
        mp.derivative(far, "f64[n], i64")
    with pytest.raises(IndexError):
        mp.derivative(far, np.ones(3), 5)

    class Body:
        pass

    def of_object(body, x):
        return x * 2.0

    with pytest.raises(TypeError, match="a file can't make objects of .*Body"):
        mp.derivative(of_object, Body(), 1.0)
