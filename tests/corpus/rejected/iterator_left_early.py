"""An iterator that goes on where a loop left it, on a staged test."""


def function(x):
    numbers = iter([1.0, 2.0, 3.0])
    for v in numbers:
        if v > x:
            break
    return sum(numbers)


CASE = (function, (1.5,))
