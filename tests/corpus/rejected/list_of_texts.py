"""A list that a loop changes and reads, of what is neither a number nor an array."""


def function(n):
    words = ["a"]
    while len(words) < n:
        words.append("b")
    return words


CASE = (function, (5.0,))
