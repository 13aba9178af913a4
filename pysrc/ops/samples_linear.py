"""Sample matrices for the primitives of linear_algebra.py.

In: nothing. Out: `LINEAR`, name -> samples; well-conditioned matrices, with eigenvalues apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.types import c64, c128, f32, f64

DTYPES = (f64, f32, c128, c64)


def matrix(m: int, n: int, dtype: Any = f64, seed: int = 0, lead: tuple = ()) -> Any:
    generator = np.random.default_rng(seed + 17)
    made = generator.uniform(-1, 1, (*lead, m, n)) + 2.5 * np.eye(m, n)
    made = made + np.diag(np.arange(min(m, n)))[:, :] if m == n else made
    if np.dtype(dtype).kind == "c":
        made = made + 1j * generator.uniform(-1, 1, (*lead, m, n))
    return made.astype(dtype)


def hermitian(n: int, dtype: Any = f64, lead: tuple = ()) -> Any:
    made = matrix(n, n, dtype, 3, lead)
    return ((made + np.conj(np.swapaxes(made, -1, -2))) / 2 + 4 * np.eye(n)).astype(dtype)


def linear(sample: Any) -> dict[str, list]:
    """The samples, as `sample(args, attributes, smooth)` makes them."""
    pairs = [(matrix(3, 3, t), matrix(3, 2, t, 1)) for t in DTYPES]
    pairs.append((matrix(3, 3, lead=(2,)), matrix(3, 2, seed=1, lead=(2,))))
    found: dict[str, list] = {"solve": [sample(p, {"transposed": t}) for p in pairs for t in (False, True)]}
    found["triangular_solve"] = [
        sample(p, {"lower": low, "transposed": t}) for p in pairs for low in (False, True) for t in (False, True)
    ]
    squares = [matrix(3, 3, t) for t in DTYPES] + [matrix(3, 3, lead=(2,)), matrix(1, 1)]
    found["slogdet"] = found["det"] = found["inverse"] = [sample((a,)) for a in squares]
    found["cofactors"] = [sample((a, np.linalg.det(a)), {}, False) for a in squares]  # the two don't vary apart
    definite = [hermitian(3, t) for t in DTYPES] + [hermitian(3, lead=(2,))]
    found["cholesky"] = [sample((a,)) for a in definite]
    found["eigh"] = [sample((a,), {}, a.dtype in (f64, f32)) for a in definite]
    found["qr"] = [
        sample((matrix(m, n, t),), {"full": full}, m >= n and not full)
        for t in DTYPES
        for m, n in ((3, 3), (4, 2), (2, 3))
        for full in (False, True)
    ]
    found["svd"] = [
        sample((matrix(m, n, t),), {"full": full}, not full and t in (f64, f32))
        for t in DTYPES
        for m, n in ((3, 3), (4, 2), (2, 4))
        for full in (False, True)
    ]
    turning = np.array([[0.5, -1.0, 0.2], [1.0, 0.5, 0.1], [0.3, 0.2, 2.0]])
    found["eig"] = [sample((a,), {}, False) for a in [*squares, turning]]
    waves = [matrix(m, n, t) for t in (c128, c64) for m, n in ((3, 4), (2, 7))]
    found["fft"] = [
        sample((x,), {"axis": axis, "inverse": inverse}, True)
        for x in waves
        for axis in (0, 1)
        for inverse in (False, True)
    ]
    found["rfft"] = [sample((x.real.copy(),), {"axis": axis}, True) for x in waves for axis in (0, 1)]
    found["irfft"] = [
        sample((x,), {"axis": axis, "size": 2 * x.shape[axis] - k}, True)
        for x in waves
        for axis in (0, 1)
        for k in (1, 2)
    ]
    return found


__all__ = ["linear", "matrix", "hermitian"]
