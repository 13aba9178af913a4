"""Memory of the emulated device, from the library in cuemu/, which this module builds once and keeps.

In: numbers of bytes. Out: `Memory`, guarded on both sides and full of 0xCB; `library()`, the loaded library; the
errors that CuPy raises. The folder of what is built is METAPHRASE_CACHE_DIR/emulator. Example:

    memory = Memory(40)
    memory.host(0, (5,), "f8")      # the same bytes for NumPy; no test should see it
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


class CUDARuntimeError(RuntimeError):
    """As cupy.cuda.runtime.CUDARuntimeError: what the runtime refuses, and faults of a kernel."""


class CUDADriverError(RuntimeError):
    """As cupy.cuda.driver.CUDADriverError: a launch that the driver refuses."""


class OutOfMemoryError(MemoryError):
    """As cupy.cuda.memory.OutOfMemoryError."""


@dataclass
class Stats:
    """What was done since the start, or since `reset`."""

    allocations: int = 0
    launches: int = 0
    compiles: int = 0
    graphs: int = 0  # launches of graphs

    def reset(self) -> None:
        self.allocations = self.launches = self.compiles = self.graphs = 0


stats = Stats()

# ---- The library ---------------------------------------------------------------------------------------------------

LIBRARY_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-pthread")
SOURCES = ("scheduler", "meetings", "faults", "memory", "atomics", "numbers", "races")


def cache_folder() -> Path:
    """Where what is compiled is kept: METAPHRASE_CACHE_DIR/emulator, or one in the user's cache."""
    named = os.environ.get("METAPHRASE_CACHE_DIR")
    home = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "metaphrase"
    return home / "emulator"


