"""Tune a chain of pendulums on a shaking wall: the gradient through 1,000,000 steps, in the memory of 1,000.

In: the springs between eight pendulums, the first of which hangs on a wall that shakes. Out: how far the last one
swings, and springs with which it swings less; the gradient through the whole run, with `loop_checkpoint` and without.
Run: `python examples/long_loop.py [--device gpu]` (`--size`: how many steps).
"""

import resource
import time

import numpy as np
from scipy.optimize import minimize
from where import chosen, placed

import metaphrase as mp

STEP, SHAKE, RATE, DAMPING, SLOTS = 1e-3, 0.2, 1.3, 0.05, 1000


def motion(springs, steps):
    """The mean square of the last pendulum's angle, by steps of the symplectic Euler method."""
    angles, speeds = np.zeros(len(springs)), np.zeros(len(springs))
    total = 0.0
    for k in range(steps):
        wall = SHAKE * np.sin(RATE * STEP * k)
        pulls = springs * np.sin(np.diff(angles, prepend=wall))
        forces = -np.sin(angles) - DAMPING * speeds - pulls
        forces[:-1] += pulls[1:]
        speeds = speeds + STEP * forces
        angles = angles + STEP * speeds
        total += angles[-1] ** 2
    return total / steps


def peak():
    """The most memory that this process has held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(work, springs, steps):
    """What `work` gives, the seconds it takes, and by how many megabytes it raises the peak of memory."""
    mp.device_get(work(springs, 10))
    before, begin = peak(), time.perf_counter()
    found = mp.device_get(work(springs, steps))
    return found, time.perf_counter() - begin, peak() - before


def main(steps):
    springs = np.linspace(0.5, 1.0, 8)
    value = mp.jit(motion)
    swing, seconds, _ = timed(value, springs, steps)
    print(f"{steps:,} steps of {len(springs)} pendulums: {seconds:.3f} s")

    slotted = mp.jit(mp.value_and_grad(mp.loop_checkpoint(motion, slots=SLOTS)))
    plain = mp.jit(mp.value_and_grad(motion))
    gradients = []
    for name, gradient in ((f"{SLOTS:,} states kept", slotted), ("all states kept", plain)):
        (_, slopes), seconds, more = timed(gradient, springs, steps)
        print(f"  its gradient, {name:17} {seconds:.3f} s, {more:.1f} MB more memory at the peak")
        gradients.append(slopes)
    np.testing.assert_allclose(*gradients, rtol=1e-9)
    above, below = ([value(springs + d, steps) for d in h * np.eye(8)] for h in (1e-4, -1e-4))
    differences = (np.array(mp.device_get(above)) - np.array(mp.device_get(below))) / 2e-4
    off = np.abs(gradients[0] - differences).max() / np.abs(differences).max()
    print(f"  the two gradients agree, and are within {off:.1e} of differences")
    assert off < 1e-5

    def objective(springs):
        swing, slopes = mp.device_get(slotted(springs, steps))
        return np.log(swing), slopes / swing

    begin = time.perf_counter()
    tuned = minimize(objective, springs, jac=True, bounds=[(0.3, 1.5)] * 8, options={"maxiter": 10})
    degrees = np.degrees(np.sqrt([swing, np.exp(tuned.fun)]))
    print(f"tuned with {tuned.nfev} gradients in {time.perf_counter() - begin:.1f} s: the last pendulum swings by")
    print(f"  {degrees[0]:.3f} degrees before and {degrees[1]:.3f} after (root of the mean square)")
    assert tuned.fun < np.log(swing)


if __name__ == "__main__":
    device, size = chosen(__doc__, "steps", 1_000_000, emulator=10_000)
    with placed(device):
        main(size)
