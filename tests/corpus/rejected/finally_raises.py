"""A `finally` that raises after what may have failed: in Python its exception takes the place of the first."""


def function(x):
    try:
        assert x > 0, "negative"
    finally:
        if x < -1:
            raise ValueError("far too small")
    return x


CASE = (function, (1.0,))
