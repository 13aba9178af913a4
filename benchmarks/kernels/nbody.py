"""Gravity of n bodies by the leapfrog rule; returns the kinetic and potential energy at every step."""

import numpy as np


def acceleration(place, mass, softening):
    gap = place[np.newaxis, :, :] - place[:, np.newaxis, :]
    inverse = (np.sum(gap**2, axis=-1) + softening**2) ** -1.5
    return np.sum(gap * (mass * inverse)[:, :, np.newaxis], axis=1)


def energy(place, speed, mass):
    kinetic = 0.5 * np.sum(mass[:, np.newaxis] * speed**2)
    gap = place[np.newaxis, :, :] - place[:, np.newaxis, :]
    squared = np.sum(gap**2, axis=-1)
    inverse = np.where(squared > 0, 1.0 / np.sqrt(np.where(squared > 0, squared, 1.0)), 0.0)
    potential = -0.5 * np.sum(mass[:, np.newaxis] * mass * inverse)
    return kinetic, potential


def nbody(mass, place, speed, steps, dt, softening):
    speed -= np.sum(mass[:, np.newaxis] * speed, axis=0) / np.sum(mass)
    kinetic = np.empty(steps + 1)
    potential = np.empty(steps + 1)
    force = acceleration(place, mass, softening)
    kinetic[0], potential[0] = energy(place, speed, mass)
    for step in range(steps):
        speed += force * dt / 2
        place += speed * dt
        force = acceleration(place, mass, softening)
        speed += force * dt / 2
        kinetic[step + 1], potential[step + 1] = energy(place, speed, mass)
    return kinetic, potential


def arguments(rng, n, steps):
    mass = rng.uniform(0.5, 1.5, n) * 20 / n
    return mass, rng.standard_normal((n, 3)), rng.standard_normal((n, 3)), steps, 0.01, 0.1


SMALL, LARGE = (5, 4), (40, 50)
DIFFERENTIABLE = (0, 1, 2, 4, 5)
