"""A loop that only Python could run, and that is too long for it: why it could not be rolled is said."""


def long_loop_of_keys(x):
    k, seen = 0, {}
    while k < 5000:
        seen[k % 10] = x
        k += 1
    return len(seen)


CASE = (long_loop_of_keys, (1.5,))
