"""Arrays of the emulated device, and the functions on them that the runtime takes from CuPy.

In: shapes, NumPy arrays (which `asarray` copies to the device), device arrays. Out: device arrays; NumPy arrays from
`asnumpy` and `get` alone. As in CuPy, NumPy cannot look into a device array by itself. Example:

    x = asarray(np.arange(3.0))
    asnumpy(sort(x[::-1]))          # array([0., 1., 2.])
    np.asarray(x)                   # TypeError
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from device_memory import Memory, host_thread, refuse_in_capture

# ---- Shapes and types ----------------------------------------------------------------------------------------------


def checked_dtype(dtype: Any) -> np.dtype:
    """The type, if the device has it: numbers of the machine's own byte order, up to complex128."""
    known = np.dtype(dtype)
    numbers = known.kind in "biuf" and known.itemsize <= 8 or known.kind == "c" and known.itemsize <= 16
    if not (numbers or known.name == "bfloat16") or not known.isnative:
        raise ValueError(f"Unsupported dtype {known}")
    return known


def checked_shape(shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(size, ndarray) for size in sizes):
        raise TypeError("a shape is made of host integers, not of device arrays")
    whole = tuple(int(size.__index__()) for size in sizes)
    if any(size < 0 for size in whole):
        raise ValueError("Negative dimensions are not allowed")
    return whole


@dataclass(frozen=True)
class Flags:
    """As ndarray.flags: how the elements lie."""

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool


@dataclass(frozen=True)
class MemoryPointer:
    """As ndarray.data: where the array starts. `mem` keeps the memory."""

    ptr: int
    mem: Memory


class ArrayDevice:
    """The device that an array lies on; equal to the cuda.Device of the same number."""

    def __init__(self, number: int) -> None:
        self.id = number

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return getattr(other, "id", None) == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


# ---- The array -----------------------------------------------------------------------------------------------------


