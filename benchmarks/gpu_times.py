"""What the programs of gpu_kernels.py take on a GPU, beside what memory allows, and beside JAX where it has the device.

In: a GPU with CuPy; without one the script says so and ends. Out: a table: the median of a call by the device's clock,
the part of the measured copy bandwidth that its bytes come to, and JAX's median for the same code with `jax.numpy` as
`np`. Results are compared first. Run:

    python benchmarks/gpu_times.py [--markdown]
"""

from __future__ import annotations

import argparse
import re
import statistics
import types
from collections.abc import Callable
from typing import Any

import gpu_kernels
import numpy as np

import metaphrase as mp
from metaphrase.gpu_kernels import kernels

CALLS, COPIED = 30, 1 << 28  # calls that are timed; bytes of the copy that says what memory gives
GRADIENTS = {"gradient of a layer's loss, f32", "gradient of rows picked by number, f32"}


def array(type_: str, largest: int, random: np.random.Generator) -> Any:
    """Random numbers of a type such as "f32[1024, 256]"; integers below `largest`."""
    kind, dims = re.fullmatch(r"(\w+?)(?:\[(.*)\])?", type_).groups()
    shape = tuple(int(d) for d in dims.split(",")) if dims else ()
    if kind == "i64":
        return random.integers(0, largest, shape)
    made = np.asarray(random.random(shape) * 0.5, {"f32": np.float32, "f64": np.float64}[kind])
    return made if shape else float(made)


def median(cupy: Any, call: Callable[[], Any]) -> float:
    """Seconds of a call by the device's clock, and what the host adds where that is longer."""
    for _ in range(6):  # compiled, noted, replayed
        call()
    times = []
    for _ in range(CALLS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
    return statistics.median(times)


def in_jax(name: str, function: Any, given: list) -> Callable[[], Any] | None:
    """The same for JAX; None where it has no such device, or no such function."""
    try:
        import jax
    except ImportError:
        return None
    if jax.default_backend() != "gpu" or "while" in name or "loops" in name:
        return None
    jax.config.update("jax_enable_x64", True)
    user = function.fun if name in GRADIENTS else function
    names = {**user.__globals__, "np": jax.numpy}
    same = types.FunctionType(user.__code__, names, user.__name__)
    jitted = jax.jit(jax.grad(same) if name in GRADIENTS else same)
    there = [jax.device_put(x) for x in given]
    return lambda: jax.block_until_ready(jitted(*there))


def rows(cupy: Any, random: np.random.Generator) -> list[list[str]]:
    source, target = (cupy.zeros(COPIED // 8) for _ in range(2))
    bandwidth = 2 * COPIED / median(cupy, lambda: cupy.copyto(target, source))
    table = [["program", "a call", "of the copy bandwidth", "JAX"], ["copy", "", f"{bandwidth / 1e9:,.0f} GB/s", ""]]
    for name, function, types_ in gpu_kernels.rows():
        given = [array(t, 50_000, random) for t in types_]
        there = [cupy.asarray(x) if isinstance(x, np.ndarray) else x for x in given]
        jitted = mp.jit(function)
        want, got = mp.jit(function)(*given), jitted(*there)
        np.testing.assert_allclose(got.get(), want, rtol=1e-3 if want.dtype == np.float32 else 1e-9, atol=1e-5)
        seconds = median(cupy, lambda: jitted(*there))  # noqa: B023
        moved = sum(kernel.bytes_moved for kernel in kernels(function, *types_))
        peer = in_jax(name, function, given)
        told = "" if peer is None else f"{1e6 * median(cupy, peer):,.1f} us"
        table.append([name, f"{1e6 * seconds:,.1f} us", f"{moved / seconds / bandwidth:.0%}", told])
    return table


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--markdown", action="store_true")
    markdown = options.parse_args().markdown
    try:
        import cupy

        found = cupy.cuda.is_available()
    except ImportError:
        found = False
    if not found:
        print("no GPU here, or no CuPy: nothing was timed")
        return
    table = rows(cupy, np.random.default_rng(0))
    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    if markdown:
        print("\n".join(f"| {' | '.join(row)} |" for row in [table[0], ["---"] * len(table[0]), *table[1:]]))
        return
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    for row in table:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    main()
