"""CUDA C text -> the machine code of a GPU (a cubin), and what each kernel takes of the machine.

In: the text of one module, and the compute capability of the GPU, "90" for an H100. Out: the bytes of a cubin, which
CuPy loads (`cupy.cuda.function.Module().load`); or a report for each kernel. Example:

    code = cubin('extern "C" __global__ void twice(double* x) { x[threadIdx.x] *= 2; }', arch="90")
    report(text)["twice"].spill_stores                      # 0

The compiler is NVRTC, a library of C functions called by ctypes: the wheel nvidia-cuda-nvrtc is all that it takes, so
that a machine without a GPU, a driver or CuPy compiles the same code and sees its faults. CuPy's own RawModule is not
asked: it puts -ftz=true behind whatever options it is given, and numbers near 0 become 0. What is made is kept on disk
as libraries are (cache.py). Raises NvrtcMissing, or CudaCompileError with NVRTC's own words.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from .._version import VERSION
from ..late import dataclass
from . import cache as disk
from . import scratch
from .compiler import CompileError, CompilerMissing
from .cython_build import open_cache

# + - * / and sqrt are NumPy's to the bit, numbers near 0 stay.
FLAGS: tuple[str, ...] = ("-std=c++17", "-ftz=false", "-prec-div=true", "-prec-sqrt=true")
TELL = "--ptxas-options=-v"  # what kernels take stands in the log then; the code is the same

TEXT, LOG = "kernel.cu", "ptxas.txt"
INSTALL = "install it with `pip install 'metaphrase[gpu]'`"
HEADERS = ("cuda_fp16.h", "cuda/std/complex")  # what stands in the folders that are looked for


class NvrtcMissing(CompilerMissing):
    """There is no NVRTC here, or it does not load."""


class CudaCompileError(CompileError):
    """NVRTC refused the text. `message` is what it said; `path` the kept text, if there is room for it."""

    def __init__(self, message: str, path: Path | None = None):
        super().__init__(message + ("" if path is None else f"\nThe text is kept in {path}"))
        self.message, self.path = message, path


@dataclass(frozen=True)
class KernelReport:
    """What a kernel takes: registers of a thread; bytes of shared memory of a block, without what a launch adds; bytes
    of a thread's own memory, and of registers that it writes there and reads back, functions that it calls included;
    bytes of constants, its parameters among them."""

    registers: int
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    constant_bytes: int = 0


@dataclass(frozen=True)
class Compiled:
    """A cubin and what ptxas said of it. `cached`: found on disk, nothing was compiled."""

    code: bytes
    log: str
    cached: bool


def cubin(text: str, arch: str = "90", options: tuple[str, ...] = (), contract: bool = False) -> bytes:
    """The machine code of a text. With `contract` a product and a sum may be rounded once, as one operation."""
    return compiled(text, arch, options, contract).code


def report(
    text: str, arch: str = "90", options: tuple[str, ...] = (), contract: bool = False
) -> dict[str, KernelReport]:
    """What each kernel of a text takes, by the name that it has in the cubin."""
    made = compiled(text, arch, options, contract)
    return reports(made.log, made.code)


def flags(text: str, arch: str, options: tuple[str, ...] = (), contract: bool = False) -> tuple[str, ...]:
    """NVRTC's options for a text; where headers are is said to a text that includes any."""
    folders = tuple(f"-I{folder}" for folder in include_directories()) if "#include" in text else ()
    return (f"-arch=sm_{arch}", *FLAGS, f"-fmad={str(contract).lower()}", TELL, *options, *folders)


def compiled(text: str, arch: str = "90", options: tuple[str, ...] = (), contract: bool = False) -> Compiled:
    """Compile a text, or find it compiled."""
    library, cache = find_nvrtc(), open_cache()
    words = flags(text, arch, tuple(options), contract)
    key = disk.key_of(text, *words, library.identity, *map(_identity, _headers(words)), *_maker())
    if cache is not None and (found := _kept(cache, key)) is not None:
        return found
    status, code, log = library.compile(text, words)
    if status != SUCCESS:
        raise _failure(library.name_of(status), log, key, text, cache)
    if (roomier := _with_all_registers(text, log)) != text:
        status, other, told = library.compile(roomier, words)
        if status == SUCCESS and _spilled(told) < _spilled(log):
            code, log = other, told
    if cache is not None:
        with contextlib.suppress(OSError, disk.CacheUnusable), scratch.directory() as place:
            (place / "kernel.cubin").write_bytes(code)
            cache.store(key, place / "kernel.cubin", {TEXT: text, LOG: f"{disk.key_of(log)}\n{log}"})
    return Compiled(code, log, False)


