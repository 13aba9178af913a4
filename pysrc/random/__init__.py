"""Random numbers from explicit keys, with the names and the numbers of jax.random.

draws.py has the keys and what is drawn at one go, accepted.py what is drawn until it is accepted.
"""

from __future__ import annotations

from typing import Any

from .accepted import (
    beta,
    chisquare,
    dirichlet,
    gamma,
    geometric,
    loggamma,
    lognormal,
    multivariate_normal,
    pareto,
    poisson,
    rayleigh,
    t,
    weibull_min,
)
from .draws import (
    PRNGKey,
    bernoulli,
    bits,
    categorical,
    cauchy,
    choice,
    clone,
    exponential,
    fold_in,
    gumbel,
    key,
    key_data,
    laplace,
    logistic,
    normal,
    permutation,
    rademacher,
    randint,
    split,
    truncated_normal,
    uniform,
    wrap_key_data,
)

__all__ = (
    "PRNGKey",
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "multivariate_normal",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "truncated_normal",
    "uniform",
    "weibull_min",
    "wrap_key_data",
)


def __getattr__(name: str) -> Any:
    from .._jax_names import missing

    raise missing(__name__, name)
