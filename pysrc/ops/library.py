"""What a call of NumPy becomes: `LIBRARY[np.mean]` is a function of core atoms that emits primitives.

In: a NumPy, math, operator or SciPy function. Out: a function that takes operands as the user gave them (core
atoms, NumPy arrays and numbers, Python numbers, `Weak` staged Python numbers; see promotion.py) and static
parameters, and returns atoms, or tuples or lists of them, with NumPy's dtypes, shapes and errors.

    LIBRARY[np.mean](x, axis=0)      METHODS["mean"](x, axis=0)      ATTRIBUTES["T"](x)
    UPDATES[np.add.at](x, i, v)     what x holds after the call

To add a function, write it in the library file of its theme and name it in `_TABLE`.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.foreign import Foreign, Spellings
from ..core.primitive import REGISTRY
from . import (
    library_covariance,
    library_creation,
    library_elementwise,
    library_fourier,
    library_linear,
    library_moves,
    library_norms,
    library_numbers,
    library_pad,
    library_products,
    library_quantiles,
    library_reductions,
    library_sampled,
    library_search,
    library_shapes,
)
from .promotion import as_ufunc, ufunc

LIBRARY: dict[Any, Callable[..., Any]] = {}


def _spellings_of_primitives() -> None:
    """Every ufunc that a primitive answers to, and the spellings beside it."""
    for primitive in REGISTRY.values():
        for spelling in primitive.spellings:
            if isinstance(spelling, (np.ufunc, Foreign)):
                function = as_ufunc(spelling)
                for other in primitive.spellings:
                    LIBRARY.setdefault(other, function)
                break


_spellings_of_primitives()

# numpy name = function of the theme file; "=" gives another name in the file.
_TABLE: dict[Any, str] = {
    library_shapes: """reshape ravel transpose=transpose permute_dims=transpose matrix_transpose
        linalg.matrix_transpose=matrix_transpose swapaxes
        moveaxis rollaxis expand_dims squeeze broadcast_to broadcast_arrays=broadcast_all atleast_1d
        atleast_2d atleast_3d concatenate concat=concatenate stack vstack hstack dstack column_stack block
        append split array_split vsplit hsplit dsplit unstack""",
    library_moves: "flip fliplr flipud rot90 roll repeat tile resize",
    library_creation: """array asarray ascontiguousarray=asarray asanyarray=asarray asfortranarray=asarray
        copy astype full zeros ones empty=zeros full_like zeros_like ones_like empty_like=zeros_like arange
        linspace logspace geomspace eye identity tri tril triu diagonal diag diagflat meshgrid indices
        vander tril_indices triu_indices hanning hamming blackman""",
    library_reductions: """sum=sum_ prod max=amax amax min=amin amin any=any_ all=all_ argmax argmin ptp
        count_nonzero mean average var std nansum nanprod nanmax nanmin nanmean nanvar nanstd
        cumsum cumprod nancumsum isclose allclose array_equal""",
    library_products: """matmul dot vdot inner vecdot outer tensordot linalg.tensordot=tensordot
        linalg.multi_dot=multi_dot linalg.outer=outer trace
        linalg.matmul=matmul kron cross linalg.cross=cross einsum""",
    library_elementwise: """power float_power square reciprocal positive absolute abs=absolute fabs
        logical_and logical_or logical_xor logical_not fmax fmin heaviside clip where select=select_where
        piecewise floor=floor_ ceil=ceil_ trunc=trunc_ fix=trunc_ rint=rint_ round=round_ around=round_
        divmod=divmod_ modf deg2rad radians=deg2rad rad2deg degrees=rad2deg sinc real imag conjugate
        conj=conjugate angle sign=sign_ isreal iscomplex isposinf isneginf isnan=isnan_ isinf=isinf_
        isfinite=isfinite_ nan_to_num polyval pow=power""",
    library_fourier: " ".join(
        f"fft.{name}={name}"
        for name in """fft ifft rfft irfft hfft ihfft fftn ifftn
        rfftn irfftn fft2 ifft2 rfft2 irfft2 fftshift ifftshift fftfreq
        rfftfreq""".split()
    ),
    library_linear: """linalg.solve=solve linalg.inv=inv linalg.det=det linalg.slogdet=slogdet
        linalg.cholesky=cholesky linalg.qr=qr linalg.eigh=eigh linalg.eigvalsh=eigvalsh linalg.eig=eig
        linalg.eigvals=eigvals linalg.svd=svd linalg.svdvals=svdvals linalg.matrix_rank=matrix_rank
        linalg.pinv=pinv linalg.lstsq=lstsq linalg.cond=cond linalg.matrix_power=matrix_power
        linalg.tensorinv=tensorinv linalg.tensorsolve=tensorsolve linalg.norm=general_norm
        linalg.matrix_norm=matrix_norm linalg.vector_norm=vector_norm linalg.diagonal=diagonal
        linalg.trace=trace linalg.vecdot=vecdot""",
    library_covariance: "cov corrcoef",
    library_pad: "pad",
    library_numbers: "frexp ldexp spacing",
    library_search: """take take_along_axis flatnonzero nonzero argwhere compress extract unique sort
        argsort partition argpartition lexsort searchsorted digitize isin
        ravel_multi_index unravel_index delete insert""",
    library_quantiles: "quantile percentile median",
    library_sampled: """diff ediff1d gradient trapezoid interp unwrap convolve correlate bincount
        histogram""",
}


def _find(path: str) -> Any:
    """numpy.linalg.norm from "linalg.norm"; None where this NumPy lacks it."""
    found: Any = np
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


for _file, _names in _TABLE.items():
    for _entry in _names.split():
        _path, _, _name = _entry.partition("=")
        if (_spelled := _find(_path)) is not None:
            LIBRARY[_spelled] = getattr(_file, _name or _path)

_e, _n, _r, _s = library_elementwise, library_norms, library_reductions, library_shapes
LIBRARY |= {
    operator.pow: _e.power,
    builtins.pow: _e.power,
    math.pow: _e.float_power,
    operator.matmul: library_products.matmul,
    operator.pos: _e.positive,
    operator.abs: _e.absolute,
    builtins.abs: _e.absolute,
    math.fabs: _e.fabs,
    builtins.divmod: _e.divmod_,
    math.degrees: _e.rad2deg,
    math.radians: _e.deg2rad,
    math.isclose: _e.math_isclose,
    np.add.reduce: _r.reduced_by(_r.sum_),
    np.multiply.reduce: _r.reduced_by(_r.prod),
    np.maximum.reduce: _r.reduced_by(_r.amax),
    np.minimum.reduce: _r.reduced_by(_r.amin),
    np.logical_and.reduce: _r.reduced_by(_r.all_),
    np.logical_or.reduce: _r.reduced_by(_r.any_),
    np.add.accumulate: _r.add_accumulate,
    np.multiply.accumulate: _r.multiply_accumulate,
    np.maximum.accumulate: _r.maximum_accumulate,
    np.minimum.accumulate: _r.minimum_accumulate,
}
LIBRARY |= {
    Foreign("scipy.special", _name): _made  # type: ignore[misc]
    for _name, _made in dict(
        expit=_e.sigmoid,
        logit=_e.logit,
        xlogy=_e.xlogy,
        xlog1py=_e.xlog1py,
        logsumexp=_n.logsumexp,
        softmax=_n.softmax,
        log_softmax=_n.log_softmax,
    ).items()
}
for _function in (
    np.add,
    np.subtract,
    np.multiply,
    np.true_divide,
    np.maximum,
    np.minimum,
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.power,
    np.floor_divide,
    np.remainder,
    np.hypot,
    np.arctan2,
    np.logaddexp,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
):
    LIBRARY[_function.outer] = library_products.ufunc_outer(_function)
LIBRARY = Spellings(LIBRARY)

# Methods of arrays: the array is the first operand.
METHODS: dict[str, Callable[..., Any]] = {
    name: LIBRARY[getattr(np, name)]
    for name in """all any argmax argmin argsort clip conj conjugate cumprod cumsum diagonal dot max mean min
    nonzero prod ptp ravel repeat reshape searchsorted std sum swapaxes take trace transpose var squeeze
    partition argpartition""".split()
}
METHODS |= {
    "astype": library_creation.astype,
    "copy": library_creation.copy,
    "flatten": _s.ravel,
    "sort": library_search.sort,
    "compress": lambda x, condition, axis=None: library_search.compress(condition, x, axis),
    "round": _e.round_,
    "__copy__": library_creation.copy,
    "__abs__": _e.absolute,
}

# Attributes of arrays that compute.
ATTRIBUTES: dict[str, Callable[..., Any]] = {
    "T": _s.transpose,
    "mT": _s.matrix_transpose,
    "real": _e.real,
    "imag": _e.imag,
    "flat": _s.ravel,
}

# Functions of no NumPy name that libraries build on.
EXTRA: dict[str, Callable[..., Any]] = {
    "stop_gradient": _e.stop_gradient,
    "logsumexp": _n.logsumexp,
    "softmax": _n.softmax,
    "log_softmax": _n.log_softmax,
    "sigmoid": _e.sigmoid,
    "complex": _e.complex_of,
    "cummax": _r.maximum_accumulate,
    "cummin": _r.minimum_accumulate,
}

# NumPy's functions that write into their first operand: these return what it holds afterwards.
UPDATES: dict[Any, Callable[..., Any]] = {
    np.put: library_search.put,
    np.put_along_axis: library_search.put_along_axis,
    np.fill_diagonal: library_creation.fill_diagonal,
    np.copyto: library_creation.copyto,
    np.add.at: library_search.combine_at(np.add),
    np.subtract.at: library_search.combine_at(np.subtract),
}

__all__ = ["LIBRARY", "UPDATES", "METHODS", "ATTRIBUTES", "EXTRA", "ufunc"]
