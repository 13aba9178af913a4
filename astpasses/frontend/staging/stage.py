"""Staging by execution: a Python function, converted, is run with abstract arrays; what it does is a core
program.

In: a function, arguments (arrays, numbers, types of arrays, or any static Python values). Out: `Staged`.

    stage(period, (0.3, 1.0)).function
        def period(e: f64, M: f64) -> f64:
            trips, E = loop(e, M, M, body=body, cond=test, ...)
            return E

Where staging turns out to need the value of a number, that argument is pinned to it and staging begins again.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from metaphrase import tree_util
from metaphrase.core.build import literal
from metaphrase.core.dims import in_users_words
from metaphrase.core.ir import Var
from metaphrase.core.types import Array, CoreTypeError, dtype_name
from metaphrase.interpreter import deep_calls, signature_of
from metaphrase.late import log
from metaphrase.source import SourceError, Span, UnsupportedError, caller_span

from ..calls import tables  # noqa: F401  (registers the handlers)
from ..calls.call import call_value
from ..flow.branches import raised_here
from ..flow.raised import emit_raise, raises_later
from ..flow.stacks import NeedStack, refuse_printing
from ..operators.kinds import WEAK
from ..values.orders import rearranges
from ..values.sources import SEQUENCES, NumberSource, ObjectSource, room_of
from ..values.staged_values import Box, Number, StagedArray
from .closing import close
from .decisions import Decisions
from .demand import asked_outside
from .literals import lift
from .outputs import Collector
from .python_names import in_python_words
from .session import Session
from .signals import BranchRaised, NeedConcrete, Refusal, Restart, TrialOver
from .staged import Shared, Staged
from .users_code import guard_class

_RESTARTS = 64


def stage(
    function: Callable,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    static: Collection[int | str] = (),
) -> Staged:
    """Stage a call of `function`. `static`: positions and names of arguments that are taken as they are."""
    decisions = Decisions()
    for _ in range(_RESTARTS):
        attempt = _Staging(function, tuple(args), dict(kwargs or {}), frozenset(static), decisions)
        try:
            with deep_calls():
                return attempt.run()
        except Restart:
            continue
        except RecursionError:
            raise RecursionError(
                f"maximum recursion depth exceeded while translating '{_name(function)}': a function calls "
                "itself too deep, or without end; write the recursion as a loop"
            ) from None
        except Exception as error:
            place = getattr(error, "otherwise", None)  # reads an item of a list: out of all of them, then
            if attempt.here.gathers_few and not decisions.plain_lists:
                decisions = Decisions(plain_lists=True)
                log.info("items of lists that loops make are kept apart: %s", str(error).partition("\n")[0])
            elif place is not None and place not in decisions.stacked:
                decisions.stacked.add(place)
            elif not attempt.without_numbers(error):
                raise
    raise UnsupportedError(
        "staging does not settle: too many arguments are needed as Python values",
        code="restarts",
        remedy="mark the arguments static",
    )


class _Staging:
    """One attempt, under the decisions of earlier ones."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict, static: frozenset, decisions: Decisions):
        self.function, self.args, self.kwargs, self.static = function, args, kwargs, static
        self.decisions = decisions
        self.here = Session(_name(function), decisions)
        self.leaves, self.in_tree = tree_util.tree_flatten((args, kwargs))
        for thing in _held_by(function):
            self.here.given[id(thing)] = thing
        self.dynamic: list[int] = []
        self.fixed: list[tuple[int, Any]] = []
        self.params: list[Var] = []
        self.weak: list[type | None] = []
        self.boxes: dict[int, StagedArray] = {}
        self.shared: dict[int, int] = {}
        self.same: list[tuple[int, int]] = []

    def run(self) -> Staged:
        here = self.here
        with here:
            try:
                try:
                    return self._run()
                finally:
                    here.journal.undo(0)
            except NeedConcrete as need:
                raise self.pin(need) from None
            except NeedStack as need:
                raise UnsupportedError(need.why, need.span, remedy=need.remedy, code="trial") from need
            except TrialOver as over:
                reason = in_users_words(over.reason)
                error = UnsupportedError(reason, over.span, remedy=over.remedy, code="trial")
                raise over.handed_on(error) from over
            except Refusal as refusal:
                if isinstance(refusal.error, SourceError):
                    refusal.error.message = in_users_words(refusal.error.message)
                raise refusal.error from None
            except BranchRaised as raised:
                raise raised.exception from None
            except SourceError as error:
                error.span = error.span or self.definition()
                error.message = in_users_words(error.message)
                raise
            except (TypeError, AttributeError) as error:
                in_python_words(error, ())
                raise

    def definition(self) -> Span | None:
        """Where the function is defined, for errors that have no better place."""
        function = getattr(self.function, "__func__", self.function)
        if not isinstance(function, types.FunctionType):
            return caller_span()
        return Span(function.__code__.co_filename, function.__code__.co_firstlineno)

    def _run(self) -> Staged:
        here = self.here
        values = self.arguments()
        args, kwargs = tree_util.tree_unflatten(self.in_tree, values)
        collector = Collector(here, self.boxes)
        collector.note_containers((self.args, self.kwargs), (args, kwargs))
        for container in collector.containers.values():
            here.born(container[1])
            here.journal.containers.add(id(container[1]))
        here.journal.forget(lambda owner: here.is_fresh(owner, 0))
        here.region.fresh.clear()
        raises = False
        try:
            result = call_value(self.function, args, kwargs)
        except BranchRaised as raised:
            if not raised.told and not raises_later(here, raised.exception):
                raise
            if not raised.told:
                emit_raise(here, literal(False), raised)
            raises, result = True, None  # never reached
        except Exception as error:
            if isinstance(error, SourceError) or not raises_later(here, error):
                raise
            emit_raise(here, literal(False), raised_here(here, error))
            raises, result = True, None
        out_tree, outputs = collector.outputs(result)
        writes = collector.writes()
        captures = list(here.captures.values())
        params = [param for _, param in captures] + self.params
        if any(room_of(source) for source, _ in here.captures.values()):
            refuse_printing(here)
        function = close(here.regions[0], here.regions[0].builder.name, params, collector.results)
        here.journal.undo(0)
        if self.decisions.orders == "taken" and (here.layouts.otherwise or rearranges(function)):
            self.decisions.orders = "unknown"
            raise Restart()
        return Staged(
            function,
            tuple(source for source, _ in captures),
            self.in_tree,
            out_tree,
            tuple(here.guards.values()),
            tuple(writes),
            tuple(outputs),
            tuple(self.dynamic),
            tuple(self.fixed),
            tuple(self.weak),
            tuple(sorted(self.decisions.pinned)),
            dict(self.decisions.pinned),
            tuple(self.same),
            tuple(k for k, given in self.boxes.items() if given.box.first in here.layouts.ordered),
            raises,
        )

    # --- arguments ---

    def arguments(self) -> list[Any]:
        names = self.leaf_names()
        frozen = self.static_leaves() | self.decisions.pinned.keys()
        return [(self.fix if k in frozen else self.argument)(k, leaf, names[k]) for k, leaf in enumerate(self.leaves)]

    def fix(self, k: int, leaf: Any, name: str = "") -> Any:
        """A leaf that the program is made for. What can be changed in place is read at each call."""
        self.fixed.append((k, leaf))
        self.here.given[id(leaf)] = leaf
        guard_class(self.here, type(leaf))
        if k not in self.decisions.pinned and isinstance(leaf, (set, *SEQUENCES)):
            return lift(self.here, leaf, ObjectSource(leaf, name))
        return leaf

    def static_leaves(self) -> set[int]:
        """Numbers of the leaves that belong to static arguments."""
        if not self.static:
            return set()
        found: set[int]
        found, k = set(), 0
        parts = [*enumerate(self.args), *((key, self.kwargs[key]) for key in sorted(self.kwargs))]
        parameters = self.parameter_names()
        for label, value in parts:
            count = len(tree_util.tree_leaves(value))
            named = parameters[label] if isinstance(label, int) and label < len(parameters) else label
            if label in self.static or named in self.static:
                found.update(range(k, k + count))
            k += count
        return found

    def parameter_names(self) -> list[str]:
        try:
            parameters = list(signature_of(self.function).parameters.values())
        except (TypeError, ValueError):
            return []
        return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    def leaf_names(self) -> list[str]:
        """A name for each leaf: that of its parameter, and its keys."""
        names, parameters = [], self.parameter_names()
        for path, _ in tree_util.tree_leaves_with_path((self.args, self.kwargs)):
            keys = [str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path[1:]]
            if path[0].idx == 0:
                position = int(keys[0])
                keys[0] = parameters[position] if position < len(parameters) else f"argument_{position}"
            text = "_".join(keys)
            names.append(text if text.isidentifier() else "argument")
        return names

    def argument(self, k: int, leaf: Any, name: str) -> Any:
        """A leaf as user code sees it: staged, or itself if it is static."""
        here = self.here
        if isinstance(leaf, Shared):
            first = self.shared.setdefault(id(leaf), k)
            if first != k:
                self.same.append((k, first))
                return self.boxes[first]
            leaf = np.zeros((), leaf.type.dtype) if not leaf.type.dims else leaf.type
        found = _type_of_leaf(leaf)
        if found is None:
            return self.fix(k, leaf, name)
        type_, python = found
        param = Var(name, type_)
        self.params.append(param)
        self.dynamic.append(k)
        self.weak.append(python)
        here.know_symbols(type_)
        if type_.dims or isinstance(leaf, np.ndarray) or isinstance(leaf, StagedArray):
            writeable = leaf.flags.writeable if isinstance(leaf, np.ndarray) else True
            made = StagedArray(Box(here, param, origin=("argument", k)), writeable=writeable)
            self.boxes[k] = made
            return made
        if python is not None:
            here.origins[param] = ("argument", k)
        return Number(here, param, python)

    # --- pinning ---

    def numbers(self) -> list[NumberSource]:
        """The captured numbers that this attempt takes as arguments."""
        return [source for source, _ in self.here.captures.values() if isinstance(source, NumberSource)]

    def without_numbers(self, error: Exception) -> bool:
        """After an error: whether there are captured numbers that were not constants, which they are from now on."""
        found = self.numbers()
        for source in found:
            self.decisions.constant.add(source.place.key())
            problem = str(error).partition("\n")[0]
            told = "%s is taken as it is, %r, and the program is translated for each value: %s"
            log.info(told, source, source.read(), problem)
        return bool(found)

    def pin(self, need: NeedConcrete) -> BaseException:
        """Restart with the needed numbers pinned and their loops unrolled; or the error when that can't help."""
        arguments = {root[1] for root in need.roots if root[0] == "argument"}
        captured = {root[1] for root in need.roots if root[0] == "captured"}
        loops = {root[1] for root in need.roots if root[0] == "loop"} - set(self.decisions.unrolled)
        outer = [self.here.captures[root][0] for root in need.roots if root[0] == "outer"]
        outer += [self.leaves[k] for k in arguments if isinstance(self.leaves[k], Number)]
        if outer and (asked := asked_outside(need, outer)):
            return asked
        known = all(isinstance(self.leaves[k], (int, float, complex)) for k in arguments)
        known = known and (need.most is None or all(self.leaves[k] <= need.most for k in arguments))
        hopeless = any(root[0] in ("array", "size", "carry", "outer") for root in need.roots) or not known
        if self.here.gathers_few and not self.decisions.plain_lists and (hopeless or ("list",) in need.roots):
            self.decisions.plain_lists = True
            self.decisions.rolled.clear()
            return Restart()
        if need.refusal is not None and (hopeless or not (arguments or loops)):
            return need.refusal
        if hopeless or not (arguments or captured or loops):
            error = UnsupportedError(
                f"the program needs {need.why} here, which is only known when it runs",
                need.span,
                remedy=need.remedy or "make the argument static, or compute with array operations",
                code="concrete",
            )
            return need.handed_on(error)
        for k in arguments:
            self.decisions.pinned[k] = (need.why, need.span, need.remedy)
            log.info("%s: argument leaf %d is pinned to %r: %s is needed", need.span, k, self.leaves[k], need.why)
        for source in self.numbers():
            if source.place.key() in captured:
                self.decisions.constant.add(source.place.key())
                log.info("%s: %s is pinned to %r: %s is needed", need.span, source, source.read(), need.why)
        if (count := len(self.decisions.pinned)) > 8:
            told = "%s: %d arguments are pinned to their values; each new value is staged anew"
            log.warning(told, need.span, count)
        for site in loops:
            self.decisions.unrolled[site] = TrialOver(
                f"what it computes is needed while translating, as {need.why}",
                need.span,
                need.remedy or "compute it outside of the function, and pass it",
            )
        return Restart()


