"""None on one path, a value on another, and not bound on a third."""


def none_or_unbound(x):
    if x > 0:
        found = x if x > 1 else None
    return found


CASE = (none_or_unbound, (0.5,))
