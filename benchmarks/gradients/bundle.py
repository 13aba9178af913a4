"""Bundle adjustment: all Jacobian blocks beside the residuals alone, as hand-written C computes them and as we do.

In: cameras of 11 numbers (rotation, centre, focal length, principal point, two radial distortions), points, and weights
of observations, as in the row "BA" of ADBench (F. Srajer, Z. Kukelova, A. Fitzgibbon, A benchmark of selected
algorithmic differentiation tools, 2018). Out: of each observation 2 x 11, 2 x 3 and 2 x 1 derivatives of its error and
that of the error of its weight, checked against complex steps. Run: `python benchmarks/gradients/bundle.py`
(`--size`: how many observations; all on one thread).
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rows import least

import metaphrase as mp

SIZES = {31_843: (49, 7_776), 204_472: (150, 60_876)}  # observations: cameras and points, as in scenes of BAL


def rotated(rotation, point):
    """The point turned about an axis, by an angle that is the axis's length: O. Rodrigues (1840)."""
    square = rotation @ rotation
    if square == 0.0:
        return point + np.cross(rotation, point)
    angle = np.sqrt(square)
    axis = rotation / angle
    cosine, sine = np.cos(angle), np.sin(angle)
    return cosine * point + sine * np.cross(axis, point) + (1.0 - cosine) * (axis @ point) * axis


def error(camera, point, weight, seen):
    """How far from `seen` a camera sees a point, times the weight."""
    x, y, z = rotated(camera[:3], point - camera[3:6])
    plane = np.array([x / z, y / z])
    square = plane @ plane
    distortion = 1.0 + camera[9] * square + camera[10] * square**2
    return weight * (camera[6] * distortion * plane + camera[7:9] - seen)


def objective(cameras, points, weights, seen, camera_of, point_of):
    """The errors of all observations, and of all weights."""
    return mp.vmap(error)(cameras[camera_of], points[point_of], weights, seen), 1.0 - weights**2


def blocks(transform):
    """The Jacobian blocks of all observations, by jacfwd or jacrev of one."""

    def derivative(cameras, points, weights, seen, camera_of, point_of):
        of_one = mp.vmap(transform(error, argnums=(0, 1, 2)))
        return *of_one(cameras[camera_of], points[point_of], weights, seen), -2.0 * weights

    return derivative


HAND_WRITTEN = r"""
#include <math.h>
#include <stdint.h>

void objective(int64_t n, const double *restrict cameras, const double *restrict points, const double *restrict weights,
               const double *restrict seen, const int64_t *restrict camera_of, const int64_t *restrict point_of,
               double *restrict errors, double *restrict weight_errors)
{
    for (int64_t i = 0; i < n; i++) {
        const double *camera = cameras + 11 * camera_of[i], *point = points + 3 * point_of[i], *r = camera;
        double p[3], q[3];
        for (int k = 0; k < 3; k++)
            p[k] = point[k] - camera[3 + k];
        double square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
        if (square == 0.0) {
            q[0] = p[0] + r[1] * p[2] - r[2] * p[1];
            q[1] = p[1] + r[2] * p[0] - r[0] * p[2];
            q[2] = p[2] + r[0] * p[1] - r[1] * p[0];
        } else {
            double angle = sqrt(square), inverse = 1.0 / angle, cosine = cos(angle), sine = sin(angle);
            double a[3] = {r[0] * inverse, r[1] * inverse, r[2] * inverse};
            double along = (a[0] * p[0] + a[1] * p[1] + a[2] * p[2]) * (1.0 - cosine);
            q[0] = p[0] * cosine + (a[1] * p[2] - a[2] * p[1]) * sine + a[0] * along;
            q[1] = p[1] * cosine + (a[2] * p[0] - a[0] * p[2]) * sine + a[1] * along;
            q[2] = p[2] * cosine + (a[0] * p[1] - a[1] * p[0]) * sine + a[2] * along;
        }
        double x = q[0] / q[2], y = q[1] / q[2], far = x * x + y * y;
        double scale = camera[6] * (1.0 + camera[9] * far + camera[10] * far * far);
        errors[2 * i] = weights[i] * (scale * x + camera[7] - seen[2 * i]);
        errors[2 * i + 1] = weights[i] * (scale * y + camera[8] - seen[2 * i + 1]);
        weight_errors[i] = 1.0 - weights[i] * weights[i];
    }
}
"""