def _held_by(function: Any) -> list[Any]:
    """The objects that a callable brings along: a method's, a partial's arguments, its own."""
    if isinstance(function, types.MethodType):
        return [function.__self__]
    if isinstance(function, functools.partial):
        return [*_held_by(function.func), *function.args, *function.keywords.values()]
    return [] if isinstance(function, types.FunctionType) else [function]


def _type_of_leaf(leaf: Any) -> tuple[Array, type | None] | None:
    """The core type of a dynamic leaf and its Python type if weak; None for a static leaf."""
    if isinstance(leaf, (bool, str, bytes)) or callable(leaf) and not hasattr(leaf, "dtype"):
        return None
    if isinstance(leaf, Number):
        return leaf.type, leaf.python
    if isinstance(leaf, StagedArray):
        return leaf.type, None
    if isinstance(leaf, Array):
        return leaf.plain, None
    for kind in (int, float, complex):
        if isinstance(leaf, kind) and not isinstance(leaf, np.generic):
            return Array(WEAK[kind]), kind
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        try:
            dtype_name(leaf.dtype)
        except (CoreTypeError, TypeError):
            return None
        weak: dict[str, type] = {"i": int, "f": float, "c": complex} if getattr(leaf, "weak_type", False) else {}
        return Array(np.dtype(leaf.dtype), tuple(leaf.shape)), weak.get(np.dtype(leaf.dtype).kind)
    return None


def _name(function: Any) -> str:
    name = getattr(function, "__name__", None) or getattr(getattr(function, "func", None), "__name__", None) or ""
    return name if name.isidentifier() else "function"
