"""Throw 100,000 balls onto a wavy ground: an adaptive Runge-Kutta method with an event, each ball with its own steps.

In: heights and speeds to throw from. Out: where and when each ball meets the ground, checked against SciPy's solver,
and how that depends on the speed, checked against differences; on a GPU all balls are one kernel. Run: `python
examples/trajectories.py [--device gpu]` (`--size`: how many balls).
"""

import re
import time

import numpy as np
from scipy.integrate import solve_ivp
from where import chosen, placed

import metaphrase as mp

GRAVITY, DRAG, TOLERANCE, LONGEST = 9.81, 0.1, 1e-6, 30.0


def slopes(vx, vy):
    """The change of a thrown ball's position and velocity: gravity, and drag by the square of its speed."""
    speed = np.sqrt(vx * vx + vy * vy)
    return vx, vy, -DRAG * speed * vx, -GRAVITY - DRAG * speed * vy


def advanced(state, h):
    """A step of Bogacki and Shampine's method of order 3 (1989), and how far the one of order 2 is off."""
    x, y, vx, vy = state
    a = slopes(vx, vy)
    b = slopes(vx + 0.5 * h * a[2], vy + 0.5 * h * a[3])
    c = slopes(vx + 0.75 * h * b[2], vy + 0.75 * h * b[3])
    moved = [p + h * (2 * k + 3 * m + 4 * n) / 9 for p, k, m, n in zip((x, y, vx, vy), a, b, c)]
    d = slopes(moved[2], moved[3])
    off = [h * (-5 * k / 72 + m / 12 + n / 9 - q / 8) for k, m, n, q in zip(a, b, c, d)]
    return moved, np.sqrt(off[0] ** 2 + off[1] ** 2 + off[2] ** 2 + off[3] ** 2)


def ground(x):
    """The height of the ground."""
    return 0.3 * np.sin(2.0 * x)


def slope(x):
    """How steep the ground is."""
    return 0.6 * np.cos(2.0 * x)


def landing(height, speed):
    """When and where a ball meets the ground that is thrown from a height at 45 degrees, and the steps that it took."""
    state = [0.0, ground(0.0) + height, speed * np.sqrt(0.5), speed * np.sqrt(0.5)]
    t, h, steps = 0.0, 0.01, 0
    while t < LONGEST:
        moved, off = advanced(state, h)
        steps += 1
        if off > TOLERANCE:  # refused: again with a shorter step
            h *= max(0.2, 0.9 * (TOLERANCE / off) ** (1 / 3))
            continue
        if moved[1] <= ground(moved[0]):  # in this step it comes down: halve it until the place is known
            low, high = 0.0, h
            for _ in range(50):
                middle = 0.5 * (low + high)
                there, _ = advanced(state, middle)
                if there[1] <= ground(there[0]):
                    high = middle
                else:
                    low = middle
            # A step of Newton's from there. It moves next to nothing, but derivatives need it: how high the ball is
            # depends on how it was thrown, and of that the halving knows nothing.
            there, _ = advanced(state, high)
            high -= (there[1] - ground(there[0])) / (there[3] - slope(there[0]) * there[2])
            there, _ = advanced(state, high)
            return t + high, there[0], steps
        t += h
        state = moved
        h *= min(5.0, 0.9 * (TOLERANCE / max(off, 1e-14)) ** (1 / 3))
    return t, state[0], steps


def landing_time(height, speed):
    return landing(height, speed)[0]


def landing_by_scipy(height, speed):
    def meets(t, state):
        return state[1] - ground(state[0])

    meets.terminal = True
    start = [0.0, ground(0.0) + height, speed * np.sqrt(0.5), speed * np.sqrt(0.5)]
    found = solve_ivp(
        lambda t, s: slopes(s[2], s[3]), (0.0, LONGEST), start, rtol=1e-10, atol=1e-12, events=meets, method="DOP853"
    )
    return found.t_events[0][0], found.y_events[0][0][0]


def main(size):
    random = np.random.default_rng(0)
    heights, speeds = random.uniform(0.5, 20.0, size), random.uniform(1.0, 40.0, size)
    landings = mp.jit(mp.vmap(landing))
    kernels = re.findall("__global__ void", mp.source(mp.vmap(landing), "f64[n]", "f64[n]", stage="cuda"))
    print(f"{size:,} trajectories, each with its own steps; for a GPU: {len(kernels)} kernel{'s' * (len(kernels) > 1)}")
    for what in ("first call", "then"):
        begin = time.perf_counter()
        times, places, steps = mp.device_get(landings(heights, speeds))
        print(f"  {what} {time.perf_counter() - begin:.3f} s")
    print(f"  steps: {steps.min()} to {steps.max()}, half of them below {np.median(steps):.0f}")

    for k in range(min(5, size)):
        by_scipy = landing_by_scipy(heights[k], speeds[k])
        np.testing.assert_allclose((times[k], places[k]), by_scipy, rtol=1e-4)
        by_python = landing(heights[k], speeds[k])
        np.testing.assert_allclose((times[k], places[k]), by_python[:2], rtol=1e-9)
        assert steps[k] == by_python[2]
    print("  the first five agree with SciPy's solver and with the same function run as Python")

    # How the time of a landing depends on the speed, through all steps, refused ones too. What Newton's step above
    # leaves out is as small as the error of a step.
    few, h = slice(0, 100), 1e-6
    changes = mp.device_get(mp.jit(mp.vmap(mp.grad(landing_time, 1)))(heights[few], speeds[few]))
    below, above = (mp.device_get(landings(heights[few], speeds[few] + d)[0]) for d in (-h, h))
    differences = (above - below) / (2 * h)
    print(f"  derivatives by the speed are within {np.abs(changes - differences).max():.1e} of differences")
    np.testing.assert_allclose(changes, differences, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    device, size = chosen(__doc__, "balls", 100_000, emulator=200)
    with placed(device):
        main(size)
