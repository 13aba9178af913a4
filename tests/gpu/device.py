"""Whether there is a GPU, asked of the driver alone: says which, or says that there is none and fails.

python tests/gpu/device.py   ->   GPU 0: NVIDIA H100 80GB HBM3
"""

import ctypes
import sys


def device() -> str | None:
    """The name of the first GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    name, handle = ctypes.create_string_buffer(128), ctypes.c_int()
    failed = (
        driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(handle), 0) or driver.cuDeviceGetName(name, 128, handle)
    )
    return None if failed else name.value.decode()


if __name__ == "__main__":
    found = device()
    if found is None:
        sys.exit("no GPU here: the driver (libcuda.so.1) is missing or finds no device; nothing was tested")
    print(f"GPU 0: {found}")
