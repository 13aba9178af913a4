"""Fit the lynx and the hares of Hudson Bay: gradients through an adaptive Runge-Kutta solver written in NumPy.

In: the pelts of 21 years. Out: Lotka and Volterra's rates, found by the gradient through every step of the solver, with
their intervals, checked against differences of SciPy's solver and the published estimates; with `--plot FILE` a
picture of the fit. Run: `python examples/lynx.py [--plot fit.png] [--device gpu]` (`--size`: how many draws make the
intervals).
"""

import importlib.util
import time

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from where import chosen, placed

import metaphrase as mp

# Thousands of pelts that the Hudson's Bay Company took in, 1900 to 1920: E. P. Odum, Fundamentals of Ecology (1953).
HARES = "30.0 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22.0 25.4 27.1 40.3 57.0 76.6 52.3 19.5 11.2 7.6 14.6 16.2 24.7"
LYNXES = "4.0 6.1 9.8 35.2 59.4 41.7 19.0 13.0 8.3 9.1 7.4 8.0 12.3 19.5 45.7 51.1 29.7 15.8 9.7 10.1 8.6"
PELTS = np.array([HARES.split(), LYNXES.split()], dtype=float).T
YEARS = np.arange(1900, 1921)

NAMES = ("alpha", "beta", "gamma", "delta", "hares in 1900", "lynxes in 1900", "sigma of hares", "sigma of lynxes")
# B. Carpenter, Predator-Prey Population Dynamics: the Lotka-Volterra model in Stan (2018): a Bayesian's means and
# intervals of 80 %.
PUBLISHED = {
    "alpha": (0.55, 0.47, 0.63),
    "beta": (0.028, 0.023, 0.033),
    "gamma": (0.80, 0.69, 0.91),
    "delta": (0.024, 0.020, 0.029),
    "sigma of hares": (0.25, 0.20, 0.31),
    "sigma of lynxes": (0.25, 0.20, 0.31),
}
GUESS = np.array([0.5, 0.02, 0.7, 0.02, 30.0, 5.0, 0.5, 0.5])

TOLERANCE = 1e-8
# J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae (1980). The last row is the step itself.
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def slopes(z, rates):
    """Hares are born and eaten, lynxes die and eat: A. J. Lotka (1925), V. Volterra (1926)."""
    alpha, beta, gamma, delta = rates
    hares, lynxes = z
    return (alpha - beta * lynxes) * hares, (delta * hares - gamma) * lynxes


def weighted(weights, ks):
    """The sum of the slopes at all stages by weights, for hares and for lynxes."""
    return [sum(w * k[i] for w, k in zip(weights, ks) if w) for i in range(2)]


def advanced(z, h, first, rates):
    """A step of order 5: where it leads, the slope there, and how far the one of order 4 is off, in tolerances."""
    ks = [first]
    for stage in STAGES:
        to = [y + h * k for y, k in zip(z, weighted(stage, ks))]
        ks.append(slopes(to, rates))
    scales = [TOLERANCE * (1.0 + max(abs(a), abs(b))) for a, b in zip(z, to)]
    off = [h * e / scale for e, scale in zip(weighted(ERROR, ks), scales)]
    return to, ks[-1], np.sqrt((off[0] ** 2 + off[1] ** 2) / 2)


def populations(rates, start, times):
    """Hares and lynxes at each of `times`, from what they are at the first."""
    z, h = [start[0], start[1]], 0.1
    first = slopes(z, rates)
    found = np.empty((len(times), 2))
    found[0, 0], found[0, 1] = z
    for i in range(1, len(times)):
        left = times[i] - times[i - 1]
        while left > 0:
            step = min(h, left)
            to, there, off = advanced(z, step, first, rates)
            better = step * min(5.0, max(0.2, 0.9 * max(off, 1e-10) ** -0.2))
            h = better if off > 1.0 or step == h else max(h, better)
            if off > 1.0:  # refused: again with a shorter step
                continue
            left -= step
            z, first = to, there
        found[i, 0], found[i, 1] = z
    return found


def misfit(logs, years, pelts):
    """Minus the logarithm of the likelihood, up to a constant: pelts are log-normal around the populations. Of the
    parameters, which are positive, it takes the logarithms."""
    parameters = np.exp(logs)
    z = populations(parameters[:4], parameters[4:6], years)
    off = (np.log(pelts) - np.log(z)) / parameters[6:]
    return 0.5 * np.sum(off**2) + len(pelts) * np.sum(logs[6:])


def populations_by_scipy(rates, start, times):
    span = (times[0], times[-1])
    solution = solve_ivp(lambda t, z: slopes(z, rates), span, start, "DOP853", times, rtol=1e-11, atol=1e-11)
    return solution.y.T


def misfit_by_scipy(logs, years, pelts):
    parameters = np.exp(logs)
    off = (np.log(pelts) - np.log(populations_by_scipy(parameters[:4], parameters[4:6], years))) / parameters[6:]
    return 0.5 * np.sum(off**2) + len(pelts) * np.sum(logs[6:])


def seconds(work, *args, calls=20):
    """The median time of a call, of which the first is left out."""
    taken = []
    for _ in range(calls + 1):
        begin = time.perf_counter()
        mp.device_get(work(*args))
        taken.append(time.perf_counter() - begin)
    return np.median(taken[1:])


