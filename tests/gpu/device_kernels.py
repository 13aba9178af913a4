"""Kernels: CUDA C compiled by g++ in front of which stands cuemu.h, and launched on the emulated device.

In: `RawModule(code=text)`. Out: callables that take `(grid, block, arguments)` as CuPy's do. Example:

    module = RawModule(code='extern "C" __global__ void one(int* x) { *x = 1; }')
    module.get_function("one")((1,), (1,), (x,))

CUEMU_ORDER=fwd|rev|rand (and CUEMU_SEED) is the order of threads and blocks at each launch. With CUEMU_RACES=1 a text
is compiled so that every access is watched: a race is then an error. CUEMU_SECONDS ends kernels that do not end,
CUEMU_OPTIMIZE is g++'s -O. Stricter than CuPy: an argument's type is held against the parameter's, not its size only.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from device_arrays import ndarray
from device_memory import (
    CUDADriverError,
    CUDARuntimeError,
    How,
    Layout,
    Memory,
    build,
    cache_folder,
    captured,
    fingerprint,
    headers,
    host_thread,
    library,
    living,
    stats,
)

STATIC_SHARED = 48 * 1024  # bytes of shared memory that a block has without asking
MOST_SHARED = 227 * 1024
MOST_PARAMETERS = 32764  # bytes, since CUDA 12.1 and compute capability 7.0

# ---- Compiling -----------------------------------------------------------------------------------------------------

FLAGS = (
    *("-std=c++17", "-fPIC", "-w", "-ffp-contract=off", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti"),
    *("-fno-asynchronous-unwind-tables", "-fno-math-errno", "-fno-strict-aliasing", "-fwrapv", "-U_FORTIFY_SOURCE"),
    "-fno-delete-null-pointer-checks",  # a null pointer is followed, and that is a fault
    *("-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"),  # as is an address that is no multiple of its size
    "-fstack-clash-protection",  # a large local array meets the page at the stack's end rather than leaping over it
)
WATCHED = ("-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0", "--param=tsan-distinguish-volatile=1")
LINKED = ("-shared", "-nostdlib")
LIBRARIES = ("-lm", "-lc", "-lgcc")

KERNEL = re.compile(
    r"""(?P<c> extern \s+ "C" \s+)? (?: static \s+)? __global__ \s+
        (?: __launch_bounds__ \s* \( (?P<before> [^()]*) \) \s*)? void \s+
        (?: __launch_bounds__ \s* \( (?P<after> [^()]*) \) \s*)? (?P<name> \w+) \s* \(""",
    re.VERBOSE,
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
IGNORED_OPTIONS = re.compile(r"-{1,2}(std=c\+\+1[147]|fmad=(true|false)|ftz=(true|false)|prec-\w+=(true|false)|I.*|w)")
IGNORED_OPTIONS_TOO = ("-use_fast_math", "--use_fast_math", "-lineinfo", "--generate-line-info", "-restrict")


class CompileException(Exception):
    """As cupy.cuda.compiler.CompileException: the text does not compile."""

    def __init__(self, message: str, source: str, name: str, options: tuple[str, ...], backend: str = "nvrtc") -> None:
        super().__init__(message)
        self.source, self.name, self.options, self.backend = source, name, options, backend

    def get_message(self) -> str:
        return str(self.args[0])


def kernels_of(code: str) -> dict[str, int]:
    """The kernels whose names are C's, and the most threads that __launch_bounds__ allows each (1024 without)."""
    bare = COMMENT.sub(" ", code)
    all_are_c = re.search(r'extern\s+"C"\s*\{', bare) is not None
    found = {}
    for kernel in KERNEL.finditer(bare):
        if kernel["c"] or all_are_c:
            bound = (kernel["before"] or kernel["after"] or "1024").split(",")[0].strip()
            found[kernel["name"]] = int(bound) if bound.isdigit() else 1024
    return found


def header(optimize: str, watched: bool) -> tuple[Path, tuple[str, ...]]:
    """The precompiled header for these flags, and the flags."""
    flags = (optimize, *FLAGS, *(WATCHED if watched else ()))
    key = hashlib.sha256(repr((fingerprint(), flags)).encode()).hexdigest()[:16]
    folder = cache_folder() / f"header-{key}"
    headers(folder)
    precompiled = folder / "cuemu.h.gch"
    if not precompiled.exists():
        build(precompiled, ["g++", *flags, "-x", "c++-header", str(folder / "cuemu.h")])
    return folder, (*flags, f"-I{folder / 'cuemu' / 'include'}", "-include", str(folder / "cuemu.h"))


def defined(options: Sequence[str], code: str) -> list[str]:
    """The options -DNAME=value as lines. An option that CuPy would pass on and that nothing here knows is refused."""
    lines = []
    for option in options:
        if option.startswith(("-D", "--define-macro=")):
            name, _, value = option.removeprefix("--define-macro=").removeprefix("-D").partition("=")
            lines.append(f"#define {name} {value or 1}")
        elif not IGNORED_OPTIONS.fullmatch(option) and option not in IGNORED_OPTIONS_TOO:
            raise CompileException(f"nvrtc: error: invalid value for an option: {option!r}", code, "kernel.cu", ())
    return lines


def compile_text(code: str, options: tuple[str, ...], watched: bool) -> Path:
    """The shared object of a text: from the cache, or from g++."""
    folder, flags = header(os.environ.get("CUEMU_OPTIMIZE", "-O1"), watched)
    doors = ["CUEMU_MODULE", *(f"CUEMU_KERNEL({name})" for name in kernels_of(code))]
    text = "\n".join([*defined(options, code), '#line 1 "kernel.cu"', code, '#line 1 "doors"', *doors, ""])
    key = hashlib.sha256(repr((folder.name, text)).encode()).hexdigest()[:32]
    target = cache_folder() / key[:2] / f"{key}.so"
    if target.exists():
        return target
    source = target.with_name(f"{key}-{os.getpid()}-{threading.get_ident()}.cpp")
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(text)
    try:
        build(target, ["g++", *flags, *LINKED, str(source), *LIBRARIES])
    except RuntimeError as error:
        raise CompileException(str(error), code, "kernel.cu", options) from None
    finally:
        source.unlink()
    stats.compiles += 1
    return target


# ---- Parameters and arguments --------------------------------------------------------------------------------------

KINDS = {"b": "bool", "i": "integer", "u": "unsigned integer", "f": "float", "c": "complex", "s": "structure"}


class Parameter(ctypes.Structure):
    """What a kernel takes at one place; the header's structure of this name."""

    _fields_ = [("kind", ctypes.c_char), ("of", ctypes.c_char), ("bytes", ctypes.c_int), ("bytes_each", ctypes.c_int)]

    def __str__(self) -> str:
        if self.kind == b"p":
            return "pointer to " + (f"{self.bytes_each}-byte {KINDS[self.of.decode()]}" if self.bytes_each else "void")
        return f"{self.bytes}-byte {KINDS[self.kind.decode()]}"

    def takes_array(self, dtype: np.dtype) -> bool:
        if self.kind != b"p":
            return False
        if self.bytes_each in (0, 1) and self.of != b"b":
            return True  # void* and char* are for bytes of any kind
        raw = dtype in (np.uint8, np.int8)
        if dtype.kind == "V" and dtype.itemsize == 2:  # bfloat16, whose bits kernels take
            return (self.of, self.bytes_each) == (b"u", 2) or self.of == b"s"
        return raw or self.of == b"s" or (dtype.kind.encode(), dtype.itemsize) == (self.of, self.bytes_each)

    def takes_scalar(self, dtype: np.dtype) -> bool:
        if dtype.itemsize != self.bytes:
            return False
        return dtype.kind.encode() == self.kind or (self.kind == b"s" and dtype.kind in "Vc")


def check_array(parameter: Parameter, array: ndarray, place: str) -> None:
    """Refuses what CuPy would pass on: an array for a number, of another type, of another device."""
    if not parameter.takes_array(array.dtype):
        raise TypeError(f"{place}: the kernel takes a {parameter}, not an array of {array.dtype}")
    if array.device.id != host_thread.device and array.size:
        raise ValueError(
            f"{place}: the array is on device {array.device.id}, and the current device is {host_thread.device}"
        )
    step = parameter.bytes_each if parameter.of != b"s" else 1
    if parameter.of == b"c":
        step //= 2
    if step and array.data.ptr % step:
        raise ValueError(f"{place}: misaligned address: it is no multiple of {step}, the size of what it points to")


def argument_bytes(parameter: Parameter, argument: Any, place: str) -> np.ndarray:
    """The bytes that the kernel gets, as an array that must live until the launch is over."""
    if isinstance(argument, ndarray):
        check_array(parameter, argument, place)
        return np.array([argument.data.ptr], np.uint64)
    if argument is None and parameter.kind == b"p":
        return np.zeros(1, np.uint64)
    if isinstance(argument, np.generic):
        if not parameter.takes_scalar(argument.dtype):
            raise TypeError(
                f"{place}: the kernel takes a {parameter}, not a scalar of {argument.dtype} ({argument.itemsize} bytes)"
            )
        return np.array([argument])
    if isinstance(argument, (bool, int, float, complex)):
        raise TypeError(
            f"{place}: a Python {type(argument).__name__} is passed with the size of Python's type, whatever the "
            f"kernel takes: pass a NumPy scalar (the kernel takes a {parameter})"
        )
    raise TypeError(f"{place}: Unsupported type {type(argument)}")


def three_sizes(sizes: Any, what: str) -> tuple[int, ...]:
    if not isinstance(sizes, tuple) or not 1 <= len(sizes) <= 3:
        raise TypeError(f"{what} must be a tuple of 1 to 3 integers, not {sizes!r}")
    whole = [int(size.__index__()) for size in sizes]
    if any(size < 0 or size >= 2**32 for size in whole):
        raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: invalid argument: invalid {what} {sizes!r}")
    return (*whole, 1, 1)[:3]


# ---- Modules and functions -----------------------------------------------------------------------------------------

ORDERS = {"fwd": 0, "rev": 1, "rand": 2}


def how_to_launch(watched: bool) -> How:
    order = os.environ.get("CUEMU_ORDER", "fwd")
    seed, seconds = int(os.environ.get("CUEMU_SEED", "1")), float(os.environ.get("CUEMU_SECONDS", "20"))
    return How(ORDERS[order], int(watched), seed, seconds)


class Function:
    """A kernel: `function(grid, block, arguments, shared_mem=0, stream=None)`."""

    def __init__(self, name: str, loaded: ctypes.CDLL, layout: Layout, most_threads: int, watched: bool) -> None:
        self.name = name
        self._call = ctypes.cast(getattr(loaded, f"cuemu_call_{name}"), ctypes.c_void_p)
        self._mark = ctypes.cast(loaded.cuemu_mark, ctypes.c_void_p)
        self._layout = layout
        self._most_threads = most_threads
        self._watched = watched
        self._most_shared = STATIC_SHARED
        rows = getattr(loaded, f"cuemu_parameters_{name}")
        rows.restype = ctypes.POINTER(Parameter)
        row = rows()
        self._parameters = [row[i] for i in range(getattr(loaded, f"cuemu_count_{name}")())]

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self._most_shared

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if not 0 <= size <= MOST_SHARED:
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: {size} bytes of shared memory; the most is {MOST_SHARED}")
        self._most_shared = size

    def __call__(self, grid, block, args, *, shared_mem: int = 0, stream: Any = None) -> None:
        sizes = (*three_sizes(grid, "grid"), *three_sizes(block, "block"))
        self._check_launch(sizes, args, shared_mem)
        kept = [
            argument_bytes(parameter, argument, f"{self.name}: argument {i}")
            for i, (parameter, argument) in enumerate(zip(self._parameters, args))
        ]
        if stream is not None and stream.device_id not in (-1, host_thread.device):
            raise CUDADriverError("CUDA_ERROR_INVALID_HANDLE: the stream belongs to another device")
        memories: set[Memory] = {argument._memory for argument in args if isinstance(argument, ndarray)}
        todo = captured() if stream is None else stream._captured
        if todo is None:
            self._run(sizes, kept, memories, shared_mem)
            return
        places = [(memory.ptr, memory.size) for memory in memories if memory.ptr]
        todo.append(lambda: self._run(sizes, kept, self._alive(places), shared_mem))

    def _alive(self, places: Sequence[tuple[int, int]]) -> set[Memory]:
        """The memory that lies now where a graph's launch will look for it."""
        alive = [living.get(place) for place, _ in places]
        if any(memory is None or memory.size < size for memory, (_, size) in zip(alive, places)):
            raise CUDARuntimeError(f"{self.name}: illegal memory access: a graph reads or writes memory that is freed")
        return {memory for memory in alive if memory is not None}

    def _run(self, sizes: tuple[int, ...], kept: Sequence[np.ndarray], memories: set[Memory], shared_mem: int) -> None:
        pointers = (ctypes.c_void_p * max(1, len(kept)))(*(value.ctypes.data for value in kept))
        stats.launches += 1
        wrong = library().cuemu_launch(
            *(self._call, self._mark, ctypes.byref(self._layout), (ctypes.c_uint * 6)(*sizes), shared_mem),
            *(pointers, ctypes.byref(how_to_launch(self._watched))),
        )
        damages = [damage for memory in memories if (damage := memory.damage())]
        if wrong:
            message = f"{self.name}: {wrong.decode()}"
            raise CUDADriverError(message) if wrong.startswith(b"invalid") else CUDARuntimeError(message)
        if damages:
            raise CUDARuntimeError(f"{self.name}: illegal memory access: {damages[0]}")

    def _check_launch(self, sizes: tuple[int, ...], args: Any, shared_mem: int) -> None:
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"{self.name}: arguments must be a tuple, not {type(args).__name__}")
        if len(args) != len(self._parameters):
            raise TypeError(f"{self.name}: {len(args)} arguments for {len(self._parameters)} parameters")
        if sum(parameter.bytes for parameter in self._parameters) > MOST_PARAMETERS:
            raise CUDADriverError(f"{self.name}: parameters of more than {MOST_PARAMETERS} bytes")
        threads = sizes[3] * sizes[4] * sizes[5]
        if self._most_threads < threads <= 1024:
            raise CUDADriverError(
                f"CUDA_ERROR_INVALID_VALUE: {self.name}: a block of {threads} threads, and __launch_bounds__ allows "
                f"{self._most_threads}"
            )
        if not 0 <= shared_mem <= max(self._most_shared, STATIC_SHARED):
            raise CUDADriverError(
                f"CUDA_ERROR_INVALID_VALUE: {self.name}: too much shared memory: {shared_mem} bytes; "
                f"max_dynamic_shared_size_bytes is {self._most_shared}"
            )


