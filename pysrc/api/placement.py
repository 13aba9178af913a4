"""Where a call runs, and arrays of other libraries brought into a form that the program takes.

In: the leaves of a call, and the device that the user named, if any. Out: the GPU that it runs on, or None for the CPU.
A named device comes first, then the device that arguments lie on, then the default. Example:

    place_of([cupy.ones(3), 2.0], wanted=None)       # Device("gpu", 0)
    place_of([np.ones(3), 2.0], wanted=None)         # None; in `with default_device("gpu"):` Device("gpu", 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.array_classes import is_on_device
from ..runtime.devices import CPU, Device, copying, default, device_of, gpu_module
from ..source import SourceError, caller_span

_OF_CPU, _OF_GPUS = (1, 3), (2, 13)  # kinds of devices by DLPack's numbers


def place_of(leaves: Iterable[Any], wanted: Device | None) -> Device | None:
    """The GPU that a call runs on, or None."""
    if wanted is None:
        found = {device_of(leaf) for leaf in leaves if is_on_device(leaf)}
        if len(found) > 1:
            raise SourceError(
                f"the arguments lie on {' and '.join(map(str, sorted(found)))}",
                caller_span(),
                code="device",
                remedy="bring them to one device by metaphrase.device_put, or name it: jit(f, device=...)",
            )
        wanted = found.pop() if found else default()
    return None if wanted.platform == "cpu" else wanted


def place_with_captures(device: Device | None, captured: Sequence[Any], wanted: Device | None, title: str) -> Any:
    """The GPU that a program runs on: that of the call, or where arrays are that it reads without being given them."""
    if device is not None or not any(map(is_on_device, captured)):
        return device
    if wanted == CPU:
        raise SourceError(
            f"{title} runs on the CPU, and reads an array that lies on a GPU",
            caller_span(),
            code="device",
            remedy="pass the array as an argument, or let the function run on the GPU",
        )
    return place_of(captured, None)


def is_exchanged(leaf: Any) -> bool:
    """Whether a value that is no array of NumPy's or CuPy's is an array by a protocol: of PyTorch, JAX, Numba."""
    cls = type(leaf)
    return hasattr(cls, "__cuda_array_interface__") or hasattr(cls, "__dlpack_device__") and hasattr(cls, "__dlpack__")


def taken(leaf: Any, wanted: Device | None) -> Any:
    """Another library's array as CuPy's or, where it lies in the host's memory and is to go to a GPU, as NumPy's; its
    memory is shared. What is to stay on the CPU is given back as it came."""
    if getattr(leaf, "__cuda_array_interface__", None) is not None:
        return gpu_module().asarray(leaf)
    if not hasattr(leaf, "__dlpack_device__"):
        return leaf
    kind, number = leaf.__dlpack_device__()
    if kind in _OF_GPUS:
        cupy = gpu_module()
        with cupy.cuda.Device(number):
            return cupy.from_dlpack(leaf)
    if kind in _OF_CPU and (wanted or default()) != CPU:
        return np.from_dlpack(leaf)
    return leaf


def on_host(leaves: Sequence[Any]) -> list[Any]:
    """The leaves, arrays of a GPU copied to the host."""
    return [fetched(leaf, lambda: "an argument") if is_on_device(leaf) else leaf for leaf in leaves]


def fetched(array: Any, what: Any, explicit: bool = False) -> np.ndarray:
    """A copy of a GPU's array in the host's memory; `what()` names it for the transfer guard."""
    copying("device_to_host", what, explicit)
    with gpu_module().cuda.Device(array.device.id):
        return array.get()


__all__ = ["fetched", "is_exchanged", "on_host", "place_of", "place_with_captures", "taken"]
