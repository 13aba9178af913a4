"""The primes below a number, by the sieve of Eratosthenes: stores at a distance of the run."""

import numpy as np


def sieve(n):
    prime = np.ones(n + 1, dtype=np.bool_)
    prime[0] = prime[1] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
        i += 1
    return prime.sum()


def arguments(rng, n):
    return (n,)


SMALL, LARGE = (60,), (1_000_000,)
DIFFERENTIABLE = ()