def draw_picture(path, times, curve, band):
    """The populations over the years, with the band in which the draws lie, and one against the other."""
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
    figure, (over, plane) = pyplot.subplots(1, 2, figsize=(12.5, 4.8), width_ratios=(2.1, 1), layout="constrained")
    for k, (who, colour) in enumerate((("hares", "#2a6f97"), ("lynxes", "#c1440e"))):
        dots = {"color": colour, "markersize": 6, "markeredgecolor": "white", "linestyle": ""}
        over.plot(YEARS, PELTS[:, k], "o", label=f"{who}, pelts", zorder=3, **dots)
        over.plot(1900 + times, curve[:, k], color=colour, linewidth=2, label=f"{who}, fit")
        shade = {"color": colour, "alpha": 0.18, "linewidth": 0}
        over.fill_between(1900 + times, band[0, :, k], band[1, :, k], label="80 % of the draws", **shade)
    over.set(xlim=(1899.5, 1920.5), ylim=(0, 1.2 * max(PELTS.max(), band[1].max())), xticks=range(1900, 1921, 5))
    over.set(xlabel="year", ylabel="pelts a year (thousands)", title="Hares and lynxes of Hudson Bay")
    over.legend(frameon=False, ncols=2, loc="upper center", fontsize=9.5)

    plane.plot(*PELTS.T, "o:", color="#9a9a9a", linewidth=0.8, markersize=5, markeredgecolor="white", label="pelts")
    plane.plot(*curve.T, color="#4a7c59", linewidth=2, label="fit")
    for year, place in {1900: (6, -10), 1903: (-14, 7), 1904: (7, 0), 1913: (-10, -13), 1915: (-12, 7)}.items():
        near = {"textcoords": "offset points", "fontsize": 9, "color": "#555555"}
        plane.annotate(f"{year}", PELTS[year - YEARS[0]], place, **near)
    plane.set(xlabel="hares (thousands)", ylabel="lynxes (thousands)", title="One against the other")
    plane.set(xlim=(0, 85), ylim=(0, 68))
    plane.legend(frameon=False, loc="upper right", fontsize=9.5)
    figure.savefig(path, dpi=130)


def main(size, plot):
    years, guess = YEARS - 1900.0, np.log(GUESS)
    value_and_gradient, value = mp.jit(mp.value_and_grad(misfit)), mp.jit(misfit)
    begin = time.perf_counter()
    _, gradient = mp.device_get(value_and_gradient(guess, years, PELTS))
    print(f"the gradient of a fit through its solver's steps: compiled in {time.perf_counter() - begin:.2f} s")
    differences = np.empty(len(guess))
    for k, h in enumerate(np.eye(len(guess)) * 1e-4):
        above, below = (misfit_by_scipy(guess + d, years, PELTS) for d in (h, -h))
        differences[k] = (above - below) / 2e-4
    off = np.abs(gradient / differences - 1).max()
    print(f"  it is within {off:.1e} of differences of SciPy's solver")
    assert off < 1e-5
    ours, alone, plain, scipy = (
        1e3 * seconds(f, guess, years, PELTS) for f in (value_and_gradient, value, misfit, misfit_by_scipy)
    )
    print(f"  value and gradient {ours:.3f} ms, the value alone {alone:.3f} ms, the same run as Python {plain:.1f} ms")
    print(f"  SciPy's solver {scipy:.1f} ms, and {len(guess)} times as much for a gradient by differences")

    begin = time.perf_counter()
    fit = minimize(lambda logs: mp.device_get(value_and_gradient(logs, years, PELTS)), guess, jac=True, method="BFGS")
    print(f"fitted in {time.perf_counter() - begin:.3f} s: {fit.nfev} gradients, {fit.nit} steps of BFGS")
    assert fit.success and np.abs(fit.jac).max() < 1e-4

    # Laplace's approximation: near the best fit the likelihood is a normal distribution's, by the second derivatives.
    covariance = np.linalg.inv(mp.device_get(mp.jit(mp.hessian(misfit))(fit.x, years, PELTS)))
    np.testing.assert_array_less(0, np.linalg.eigvalsh(covariance))
    draws = np.random.default_rng(0).multivariate_normal(fit.x, covariance, size)
    low, high = np.exp(np.quantile(draws, (0.1, 0.9), axis=0))
    print(f"  {'':15}    fit    80 % of draws    published")
    for name, best, *ends in zip(NAMES, np.exp(fit.x), low, high):
        line = f"  {name:15} {best:7.4f}  {ends[0]:7.4f}-{ends[1]:<7.4f}"
        if name in PUBLISHED:
            mean, *theirs = PUBLISHED[name]
            line += f"  {mean:6.3f}  {theirs[0]:.3f}-{theirs[1]:.3f}"
            assert size < 100 or ends[0] < mean < ends[1]
        print(line)

    times = np.linspace(0.0, 20.0, 161)
    lanes = mp.jit(mp.vmap(populations, (0, 0, None)))
    given = np.exp(draws[:, :4]), np.exp(draws[:, 4:6]), times
    mp.device_get(lanes(*given))
    begin = time.perf_counter()
    curves = mp.device_get(lanes(*given))
    print(f"{size:,} draws solved, each with its own steps: {1e3 * (time.perf_counter() - begin):.1f} ms")
    for k in range(min(size, 3)):
        np.testing.assert_allclose(curves[k], populations_by_scipy(given[0][k], given[1][k], times), rtol=1e-5)
    print("  the first three agree with SciPy's solver")
    if plot and not importlib.util.find_spec("matplotlib"):
        print("  no picture: it takes matplotlib")
    elif plot:
        best = np.exp(fit.x)
        curve = populations(best[:4], best[4:6], times)
        draw_picture(plot, times, curve, np.quantile(curves, (0.1, 0.9), axis=0))
        print(f"  wrote {plot}")


if __name__ == "__main__":
    device, size, plot = chosen(__doc__, "draws", 10_000, emulator=8, plot="a file for a picture of the fit")
    with placed(device):
        main(size, plot)
