"""What a call of NumPy becomes: `LIBRARY[np.mean]` is a function of core atoms that emits primitives.

In: a NumPy, math, operator or SciPy function. Out: a function that takes operands as the user gave them (core
atoms, NumPy arrays and numbers, Python numbers, `Weak` staged Python numbers; see promotion.py) and static
parameters, and returns atoms, or tuples or lists of them, with NumPy's dtypes, shapes and errors.

    LIBRARY[np.mean](x, axis=0)
    UPDATES[np.add.at](x, i, v)     # what x holds after the call

A theme's file is imported when a program calls one of its functions. To add a function, write it in the library
file of its theme and name it in `_TABLE`.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.foreign import Foreign, Spellings, named
from ..core.primitive import REGISTRY
from ..late import imported
from .promotion import as_ufunc


class _Later:
    """Stands for a rule that nobody has asked for: `name` of a theme's file, or what that gives for `given`."""

    __slots__ = ("file", "given", "name")

    def __init__(self, file: str, name: str, *given: Any):
        self.file, self.name, self.given = f"{__package__}.library_{file}", name, given

    def rule(self) -> Callable[..., Any]:
        named = getattr(imported(self.file), self.name)
        return named(*self.given) if self.given else named


class Rules(Spellings):
    """Rules by the functions that they answer."""

    def __getitem__(self, key: Any) -> Callable[..., Any]:
        rule = super().__getitem__(key)
        if type(rule) is _Later:
            rule = self[key] = rule.rule()
        return rule


_RULES: dict[Any, Any] = {}


def _spellings_of_primitives() -> None:
    """Every ufunc that a primitive answers to, and the spellings beside it."""
    for primitive in REGISTRY.values():
        for spelling in primitive.spellings:
            if isinstance(spelling, (np.ufunc, Foreign)):
                function = as_ufunc(spelling)
                for other in primitive.spellings:
                    _RULES.setdefault(other, function)
                break


_spellings_of_primitives()

# numpy name = function of the theme file; "=" gives another name in the file.
_TABLE: dict[str, str] = {
    "shapes": """reshape ravel transpose=transpose permute_dims=transpose matrix_transpose
        linalg.matrix_transpose=matrix_transpose swapaxes
        moveaxis rollaxis expand_dims squeeze broadcast_to broadcast_arrays=broadcast_all atleast_1d
        atleast_2d atleast_3d concatenate concat=concatenate stack vstack hstack dstack column_stack block
        append split array_split vsplit hsplit dsplit unstack""",
    "moves": "flip fliplr flipud rot90 roll repeat tile resize",
    "creation": """array asarray ascontiguousarray=asarray asanyarray=asarray asfortranarray=asarray
        copy astype full zeros ones empty=zeros ndarray full_like zeros_like ones_like empty_like=zeros_like arange
        linspace logspace geomspace eye identity tri tril triu diagonal diag diagflat meshgrid indices
        vander tril_indices triu_indices hanning hamming blackman""",
    "reductions": """sum=sum_ prod max=amax amax min=amin amin any=any_ all=all_ argmax argmin ptp
        count_nonzero mean average var std nansum nanprod nanmax nanmin nanmean nanvar nanstd
        cumsum cumprod nancumsum isclose allclose array_equal
        add.reduce=add_reduce multiply.reduce=multiply_reduce maximum.reduce=maximum_reduce
        minimum.reduce=minimum_reduce logical_and.reduce=logical_and_reduce logical_or.reduce=logical_or_reduce
        add.accumulate=add_accumulate multiply.accumulate=multiply_accumulate
        maximum.accumulate=maximum_accumulate minimum.accumulate=minimum_accumulate""",
    "products": """matmul dot vdot inner vecdot outer tensordot linalg.tensordot=tensordot
        linalg.multi_dot=multi_dot linalg.outer=outer trace
        linalg.matmul=matmul kron cross linalg.cross=cross einsum""",
    "elementwise": """power float_power square reciprocal positive absolute abs=absolute fabs
        logical_and logical_or logical_xor logical_not fmax fmin heaviside clip where select=select_where
        piecewise floor=floor_ ceil=ceil_ trunc=trunc_ fix=trunc_ rint=rint_ round=round_ around=round_
        divmod=divmod_ modf deg2rad radians=deg2rad rad2deg degrees=rad2deg sinc real imag conjugate
        conj=conjugate angle sign=sign_ isreal iscomplex isposinf isneginf isnan=isnan_ isinf=isinf_
        isfinite=isfinite_ nan_to_num polyval pow=power""",
    "linear": """linalg.solve=solve linalg.inv=inv linalg.det=det linalg.slogdet=slogdet
        linalg.cholesky=cholesky linalg.qr=qr linalg.eigh=eigh linalg.eigvalsh=eigvalsh linalg.eig=eig
        linalg.eigvals=eigvals linalg.svd=svd linalg.svdvals=svdvals linalg.matrix_rank=matrix_rank
        linalg.pinv=pinv linalg.lstsq=lstsq linalg.cond=cond linalg.matrix_power=matrix_power
        linalg.tensorinv=tensorinv linalg.tensorsolve=tensorsolve linalg.norm=general_norm
        linalg.matrix_norm=matrix_norm linalg.vector_norm=vector_norm linalg.diagonal=diagonal
        linalg.trace=trace linalg.vecdot=vecdot""",
    "covariance": "cov corrcoef",
    "pad": "pad",
    "numbers": "frexp ldexp spacing",
    "search": """take take_along_axis flatnonzero nonzero argwhere compress extract unique sort
        argsort partition argpartition lexsort searchsorted digitize isin
        ravel_multi_index unravel_index delete insert""",
    "quantiles": "quantile percentile median",
    "sampled": """diff ediff1d gradient trapezoid interp unwrap convolve correlate bincount
        histogram""",
}


