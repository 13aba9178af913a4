"""A write behind a loop to an object that another name may hold since an iteration."""


def function(x):
    best = [x, x]
    for k in range(70):
        candidate = [x + k, x]
        candidate[1] = 0.5 * k
        if candidate[0] > 9:
            best = candidate
    candidate[1] = 100.0
    return best


CASE = (function, (1.0,))
