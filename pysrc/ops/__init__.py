"""The primitives: one declaration each. Importing this package registers all of them."""
from . import arithmetic, arrays, compare, effects, indexing, reduce, regions, shape, structure  # noqa: F401
