"""An attribute of an object from outside is changed."""


class Holder:
    total = 0.0


HOLDER = Holder()


def function(x):
    HOLDER.total = HOLDER.total + x
    return HOLDER.total


CASE = (function, (1.0,))
