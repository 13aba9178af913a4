"""Every table of handlers, loaded once: importing this module registers them all."""

from . import (  # noqa: F401
    builtin_calls,
    callbacks,
    complex_math,
    creation,
    dataclass_calls,
    deques,
    extremes,
    index_loops,
    iterators,
    math_calls,
    methods,
    numpy_calls,
    numpy_shapes,
    operator_calls,
    polynomials,
    printing,
    statistics,
    warning_calls,
    written,
    written_heaps,
    written_math,
)
from .call import TABLE as TABLE
from .methods import FUNCTIONS as FUNCTIONS
from .methods import METHODS as METHODS
from .methods import PROPERTIES as PROPERTIES
from .methods import REFUSED as REFUSED
