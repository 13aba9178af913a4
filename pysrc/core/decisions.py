"""Whether some values alone may say which way a program takes: a branch, how often a loop goes round, a size.

In: Lets, and variables. Out: a truth; what is made of the variables alone is added to them.

    n = add(k, 1)                               # decided(lets, {k}): the branch is taken by k alone
    b = lt(n, 10)
    r = cond(b, x, branches=(then, otherwise))
"""

from __future__ import annotations

from collections.abc import Iterable

from .ir import Atom, Let, Literal
from .loops import Loop


def decided(lets: Iterable[Let], known: set[Atom]) -> bool:
    """Whether whoever knows these variables knows which way one of the Lets goes."""
    for let in lets:
        if known.isdisjoint(let.args):
            continue
        name = let.primitive.name
        if name == "cond":
            if let.args[0] in known or any(
                decided(branch.lets, {p for p, a in zip(branch.params, let.args[1:]) if a in known})
                for branch in let.attributes["branches"]
            ):
                return True
        elif name == "loop":
            loop = Loop.of(let)
            steps = [loop.body] if loop.condition is None else [loop.body, loop.condition]
            for step in steps:  # what goes from one iteration to the next is another value each time
                inside: set[Atom] = {p for p, a in zip(step.params.consts, loop.args.consts) if a in known}
                if decided(step.lets, inside) or step is not loop.body and step.function.results[0] in inside:
                    return True
        elif name == "as_dim" or let.regions():
            return True
        elif all(isinstance(a, Literal) or a in known for a in let.args) or _is_of_integers(let, known):
            known.update(let.outs)
    return False


def _is_of_integers(let: Let, known: set[Atom]) -> bool:
    """Whether a known integer is among what an integer or a truth is made of: beside one of which only the range is
    known it may tell it, as in `i < 0`."""
    given = any(_is_integer(a) for a in let.args if a in known)
    return given and all(map(_is_integer, let.outs))


def _is_integer(atom: Atom) -> bool:
    return atom.type.dtype.kind in "biu"


__all__ = ["decided"]