class RawModule:
    """As cupy.RawModule(code=..., options=...): compiled when a function is first asked for, or by `compile`."""

    def __init__(self, *, code: str, options: tuple[str, ...] = (), backend: str = "nvrtc") -> None:
        if not isinstance(options, tuple) or not all(isinstance(option, str) for option in options):
            raise TypeError("options must be a tuple of str")
        self.code, self.options, self.backend = code, options, backend
        self._watched = os.environ.get("CUEMU_RACES", "0") == "1"
        self._loaded: ctypes.CDLL | None = None

    def compile(self, log_stream: Any = None) -> None:
        if self._loaded is not None:
            return
        path = compile_text(self.code, self.options, self._watched)
        library()
        try:
            loaded = ctypes.CDLL(str(path))
        except OSError as error:  # a name that is declared and that nobody defines
            raise CompileException(str(error), self.code, "kernel.cu", self.options) from None
        self._layout = Layout()
        loaded.cuemu_mark.restype = ctypes.c_void_p
        if not library().cuemu_layout(ctypes.cast(loaded.cuemu_mark, ctypes.c_void_p), ctypes.byref(self._layout)):
            raise RuntimeError("the shared memory of a text is not where it should be")
        self._loaded = loaded

    def get_function(self, name: str) -> Function:
        self.compile()
        kernels = kernels_of(self.code)
        if name not in kernels:
            raise CUDADriverError(f"CUDA_ERROR_NOT_FOUND: named symbol not found: {name}")
        assert self._loaded is not None
        return Function(name, self._loaded, self._layout, kernels[name], self._watched)
