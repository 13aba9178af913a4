"""The log likelihood of a Gaussian mixture with a Wishart prior, and its gradient: ADBench's GMM.

    python benchmarks/gradients/mixture.py [--large]

Parameters: `alphas` (K), `means` (K, d), and of each component the factor of its inverse covariance, `factors`
(K, d + d (d - 1) / 2): the logarithms of the diagonal, then the strictly lower triangle by columns.
"""

from __future__ import annotations

import argparse
import math
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
from rows import Row, compiled, pointer, report  # noqa: E402
from scipy.special import logsumexp, multigammaln  # noqa: E402

GAMMA, M = 1.0, 0


def constants(n: int, d: int, K: int) -> float:
    """What does not depend on the parameters."""
    dof = d + M + 1
    of_wishart = dof * d * (math.log(GAMMA) - 0.5 * math.log(2)) - float(multigammaln(0.5 * dof, d))
    return -0.5 * n * d * math.log(2 * math.pi) - K * of_wishart


def arrays(alphas, means, factors, x, constant):
    K, d = means.shape
    columns, rows = np.triu_indices(d, 1)
    L = np.zeros((K, d, d))
    L[:, np.arange(d), np.arange(d)] = np.exp(factors[:, :d])
    L[:, rows, columns] = factors[:, d:]
    logs = factors[:, :d].sum(1)
    centered = x[:, None, :] - means
    scaled = np.einsum("kij,nkj->nki", L, centered)
    terms = alphas + logs - 0.5 * (scaled**2).sum(2)
    frobenius = np.exp(2 * factors[:, :d]).sum() + (factors[:, d:] ** 2).sum()
    prior = 0.5 * GAMMA**2 * frobenius - M * logs.sum()
    return constant + logsumexp(terms, axis=1).sum() - len(x) * logsumexp(alphas) + prior


def loops(alphas, means, factors, x, constant):
    n, d = x.shape
    K = len(alphas)
    diagonal = np.exp(factors[:, :d])
    logs = np.zeros(K)
    prior = 0.0
    for k in range(K):
        frobenius = 0.0
        for i in range(d):
            logs[k] += factors[k, i]
            frobenius += diagonal[k, i] ** 2
        for i in range(d, d + d * (d - 1) // 2):
            frobenius += factors[k, i] ** 2
        prior += 0.5 * GAMMA**2 * frobenius - M * logs[k]
    total = 0.0
    terms = np.zeros(K)
    centered = np.zeros(d)
    scaled = np.zeros(d)
    for p in range(n):
        for k in range(K):
            for i in range(d):
                centered[i] = x[p, i] - means[k, i]
                scaled[i] = diagonal[k, i] * centered[i]
            place = d
            for j in range(d):
                for i in range(j + 1, d):
                    scaled[i] += factors[k, place] * centered[j]
                    place += 1
            square = 0.0
            for i in range(d):
                square += scaled[i] ** 2
            terms[k] = alphas[k] + logs[k] - 0.5 * square
        largest = terms[0]
        for k in range(K):
            largest = max(largest, terms[k])
        weight = 0.0
        for k in range(K):
            weight += np.exp(terms[k] - largest)
        total += np.log(weight) + largest
    return constant + total - n * logsumexp(alphas) + prior


TEXT = r"""
#include <math.h>
#include <stdlib.h>

static double logsumexp(long n, const double *v) {
    double largest = v[0], sum = 0;
    for (long k = 1; k < n; k++) if (v[k] > largest) largest = v[k];
    for (long k = 0; k < n; k++) sum += exp(v[k] - largest);
    return log(sum) + largest;
}

double mixture(long n, long d, long K, double gamma, long m, const double *restrict alphas,
               const double *restrict means, const double *restrict factors, const double *restrict x,
               double constant) {
    long of_each = d + d * (d - 1) / 2;
    double *diagonal = malloc(sizeof(double) * (K * d + 2 * K + 2 * d));
    double *logs = diagonal + K * d, *terms = logs + K, *centered = terms + K, *scaled = centered + d;
    double prior = 0, total = 0;
    for (long k = 0; k < K; k++) {
        const double *f = factors + k * of_each;
        double frobenius = 0;
        logs[k] = 0;
        for (long i = 0; i < d; i++) {
            diagonal[k * d + i] = exp(f[i]);
            logs[k] += f[i];
            frobenius += diagonal[k * d + i] * diagonal[k * d + i];
        }
        for (long i = d; i < of_each; i++) frobenius += f[i] * f[i];
        prior += 0.5 * gamma * gamma * frobenius - m * logs[k];
    }
    for (long p = 0; p < n; p++) {
        for (long k = 0; k < K; k++) {
            const double *lower = factors + k * of_each + d;
            for (long i = 0; i < d; i++) {
                centered[i] = x[p * d + i] - means[k * d + i];
                scaled[i] = diagonal[k * d + i] * centered[i];
            }
            for (long j = 0; j < d; j++)
                for (long i = j + 1; i < d; i++) scaled[i] += *lower++ * centered[j];
            double square = 0;
            for (long i = 0; i < d; i++) square += scaled[i] * scaled[i];
            terms[k] = alphas[k] + logs[k] - 0.5 * square;
        }
        total += logsumexp(K, terms);
    }
    total += constant + prior - n * logsumexp(K, alphas);
    free(diagonal);
    return total;
}
"""


def by_hand(function):
    from ctypes import c_double, c_long

    def objective(alphas, means, factors, x, constant):
        n, d = x.shape
        sizes = c_long(n), c_long(d), c_long(len(alphas)), c_double(GAMMA), c_long(M)
        return function(*sizes, *map(pointer, (alphas, means, factors, x)), c_double(constant))

    return objective


def row(n: int, d: int, K: int) -> Row:
    rng = np.random.default_rng(0)
    alphas, means = rng.standard_normal(K), rng.random((K, d))
    factors, x = rng.standard_normal((K, d + d * (d - 1) // 2)), rng.standard_normal((n, d))
    objectives = {label: by_hand(f) for label, f in compiled(TEXT, "mixture").items()}
    arguments = alphas, means, factors, x, constants(n, d, K)
    return Row(
        "mixture", f"{n} points, d {d}, K {K}", arguments, objectives, {"arrays": arrays, "loops": loops}, (0, 1, 2)
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--form", action="append", default=[])
    options = parser.parse_args()
    sizes = [(1_000, 10, 25), (10_000, 10, 25)] + ([(10_000, 32, 50)] if options.large else [])
    for size in sizes:
        report(row(*size), options.form)


if __name__ == "__main__":
    main()