for _file, _names in _TABLE.items():
    for _entry in _names.split():
        _path, _, _name = _entry.partition("=")
        if (_spelled := named(_path, np)) is not None:
            _RULES[_spelled] = _Later(_file, _name or _path)

# What no name of NumPy's leads to.
for _function, _name in {
    operator.pow: "power",
    builtins.pow: "power",
    math.pow: "float_power",
    operator.pos: "positive",
    operator.abs: "absolute",
    builtins.abs: "absolute",
    math.fabs: "fabs",
    builtins.divmod: "divmod_",
    math.degrees: "rad2deg",
    math.radians: "deg2rad",
    math.isclose: "math_isclose",
    Foreign("scipy.special", "expit"): "sigmoid",
    Foreign("scipy.special", "logit"): "logit",
    Foreign("scipy.special", "ndtr"): "ndtr",
    Foreign("scipy.special", "xlogy"): "xlogy",
    Foreign("scipy.special", "xlog1py"): "xlog1py",
    REGISTRY["polygamma"].spellings[0]: "polygamma",
}.items():
    _RULES[_function] = _Later("elementwise", _name)
for _name in """fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2 fftshift ifftshift
    fftfreq rfftfreq""".split():
    _RULES[Foreign("numpy.fft", _name)] = _Later("fourier", _name)
_RULES[operator.matmul] = _Later("products", "matmul")
for _name in ("logsumexp", "softmax", "log_softmax"):
    _RULES[Foreign("scipy.special", _name)] = _Later("norms", _name)
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
    _RULES[_function.outer] = _Later("products", "ufunc_outer", _function)
LIBRARY = Rules(_RULES)

# NumPy's functions that write into their first operand: these return what it holds afterwards.
UPDATES = Rules(
    {
        np.put: _Later("search", "put"),
        np.put_along_axis: _Later("search", "put_along_axis"),
        np.fill_diagonal: _Later("creation", "fill_diagonal"),
        np.copyto: _Later("creation", "copyto"),
        np.add.at: _Later("search", "combine_at", np.add),
        np.subtract.at: _Later("search", "combine_at", np.subtract),
    }
)

__all__ = ["LIBRARY", "UPDATES"]
