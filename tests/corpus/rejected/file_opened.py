"""A file that is read while translating."""


def function(x):
    with open("scale.txt") as file:
        return x * float(file.read())


CASE = (function, (1.0,))
