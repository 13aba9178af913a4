"""Draw the Mandelbrot set: the escape time of one point by `while`, batched over all pixels by `vmap`.

In: nothing. Out: examples/escape.png, and the time beside NumPy's. Run: `python examples/escape.py [--device
gpu]` (`--size`: how many pixels across).
"""

import os
import struct
import time
import zlib
from pathlib import Path

import numpy as np
from where import chosen, placed

import metaphrase as mp

LIMIT = 400
CENTRE, SPAN, ASPECT = (-0.7436, 0.1318), 0.0067, 0.75


def escape(re, im):
    """How many steps z -> z^2 + c takes to leave the disc of radius 16; the fraction makes colours smooth."""
    x = y = 0.0
    count = 0
    while x * x + y * y < 256.0 and count < LIMIT:
        x, y = x * x - y * y + re, 2 * x * y + im
        count += 1
    if count == LIMIT:
        return float(LIMIT)
    return count + 1 - np.log2(0.5 * np.log2(x * x + y * y))


def escape_numpy(re, im):
    """The same over whole arrays, in NumPy by hand: every step is done for the points that have not left."""
    c = (re + 1j * im).ravel()
    smooth, z, alive = np.full(c.size, float(LIMIT)), np.zeros_like(c), np.arange(c.size)
    for count in range(1, LIMIT + 1):
        z = z * z + c[alive]
        square = z.real**2 + z.imag**2
        left = (square >= 256.0) & (count < LIMIT)
        smooth[alive[left]] = count + 1 - np.log2(0.5 * np.log2(square[left]))
        z, alive = z[~left], alive[~left]
    return smooth.reshape(re.shape)


def colours(smooth):
    """A palette that turns slowly where detail is fine; the set itself is dark."""
    phase = np.log(np.maximum(smooth, 1.0))[..., None] * 2.6 + np.array([4.1, 3.4, 2.6])
    shade = 0.5 - 0.5 * np.cos(phase)
    shade[smooth >= LIMIT] = 0.03
    return (255 * shade**0.9).astype(np.uint8)


def write_png(path, pixels):
    """The least PNG: a header, one compressed block of unfiltered rows, an end."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b"")
    )


def main(device, width):
    height = max(round(width * ASPECT), 1)
    half = np.array([SPAN, SPAN * ASPECT]) / 2
    re = CENTRE[0] + half[0] * np.linspace(-1, 1, width)
    im = CENTRE[1] + half[1] * np.linspace(1, -1, height)
    picture = mp.jit(mp.vmap(mp.vmap(escape, (0, None)), (None, 0)))

    print(f"escape times of {width * height:,} points, at most {LIMIT} steps each")
    start = time.perf_counter()
    smooth = mp.device_get(picture(re, im))
    first = time.perf_counter() - start
    start = time.perf_counter()
    smooth = mp.device_get(picture(re, im))
    native = time.perf_counter() - start
    print(f"  metaphrase {native:.2f} s (the first call {first:.2f} s)")
    start = time.perf_counter()
    by_hand = escape_numpy(*np.meshgrid(re, im))
    print(f"  NumPy by hand {time.perf_counter() - start:.2f} s")

    if device != "emulator":
        path = Path(__file__).with_name("escape.png")
        write_png(path, colours(smooth))
        print(f"  wrote {os.path.relpath(path)}")
    # Rounding differs between the two, and near the set a last bit grows to another step: nearly all points
    # agree.
    assert (np.abs(smooth - by_hand) < 1e-3).mean() > 0.98


if __name__ == "__main__":
    device, size = chosen(__doc__, "pixels across", 1200, emulator=48)
    with placed(device):
        main(device, size)
