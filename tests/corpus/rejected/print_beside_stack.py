"""A function prints in which a loop changes and reads a list."""


def function(x):
    path = [x]
    while path[-1] > 1:
        print(path[-1])
        path.append(path[-1] / 2)
    return len(path)


CASE = (function, (8.0,))
