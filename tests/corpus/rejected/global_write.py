"""Assignment of a global variable."""
count = 0


def function(x):
    global count
    count = count + 1
    return x


CASE = (function, (1.0,))
