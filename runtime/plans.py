"""The text of a plan -> a description of calls (entry.py), in this process.

In: Python text that consists of words (`Root`, `ArrayLeaf`, `Fresh`), literals and sizes. Out: a `Plan`, which makes an
`Entry` of the address of its native code. Example, of `def f(x): return x * 2` for `f64[n]`:

    Plan(
        title='(f64[n])',
        dims=((n,),),
        library='8d3c...',
        roots=(Root(Position(0), ArrayLeaf('f64', (n,))),),
        parameters=(node(0),),
        symbols=('n',),
        results=(Fresh('f64', (n,), 'array'),),
        output=Result(0),
        name='f',
    )

Trees are numbered as they are closed: `node(0)` is the first. Names that are no words are sizes. Whoever reads plans
that hold more (objects of a process, constants of a module) adds words in a `Reader` of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.dims import DimLike, Sym, dim_max, dim_min
from ..core.types import SHORT
from ..effects import callback, printed, warn_user
from ..exceptions import ListFull, Room, Site, exception_class, make_room
from ..late import dataclass, field
from ..source import Span
from . import entry as abi
from . import errors

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (float, int, bool, complex, tuple, list)}


class Stale(Exception):
    """A plan is for something that is not so in this process."""


@dataclass(frozen=True)
class Plan:
    """`title`: the types of the call. `dims`: of its dynamic leaves. `least`: the least sizes that it serves.
    `library`: the name of its native code. `rest`: what an `Entry` has beside its address."""

    title: str
    dims: tuple
    least: dict[str, int]
    library: str
    rest: dict[str, Any]
    sites: tuple[Site, ...]
    rooms: list[Room] = field(default_factory=list)

    def entry(self, address: int, keep: Any = None, **changes: Any) -> abi.Entry:
        """The entry that runs the code at an address; `keep` lives as long. `changes`: what is to stand otherwise."""
        table = site_table(self.sites)
        return abi.Entry(
            address=address,
            raise_site=raiser(table, self.rooms),
            callbacks=callbacks_of(self.sites),
            keep=(keep, table),
            **self.rest | changes,
        )


class _Words(dict):
    """Names that are no words are sizes."""

    def __missing__(self, name: str) -> DimLike:
        if not name[:1].islower():
            raise KeyError(name)
        return Sym(name)


class Reader:
    """What the words of a plan mean."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.rooms: dict[str, Room] = {}

    def read(self, text: str) -> Plan:
        """Raises whatever goes wrong."""
        return eval(text, {"__builtins__": {}}, _Words(self.words()))

    def words(self) -> dict[str, Any]:
        names = "Root Position Held Item Path Getter Compare Result Argument Constant Write Store".split()
        words: dict[str, Any] = {name: getattr(abi, name) for name in names}
        words |= {name: self._numbered(make) for name, make in self.trees().items()}
        words |= {"Float": float, "Complex": complex, "Slice": slice, "Range": range, "Span": Span}
        words |= {"Set": set, "FrozenSet": frozenset, "Ellipsis": ..., "NotImplemented": NotImplemented}
        methods = (self.Plan, self.node, self.Room, self.Dtype, self.Scalar, self.Fresh, self.RunTime, self.Site)
        return words | {"max": dim_max, "min": dim_min} | {method.__name__: method for method in methods}

    def trees(self) -> dict[str, Callable[..., Any]]:
        return {
            "ArrayLeaf": lambda name, dims, ordered=False: abi.ArrayLeaf(self.Dtype(name), dims, ordered),
            "ScalarLeaf": lambda name: abi.ScalarLeaf(self.Dtype(name)),
            "NumberLeaf": lambda name: abi.NumberLeaf(_KINDS[name]),
            "SizeLeaf": abi.SizeLeaf,
            "AnyLeaf": abi.AnyLeaf,
            "StaticLeaf": abi.StaticLeaf,
            "Sequence": lambda name, children: abi.Sequence(_KINDS[name], children),
            "Dictionary": abi.Dictionary,
        }

    def _numbered(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def numbered(*args: Any, **keywords: Any) -> Any:
            made = make(*args, **keywords)
            self.nodes.append(made)
            return made

        return numbered

    def Plan(
        self, title: str, dims: tuple, library: str, least: dict | None = None, sites: tuple = (), **rest: Any
    ) -> Plan:
        return Plan(title, dims, least or {}, library, rest, sites, list(self.rooms.values()))

    def node(self, number: int) -> Any:
        return self.nodes[number]

    def Room(self, name: str, size: int) -> Room:
        return self.rooms.setdefault(name, Room(name, size))

    def Dtype(self, name: str) -> np.dtype:
        return SHORT.get(name) or np.dtype(name)

    def Scalar(self, name: str, held: bytes) -> Any:
        return np.frombuffer(held, SHORT[name])[0]

    def Fresh(self, name: str, dims: tuple, form: str) -> abi.Fresh:
        return abi.Fresh(self.Dtype(name), dims, form)

    def RunTime(self, name: str, rank: int) -> abi.RunTime:
        return abi.RunTime(self.Dtype(name), rank)

    def Site(
        self, kind: str, exception: str, message: str, span: Any, dtypes: tuple, ranks: tuple, holds: tuple
    ) -> Site:
        return Site(kind, exception, message, span, tuple(map(self.Dtype, dtypes)), ranks, holds)


# ---- what sites do -----------------------------------------------------------------------------------------------


def site_table(sites: Sequence[Site]) -> errors.SiteTable:
    """What the failing sites of a program raise."""
    return errors.SiteTable(
        tuple(
            errors.Site(s.exception or "RuntimeError", s.message, (s.span,) if s.span else (), s.dtypes, s.holds)
            for s in sites
        )
    )


def raiser(table: errors.SiteTable, rooms: Sequence[Room] = ()) -> Callable[..., None]:
    """Raises what a site stands for; where a list is full it has more room in the run that follows."""
    if not rooms:
        return table.raise_site

    def raise_site(site: int, iteration: int, values: tuple) -> None:
        try:
            table.raise_site(site, iteration, values)
        except ListFull as full:
            make_room(rooms, full)
            raise

    return raise_site


def callbacks_of(sites: Sequence[Site]) -> tuple:
    """A callback for every ordered site, None for the others; empty when there is no ordered site."""
    table = tuple(_callback(site) if site.kind != "check" else None for site in sites)
    return table if any(table) else ()


def _callback(site: Site) -> abi.CallbackSite:
    ranks = site.ranks or (0,) * len(site.dtypes)
    operands = tuple(zip(site.dtypes, ranks))
    if site.kind == "callback":
        return abi.CallbackSite(callback(site.exception), operands, site.holds)
    return abi.CallbackSite(_warner(site) if site.kind == "warn" else _printer(site), operands)


def _printer(site: Site) -> Callable[..., None]:
    stream, *flush = site.exception.split()

    def show(*values: Any) -> None:
        text = site.message.format(*map(printed, values))
        print(text, end="", file=getattr(sys, stream), flush=bool(flush))

    return show


def _warner(site: Site) -> Callable[..., None]:
    (above,), category = site.holds, exception_class(site.exception)

    def warn(*values: Any) -> None:
        warn_user(category, site.message.format(*map(printed, values)), site.span, above)

    return warn


__all__ = ["Plan", "Reader", "Stale", "callbacks_of", "raiser", "site_table"]
