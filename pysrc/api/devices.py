"""The devices that users name, and what brings arrays to them and back, with JAX's names and meaning.

In: devices or their names, pytrees of arrays. Out: lists of devices, pytrees of arrays that lie on one, `with` blocks.
Example:

    x = mp.device_put(np.arange(3.0), "gpu")      # a cupy.ndarray
    with mp.transfer_guard("disallow"):
        y = jit(f)(x)                             # runs where x lies: nothing is copied
    mp.device_get(y)                              # a numpy.ndarray
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..core.array_classes import is_on_device
from ..core.types import NAMES
from ..runtime.devices import (
    CPU,
    Device,
    GpuMissing,
    copying,
    default,
    defaulting_to,
    device_named,
    device_of,
    gpus,
    guarding,
    using,
)
from ..source import DTypeError, caller_span
from ..tree_util import tree_map
from .placement import fetched, is_exchanged, taken
from .program import under_way
from .tracebacks import user_frames


def devices(backend: str | None = None) -> list[Device]:
    """The CPU, then the GPUs that there are; or those of one kind, "cpu" or "gpu". Raises where GPUs are
    asked for and there is none."""
    with user_frames():
        if backend is not None:
            return [CPU] if device_named(backend, "backend") == CPU else gpus()
        try:
            return [CPU, *gpus()]
        except GpuMissing:
            return [CPU]


def device_put(x: Any, device: Any = None) -> Any:
    """The arrays and numbers of a pytree on a device, `default_device` where none is named: NumPy's on the CPU, CuPy's
    on a GPU. What is there already is given back as it is. In translated code it is `x`."""
    if under_way():
        return x
    with user_frames():
        target = default() if device is None else device_named(device)
        return tree_map(lambda leaf: _put(leaf, target), x)


def _put(leaf: Any, target: Device) -> Any:
    leaf = taken(leaf, target) if not is_on_device(leaf) and is_exchanged(leaf) else leaf
    if is_on_device(leaf):
        return _moved(leaf, target)
    array = np.asarray(leaf)
    if array.dtype not in NAMES:
        raise DTypeError(
            f"device_put of a {type(leaf).__name__}, which is no array and no number",
            caller_span(),
            code="dtype",
            remedy="pass arrays, numbers and containers of them",
        )
    if target == CPU:
        return array
    copying("host_to_device", lambda: f"{array.dtype}{list(array.shape)} to {target}", explicit=True)
    with using(target) as cupy:
        return cupy.asarray(array)


def _moved(array: Any, target: Device) -> Any:
    """An array of a GPU on another device."""
    what = f"{array.dtype}{list(array.shape)}"
    if target == CPU:
        return fetched(array, lambda: what, explicit=True)
    if device_of(array) == target:
        return array
    copying("device_to_device", lambda: f"{what} to {target}", explicit=True)
    with using(target):
        return array.copy()


def device_get(x: Any) -> Any:
    """A pytree whose arrays lie in the host's memory, as NumPy's. Other leaves are given back as they are."""
    if under_way():
        return x

    def got(leaf: Any) -> Any:
        leaf = taken(leaf, None) if not is_on_device(leaf) and is_exchanged(leaf) else leaf
        if is_on_device(leaf):
            return fetched(leaf, lambda: f"{leaf.dtype}{list(leaf.shape)}", explicit=True)
        return np.asarray(leaf) if hasattr(leaf, "__array__") and not isinstance(leaf, np.generic) else leaf

    with user_frames():
        return tree_map(got, x)


def default_device(device: Any) -> AbstractContextManager[None]:
    """A `with` block in which jitted functions and transformations run on a device, where no other is named and no
    argument lies on one. None: on the CPU, as outside."""
    return defaulting_to(None if device is None else device_named(device))


def transfer_guard(level: str) -> AbstractContextManager[None]:
    """A `with` block in which copies between devices that nobody asked for are made ("allow"), logged ("log") or an
    error ("disallow"). "log_explicit" and "disallow_explicit" mean those of `device_put` and `device_get`, too."""
    return guarding(level)


def transfer_guard_host_to_device(level: str) -> AbstractContextManager[None]:
    """`transfer_guard` for copies to a GPU alone."""
    return guarding(level, ("host_to_device",))


def transfer_guard_device_to_host(level: str) -> AbstractContextManager[None]:
    """`transfer_guard` for copies from a GPU alone."""
    return guarding(level, ("device_to_host",))


def transfer_guard_device_to_device(level: str) -> AbstractContextManager[None]:
    """`transfer_guard` for copies from one GPU to another alone."""
    return guarding(level, ("device_to_device",))


__all__ = [
    "Device",
    "default_device",
    "device_get",
    "device_put",
    "devices",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
]
