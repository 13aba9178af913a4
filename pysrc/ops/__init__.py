"""Primitives: one primitive is one declaration."""
