"""Comb sort: neighbours at a distance that shrinks change places, which no processor can guess."""


def comb_sort(x):
    x, n = x.copy(), len(x)
    gap, swapped = n, True
    while gap > 1 or swapped:
        gap, swapped = max(1, int(gap / 1.3)), False
        for i in range(n - gap):
            if x[i] > x[i + gap]:
                x[i], x[i + gap] = x[i + gap], x[i]
                swapped = True
    return x


def arguments(rng, n):
    return (rng.normal(size=n),)


SMALL, LARGE = (40,), (100_000,)
DIFFERENTIABLE = ()
