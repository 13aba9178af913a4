"""The devices of this computer, the door to CuPy, and what is said of copies from one device to another.

In: names of devices ("cpu", "gpu", "gpu:1"), `with` blocks. Out: `Device` records, the module `cupy`, or one clear
error where there is none. Example:

    device_named("gpu:1")                      # Device("gpu", 1)
    with using(device) as xp:                  # xp is the module cupy, and this device its current one
        x = xp.asarray(np.arange(3.0))

CuPy is imported here alone, and only when somebody asks for a GPU.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from ..late import dataclass, log
from ..locks import lock
from ..source import SourceError, UnsupportedError, caller_span
from . import dispatch


@dataclass(frozen=True, order=True)
class Device:
    """A processor that programs run on: `platform` is "cpu" or "gpu", `id` counts those of a platform from 0."""

    platform: str
    id: int = 0

    @property
    def device_kind(self) -> str:
        """What the maker calls it."""
        if self.platform == "cpu":
            return "cpu"
        name = gpu_module().cuda.runtime.getDeviceProperties(self.id)["name"]
        return name.decode() if isinstance(name, bytes) else str(name)

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"


CPU = Device("cpu")
_SPELLED = r"(cpu|gpu|cuda)(?::(\d+))?"


def device_named(what: Any, by: str = "device") -> Device:
    """The device that a user means: a Device, a text as "gpu:1", or CuPy's own record. Whether it is there is asked
    when something is to run on it."""
    if isinstance(what, Device):
        return what
    spelled = re.fullmatch(_SPELLED, what) if isinstance(what, str) else None
    if spelled is not None:
        device = Device("cpu" if spelled[1] == "cpu" else "gpu", int(spelled[2] or 0))
        if device.platform == "gpu" or device.id == 0:
            return device
    if type(what).__module__.startswith("cupy") and isinstance(getattr(what, "id", None), int):
        return Device("gpu", what.id)
    raise UnsupportedError(
        f"{by}={what!r}: there is no such device; programs run on the CPU and on NVIDIA's GPUs",
        caller_span(),
        code="backend",
        remedy=f'say {by}="cpu", "gpu", "gpu:1", or one of metaphrase.devices()',
    )


# ---- CuPy ------------------------------------------------------------------------------------------------------------


class GpuMissing(UnsupportedError):
    """A GPU is asked for, and CuPy or a driver or the GPU itself is not there."""


def _missing(why: str, remedy: str) -> GpuMissing:
    return GpuMissing(f"no program can run on a GPU here: {why}", caller_span(), code="gpu", remedy=remedy)


def gpu_module() -> Any:
    """The module `cupy`. Raises GpuMissing where it can't be imported or finds no GPU."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "cupy"
        why = (
            "CuPy is not installed"
            if absent
            else f"CuPy can't be imported ({str(error).strip().partition(chr(10))[0]})"
        )
        raise _missing(why, "install it with `pip install 'metaphrase[gpu]'`") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise _missing(f"CUDA says {error}", "install NVIDIA's driver, or run where there is a GPU") from None
    if not count:
        raise _missing("CUDA finds no GPU", "run where there is one; CUDA_VISIBLE_DEVICES may hide it")
    return cupy


def gpus() -> list[Device]:
    """NVIDIA's GPUs. Raises GpuMissing where there is none."""
    return [Device("gpu", k) for k in range(gpu_module().cuda.runtime.getDeviceCount())]


class using:
    """CuPy, with this GPU as its current one. (By `contextlib`, errors would point into that and not at the user.)"""

    def __init__(self, device: Device):
        self.cupy = gpu_module()
        if device.id >= self.cupy.cuda.runtime.getDeviceCount():
            raise _missing(f"there is no {device}", "take one of metaphrase.devices()")
        self.current = self.cupy.cuda.Device(device.id)

    def __enter__(self) -> Any:
        self.current.__enter__()
        return self.cupy

    def __exit__(self, *error: object) -> None:
        self.current.__exit__(*error)


def device_of(array: Any) -> Device:
    """Where an array of CuPy's is."""
    return Device("gpu", int(array.device.id))


# ---- the device of what says none ------------------------------------------------------------------------------------

_default: ContextVar[Device | None] = ContextVar("metaphrase_default_device", default=None)
_asking = 0  # blocks of all threads whose default is no CPU, and settings that look at every call
_counting = lock()


def default() -> Device:
    """The device on which runs what says none, and is given nothing that lies on one."""
    return _default.get() or CPU


def pass_entries_over(change: int) -> None:
    """One more reason, or one less, that dispatchers ask about each call, before they try what runs on the CPU."""
    global _asking
    with _counting:
        _asking += change
        dispatch.pass_over(_asking > 0)


@contextlib.contextmanager
def defaulting_to(device: Device | None) -> Iterator[None]:
    """A block with another default; None: none is said."""
    elsewhere = device is not None and device != CPU
    before = _default.set(device)
    if elsewhere:
        pass_entries_over(1)
    try:
        yield
    finally:
        if elsewhere:
            pass_entries_over(-1)
        _default.reset(before)


# ---- copies ----------------------------------------------------------------------------------------------------------

LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
DIRECTIONS = ("host_to_device", "device_to_host", "device_to_device")
_levels: ContextVar[dict[str, str] | None] = ContextVar("metaphrase_transfer_guard", default=None)


class TransferError(SourceError, RuntimeError):
    """A copy that `transfer_guard` forbids."""


@contextlib.contextmanager
def guarding(level: str, directions: tuple[str, ...] = DIRECTIONS) -> Iterator[None]:
    """A block in which copies are allowed, logged or forbidden."""
    if level not in LEVELS:
        raise ValueError(f"a transfer guard is one of {', '.join(LEVELS)}, not {level!r}")
    before = _levels.set({**(_levels.get() or {}), **dict.fromkeys(directions, level)})
    try:
        yield
    finally:
        _levels.reset(before)


def copying(direction: str, what: Callable[[], str], explicit: bool = False) -> None:
    """Told of a copy before it is made; raises TransferError where it is forbidden. `explicit`: by device_put and
    device_get."""
    level = (_levels.get() or {}).get(direction, "allow")
    if level == "allow" or explicit and not level.endswith("_explicit"):
        return
    words = direction.replace("_", "-")
    if level.startswith("log"):
        log.warning("%s transfer of %s", words, what())
        return
    by = "device_get" if direction == "device_to_host" else "device_put"
    raise TransferError(
        f"disallowed {words} transfer of {what()}",
        caller_span(),
        code="transfer",
        remedy=f"copy it by metaphrase.{by} first, or say metaphrase.transfer_guard('allow')",
    )


__all__ = [
    "CPU",
    "DIRECTIONS",
    "Device",
    "GpuMissing",
    "LEVELS",
    "TransferError",
    "copying",
    "default",
    "defaulting_to",
    "device_named",
    "device_of",
    "gpu_module",
    "gpus",
    "guarding",
    "using",
]
