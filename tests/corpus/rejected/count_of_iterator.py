"""How often a generator went on, in a loop that is left on a staged test."""


def function(x):
    count = [0]

    def values():
        for k in range(4):
            count[0] += 1
            yield k

    for v in values():
        if v > x:
            break
    return count


CASE = (function, (1.5,))
