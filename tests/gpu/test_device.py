"""With a GPU: what NVRTC made runs, and CuPy's libraries give what the primitives' NumPy rules do (`make gpu`).

Factors that are not the only ones (signs, phases, the order of eigenvalues) are put together again and compared so.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gpu.test_cuda_library import CASES, EDGES, wanted

from metaphrase.core.primitive import REGISTRY
from metaphrase.ops.samples import SAMPLES
from metaphrase.runtime import nvrtc
from metaphrase.runtime.cuda_library import library

SEVERAL = ("qr", "svd", "eigh", "eig")


@pytest.fixture(scope="module")
def cupy():
    import cupy

    assert cupy.cuda.is_available()
    return cupy


@pytest.fixture
def on_device(cupy):
    def found(name, args, attributes):
        expected = wanted(name, args, attributes)
        writes = [cupy.empty(x.shape, x.dtype) for x in expected]
        assert library(cupy, name, tuple(map(cupy.asarray, args)), tuple(writes), **attributes) == 0
        return [cupy.asnumpy(x) for x in writes], expected

    return found


def product(name, results):
    """What a matrix was, of its factors."""
    if name == "qr":
        return results[0] @ results[1]
    if name == "svd":
        u, s, vh = results[:3]
        k = s.shape[-1]
        return (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
    values, vectors = results[:2]
    if name == "eigh":
        return (vectors * values[..., None, :]) @ np.conj(np.swapaxes(vectors, -1, -2))
    return (vectors * values[..., None, :]) @ np.linalg.inv(vectors)


def agree(name, found, expected):
    tolerance = 1e-4 if any(x.dtype in (np.float32, np.complex64) for x in expected) else 1e-10
    if name in SEVERAL and any(np.isnan(x).any() for x in expected):  # of diagonal matrices: signs differ at most
        found, expected = ([np.abs(x) for x in arrays] for arrays in (found, expected))
    elif name in SEVERAL:
        found, expected = ([product(name, x), *x[3 - (name != "svd") :]] for x in (found, expected))
        found, expected = (x[:1] if name == "qr" else x for x in (found, expected))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize("name, k", CASES)
def test_samples(on_device, name, k):
    sample, operation = SAMPLES[name][k], REGISTRY[name].native.name
    agree(operation, *on_device(operation, sample.args, sample.attributes))


@pytest.mark.gpu
@pytest.mark.parametrize("name, args, attributes", EDGES)
def test_edges(on_device, name, args, attributes):
    agree(name, *on_device(name, args, attributes))


@pytest.mark.gpu
def test_a_cubin_runs_and_keeps_small_numbers(cupy):
    text = 'extern "C" __global__ void f(float* x) { x[threadIdx.x] = x[threadIdx.x]*x[threadIdx.x] - 1e-40f; }'
    module = cupy.cuda.function.Module()
    module.load(nvrtc.cubin(text, cupy.cuda.Device().compute_capability))
    x = np.array([0.0, 1e-20, 1.1, 3.3], np.float32)
    y = cupy.asarray(x)
    module.get_function("f")((1,), (4,), (y,))
    assert (cupy.asnumpy(y) == x * x - np.float32(1e-40)).all()


def test_the_question_for_a_device_has_a_clear_answer():
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("device.py"))], capture_output=True, text=True)
    assert done.stdout.startswith("GPU 0: ") if done.returncode == 0 else "no GPU here" in done.stderr