@functools.cache
def fingerprint() -> str:
    """Of the compiler and of every file that what is compiled depends on."""
    digest = hashlib.sha256(subprocess.run(["g++", "--version"], capture_output=True, check=True).stdout)
    for path in [HERE / "cuemu.h", *sorted(path for path in (HERE / "cuemu").rglob("*") if path.is_file())]:
        digest.update(f"{path.relative_to(HERE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def build(target: Path, command: Sequence[str]) -> None:
    """Runs the compiler so that `target` is there whole or not at all, whoever builds it at the same time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        os.replace(made, target)


@functools.cache
def tools() -> Path:
    """The folder of the libraries and of a copy of the headers beside which precompiled ones can lie."""
    folder = cache_folder() / f"tools-{fingerprint()}"
    if not (folder / "libcuemu.so").exists():
        source = HERE / "cuemu"
        build(folder / "libcuemu_now.so", ["g++", *LIBRARY_FLAGS, str(source / "now.cpp")])
        files = [str(source / f"{name}.cpp") for name in SOURCES]
        build(folder / "libcuemu.so", ["g++", *LIBRARY_FLAGS, *files])
    return folder


class How(ctypes.Structure):
    """How a launch is run; the library's structure of this name."""

    _fields_ = [
        ("order", ctypes.c_int),
        ("watched", ctypes.c_int),
        ("seed", ctypes.c_uint64),
        ("seconds", ctypes.c_double),
    ]


class Layout(ctypes.Structure):
    """Where a shared object keeps its static shared memory; the library's structure of this name."""

    _fields_ = [("before", ctypes.c_size_t), ("bytes", ctypes.c_size_t)]


@functools.cache
def library() -> ctypes.CDLL:
    """The emulator's library, whose names the kernels' shared objects find."""
    ctypes.CDLL(str(tools() / "libcuemu_now.so"), mode=ctypes.RTLD_GLOBAL)
    loaded = ctypes.CDLL(str(tools() / "libcuemu.so"), mode=ctypes.RTLD_GLOBAL)
    address = ctypes.c_void_p
    loaded.cuemu_allocate.restype, loaded.cuemu_allocate.argtypes = address, [ctypes.c_size_t]
    loaded.cuemu_release.restype, loaded.cuemu_release.argtypes = None, [address]
    loaded.cuemu_damage.restype, loaded.cuemu_damage.argtypes = ctypes.c_char_p, [address]
    loaded.cuemu_heap.restype, loaded.cuemu_heap.argtypes = ctypes.c_size_t, []
    loaded.cuemu_layout.restype, loaded.cuemu_layout.argtypes = ctypes.c_int, [address, ctypes.POINTER(Layout)]
    loaded.cuemu_launch.restype = ctypes.c_char_p
    loaded.cuemu_launch.argtypes = [
        *(address, address, ctypes.POINTER(Layout), ctypes.POINTER(ctypes.c_uint), ctypes.c_size_t),
        *(ctypes.POINTER(address), ctypes.POINTER(How)),
    ]
    return loaded


# ---- Devices: each host thread has a current one -------------------------------------------------------------------


def device_count() -> int:
    return int(os.environ.get("CUSIM_DEVICES", "1"))


class HostThread(threading.local):
    """The current device of a host thread, and its current stream behind those that it comes back to."""

    device = 0

    def __init__(self) -> None:
        self.streams: list[Any] = []


host_thread = HostThread()


def captured() -> list[Callable[[], None]] | None:
    """What the graph does that the current stream is capturing; None where it captures none."""
    return host_thread.streams[-1]._captured if host_thread.streams else None


def refuse_in_capture(what: str) -> None:
    """As CUDA does, and CuPy's pool only if it has memory: nothing that waits or allocates while a stream captures."""
    if captured() is not None:
        raise CUDARuntimeError(f"cudaErrorStreamCaptureUnsupported: {what} while the stream is capturing")


# ---- Memory --------------------------------------------------------------------------------------------------------


class Pool:
    """As cupy.get_default_memory_pool(), of which there is one for each device. Nothing is kept for later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used = 0
        self._limit = 0

    def take(self, size: int) -> None:
        with self._lock:
            if self._limit and self._used + size > self._limit:
                raise OutOfMemoryError(
                    f"Out of memory allocating {size:,} bytes (allocated so far: {self._used:,} bytes, "
                    f"limit set to: {self._limit:,} bytes)."
                )
            self._used += size

    def give(self, size: int) -> None:
        with self._lock:
            self._used -= size

    def used_bytes(self) -> int:
        return self._used

    def total_bytes(self) -> int:
        return self._used

    def free_bytes(self) -> int:
        return 0

    def n_free_blocks(self) -> int:
        return 0

    def free_all_blocks(self, stream: object = None) -> None:
        return None

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        if size is None or fraction is not None:
            raise NotImplementedError("the emulated device's limit is a number of bytes: set_limit(size=...)")
        self._limit = size

    def get_limit(self) -> int:
        return self._limit


class Pools(dict[int, Pool]):
    def __missing__(self, device: int) -> Pool:
        return self.setdefault(device, Pool())


pools = Pools()


living: weakref.WeakValueDictionary[int, Memory] = weakref.WeakValueDictionary()


class Memory:
    """Bytes of the current device; released with the last array that lies in them. Pointer 0 where there are none."""

    def __init__(self, size: int) -> None:
        self.ptr = 0
        self.size = size
        self.device = host_thread.device
        refuse_in_capture("memory is allocated")
        if size == 0:
            return
        pools[self.device].take(size)
        self._library = library()
        self.ptr = self._library.cuemu_allocate(size) or 0
        if not self.ptr:
            pools[self.device].give(size)
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes.")
        stats.allocations += 1
        living[self.ptr] = self

    def __del__(self) -> None:
        if getattr(self, "ptr", 0):
            self._library.cuemu_release(self.ptr)
            pools[self.device].give(self.size)

    def host(self, offset: int, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None = None):
        """A NumPy array of the same bytes: for this package's own use."""
        if not self.ptr:
            return np.empty(shape, dtype)
        whole = np.frombuffer((ctypes.c_char * self.size).from_address(self.ptr), np.uint8)
        return np.ndarray(shape, dtype, whole, offset, strides)

    def damage(self) -> str | None:
        """What a kernel did to the bytes beside the array, if it did."""
        found = self._library.cuemu_damage(self.ptr) if self.ptr else None
        return found.decode() if found else None


def headers(folder: Path) -> None:
    """A copy of the headers in `folder`: what is precompiled has to lie beside its header."""
    if (folder / "cuemu.h").exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    shutil.copytree(HERE / "cuemu", made / "cuemu")
    shutil.copy(HERE / "cuemu.h", made / "cuemu.h")
    try:
        os.rename(made, folder)
    except OSError:  # another process was faster
        shutil.rmtree(made)
