"""A module of functions with gradients and a batch, what a program does with it, and a Python that has NumPy alone.

In: text. Out: what the text gives. Example: `given(USE, "orbits", folder)`: what it got, and the modules it imported.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

ORBITS = '''"""Orbits, and what else a project has."""

import numpy as np

import metaphrase as mp

WEIGHTS = np.array([1.0, 2.0, 4.0])
RATE = 0.5


@mp.export("f64, f64")
def period(e, M):
    """Kepler's equation: the eccentric anomaly."""
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


slope = mp.export("f64, f64")(mp.grad(period))
slopes = mp.export("f64[n], f64")(mp.vmap(mp.grad(period), (0, None)))


@mp.export("f64[n, 3], f64[3]", "f32[n, 3], f32[3]")
def weigh(points, w, power=2):
    return {"sum": points @ w * RATE, "all": [points**power, (WEIGHTS * w).sum()]}


@mp.export("{'w': f64[n], 'b': f64}, f64[n]")
def loss(params, x):
    if params["b"] < -1.0:
        raise ValueError(f"b is {params['b']}")
    r = params["w"] * x + params["b"]
    return np.sum(r * r)


gradient = mp.export("{'w': f64[n], 'b': f64}, f64[n]")(mp.value_and_grad(loss))


@mp.export("f64[n]")
def running(x):
    for i in range(1, len(x)):
        x[i] += x[i - 1]


@mp.export("f64")
def collatz(x):
    steps = []
    while x > 1.0:
        steps.append(x)
        x = x / 2.0 if x % 2.0 == 0.0 else 3.0 * x + 1.0
    return np.array(steps)


@mp.export("f64[n], 'mean'", "f64[n], 'sum'")
def reduced(x, how):
    return x.mean() if how == "mean" else x.sum()
'''

USE = """
import numpy as np
import {module} as m

x = np.arange(4.0)
got = [m.period(0.3, 1.0), m.period(0.3, 1), m.slope(np.float64(0.3), 1.0)]
got += [m.slopes(np.linspace(0.1, 0.5, n), 1.0).tolist() for n in (0, 1, 3)]
for dtype in ("f8", "f4"):
    for power in (2, 3):
        out = m.weigh(np.arange(6, dtype=dtype).reshape(2, 3), np.arange(3, dtype=dtype), power=power)
        got += [list(out), out["sum"].tolist(), out["all"][0].tolist(), float(out["all"][1]), str(out["sum"].dtype)]
value, slope = m.gradient({{"b": 1.0, "w": x + 1}}, x)
got += [float(m.loss({{"w": x, "b": 2.0}}, x)), float(value), slope["w"].tolist(), float(slope["b"])]
got += [m.running(x), x.tolist(), m.collatz(27.0).tolist(), m.reduced(x, "mean"), m.reduced(x, how="sum")]
for call in (lambda: m.loss({{"w": x, "b": -2.0}}, x), lambda: m.period(0.3), lambda: m.period(0.3, 1.0, 2.0)):
    try:
        got.append(call())
    except Exception as error:
        got.append([type(error).__name__, str(error)])
"""


def given(text: str, module: str, *paths: str, python: str | Path = sys.executable) -> list:
    """What the program gives in a Python of its own, which finds nothing but what is in `paths`."""
    script = f"import sys; sys.path[:0] = {[*map(str, paths)]}\n" + text.format(module=module)
    script += "\nimport json; print(json.dumps([got, sorted(sys.modules)], default=float))"
    done = subprocess.run([python, "-I", "-S", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def installed(wheel: Path, site: Path) -> Path:
    """A folder with a wheel, unpacked, and NumPy."""
    zipfile.ZipFile(wheel).extractall(site)
    numpy = Path(np.__file__).parent
    for name in ("numpy", "numpy.libs"):
        if (numpy.parent / name).exists():
            (site / name).symlink_to(numpy.parent / name)
    return site


def module_of(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wanted(module) -> list:
    """What USE gives with a module in this process."""
    names = {"m": module, "np": np}
    exec("\n".join(line for line in USE.splitlines() if "import" not in line).format(), names)
    return json.loads(json.dumps(names["got"], default=float))


def assert_alike(got: list, want: list) -> None:
    """Equal, but for the last digits of numbers."""
    assert len(got) == len(want) > 25
    for one, other in zip(got, want, strict=True):
        if one != other:
            np.testing.assert_allclose(np.array(one, float), np.array(other, float), rtol=1e-13)
