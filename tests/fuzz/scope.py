"""What is in scope while a program is written: names with their kinds.

In: names as the grammar binds them. Out: candidates for a place that wants a kind. A kind is (base, dims):
base is `f` (float64), `i` (an integer), `b` (a bool) or one of the containers below; dims are source texts of
sizes, () for a scalar. A name keeps its kind for as long as it is in scope. Example:

    scope = Scope({"x": FLOAT, "v": ("f", ("n",))})
    scope.of(FLOAT)                 # ["x"]
"""

from __future__ import annotations

from dataclasses import dataclass, field

Kind = tuple[str, tuple[str, ...]]
FLOAT: Kind = ("f", ())
INT: Kind = ("i", ())
BOOL: Kind = ("b", ())
PAIR: Kind = ("pair", ())  # (float, int)
LIST: Kind = ("list", ())  # [float, float, float]
RECORD: Kind = ("record", ())  # {"a": float, "v": array of 3}
OBJECT: Kind = ("object", ())  # an instance of State: attributes a and v, as above
MAYBE: Kind = ("maybe", ())  # None or a float
CLOSURE: Kind = ("closure", ())  # a function of one float, defined inside
ARRAYS: Kind = ("arrays", ())  # [array of 3, array of 3]
SCALARS = (FLOAT, INT, BOOL)


@dataclass
class Scope:
    """Names that may be read; `frozen` ones may not be rebound (loop variables, parameters of closures)."""

    names: dict[str, Kind]
    loops: int = 0  # how many loops are open in this function
    frozen: frozenset[str] = frozenset()
    finals: int = 0  # open `finally` clauses: no jumps there
    partial: dict[str, Kind] = field(default_factory=dict)  # views of unknown size: only elements are used

    def inner(self, names: dict[str, Kind] | None = None, **changes: object) -> Scope:
        """A scope inside this one: what it binds is not seen outside."""
        made = Scope({**self.names, **(names or {})}, self.loops, self.frozen, self.finals, dict(self.partial))
        for name, value in changes.items():
            setattr(made, name, value)
        return made

    def of(self, kind: Kind) -> list[str]:
        return [name for name, k in self.names.items() if k == kind]

    def writable(self, kind: Kind) -> list[str]:
        return [name for name in self.of(kind) if name not in self.frozen]

    def arrays(self, base: str = "f") -> list[str]:
        return [name for name, (b, dims) in self.names.items() if b == base and dims]
