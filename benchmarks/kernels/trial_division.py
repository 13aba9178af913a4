"""How many primes there are below a number, each found by division: an inner loop that is left early."""


def trial_division(n):
    count = 0
    for p in range(2, n):
        q, prime = 2, True
        while q * q <= p:
            if p % q == 0:
                prime = False
                break
            q += 1
        if prime:
            count += 1
    return count


def arguments(rng, n):
    return (n,)


SMALL, LARGE = (60,), (100_000,)
DIFFERENTIABLE = ()
