"""The primitives: one declaration each. Importing this package registers all of them."""

from . import (  # noqa: F401
    arithmetic,
    arrays,
    compare,
    complex_numbers,
    counters,
    custom_rules,
    dot,
    effects,
    elementary,
    fourier,
    indexing,
    linear_algebra,
    reduce,
    regions,
    scan,
    shape,
    sorting,
    special,
    structure,
    unit_matrix,
)