def _kept(cache: disk.Cache, key: str) -> Compiled | None:
    """What is on disk under a key, if it is whole."""
    path = cache.find(key)
    if path is None:
        return None
    try:
        digest, _, log = disk.read_own(path.with_name(LOG)).decode().partition("\n")
        if digest != disk.key_of(log):
            raise ValueError("the digest of what ptxas said differs")
        return Compiled(disk.read_own(path), log, True)
    except (OSError, ValueError) as error:
        if path.exists():  # another process has not removed it meanwhile
            cache.discard(key, str(error))
        return None


def _spilled(log: str) -> int:
    return sum(told.spill_stores + told.spill_loads for told in reports(log).values())


def _with_all_registers(text: str, log: str) -> str:
    """The text whose kernels that spilled need not leave registers for a second block beside theirs: ptxas would rather
    spill a few than have fewer threads at a time."""
    for name, told in reports(log).items():
        if told.spill_stores or told.spill_loads:
            text = re.sub(rf"(__launch_bounds__\(\d+)\) {re.escape(name)}\(", rf"\1, 1) {name}(", text)
    return text


@functools.cache
def _maker() -> tuple[str, str]:
    return VERSION, Path(__file__).read_text()


def _failure(status: str, log: str, key: str, text: str, cache: disk.Cache | None) -> CudaCompileError:
    missing = re.search(r'(?:could not|cannot) open source file "([^"]+)"', log)
    message = f"NVRTC did not compile the CUDA C ({status}):\n{log.rstrip()}"
    if missing:
        message += f"\n{missing[1]} is a header that is not part of NVRTC; if it is CUDA's, {INSTALL}"
    path = None
    if cache is not None:
        with contextlib.suppress(OSError):
            path = cache.keep_failure(key, {TEXT: text})
    return CudaCompileError(message, path)


# ----------------------------------------------------------------------------------------------- the library

SUCCESS = 0


