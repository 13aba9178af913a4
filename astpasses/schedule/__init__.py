"""Core to loop nests: lower, fuse, shrink, place. `schedule(function)` is the stage; nest.py is its
language."""

from .stage import schedule

__all__ = ["schedule"]
