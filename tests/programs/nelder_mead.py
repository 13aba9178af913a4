"""The downhill simplex method of Nelder and Mead, with restarts (Press et al., 10.5; Gao and Han, 2012).

In: a function and a starting point. Out: an `Optimum`. Example: Powell's singular function of four
variables, and the fit of a damped oscillation.
"""

from collections import namedtuple

import numpy as np

Optimum = namedtuple("Optimum", ["x", "value", "evaluations", "restarts", "converged"])


class NelderMead:
    def __init__(self, function, tolerance=1e-10, max_evaluations=5000):
        self.function = function
        self.tolerance = tolerance
        self.max_evaluations = max_evaluations
        self.evaluations = 0

    def evaluate(self, x):
        self.evaluations += 1
        return self.function(x)

    def start(self, x0, scale):
        """A simplex around a point."""
        n = len(x0)
        simplex = np.empty((n + 1, n))
        simplex[0] = x0
        for i in range(n):
            simplex[i + 1] = x0
            simplex[i + 1, i] += scale * max(abs(x0[i]), 1.0)
        values = np.array([self.evaluate(vertex) for vertex in simplex])
        return simplex, values

    def shrink(self, simplex, values, sigma):
        best = simplex[0].copy()
        for i in range(1, len(simplex)):
            simplex[i] = best + sigma * (simplex[i] - best)
            values[i] = self.evaluate(simplex[i])

    def run(self, x0, scale=0.1):
        n = len(x0)
        # the adaptive parameters of Gao and Han
        alpha, beta, gamma, delta = 1.0, 1.0 + 2.0 / n, 0.75 - 0.5 / n, 1.0 - 1.0 / n
        simplex, values = self.start(x0, scale)
        while self.evaluations < self.max_evaluations:
            order = np.argsort(values)
            simplex, values = simplex[order], values[order]
            spread = 2.0 * abs(values[-1] - values[0]) / (abs(values[-1]) + abs(values[0]) + 1e-30)
            if spread < self.tolerance or np.abs(simplex[1:] - simplex[0]).max() < 1e-9:
                return simplex[0], values[0], True
            centroid = simplex[:-1].mean(axis=0)
            worst = simplex[-1]
            reflected = centroid + alpha * (centroid - worst)
            f_reflected = self.evaluate(reflected)
            if f_reflected < values[0]:
                expanded = centroid + beta * (reflected - centroid)
                f_expanded = self.evaluate(expanded)
                if f_expanded < f_reflected:
                    simplex[-1], values[-1] = expanded, f_expanded
                else:
                    simplex[-1], values[-1] = reflected, f_reflected
            elif f_reflected < values[-2]:
                simplex[-1], values[-1] = reflected, f_reflected
            else:
                if f_reflected < values[-1]:
                    contracted = centroid + gamma * (reflected - centroid)
                else:
                    contracted = centroid - gamma * (centroid - worst)
                f_contracted = self.evaluate(contracted)
                if f_contracted < min(f_reflected, values[-1]):
                    simplex[-1], values[-1] = contracted, f_contracted
                else:
                    self.shrink(simplex, values, delta)
        return simplex[0], values[0], False


def minimize(function, x0, restarts=3, **options):
    """Restarted until a restart no longer helps."""
    method = NelderMead(function, **options)
    x, value, converged = method.run(np.asarray(x0, dtype=float))
    for restart in range(restarts):  # noqa: B007
        x_new, value_new, converged = method.run(x, scale=0.05)
        improved = value - value_new
        if value_new < value:
            x, value = x_new, value_new
        if improved <= 1e-12 * abs(value) + 1e-20:
            break
    else:
        restart = restarts
    return Optimum(x, value, method.evaluations, restart, converged)


def powell(x):
    return (x[0] + 10 * x[1]) ** 2 + 5 * (x[2] - x[3]) ** 2 + (x[1] - 2 * x[2]) ** 4 + 10 * (x[0] - x[3]) ** 4


def fit_oscillation(t, y, guess):
    """Amplitude, decay and frequency of a damped oscillation, by least squares."""

    def misfit(p):
        a, decay, frequency = p
        if decay < 0:
            return 1e6 * (1.0 - decay)
        residual = a * np.exp(-decay * t) * np.cos(frequency * t) - y
        return residual @ residual

    return minimize(misfit, guess, tolerance=1e-12)


def minimize_powell(x0):
    return minimize(powell, x0)


if __name__ == "__main__":
    print(minimize_powell(np.array([3.0, -1.0, 0.0, 1.0])))
    t = np.linspace(0, 10, 60)
    print(fit_oscillation(t, 2.0 * np.exp(-0.3 * t) * np.cos(1.7 * t), np.array([1.0, 0.1, 1.5])))
