"""Branches and loops on staged values: what paths leave different is joined, what loops change is carried."""
