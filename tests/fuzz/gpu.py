"""The GPU in place of native code: what `jit` runs are kernels, and the emulator of tests/gpu runs these.

In: core functions, as `jit` has them compiled. Out: functions by the ABI of native code (runtime/abi.h), so that all
else is as it is with native code: how arguments are taken, stores into them, what fails and what is printed. Example:

    with Device() as device:
        jitted(x)                       # a RawModule made and launched; device.used counts programs by target

Each program goes to another one of `TARGETS`. This module needs tests/gpu on the path.
"""

from __future__ import annotations

import ctypes
import functools
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import stand_in
from emulated import SMALL

from metaphrase.api import compile as compiling
from metaphrase.astpasses.emit.cuda_text import EmittedCuda, emit_cuda
from metaphrase.astpasses.emit.cython_text import EmittedText
from metaphrase.astpasses.schedule.target import CUDA
from metaphrase.core.dims import substitute
from metaphrase.core.ir import Function
from metaphrase.pipeline import loops
from metaphrase.runtime.cuda import CheckFailed, CudaProgram
from metaphrase.runtime.cython_build import Library
from metaphrase.runtime.plans import callbacks_of

NARROW = replace(CUDA, threads=32, blocks=3, grid_from=2, block_from=4)
TARGETS = {"small": SMALL, "narrow": NARROW, "large": CUDA}
STOPPED = -1000  # no status of the ABI

ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
SET_DIMS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64))


class Context(ctypes.Structure):
    """`mp_ctx` of runtime/abi.h."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("abi", "fuel", "busy", "pending")),
        *((name, ctypes.c_void_p) for name in ("cursor", "limit", "blas", "blas_alone", "sorters")),
        ("sorters_below", ctypes.c_int64),
        ("fouriers", ctypes.c_void_p),
        ("threads", ctypes.c_int64),
        ("poll", ctypes.c_void_p),
        ("alloc", ALLOC),
        ("set_dims", SET_DIMS),
        *((name, ctypes.c_void_p) for name in ("scratch", "grow", "mark", "release", "callback", "share")),
        ("error_site", ctypes.c_int64),
        ("error_iteration", ctypes.c_int64),
        ("error_values", ctypes.c_int64 * 16),
    ]


class Device:
    """Inside of `with` what `jit` compiles are kernels. `failure`: what a run ended with that is none of the program's
    own: the dispatcher knows of a status only."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.used: Counter[str] = Counter()
        self.texts: list[str] = []

    def __enter__(self) -> Device:
        self.before = compiling.native
        compiling.native = self.native
        return self

    def __exit__(self, kind: type | None, *_: Any) -> None:
        compiling.native = self.before
        failure, self.failure = self.failure, None
        if kind is SystemError and failure is not None:
            raise failure

    def native(self, function: Function, name: str, writes: Any = None) -> tuple[Library, EmittedText]:
        """In place of the pipeline's `native`."""
        key = list(TARGETS)[zlib.crc32(str(function).encode()) % len(TARGETS)]
        self.used[key] += 1
        program = loops(function, writes, TARGETS[key])
        made = emit_cuda(program)
        self.texts.append(made.kernels)
        code = ENTRY(Kernels(self, function, made, program.sizes))
        address = ctypes.cast(code, ctypes.c_void_p).value
        assert address is not None
        library = Library(name, address, Path("nowhere"), "", False, "kernel")
        object.__setattr__(library, "code", code)  # held as long as that is
        return library, EmittedText(name, "", made.sites, False, made.in_place)


class Kernels:
    """A program for the GPU, called as native code is."""

    def __init__(self, device: Device, function: Function, made: EmittedCuda, sizes: tuple[str, ...]):
        self.device, self.function, self.made, self.sizes = device, function, made, sizes
        self.names = compiling.size_names(function)
        self.callbacks = callbacks_of(made.sites)

    @functools.cached_property
    def program(self) -> CudaProgram:
        return CudaProgram(stand_in, self.made, lambda text: stand_in.RawModule(code=text))

    def __call__(self, context: int, buffers: Any, sizes: Any) -> int:
        try:
            return self.run(Context.from_address(context), context, buffers, sizes)
        except BaseException as error:
            self.device.failure = error
            return STOPPED

    def run(self, context: Context, address: int, buffers: Any, sizes: Any) -> int:
        known = {name: sizes[k] for k, name in enumerate(self.names)}
        types = [p.type for p in self.function.params]
        held = [lying(buffers[k], t.dtype, dims_at(t.dims, known)) for k, t in enumerate(types)]
        on_device = [stand_in.asarray(array) for array in held]
        try:
            results = self.program(on_device, [known[name] for name in self.sizes], self.effect)
        except CheckFailed as failed:
            self.give_back(held, on_device)
            context.error_values[: len(failed.values)] = failed.values
            return failed.site + 1
        self.give_back(held, on_device)
        in_place = dict(self.made.in_place)
        for k, (result, type_) in enumerate(zip(results, (r.type for r in self.function.results), strict=True)):
            if k not in in_place:
                self.hand_over(context, address, buffers, k, result.get(), dims_at(type_.dims, known))
        return 0

    def give_back(self, held: list[np.ndarray], on_device: list[Any]) -> None:
        """What was stored into arguments, as far as a run came."""
        for parameter in set(dict(self.made.in_place).values()):
            held[parameter][...] = on_device[parameter].get()

    def hand_over(
        self, context: Context, address: int, buffers: Any, k: int, result: np.ndarray, dims: tuple[Any, ...]
    ) -> None:
        place = len(self.function.params) + k
        if not all(isinstance(n, int) for n in dims):
            context.alloc(address, place, result.nbytes)
            context.set_dims(address, place, result.ndim, (ctypes.c_int64 * result.ndim)(*result.shape))
            dims = result.shape
        lying(buffers[place], result.dtype, dims)[...] = result.reshape(tuple(dims) or (1,))

    def effect(self, site: int, *values: np.ndarray) -> None:
        ranks = self.made.sites[site].ranks or (0,) * len(values)
        self.callbacks[site].function(*(v if rank else v.reshape(())[()] for v, rank in zip(values, ranks)))


def dims_at(dims: tuple[Any, ...], sizes: dict[str, int]) -> tuple[Any, ...]:
    return tuple(substitute(d, sizes) for d in dims)


def lying(address: int, dtype: np.dtype, dims: tuple[Any, ...]) -> np.ndarray:
    """The array that lies at an address; a number is an array of one element."""
    shape = tuple(dims) or (1,)
    count = int(np.prod(shape))
    if not count:
        return np.empty(shape, dtype)
    held = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(held, np.dtype(dtype)).reshape(shape)


__all__ = ["Device"]
