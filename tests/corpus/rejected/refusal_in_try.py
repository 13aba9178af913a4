"""`except Exception` does not take what the translator itself refuses."""

import numpy as np


def function(x):
    try:
        return np.busday_count(x, x)
    except Exception:
        return 0


CASE = (function, (np.arange(3.0),))
