"""A stand-in for the module `cupy`: the names that the runtime uses, on a device that the CPU emulates.

In: what CuPy takes. Out: what CuPy gives, or an error where CuPy would go wrong in silence: a Python number as an
argument of a kernel, an argument of another type than the parameter, an array of another device, a write beside an
array. Example:

    import stand_in as cupy

    x = cupy.asarray(np.arange(3.0))
    module = cupy.RawModule(code='extern "C" __global__ void twice(double* x) { x[threadIdx.x] *= 2; }')
    module.get_function("twice")((1,), (3,), (x,))
    cupy.asnumpy(x)                                     # array([0., 2., 4.])

`stats` counts allocations, launches and compiles. The environment says how kernels run: see device_kernels.py.
`installed()` lets `import cupy` find this module.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from device_arrays import (
    arange,
    array,
    as_strided,
    asarray,
    ascontiguousarray,
    asnumpy,
    concatenate,
    copyto,
    empty,
    empty_like,
    full,
    ndarray,
    on_device,
    ones,
    stack,
    zeros,
    zeros_like,
)
from device_kernels import RawModule
from device_libraries import (
    argsort,
    dot,
    einsum,
    fft,
    flatnonzero,
    linalg,
    matmul,
    module,
    nonzero,
    searchsorted,
    sort,
    tensordot,
)
from device_memory import library, stats
from device_runtime import cuda, get_default_memory_pool

from metaphrase.runtime import cuda_library

__version__ = "14.2.0"

lib = module("lib", stride_tricks=module("stride_tricks", as_strided=as_strided))

bool_, int8, int16, int32, int64 = np.bool_, np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64, complex64, complex128 = np.float16, np.float32, np.float64, np.complex64, np.complex128
newaxis, pi, inf, nan = None, np.pi, np.inf, np.nan


def shape(a: ndarray) -> tuple[int, ...]:
    return a.shape


def dtype(kind: object) -> np.dtype:
    return np.dtype(kind)


def result_type(*kinds: object) -> np.dtype:
    return np.result_type(*(kind.dtype if isinstance(kind, ndarray) else kind for kind in kinds))


def kernel_heap() -> int:
    """The bytes that kernels got from malloc and have not freed."""
    return library().cuemu_heap()


def metaphrase_library(operation: str, reads: Sequence[ndarray], writes: Sequence[ndarray], **attributes: Any) -> int:
    """What the runtime asks of CuPy's libraries: NumPy's here, by the same code, on the memory of the device."""
    return cuda_library.library(np, operation, on_device(*reads), on_device(*writes), **attributes)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Within it `import cupy` gives this module."""
    here = sys.modules[__name__]
    names = {"cupy": here, "cupy.cuda": cuda, "cupy.cuda.runtime": cuda.runtime, "cupy.cuda.driver": cuda.driver}
    former = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        yield
    finally:
        for name, what in former.items():
            if what is None:
                del sys.modules[name]
            else:
                sys.modules[name] = what


__all__ = [
    "arange",
    "argsort",
    "array",
    "asarray",
    "ascontiguousarray",
    "asnumpy",
    "concatenate",
    "copyto",
    "cuda",
    "dot",
    "einsum",
    "empty",
    "empty_like",
    "fft",
    "flatnonzero",
    "full",
    "get_default_memory_pool",
    "installed",
    "kernel_heap",
    "lib",
    "linalg",
    "matmul",
    "ndarray",
    "nonzero",
    "ones",
    "RawModule",
    "searchsorted",
    "sort",
    "stack",
    "stats",
    "tensordot",
    "zeros",
    "zeros_like",
]
