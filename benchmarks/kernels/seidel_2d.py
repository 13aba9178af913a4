"""Gauss and Seidel's nine-point smoothing of a plane, in place: every point uses those already renewed."""


def seidel_2d(steps, a):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            a[i, 1:-1] += (
                a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:] + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            )
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0


def arguments(rng, steps, n):
    return steps, rng.standard_normal((n, n))


SMALL, LARGE = (3, 7), (6, 80)
DIFFERENTIABLE = (1,)
