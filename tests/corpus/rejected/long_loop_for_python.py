"""A loop whose result Python needs, and that is too long to run in Python: who needs it is said."""


def long_loop_for_python(x):
    k = 0
    while k * k < 30_000_000:
        k += 1
    return [x] * k


CASE = (long_loop_for_python, (1.5,))
