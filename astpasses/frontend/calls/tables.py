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
    written,
    written_heaps,
    written_math,
)
