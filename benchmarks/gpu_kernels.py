"""What kernels would take on a GPU, told without one: registers, shared memory, spills, bytes moved, and the time that
memory alone needs for them.

In: programs whose speed is that of memory. Out: a table. The time is a bound, not a measurement: bytes over the
bandwidth that the device's maker states (`--bandwidth`, in GB/s; an H100 SXM has 3,350). Run:

    python benchmarks/gpu_kernels.py [--markdown] [--bandwidth 3350] [--arch 90]
"""

import argparse

import numpy as np

import metaphrase as mp
from metaphrase.gpu_kernels import kernels

ROWS, COLUMNS = 16384, 4096
MANY = ROWS * COLUMNS


def chain(x):
    return np.sin(x) * np.cos(x) + np.exp(-x * x)


def total(x):
    return (x * x).sum()


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x, gain, bias):
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * gain + bias


def column_sums(x):
    return x.sum(axis=0)


def mean_loss(w, x, y):
    return ((np.tanh(x @ w) - y) ** 2).mean()


def likeness(table, words, context):
    return (table[words] * context).sum()


def period(e, M):
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def smoothed(x):
    out = x.copy()
    for i in range(1, len(x) - 1):
        out[i] = (x[i - 1] + x[i] + x[i + 1]) / 3
    return out


def rows():
    matrix, line = f"f32[{ROWS}, {COLUMNS}]", f"f32[{COLUMNS}]"
    yield "sin(x)*cos(x) + exp(-x*x), f32", chain, (f"f32[{MANY}]",)
    yield "the same, f64", chain, (f"f64[{MANY}]",)
    yield "sum of squares, f32", total, (f"f32[{MANY}]",)
    yield "softmax of rows, f32", softmax, (matrix,)
    yield "layer norm of rows, f32", layer_norm, (matrix, line, line)
    yield "sums of columns, f32", column_sums, (matrix,)
    yield "gradient of a layer's loss, f32", mp.grad(mean_loss), ("f32[1024, 256]", "f32[8192, 1024]", "f32[8192, 256]")
    words = ("f32[50000, 128]", "i64[200000]", "f32[200000, 128]")
    yield "gradient of rows picked by number, f32", mp.grad(likeness), words
    yield "derivatives through `while`, 1e6 lanes", mp.vmap(mp.grad(period), (0, None)), ("f64[1000000]", "f64")
    yield "a small call: a smoothed line of 1,000, loops", smoothed, ("f64[1000]",)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--bandwidth", type=float, default=3350.0)
    parser.add_argument("--arch", default="90")
    options = parser.parse_args()
    head = ["program", "kernel", "blocks", "threads", "registers", "shared", "spills", "bytes moved", "at least"]
    table = [head]
    for name, function, types in rows():
        for k, kernel in enumerate(kernels(function, *types, arch=options.arch)):
            taken = kernel.report
            micros = kernel.bytes_moved / options.bandwidth / 1e3
            told = [taken.registers, taken.shared_bytes, taken.spill_stores + taken.spill_loads] if taken else ["?"] * 3
            table.append(
                [
                    "" if k else name,
                    kernel.name,
                    f"{kernel.blocks:,}",
                    str(kernel.threads),
                    *map(str, told),
                    f"{kernel.bytes_moved:,}",
                    f"{micros:,.1f} us",
                ]
            )
    if options.markdown:
        print("\n".join(f"| {' | '.join(row)} |" for row in [table[0], ["---"] * len(head), *table[1:]]))
        return
    widths = [max(len(row[k]) for row in table) for k in range(len(head))]
    for row in table:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)))


if __name__ == "__main__":
    main()