class ndarray:
    """As cupy.ndarray. `_host` is the same bytes for NumPy: for this module's own use, never handed out."""

    __array_priority__ = 100

    def __init__(self, shape: Any, dtype: Any = float, memptr: MemoryPointer | None = None, order: str = "C") -> None:
        dtype, shape = checked_dtype(dtype), checked_shape(shape)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._memory = Memory(size) if memptr is None else memptr.mem
        offset = 0 if memptr is None or not memptr.ptr else memptr.ptr - memptr.mem.ptr
        if memptr is not None and offset + size > memptr.mem.size:
            raise ValueError(f"{size} bytes at byte {offset} of a memory of {memptr.mem.size} bytes")
        strides = np.ndarray(shape, dtype, order=order).strides if order == "F" else None
        self._host = self._memory.host(offset, shape, dtype, strides)
        self.base: ndarray | None = None

    @classmethod
    def _of(cls, host: np.ndarray, base: ndarray) -> ndarray:
        """A view: `host` lies in the memory of `base`."""
        array = object.__new__(cls)
        array._memory, array._host, array.base = base._memory, host, base
        return array

    # What it is

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    strides = property(lambda self: self._host.strides)
    size = property(lambda self: self._host.size)
    ndim = property(lambda self: self._host.ndim)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    T = property(lambda self: self.transpose())

    @property
    def real(self) -> ndarray:
        return ndarray._of(self._host.real, self)

    @property
    def imag(self) -> ndarray:
        return ndarray._of(self._host.imag, self) if self.dtype.kind == "c" else zeros(self.shape, self.dtype)

    @property
    def flags(self) -> Flags:
        flags = self._host.flags
        return Flags(flags.c_contiguous, flags.f_contiguous, self.base is None)

    @property
    def data(self) -> MemoryPointer:
        return MemoryPointer(self._host.__array_interface__["data"][0] if self._memory.ptr else 0, self._memory)

    @property
    def device(self) -> ArrayDevice:
        return ArrayDevice(self._memory.device)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = None if self.flags.c_contiguous else self.strides
        return {
            **{"shape": self.shape, "typestr": self.dtype.str, "descr": self.dtype.descr, "version": 3},
            **{"strides": strides, "data": (self.data.ptr, False), "stream": 1},
        }

    # What would be another thing than in CuPy, where it compares element by element

    def __eq__(self, other: object) -> Any:
        raise TypeError("a comparison of device arrays: launch a kernel")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = None  # as in CuPy

    # What NumPy must not do by itself

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
            "explicitly."
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        raise TypeError(f"numpy.{ufunc.__name__} on a device array: launch a kernel")

    def __array_function__(self, function: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        raise TypeError(f"numpy.{function.__name__} on a device array: use the device's own function")

    # To and from the host

    def get(self, stream: Any = None, order: str = "C", out: np.ndarray | None = None, blocking: bool = True):
        refuse_in_capture("an array is copied to the host")
        if out is None:
            return np.array(self._host, order=order, copy=True)
        if type(out) is not np.ndarray or out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError(f"out must be a NumPy array of {self.dtype} and shape {self.shape}")
        out[...] = self._host
        return out

    def set(self, arr: np.ndarray, stream: Any = None) -> None:
        refuse_in_capture("an array is copied from the host")
        if not isinstance(arr, np.ndarray):
            raise TypeError(f"Only numpy.ndarray can be set to cupy.ndarray, not {type(arr).__name__}")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not (self.flags.c_contiguous or self.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        self._host[...] = arr

    def item(self, *place: Any) -> Any:
        return self._host.item(*place)

    def tolist(self) -> Any:
        return self._host.tolist()

    def __len__(self) -> int:
        return len(self._host)

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __float__(self) -> float:
        return float(self._host)

    def __complex__(self) -> complex:
        return complex(self._host)

    def __index__(self) -> int:
        return self._host.__index__()

    def __repr__(self) -> str:
        return repr(self._host)

    __iter__ = None  # each element would be a copy to the host

    # Views and copies

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        sizes = shape[0] if len(shape) == 1 else shape
        host = self._host.reshape(sizes, order=order)
        return ndarray._of(host, self) if np.may_share_memory(host, self._host) else placed(host)

    def ravel(self, order: str = "C") -> ndarray:
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> ndarray:
        return placed(self._host.flatten(order))

    def view(self, dtype: Any = None) -> ndarray:
        return ndarray._of(self._host.view() if dtype is None else self._host.view(checked_dtype(dtype)), self)

    def transpose(self, *axes: Any) -> ndarray:
        return ndarray._of(self._host.transpose(*axes), self)

    def swapaxes(self, first: int, second: int) -> ndarray:
        return ndarray._of(self._host.swapaxes(first, second), self)

    def squeeze(self, axis: Any = None) -> ndarray:
        return ndarray._of(self._host.squeeze(axis), self)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> ndarray:
        dtype = checked_dtype(dtype)
        if self.dtype.kind == "c" and dtype.kind not in "cb":
            raise TypeError(f"{self.dtype} to {dtype} would drop the imaginary part: take .real")
        return self if not copy and dtype == self.dtype else placed(self._host.astype(dtype, order=order))

    def copy(self, order: str = "C") -> ndarray:
        return placed(self._host.copy(order))

    def fill(self, value: Any) -> None:
        self._host.fill(scalar_of(value))

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return deliver(np.sum(self._host, axis=axis, dtype=dtype, keepdims=keepdims), out)

    def __getitem__(self, index: Any) -> ndarray:
        host = self._host[host_index(index)]
        if isinstance(host, np.ndarray) and np.may_share_memory(host, self._host):
            return ndarray._of(host, self)
        if isinstance(host, np.ndarray) or self._memory.size == 0:
            return placed(host)
        # One element is a view of no dimensions, as in CuPy.
        where = index if isinstance(index, tuple) else (index,)
        return ndarray._of(self._host[(*where, ...)], self)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._host[host_index(index)] = value._host if isinstance(value, ndarray) else scalar_of(value)


def host_index(index: Any) -> Any:
    """The index for NumPy. A list is refused, as CuPy refuses it; a NumPy array is copied there without a word."""
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        if isinstance(part, (list, np.ndarray)):
            raise IndexError(f"an index of type {type(part).__name__}: copy it to the device first, with asarray")
    whole = tuple(part._host if isinstance(part, ndarray) else part for part in parts)
    return whole if isinstance(index, tuple) else whole[0]


def scalar_of(value: Any) -> Any:
    if isinstance(value, ndarray) and value.ndim == 0:
        return value._host
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be stored in a device array: use asarray, or set")


def on_device(*arrays: Any) -> list[np.ndarray]:
    """The arrays for NumPy. Host arrays are refused, and arrays of another device than the current one."""
    refuse_in_capture("a library is called")
    for array in arrays:
        if not isinstance(array, ndarray):
            raise TypeError(f"Unsupported type {type(array)}")
        if array.size and array._memory.device != host_thread.device:
            raise ValueError(
                f"Array device must be same as the current device: array device = {array._memory.device} while "
                f"current = {host_thread.device}"
            )
    return [array._host for array in arrays]


def placed(values: Any) -> ndarray:
    """A new device array of these values, laid out as they are."""
    host = np.asarray(values)
    array = ndarray(host.shape, host.dtype, order="F" if host.flags.f_contiguous and host.ndim > 1 else "C")
    array._host[...] = host
    return array


def deliver(values: Any, out: ndarray | None) -> ndarray:
    if out is None:
        return placed(values)
    host = np.asarray(values)
    if out.shape != host.shape or out.dtype != host.dtype:
        raise ValueError(f"out is {out.dtype}{out.shape}, and the result {host.dtype}{host.shape}")
    on_device(out)[0][...] = host
    return out


# ---- Making arrays -------------------------------------------------------------------------------------------------


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return ndarray(shape, dtype, order=order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    array = ndarray(shape, np.asarray(scalar_of(fill_value)).dtype if dtype is None else dtype, order=order)
    array.fill(fill_value)
    return array


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return full(shape, 0, dtype, order)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return full(shape, 1, dtype, order)


def empty_like(a: ndarray, dtype: Any = None) -> ndarray:
    return empty(a.shape, a.dtype if dtype is None else dtype)


def zeros_like(a: ndarray, dtype: Any = None) -> ndarray:
    return zeros(a.shape, a.dtype if dtype is None else dtype)


def arange(*limits: Any, dtype: Any = None) -> ndarray:
    return placed(np.arange(*limits, dtype=dtype))


def array(a: Any, dtype: Any = None, copy: bool = True, order: str = "K") -> ndarray:
    if isinstance(a, ndarray):
        dtype = a.dtype if dtype is None else checked_dtype(dtype)
        on_device(a)
        fits = dtype == a.dtype and (order != "C" or a.flags.c_contiguous)
        return a if fits and not copy else placed(a._host.astype(dtype, order=order))
    if isinstance(a, (list, tuple)) and any(isinstance(item, ndarray) for item in a):
        raise TypeError("a list of device arrays: use stack or concatenate")
    host = np.asarray(a)
    return placed(host.astype(checked_dtype(host.dtype if dtype is None else dtype), order=order))


def asarray(a: Any, dtype: Any = None, order: str | None = None) -> ndarray:
    return array(a, dtype, copy=False, order=order or "K")


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    return array(a, dtype, copy=False, order="C")


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None) -> np.ndarray:
    if isinstance(a, ndarray):
        return a.get(stream, order, out)
    return np.asarray(a, order=order)


def copyto(dst: ndarray, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    if where is not None:
        raise NotImplementedError("copyto(where=...)")
    (host,) = on_device(dst)
    np.copyto(host, src._host if isinstance(src, ndarray) else scalar_of(src), casting=casting)


def concatenate(tup: Any, axis: int | None = 0, out: ndarray | None = None) -> ndarray:
    return deliver(np.concatenate(on_device(*tup), axis), out)


def stack(tup: Any, axis: int = 0, out: ndarray | None = None) -> ndarray:
    return deliver(np.stack(on_device(*tup), axis), out)


def as_strided(x: ndarray, shape: Any = None, strides: Any = None) -> ndarray:
    """CuPy checks nothing; here a view that leaves the memory of its array is an error."""
    shape = x.shape if shape is None else checked_shape(shape)
    strides = x.strides if strides is None else tuple(strides)
    start = x._host.__array_interface__["data"][0] - x._memory.ptr if x._memory.ptr else 0
    reach = [step * (size - 1) for size, step in zip(shape, strides)]
    first, last = start + sum(min(0, r) for r in reach), start + sum(max(0, r) for r in reach) + x.itemsize
    if 0 not in shape and (first < 0 or last > x._memory.size):
        raise ValueError(f"the view reaches bytes {first} to {last} of a memory of {x._memory.size} bytes")
    return ndarray._of(np.lib.stride_tricks.as_strided(x._host, shape, strides), x)
