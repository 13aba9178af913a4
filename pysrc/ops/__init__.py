"""The primitives: one declaration each. Importing this package registers all of them."""
from . import (  # noqa: F401
    arithmetic,
    arrays,
    compare,
    complex_numbers,
    effects,
    elementary,
    indexing,
    reduce,
    regions,
    shape,
    special,
    structure,
)
