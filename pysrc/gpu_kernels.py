"""What a function's kernels on a GPU take: threads, registers, shared memory, spills, bytes moved.

In: a function (or a transformed one) and arguments or stand-ins for them. Out: a `KernelFacts` for each kernel, without
a GPU: NVRTC compiles for one. Example:

    for kernel in kernels(softmax, "f32[4096, 1024]"):
        print(kernel)                    # softmax_0: 4096 blocks of 256 threads, 33554432 bytes; 20 registers, ...
"""

from __future__ import annotations

from typing import Any

from .api.text import program_shown
from .astpasses.emit.cuda_text import emit_cuda
from .astpasses.schedule import nest
from .core.dims import DimLike, floordiv, product
from .late import dataclass
from .pipeline import finished, kernel_loops, run
from .runtime.nvrtc import KernelReport, NvrtcMissing, report


@dataclass(frozen=True)
class KernelFacts:
    """`blocks` may depend on sizes; so may `bytes_moved`: each array that the kernel reads or stores into, whole and
    once, which is the least that memory has to do. `report`: the compiler's; None where there is no NVRTC."""

    name: str
    blocks: DimLike
    threads: int
    bytes_moved: DimLike
    report: KernelReport | None = None

    def __str__(self) -> str:
        text = f"{self.name}: {self.blocks} blocks of {self.threads} threads, {self.bytes_moved} bytes"
        if self.report is None:
            return text
        spills = self.report.spill_stores + self.report.spill_loads
        told = f"{self.report.registers} registers, {self.report.shared_bytes} bytes of shared memory"
        return f"{text}; {told}, {f'{spills} bytes spilled' if spills else 'no spills'}"


def kernels(fun: Any, *args: Any, arch: str = "90", **kwargs: Any) -> list[KernelFacts]:
    """Of every kernel, in the order in which they stand in the text (`source(..., stage="cuda")`), compiled for a GPU
    of the compute capability `arch`."""
    program, _ = program_shown(fun, args, kwargs)
    scheduled = kernel_loops(finished(program.function), program.new_values)
    made = run("cuda", emit_cuda, scheduled)
    try:
        reports = report(made.kernels, arch) if made.kernels else {}
    except NvrtcMissing:
        reports = {}
    found = []
    for fn in scheduled.fns:
        if fn.kernel is not None:
            count = 1 if fn.kernel.count is None else fn.kernel.count
            threads = fn.kernel.threads
            blocks = count if fn.kernel.together else floordiv(count + threads - 1, threads)
            found.append(KernelFacts(fn.name, blocks, threads, _bytes_moved(fn), reports.get(fn.name)))
    return found


def _bytes_moved(fn: nest.Fn) -> DimLike:
    inside = list(nest.walk(fn.body))
    read = {load.buf for s in inside for load in nest.loaded(s)}
    written = {access.buf for s in inside for access in s.accesses if access.write}
    total: DimLike = 0
    for buf in fn.bufs:
        times = (buf in read) + (buf in written)
        total = total + product(buf.dims) * (buf.dtype.itemsize * times)
    return total


__all__ = ["KernelFacts", "kernels"]
