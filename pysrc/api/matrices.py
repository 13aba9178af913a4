"""Matrices of derivatives as users call them: jacfwd, jacrev, hessian, with JAX's names and meaning; and jacobian.

In: functions of arrays. Out: functions that give, for each leaf of the output and each leaf of the arguments, an array
with the dims of both; or, where they are sparse, `scipy.sparse` matrices. Example:

    jacrev(lambda x: x**2)(np.array([1.0, 3.0]))        # [[2, 0], [0, 6]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Literal, TypeVar, overload

import numpy as np

from .identity import shared
from .public import A, Argnums, Aux, P, R
from .transformations import Jacobian
from .typed import Number

Vector = TypeVar("Vector", bound=np.ndarray)


def _sparse() -> Any:
    """What makes sparse matrices, imported when the first is asked for."""
    from . import sparse

    return sparse


@overload
def jacfwd(
    fun: Callable[Concatenate[Vector, P], np.ndarray | Number],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[Vector, P], np.ndarray]: ...
@overload
def jacfwd(
    fun: Callable[Concatenate[A, P], R],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[A, P], Any]: ...
@overload
def jacfwd(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[Concatenate[A, P], tuple[Any, Aux]]: ...


def jacfwd(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian by forward mode, one input element at a time, as one batch."""
    return shared(Jacobian, fun, argnums, has_aux, holomorphic, False, "jacfwd")


@overload
def jacrev(
    fun: Callable[Concatenate[Vector, P], np.ndarray | Number],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[Vector, P], np.ndarray]: ...
@overload
def jacrev(
    fun: Callable[Concatenate[A, P], R],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], Any]: ...
@overload
def jacrev(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[Any, Aux]]: ...


def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode, one output element at a time, as one batch."""
    return shared(Jacobian, fun, argnums, has_aux, holomorphic, allow_int, "jacrev")


@overload
def hessian(
    fun: Callable[Concatenate[Vector, P], np.ndarray | Number],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[Vector, P], np.ndarray]: ...
@overload
def hessian(
    fun: Callable[Concatenate[A, P], R],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    *,
    sparsity: Any = None,
) -> Callable[Concatenate[A, P], Any]: ...
@overload
def hessian(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    sparsity: Any = None,
) -> Callable[Concatenate[A, P], tuple[Any, Aux]]: ...


def hessian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """The matrix of second derivatives: forward over reverse mode.

    With `sparsity` (a pattern, or "detect") it is sparse, as of `jacobian`, and computed in as many directions as a
    star colouring has colours: what two columns share can be read from its mirror image (Coleman & Moré, Estimation of
    Sparse Hessian Matrices and Graph Coloring Problems, 1984).
    """
    if sparsity is not None:
        return _sparse().sparse_hessian(fun, argnums, has_aux, sparsity)
    gradients = shared(Jacobian, fun, argnums, has_aux, holomorphic, False, "jacrev")
    return shared(Jacobian, gradients, argnums, has_aux, holomorphic, False, "jacfwd")


def jacobian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """`jacrev`, as in JAX; or with `sparsity` the Jacobian as `scipy.sparse.csr_array`s: a matrix for each leaf of the
    output and each leaf of the arguments at `argnums`, elements of either in row-major order.

    `sparsity` is the pattern, a matrix of bools or of SciPy's, or "detect": the elements of the program's results are
    followed to those of the arguments that they may depend on, whatever the values of floats are; integers are as they
    are at the call. Columns that share no row are computed together, or rows that share no column, in as few groups as
    a greedy colouring finds (Curtis, Powell & Reid 1974; Coleman & Moré 1983). A pattern that lacks elements gives
    wrong numbers. What is returned has a method `plan`: of the same arguments it tells the pattern, the colours and the
    mode. The function takes and gives real floats, and runs outside of translated functions; SciPy is needed. Raises
    DTypeError for other numbers, ShapeError for a pattern of another shape, UnsupportedError where sizes are only known
    at run time.
    """
    if sparsity is None:
        return shared(Jacobian, fun, argnums, has_aux, holomorphic, allow_int, "jacrev")
    return _sparse().sparse_jacobian(fun, argnums, has_aux, sparsity)


__all__ = ["hessian", "jacfwd", "jacobian", "jacrev"]