@dataclass(frozen=True)
class Nvrtc:
    """The library's file, and what tells it from another version: path, size and time of change, not the version that
    it says, because loading its 140 MB takes longer than compiling a kernel. A warm start loads nothing."""

    path: Path
    identity: str

    @property
    def loaded(self) -> ctypes.CDLL:
        return _load(self.path)

    def version(self) -> tuple[int, int]:
        """(13, 5)"""
        numbers = ctypes.c_int(), ctypes.c_int()
        self.loaded.nvrtcVersion(*map(ctypes.byref, numbers))
        return numbers[0].value, numbers[1].value

    def architectures(self) -> tuple[int, ...]:
        """The compute capabilities that it compiles for: 75, 80, ... 90."""
        count = ctypes.c_int()
        self.loaded.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self.loaded.nvrtcGetSupportedArchs(found)
        return tuple(found)

    def name_of(self, status: int) -> str:
        """NVRTC_ERROR_COMPILATION"""
        name = self.loaded.nvrtcGetErrorString
        name.restype = ctypes.c_char_p
        return (name(status) or b"").decode()

    def compile(self, text: str, options: tuple[str, ...]) -> tuple[int, bytes, str]:
        """(status, cubin, log)"""
        with self._program(text) as program:
            words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            status = self.loaded.nvrtcCompileProgram(program, len(options), words)
            log = self._part(program, "nvrtcGetProgramLog").rstrip(b"\0").decode(errors="replace")
            code = self._part(program, "nvrtcGetCUBIN") if status == SUCCESS else b""
            return status, code, log

    @contextlib.contextmanager
    def _program(self, text: str) -> Iterator[ctypes.c_void_p]:
        program = ctypes.c_void_p()
        if "\0" in text:
            raise CudaCompileError("the CUDA C has a zero character in it, which would end it")
        status = self.loaded.nvrtcCreateProgram(
            ctypes.byref(program), ctypes.c_char_p(text.encode()), TEXT.encode(), 0, None, None
        )
        if status != SUCCESS:
            raise CudaCompileError(f"NVRTC did not take the text ({self.name_of(status)})")
        try:
            yield program
        finally:
            self.loaded.nvrtcDestroyProgram(ctypes.byref(program))

    def _part(self, program: ctypes.c_void_p, function: str) -> bytes:
        size = ctypes.c_size_t()
        self._asked(f"{function}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._asked(function, program, buffer)
        return buffer.raw

    def _asked(self, function: str, *arguments: object) -> None:
        status = getattr(self.loaded, function)(*arguments)
        if status != SUCCESS:
            raise CudaCompileError(f"{function} failed ({self.name_of(status)})")


@functools.cache
def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise NvrtcMissing(f"NVRTC, the compiler of CUDA C, does not load: {error}; {INSTALL}") from error


def find_nvrtc() -> Nvrtc:
    """The library METAPHRASE_NVRTC names; else the newest of the wheels; else a CUDA toolkit's."""
    return _find_nvrtc(os.environ.get("METAPHRASE_NVRTC"), os.environ.get("CUDA_PATH"))


@functools.cache
def _find_nvrtc(named: str | None, toolkit: str | None) -> Nvrtc:
    for path in [Path(named)] if named else _libraries(toolkit):
        if path.is_file():
            return Nvrtc(path, _identity(path.resolve()))
    if named:
        raise NvrtcMissing(f"METAPHRASE_NVRTC={named!r} is no file")
    raise NvrtcMissing(f"NVRTC, the compiler of CUDA C, is not installed; {INSTALL}")


def _identity(path: Path) -> str:
    status = path.stat()
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"


def _wheels() -> list[Path]:
    """The folders of NVIDIA's wheels: one for all of CUDA 13, one for each part of CUDA 12."""
    found = importlib.util.find_spec("nvidia")
    places = found.submodule_search_locations if found else None
    return sorted((folder for place in places or () for folder in Path(place).glob("*")), reverse=True)


def _toolkits(named: str | None) -> list[Path]:
    return [Path(folder) for folder in (named, "/usr/local/cuda") if folder]


def _libraries(toolkit: str | None) -> Iterator[Path]:
    for folder in (*_wheels(), *_toolkits(toolkit)):
        for inside in ("lib", "lib64", "bin"):
            yield from sorted((folder / inside).glob("libnvrtc.so*"), key=_number, reverse=True)


def _number(path: Path) -> list[int]:
    """libnvrtc.so.13 before libnvrtc.so.12, and both before libnvrtc.so."""
    return [int(part) for part in path.name.split(".") if part.isdigit()]


def include_directories() -> tuple[Path, ...]:
    """Where cuda_fp16.h and cuda/std/complex are: in wheels, in a CUDA toolkit, or with CuPy."""
    return _include_directories(find_nvrtc().path, os.environ.get("CUDA_PATH"))


@functools.cache
def _include_directories(library: Path, toolkit: str | None) -> tuple[Path, ...]:
    # Beside the library first: headers of another version may not fit.
    folders = [folder / "include" for folder in (library.parent.parent, *_wheels(), *_toolkits(toolkit))]
    cupy = importlib.util.find_spec("cupy")
    for place in (cupy and cupy.submodule_search_locations) or ():
        folders.append(Path(place, "_core", "include", "cupy", "_cccl", "libcudacxx"))
    return tuple(
        dict.fromkeys(
            inside
            for header in HEADERS
            for inside in next(((i,) for f in folders for i in (f, f / "cccl") if (i / header).is_file()), ())
        )
    )


def _headers(options: tuple[str, ...]) -> list[Path]:
    """One header of each folder that a text may include from: its time of change tells one version from another."""
    folders = [Path(option[2:]) for option in options if option.startswith("-I")]
    return [folder / header for folder in folders for header in HEADERS if (folder / header).is_file()]


# ----------------------------------------------------------------------------------------------- the report

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def reports(log: str, code: bytes = b"") -> dict[str, KernelReport]:
    """The kernels that ptxas tells of, with the sizes of constants that stand in the cubin."""
    parts = _ENTRY.split(log)
    return {name: _report(name, part, code) for name, part in zip(parts[1::2], parts[2::2])}


def _report(name: str, part: str, code: bytes) -> KernelReport:
    def number(pattern: str) -> int:
        found = re.search(pattern, part)
        return int(found[1]) if found else 0

    # The kernel's own first, then those of functions that it calls; the stack of all is said apart.
    frames = [tuple(map(int, numbers)) for numbers in _STACK.findall(part)]
    stack = max([number(r"(\d+) bytes cumulative stack size"), *(frame[0] for frame in frames[:1])])
    return KernelReport(
        registers=number(r"Used (\d+) registers"),
        shared_bytes=number(r"(\d+) bytes smem"),
        stack_bytes=stack,
        spill_stores=sum(frame[1] for frame in frames),
        spill_loads=sum(frame[2] for frame in frames),
        constant_bytes=sum(
            size
            for section, size in sections(code).items()
            if re.fullmatch(rf"\.nv\.constant\d+\.{re.escape(name)}", section)
        ),
    )


def sections(code: bytes) -> dict[str, int]:
    """The bytes of each section of an ELF file of 64 bits, which a cubin is."""
    if code[:5] != b"\x7fELF\x02":
        return {}
    (start,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names = struct.unpack_from("<3H", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", code, start + k * size) for k in range(count)]
    place = headers[names][4]
    found = {}
    for header in headers:
        at = place + header[0]
        found[code[at : code.index(b"\0", at)].decode()] = header[5]
    return found


__all__ = [
    "Compiled",
    "CudaCompileError",
    "KernelReport",
    "Nvrtc",
    "NvrtcMissing",
    "compiled",
    "cubin",
    "find_nvrtc",
    "flags",
    "include_directories",
    "report",
    "reports",
]
