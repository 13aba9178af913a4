"""The primitives: one declaration each. Importing this package registers all of them."""
from . import arithmetic, arrays, compare, effects, reduce, regions, shape  # noqa: F401
