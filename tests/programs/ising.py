"""The two-dimensional Ising model: Metropolis sweeps over a checkerboard, single flips, Wolff clusters.

In: a PRNG key, a temperature, a lattice size. Out: energies and magnetizations over time, their means,
Binder's cumulant. Example: a 16 by 16 lattice near the critical temperature.
"""

from typing import NamedTuple

import numpy as np

from metaphrase import random


class Observables(NamedTuple):
    energy: float
    magnetization: float
    heat_capacity: float
    susceptibility: float
    binder: float


class Ising:
    """A square lattice with periodic boundaries, coupling 1, no field."""

    def __init__(self, spins, temperature):
        self.spins = spins
        self.beta = 1.0 / temperature
        self.accepted = 0

    @property
    def sites(self):
        return self.spins.size

    def neighbours(self):
        s = self.spins
        return np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1)

    def energy(self):
        s = self.spins
        return -np.sum(s * (np.roll(s, 1, 0) + np.roll(s, 1, 1)))

    def magnetization(self):
        return np.sum(self.spins)

    def sweep(self, key):
        """One Metropolis sweep: first the black fields, then the white ones."""
        rows, columns = np.indices(self.spins.shape)
        for parity, subkey in enumerate(random.split(key, 2)):
            cost = 2 * self.spins * self.neighbours()
            flip = random.uniform(subkey, self.spins.shape) < np.exp(-self.beta * cost)
            flip &= (rows + columns) % 2 == parity
            self.spins[flip] *= -1
            self.accepted += np.count_nonzero(flip)

    def metropolis(self, key, attempts):
        """Single flips at random sites."""
        n, m = self.spins.shape
        site_key, accept_key = random.split(key)
        sites = random.randint(site_key, (attempts, 2), 0, n)
        draws = random.uniform(accept_key, (attempts,))
        for (i, j), u in zip(sites, draws):
            s = self.spins[i, j]
            around = (
                self.spins[(i + 1) % n, j] + self.spins[i - 1, j] + self.spins[i, (j + 1) % m] + self.spins[i, j - 1]
            )
            cost = 2 * s * around
            if cost <= 0 or u < np.exp(-self.beta * cost):
                self.spins[i, j] = -s
                self.accepted += 1

    def wolff(self, key):
        """Grows one cluster from a random site and flips it; the cluster's size."""
        n, m = self.spins.shape
        key, site_key = random.split(key)
        i, j = random.randint(site_key, (2,), 0, n)
        stack = np.zeros((n * m, 2), dtype=np.int64)
        stack[0] = i, j
        top = 1
        sign = self.spins[i, j]
        self.spins[i, j] = -sign
        size = 1
        add = 1.0 - np.exp(-2.0 * self.beta)
        while top > 0:
            top -= 1
            i, j = stack[top]
            key, bond_key = random.split(key)
            u = random.uniform(bond_key, (4,))
            for k, (di, dj) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
                a, b = (i + di) % n, (j + dj) % m
                if self.spins[a, b] == sign and u[k] < add:
                    self.spins[a, b] = -sign
                    stack[top] = a, b
                    top += 1
                    size += 1
        return size


def statistics(energies, magnetizations, sites, temperature):
    e = energies / sites
    m = np.abs(magnetizations) / sites
    m2, m4 = np.mean(m**2), np.mean(m**4)
    return Observables(
        energy=e.mean(),
        magnetization=m.mean(),
        heat_capacity=sites * e.var() / temperature**2,
        susceptibility=sites * (m2 - m.mean() ** 2) / temperature,
        binder=1.0 - m4 / (3.0 * m2**2),
    )


def simulate(key, temperature, size=16, thermalize=20, measure=40):
    start_key, key = random.split(key)
    lattice = Ising(np.where(random.uniform(start_key, (size, size)) < 0.5, -1, 1), temperature)
    energies = np.zeros(measure)
    magnetizations = np.zeros(measure)
    clusters = 0
    for step in range(thermalize + measure):
        key, sweep_key, flip_key, cluster_key = random.split(key, 4)
        lattice.sweep(sweep_key)
        lattice.metropolis(flip_key, size)
        clusters += lattice.wolff(cluster_key)
        if step >= thermalize:
            energies[step - thermalize] = lattice.energy()
            magnetizations[step - thermalize] = lattice.magnetization()
    observables = statistics(energies, magnetizations, lattice.sites, temperature)
    return observables, energies, lattice.spins, clusters / (thermalize + measure), lattice.accepted


if __name__ == "__main__":
    for temperature in (1.5, 2.269, 3.5):
        observables, *_ = simulate(random.key(7), temperature)
        print(temperature, observables)
