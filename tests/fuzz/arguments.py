"""The parameters that a random program may have, and the sets of arguments that it is called with.

In: the names of its parameters. Out: lines of a Python list of tuples. The first set is tame, the second has
NaN, Inf and -0.0, the third another size or other values. Example: `(0.5, array([1.0, -0.0])),`.
"""

from __future__ import annotations

import random

from .choices import Choices
from .scope import BOOL, FLOAT, INT, Kind

PARAMETERS: dict[str, Kind] = {
    "v": ("f", ("n",)),
    "y": FLOAT,
    "m": INT,
    "u": ("f", ("3",)),
    "w": ("f", ("n",)),
    "k": ("i", ("n",)),
    "flag": BOOL,
    "A": ("f", ("n", "3")),
}
ALL: dict[str, Kind] = {"x": FLOAT, **PARAMETERS}
TAME = (0.5, 1.5, -0.75, 2.25, 0.0, -2.0, 3.5, 1.0, -0.25, 0.875, -1.0, 2.0)
WILD = ("nan", "inf", "-0.0", "-inf", "0.0", "1.0", "-2.5", "1e300", "5e-324")


def argument_sets(choose: Choices, names: list[str], plan: str, exact: bool) -> str:
    """Three sets, one a line."""
    seed, smooth = choose.number(0, 7), plan == "grad"
    sizes = (3 + choose.number(0, 2), choose.item((4, 0, 1, 2, 7)) if plan == "sizes" else None)
    lines = [one_set(names, sizes[0], seed, wild=False, smooth=smooth)]
    if plan == "grad":
        lines.append(one_set(names, sizes[0], seed + 100, wild=False, smooth=True))
    else:
        lines.append(one_set(names, sizes[0], seed + 100, wild=exact))
        lines.append(one_set(names, sizes[0] if sizes[1] is None else sizes[1], seed + 200, wild=False))
    if plan == "sizes":
        lines.append(one_set(names, 6, seed + 300, wild=False))
    return "".join(f"    {line},\n" for line in lines)


def one_set(names: list[str], n: int, seed: int, wild: bool, smooth: bool = False) -> str:
    """`smooth`: no number that a program may hold, too: at `x == 0.5` it can have two slopes."""
    chance = random.Random(seed)
    parts = []
    for name in names:
        base, dims = ALL[name]
        shape = [n if d == "n" else int(d) for d in dims]
        count = 1
        for size in shape:
            count *= size
        values = [one(base, chance, wild, smooth) for _ in range(count)]
        parts.append(values[0] if not shape else array_text(values, shape, base, layout(chance, shape)))
    return f"({', '.join(parts)},)"


def one(base: str, chance: random.Random, wild: bool, smooth: bool) -> str:
    if base == "i":
        return str(chance.choice((0, 1, 2, 3, 5, -1)))
    if base == "b":
        return chance.choice(("True", "False"))
    if wild and chance.random() < 0.5:
        return chance.choice(WILD)
    if smooth:
        return repr(round(chance.choice(TAME) + 0.0037 + chance.random() / 5, 4))
    return repr(chance.choice(TAME) + (0.0 if chance.random() < 0.5 else round(chance.random() / 4, 3)))


def layout(chance: random.Random, shape: list[int]) -> str:
    """How an array lies in memory: mostly row after row."""
    return chance.choice(("", "", "", "columns" if len(shape) > 1 else "", "apart", "backwards"))


def array_text(values: list[str], shape: list[int], base: str, layout: str = "") -> str:
    """`layout`: in memory it lies column after column, with gaps, or from its end on."""
    dtype = {"f": "float", "i": "int", "b": "bool"}[base]
    view = {"apart": "[..., ::2]", "backwards": "[::-1]", "columns": ".T"}.get(layout, "")
    if layout == "apart":
        values, shape = [v for value in values for v in (value, "1")], [*shape[:-1], 2 * shape[-1]]
    elif layout == "columns":
        shape = shape[::-1]
    flat = f"array([{', '.join(values)}], {dtype})"
    shaped = flat if len(shape) == 1 else f"{flat}.reshape({', '.join(map(str, shape))})"
    return shaped + view
