"""cupy.cuda of the emulated device: devices, streams, events, graphs, the runtime's own functions.

In: numbers of devices (CUSIM_DEVICES says how many there are, 1 if it says nothing). Out: objects as CuPy's. Work is
done when it is asked for, so streams order nothing more. Example:

    with cuda.Device(1), cuda.Stream(non_blocking=True) as stream:
        kernel((1,), (32,), (x,), stream=stream)
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from device_arrays import ArrayDevice, MemoryPointer
from device_kernels import CompileException, Function, RawModule
from device_libraries import module
from device_memory import (
    CUDADriverError,
    CUDARuntimeError,
    Memory,
    OutOfMemoryError,
    Pool,
    device_count,
    host_thread,
    pools,
    refuse_in_capture,
    stats,
)

# ---- Devices -------------------------------------------------------------------------------------------------------

ATTRIBUTES = {
    "MultiProcessorCount": 132,
    "WarpSize": 32,
    "MaxThreadsPerBlock": 1024,
    "MaxThreadsPerMultiProcessor": 2048,
    "MaxBlockDimX": 1024,
    "MaxBlockDimY": 1024,
    "MaxBlockDimZ": 64,
    "MaxGridDimX": 2**31 - 1,
    "MaxGridDimY": 65535,
    "MaxGridDimZ": 65535,
    "MaxSharedMemoryPerBlock": 49152,
    "MaxSharedMemoryPerBlockOptin": 232448,
    "MaxSharedMemoryPerMultiprocessor": 233472,
    "MaxRegistersPerBlock": 65536,
    "ComputeCapabilityMajor": 9,
    "ComputeCapabilityMinor": 0,
}
TOTAL_MEMORY = 8 << 30


def check_device(number: int) -> int:
    if not 0 <= number < device_count():
        raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
    return number


class Device(ArrayDevice):
    """As cupy.cuda.Device: the current device when no number is given; `with` makes it the current one."""

    compute_capability = "90"

    def __init__(self, device: Any = None) -> None:
        super().__init__(host_thread.device if device is None else int(device))
        self._former: list[int] = []

    @property
    def attributes(self) -> dict[str, int]:
        check_device(self.id)
        return dict(ATTRIBUTES)

    @property
    def mem_info(self) -> tuple[int, int]:
        return TOTAL_MEMORY - pools[self.id].used_bytes(), TOTAL_MEMORY

    def use(self) -> None:
        host_thread.device = check_device(self.id)

    def synchronize(self) -> None:
        check_device(self.id)

    def __enter__(self) -> Device:
        check_device(self.id)
        self._former.append(host_thread.device)
        host_thread.device = self.id
        return self

    def __exit__(self, *error: object) -> None:
        host_thread.device = self._former.pop()


# ---- Streams and events --------------------------------------------------------------------------------------------


class Event:
    """As cupy.cuda.Event: the time at which it was recorded."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self._time: float | None = None
        self._timed = not disable_timing

    @property
    def done(self) -> bool:
        return True

    def record(self, stream: Stream | None = None) -> None:
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        return None


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds from one event to the other."""
    if start_event._time is None or end_event._time is None or not (start_event._timed and end_event._timed):
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: an event was not recorded, or records no time")
    return 1000 * (end_event._time - start_event._time)


class Graph:
    """As cupy.cuda.Graph: launches with the addresses that they were captured with."""

    def __init__(self, todo: list[Callable[[], None]]) -> None:
        self._todo = todo

    def launch(self, stream: Stream | None = None) -> None:
        refuse_in_capture("a graph is launched")
        stats.graphs += 1
        for launch in self._todo:
            launch()


class Stream:
    """As cupy.cuda.Stream; `Stream.null` is the one that every launch takes that names none."""

    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False) -> None:
        self._is_null = null
        self.non_blocking = non_blocking
        self.device_id = -1 if null else host_thread.device
        self.ptr = 0 if null else id(self)
        self._captured: list[Callable[[], None]] | None = None

    def use(self) -> Stream:
        host_thread.streams[-1:] = [self]
        return self

    def __enter__(self) -> Stream:
        if not host_thread.streams:
            host_thread.streams.append(Stream.null)
        host_thread.streams.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        host_thread.streams.pop()

    @property
    def done(self) -> bool:
        return True

    def synchronize(self) -> None:
        return None

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        return None

    def is_capturing(self) -> bool:
        return self._captured is not None

    def begin_capture(self, mode: Any = None) -> None:
        if self._is_null:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self._captured is not None:
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is capturing already")
        self._captured = []

    def end_capture(self) -> Graph:
        if self._captured is None:
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is not capturing")
        todo, self._captured = self._captured, None
        return Graph(todo)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)


Stream.null = Stream(null=True)


def get_current_stream(device_id: int | None = None) -> Stream:
    return host_thread.streams[-1] if host_thread.streams else Stream.null


# ---- The runtime's own functions -----------------------------------------------------------------------------------


def set_device(number: int) -> None:
    host_thread.device = check_device(number)


def properties(number: int) -> dict[str, Any]:
    check_device(number)
    return {
        **{"name": b"emulated", "major": 9, "minor": 0, "multiProcessorCount": 132, "warpSize": 32},
        **{"totalGlobalMem": TOTAL_MEMORY, "sharedMemPerBlock": 49152, "sharedMemPerBlockOptin": 232448},
    }


def memory_information() -> tuple[int, int]:
    return Device().mem_info


runtime = module(
    "runtime",
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=device_count,
    getDevice=lambda: host_thread.device,
    setDevice=set_device,
    getDeviceProperties=properties,
    deviceSynchronize=lambda: None,
    streamSynchronize=lambda stream: None,
    memGetInfo=memory_information,
    runtimeGetVersion=lambda: 13000,
    driverGetVersion=lambda: 13000,
)


def alloc_pinned_memory(size: int) -> Any:
    """Bytes of the host, with the buffer protocol and their address, `ptr`."""
    kind = type("PinnedMemoryPointer", (ctypes.c_char * size,), {"ptr": property(ctypes.addressof)})
    return kind()


def alloc(size: int) -> MemoryPointer:
    memory = Memory(size)
    return MemoryPointer(memory.ptr, memory)


def get_default_memory_pool() -> Pool:
    """The pool of the current device."""
    return pools[host_thread.device]


cuda = module(
    "cuda",
    Device=Device,
    Stream=Stream,
    Event=Event,
    Graph=Graph,
    Function=Function,
    MemoryPointer=MemoryPointer,
    runtime=runtime,
    driver=module("driver", CUDADriverError=CUDADriverError),
    compiler=module("compiler", CompileException=CompileException),
    memory=module("memory", OutOfMemoryError=OutOfMemoryError, MemoryPointer=MemoryPointer),
    get_current_stream=get_current_stream,
    get_elapsed_time=get_elapsed_time,
    is_available=lambda: device_count() > 0,
    alloc=alloc,
    alloc_pinned_memory=alloc_pinned_memory,
)
__all__ = ["RawModule", "cuda", "get_default_memory_pool"]
