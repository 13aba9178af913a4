"""Every table of handlers. Most files of handlers are imported when a program uses a function that they answer."""

import bisect
import builtins
import heapq
import itertools
import math
import operator
import warnings

import numpy as np

from metaphrase.core.foreign import named

from . import builtin_calls, dataclass_calls, deques, numpy_calls  # noqa: F401 - what every program may use
from .call import TABLE as TABLE

FILES = {
    ("callbacks", np): """vectorize.__call__ apply_along_axis apply_over_axes piecewise fromfunction fromiter frompyfunc
        r_.__getitem__.__func__ mgrid.__getitem__.__func__ broadcast iterable isrealobj common_type""",
    ("creation", np): "array asarray asanyarray ascontiguousarray asfortranarray copy",
    ("extremes", builtins): "max min",
    ("index_loops", itertools): "product combinations combinations_with_replacement permutations",
    ("index_loops", np): "ndenumerate ndindex",
    ("iterators", itertools): "takewhile dropwhile compress starmap filterfalse accumulate",
    ("math_calls", math): "log pow fmod lgamma hypot gamma fsum fabs floor ceil trunc degrees radians",
    ("methods", np): "astype",
    ("numpy_shapes", np): """reshape ravel transpose swapaxes moveaxis rollaxis matrix_transpose squeeze expand_dims
        broadcast_to broadcast_arrays atleast_1d atleast_2d atleast_3d real imag diagonal einsum diag split array_split
        hsplit vsplit dsplit unstack flip flipud fliplr rot90 shape ndim size""",
    ("operator_calls", operator): " ".join(operator.__all__),
    ("polynomials", np): "polyadd polysub polymul polyder polyint poly polyfit roots",
    ("printing", builtins): "print str repr format",
    ("statistics", np): """nanargmax nanargmin nancumprod nanquantile nanpercentile nanmedian unique_values choose
        diag_indices_from tril_indices_from triu_indices_from array_equiv real_if_close einsum_path histogram_bin_edges
        histogram2d cumulative_sum cumulative_prod matvec vecmat sort_complex packbits unpackbits trim_zeros""",
    ("warning_calls", warnings): "catch_warnings warn",
    ("written", bisect): "bisect bisect_left",
    ("written", np): "place putmask ix_ union1d intersect1d setdiff1d setxor1d delete insert repeat",
    ("written", heapq): "heappush heappop heapreplace heappushpop heapify nsmallest nlargest",
    ("written_math", math): "prod dist remainder modf frexp ldexp ulp gcd lcm factorial comb perm isqrt",
    ("written_math", np): "gcd lcm",
    ("written_math", builtins): "pow",
}
for (_file, _home), _names in FILES.items():
    for _name in _names.split():
        if (_function := named(_name, _home)) is not None:
            TABLE.setdefault(_function, f"{__package__}.{_file}")
