"""`metaphrase.numpy`: NumPy's own functions under NumPy's names, with the few that `jax.numpy` has besides.

In: NumPy arrays. Out: NumPy arrays. Nothing here is wrapped: staging knows NumPy's functions by identity, so
a program may say `np.sin`, `numpy.sin` or `metaphrase.numpy.sin` and mean the same. What can be staged is
listed in docs/limitations.md.

>>> import metaphrase.numpy as mnp
>>> mnp.sum(mnp.arange(4))
np.int64(6)
"""

import ml_dtypes as _ml_dtypes
import numpy as _numpy
from numpy import *  # noqa: F403
from numpy import abs, all, any, bool, divmod, fft, linalg, max, min, pow, round, sum  # noqa: F401

bfloat16 = _numpy.dtype(_ml_dtypes.bfloat16).type
ndarray = _numpy.ndarray  # type: ignore[misc]
newaxis, pi, e, inf, nan = None, _numpy.pi, _numpy.e, _numpy.inf, _numpy.nan  # type: ignore[misc]


def __getattr__(name: str):
    """Any other public name of NumPy, so that this module never has fewer."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_numpy, name)