def compiled(folder: str, *flags: str) -> Callable:
    """The hand-written objective, of arrays, as gcc makes it; results go into arrays that are there already."""
    source, library = Path(folder) / "bundle.c", Path(folder) / f"bundle{''.join(flags)}.so"
    source.write_text(HAND_WRITTEN)
    fixed = ["-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
    subprocess.run(["gcc", *fixed, *flags, str(source), "-o", str(library), "-lm"], check=True)
    function = ctypes.CDLL(str(library)).objective
    found: dict[int, tuple] = {}

    def by_hand(*arrays):
        n = len(arrays[2])
        results = found.setdefault(n, (np.empty((n, 2)), np.empty(n)))
        function(ctypes.c_int64(n), *(ctypes.c_void_p(a.ctypes.data) for a in (*arrays, *results)))
        return results

    return by_hand


def problem(size: int) -> tuple[np.ndarray, ...]:
    """Cameras, points, weights, what was seen, and of each observation the numbers of its camera and its point."""
    random = np.random.default_rng(0)
    cameras, points = SIZES.get(size, (max(size // 600, 2), max(size // 4, 4)))
    rotations, centres = random.normal(0.0, 0.3, (cameras, 3)), random.normal(0.0, 0.5, (cameras, 3))
    focal, middle = random.uniform(400.0, 800.0, (cameras, 1)), random.normal(0.0, 5.0, (cameras, 2))
    radial = random.normal(0.0, (0.05, 0.01), (cameras, 2))
    return (
        np.concatenate([rotations, centres, focal, middle, radial], axis=1),
        random.normal(0.0, 1.0, (points, 3)) + (0.0, 0.0, -6.0),
        random.uniform(0.5, 1.5, size),
        random.normal(0.0, 100.0, (size, 2)),
        np.sort(random.integers(0, cameras, size)),
        random.integers(0, points, size),
    )


def by_complex_steps(arrays, few: int) -> list[np.ndarray]:
    """The blocks of the first observations, of imaginary steps of 1e-30: exact to the last digits."""
    cameras, points, weights, seen, camera_of, point_of = arrays
    found = [np.empty((few, 2, n)) for n in (11, 3, 1)]
    for i in range(few):
        given = [cameras[camera_of[i]], points[point_of[i]], weights[i : i + 1]]
        for k, x in enumerate(given):
            for j in range(len(x)):
                stepped = [v.astype(complex) for v in given]
                stepped[k][j] += 1e-30j
                found[k][i, :, j] = error(stepped[0], stepped[1], stepped[2][0], seen[i]).imag / 1e-30
    return [*found[:2], found[2][..., 0]]


def check(works: dict[str, Callable], arrays: tuple, few: int = 20) -> None:
    """Raise unless objectives agree with one another, and the blocks with complex steps."""
    few = min(few, len(arrays[2]))
    theirs = [x.copy() for x in works["C"](*arrays)]
    for name in ("C, fast", "objective"):
        for mine, other in zip(works[name](*arrays), theirs):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9, err_msg=name)
    exact = by_complex_steps(arrays, few)
    for name in ("jacrev", "jacfwd"):
        *found, of_weights = works[name](*arrays)
        for mine, other in zip(found, exact):
            np.testing.assert_allclose(mine[:few], other, rtol=1e-9, atol=1e-9, err_msg=name)
        np.testing.assert_array_equal(of_weights, -2.0 * arrays[2])


def main(sizes: list[int]) -> None:
    mp.config.num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        works = {"C": compiled(folder), "C, fast": compiled(folder, "-ffast-math"), "objective": mp.jit(objective)}
        works |= {name: mp.jit(blocks(getattr(mp, name))) for name in ("jacrev", "jacfwd")}
        print(f"{'observations':>12}" + "".join(f"{name:>11}" for name in works) + "   jacrev / best, jacfwd / best")
        for size in sizes:
            arrays = problem(size)
            check(works, arrays)
            times = least({name: partial(work, *arrays) for name, work in works.items()})
            best = min(times[name] for name in ("C", "C, fast", "objective"))
            ratios = f"{times['jacrev'] / best:15.2f} {times['jacfwd'] / best:15.2f}"
            print(f"{size:12,}" + "".join(f"{taken:8.3f} ms" for taken in times.values()) + ratios)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, help=f"how many observations: {', '.join(f'{n:,}' for n in SIZES)}")
    options = parser.parse_args()
    sys.exit(main([options.size] if options.size else list(SIZES)))
