"""Kernels in CUDA C, loaded on a device by way of our own NVRTC.

In: the module `cupy`, a device, the text of a program. Out: a `CudaProgram` that is ready to run. Example:

    program = loaded(cupy, Device("gpu", 0), emitted)
    (y,) = program((x,), (x.shape[0],))

CuPy's own compiler takes numbers near 0 for 0, whatever it is told, so machine code is made here (nvrtc.py). A module
that runs kernels without a GPU (it has `metaphrase_library`, too) gets the text.
"""

from __future__ import annotations

from typing import Any

from .cuda import CudaProgram
from .devices import Device
from .nvrtc import cubin

BLOCKS = 16  # for each multiprocessor, at most


def loaded(cupy: Any, device: Device, emitted: Any) -> CudaProgram:
    """The program of an EmittedCuda on this device, which is the current one."""
    most = cupy.cuda.Device(device.id).attributes["MultiProcessorCount"] * BLOCKS
    return CudaProgram(cupy, emitted, lambda text: _module(cupy, device, text), most)


def _module(cupy: Any, device: Device, text: str) -> Any:
    if hasattr(cupy, "metaphrase_library"):
        return cupy.RawModule(code=text)
    code = cubin(text, cupy.cuda.Device(device.id).compute_capability)
    module = cupy.cuda.function.Module()
    module.load(code)
    return module


__all__ = ["loaded"]
