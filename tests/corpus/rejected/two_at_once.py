"""Two refusals are reported together."""


def function(x, kind):
    match kind:
        case "a":
            x = x + 1
    return eval("x")


CASE = (function, (1.0, "a"))
