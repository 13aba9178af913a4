"""Programs become text: NumPy source and Cython."""
