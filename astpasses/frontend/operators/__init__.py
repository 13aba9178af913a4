"""Operators, indices and stores on staged values, by the rules of NumPy and of Python."""
