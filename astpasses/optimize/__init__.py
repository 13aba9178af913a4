"""Core programs become cheaper core programs of the same meaning."""
