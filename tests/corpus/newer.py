"""Syntax that Python 3.12 brought; older ones can't parse it, so that it stands in a string."""

import linecache
import sys

TEXT = """\
def aliased(x):
    type Number = float
    total: Number = x * 2
    if total > 3:
        total = total + 1
    return total


def generic[T, *Ts, **P](x: T) -> T:
    def inner[S](y: S) -> S:
        return y * 2 if y > 1 else y

    return inner(x) + 1


def quotes(x):
    table = {"a": x}
    print(f"{table["a"]} is {"large" if x is None else "small"}")
    return x
"""
FILE = "<newer syntax>"
CASES = []
if sys.version_info >= (3, 12):
    linecache.cache[FILE] = (len(TEXT), None, TEXT.splitlines(keepends=True), FILE)
    exec(compile(TEXT, FILE, "exec"), globals())
    CASES = [(globals()[name], (v,)) for name in ("aliased", "generic", "quotes") for v in (1.0, 2.0)]
