"""Errors as values: a program that fails becomes one that says what failed.

In: a Function with checks. Out: the same without those that are wanted as values, with more results: the number of the
site that failed, 0 where none did, and the numbers that its message shows, as 64 bits each. Example, shortened:

    def f(T: f64[3], k: i64) -> f64:                 def f(T: f64[3], k: i64) -> (f64, i64, i64):
        inside = lt(k, 3)                                inside = lt(k, 3)
        check(inside, k, exception="IndexError", ...)    error = select(inside, 0, 1)
        y = gather(T, k)                                 y = cond(inside, T, k; branches=(0.0, gather(T, k)))
        return y                                         return y, error, k

Where an error is, what may do harm does not run: reads and stores at places that a check was for, loops that might not
end, printing. Each is in a branch on "no error yet", of which the other side gives zeros, or what an array was before
the store. Other operations run on. A loop carries its error, and ends with it; one whose iterations leave rows goes on,
doing nothing. Lanes of a parallel loop have an error each, of which the first is kept.

All of it is made of branches, loops and numbers: derivatives, lanes, NumPy source and native code know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from metaphrase.core.build import Builder, literal
from metaphrase.core.facts import Facts
from metaphrase.core.guarded import is_count, most, needs_a_check
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.loops import Loop, Parts, Step
from metaphrase.core.types import Array, bool_, i64, type_symbols
from metaphrase.effects import printed
from metaphrase.ops.arithmetic import add
from metaphrase.ops.arrays import zeros
from metaphrase.ops.collectives import axes_of
from metaphrase.ops.compare import and_, ge, ne, not_, select
from metaphrase.ops.indexing import gather
from metaphrase.ops.reduce import argmax, reduce_any
from metaphrase.ops.regions import cond
from metaphrase.ops.shape import convert
from metaphrase.source import UnsupportedError

from .checked_parts import (
    CLEAN,
    Failure,
    State,
    after,
    before,
    carries_error,
    closed,
    encoded,
    ending,
    error_variables,
    first_failing,
    free_variables,
    here,
    is_open,
    last_uses,
    made_by,
    names_size,
    size_check,
    slots_of,
    stopped,
    with_outs,
)
from .common import renamed, variables

_REGIONS = ("cond", "loop", "call", "checkpoint")  # whose regions give what they make to the Let, and no more


def errors_as_results(
    function: Function, is_wanted: Callable[[Let], bool], facts: Facts
) -> tuple[Function, tuple[Failure, ...]]:
    """See the head of this file. `is_wanted` says of a check whether its error becomes a value; `facts` are those of
    the sizes of the parameters. Raises UnsupportedError where a result has a size that is not known if a check failed
    before it."""
    making = _Checked(is_wanted, facts, function.params)
    return making.function(function, making.width(function)), tuple(making.failures)


class _Checked:
    def __init__(self, is_wanted: Callable[[Let], bool], facts: Facts, given: Sequence[Var]):
        self.is_wanted, self.facts, self.given = is_wanted, facts, frozenset(given)
        self.failures: list[Failure] = []
        self.widths: dict[Function, int] = {}
        self.makers: dict[Var, Let] = {}  # the operation that made a variable, in all functions
        self.made: dict[tuple[Function, int], Function] = {}

    # ---- what is to be done -------------------------------------------------------------------------------------

    def is_check(self, let: Let) -> bool:
        return let.primitive.name == "check" and self.is_wanted(let)

    def width(self, function: Function) -> int:
        """How many numbers the messages of a function need at most; -1 where it has no check that is wanted."""
        if function not in self.widths:
            self.makers.update((v, let) for let in function.lets for v in let.outs)
            self.widths[function] = max(map(self.width_of, function.lets), default=-1)
        return self.widths[function]

    def width_of(self, let: Let) -> int:
        if self.is_check(let):
            return sum(map(slots_of, set(variables(let.args[1:]))))
        if names_size(let):
            return 0 if self.is_wanted(size_check(let)) and not self.is_counted(let) else -1
        if let.primitive.name not in _REGIONS:
            return -1
        return max(map(self.width, let.regions()), default=-1)

    def is_counted(self, let: Let) -> bool:
        return bool(let.attributes.get("counted")) or is_count(let.args[0], self.makers)

    def ends_known_sizes(self, let: Let) -> bool:
        """Whether sizes depend on what was computed where an error may be: they may be anything."""
        if let.own_symbols() and not (is_open(let) or names_size(let)):
            return True
        return not all(self.facts.nonnegative(dim) for v in let.outs for dim in v.type.dims)

    def is_harmful(self, let: Let) -> bool:
        """Whether an operation must not run where an error is."""
        if let.effects or let.primitive.stores or is_open(let):
            return True
        if let.primitive.region:
            return any(self.is_harmful(inner) for region in let.regions() for inner in region.lets)
        return needs_a_check(let) and any(a.type.dims for a in let.args) and not self.is_inside(let)

    def is_inside(self, let: Let) -> bool:
        """Whether what is read of an array is there, whatever the numbers of the run are."""
        if not let.primitive.takes or not all(isinstance(a, Literal) for a in let.args[1:]):
            return False
        places, dims = [int(a.value) for a in let.args[1:] if isinstance(a, Literal)], let.args[0].type.dims
        axes = let.attributes.get("axes", range(len(dims)))
        steps = let.attributes.get("step", (1,) * len(places))
        shape = let.attributes.get("shape", (1,) * len(places))
        for axis, first, step, length in zip(axes, places, steps, shape):
            last = first + (length - 1) * step
            low, high = (first, last) if step > 0 else (last, first)
            if not (self.facts.less_equal(0, low) and self.facts.less(high, dims[axis])):
                return False
        return True

    # ---- programs -----------------------------------------------------------------------------------------------

    def function(self, function: Function, width: int) -> Function:
        """A function with its error behind its results."""
        key = function, width
        if key not in self.made:
            with Builder(function.name) as builder:
                builder.params = list(function.params)
                results, state = self.run(function.lets, function.results, CLEAN)
                self.made[key] = builder.function((*results, state.code, *state.wide(max(width, 0))))
        return self.made[key]

    def run(self, lets: Sequence[Let], results: Sequence[Atom], state: State) -> tuple[Sequence[Atom], State]:
        """Bind the operations in the current builder. Returns the results and what is known at the end."""
        builder = here()
        last = last_uses(lets, results)
        k = 0
        while k < len(lets):
            let, builder.span = lets[k], lets[k].span
            if state.going is not None and self.ends_known_sizes(let):
                return self.nested(lets[k:], results, state)
            if self.is_check(let):
                state = self.check(let, state)
            elif names_size(let):
                state = self.size(let, state)
            elif self.width_of(let) >= 0 and (state.going is None or carries_error(let)):
                state = self.region(let, state)
            elif state.going is not None and (self.width_of(let) >= 0 or self.is_harmful(let)):
                end = self.end_of_group(lets, k, last)
                state = self.guarded(lets[k:end], [v for v in made_by(lets[k:end]) if last.get(v, -1) >= end], state)
                k = end
                continue
            else:
                builder.lets.append(let)
            k += 1
        return results, state

    def end_of_group(self, lets: Sequence[Let], start: int, last: dict[Var, int]) -> int:
        """Where the operations end that share a branch: behind the last that must not run where an error is, and
        before the next that may fail itself."""
        end = start + 1
        if self.width_of(lets[start]) >= 0 or is_open(lets[start]) or axes_of(lets[start]):
            return end
        for k in range(start + 1, len(lets)):
            let = lets[k]
            if self.width_of(let) >= 0 or let.own_symbols() or axes_of(let) or self.ends_known_sizes(let):
                break
            if any(v.type.value is not None and last.get(v, -1) > k for v in let.outs):
                break
            if self.is_harmful(let):
                end = k + 1
        return end

    # ---- one check ----------------------------------------------------------------------------------------------

    def check(self, let: Let, state: State) -> State:
        ok, *values = let.args
        if isinstance(ok, Literal) and ok.value or 0 in ok.type.dims:
            return state
        site = literal(self.site(let), i64)
        if isinstance(ok, Var) and ok.type.dims:
            ok, slots = first_failing(ok, values)
        else:
            slots = encoded(values)
        if state.going is None:
            return State(renamed(select(ok, literal(0, i64), site), "error", here()), tuple(slots), ok)
        fails, wide = and_(state.going, not_(ok)), state.wide(len(slots))
        kept = [renamed(select(fails, new, old), "shown", here()) for new, old in zip(slots, wide)]
        code = renamed(select(fails, site, state.code), "error", here())
        return State(code, (*kept, *wide[len(slots) :]), and_(state.going, ok))

    def size(self, let: Let, state: State) -> State:
        """A number that becomes a size: a check that it is not negative, unless it is a count; 0 where an error is."""
        number, attributes = let.args[0], dict(let.attributes)
        self.facts = self.facts.bounded(attributes["size"], 0, most(number, self.makers))
        if self.width_of(let) >= 0:
            atom = convert(number, dtype=i64)
            state = self.check(size_check(let, ge(atom, literal(0, i64))), state)
        if state.going is not None and not (self.is_counted(let) and number in self.given):
            number = select(state.going, convert(number, dtype=i64), literal(0, i64))
            attributes["counted"] = self.width_of(let) >= 0 or self.is_counted(let)
        here().lets.append(Let(let.outs, let.primitive, (number,), attributes, let.span))
        return state

    def site(self, let: Let) -> int:
        """The number of what a check raises."""
        attributes = let.attributes
        places: dict[Atom, int] = {}
        count = 0
        for value in dict.fromkeys(variables(let.args[1:])):
            places[value] = count
            count += slots_of(value)
        values = tuple(
            (a.type.dtype, printed(a.value) if isinstance(a, Literal) else None, places.get(a, 0)) for a in let.args[1:]
        )
        holds = attributes.get("holds", ())
        failure = Failure(attributes["exception"], attributes["message"], holds, values, let.span)
        if failure not in self.failures:
            self.failures.append(failure)
        return self.failures.index(failure) + 1

    # ---- operations that stand behind a check -------------------------------------------------------------------

    def guarded(self, lets: Sequence[Let], live: Sequence[Var], state: State) -> State:
        """A branch with these operations, taken where there is no error; `live`: what is read of them later."""
        (let,) = lets[:1]
        if is_open(let):
            assert state.going is not None
            here().lets.append(stopped(let, state.going))
            return state
        width = max(map(self.width_of, lets))
        outs, state = self.branch(lets, live, before(lets, live), state, width)
        builder = here()
        place = max(k for k, let in enumerate(builder.lets) if let.outs[: len(outs)] == tuple(outs))
        builder.lets[place] = with_outs(builder.lets[place], [*live, *builder.lets[place].outs[len(live) :]])
        return state

    def nested(self, lets: Sequence[Let], results: Sequence[Atom], state: State) -> tuple[Sequence[Atom], State]:
        """All that is left of a program as one branch."""
        bound = frozenset().union(*(let.own_symbols() for let in lets))
        for result in results:
            if type_symbols(result.type) & bound or not all(map(self.facts.nonnegative, result.type.dims)):
                raise UnsupportedError(
                    "a result has a size that is not known where an error is",
                    lets[0].span,
                    code="checked",
                    remedy="return an array of a size that is known, or leave this error out of `errors`",
                )
        width = max(map(self.width_of, lets), default=-1)
        return self.branch(lets, results, [None] * len(results), state, width)

    def branch(
        self, lets: Sequence[Let], results: Sequence[Atom], instead: Sequence[Atom | None], state: State, width: int
    ) -> tuple[Sequence[Atom], State]:
        """The results of operations where no error is yet, else `instead` (zeros, for None). `width`: as of them."""
        assert state.going is not None
        fails = width >= 0
        wide = state.wide(width) if fails else ()
        more = (state.code, *wide) if fails else ()
        with Builder("go_on") as body:
            body.span = lets[0].span
            made, end = self.run(lets, results, CLEAN)
            then = body.function((*made, *((end.code, *end.wide(len(wide))) if fails else ())))
        with Builder("leave") as body:
            body.span = lets[0].span
            other = [zeros(r.type.plain) if i is None else i for r, i in zip(results, instead)]
            leave = body.function((*other, *more))
        free = free_variables((then, leave))
        outs = cond(state.going, *free, branches=(closed(leave, free), closed(then, free)))
        if not fails:
            return outs, state
        for var, name in zip(outs[len(results) :], error_variables(len(wide))):
            var.name = name.name
        return outs[: len(results)], after(outs[len(results) :])

    # ---- branches, calls and loops with checks in them ------------------------------------------------------------

    def region(self, let: Let, state: State) -> State:
        width = self.width_of(let)
        if let.primitive.name == "loop":
            loop = Loop.of(let)
            return self.loop(loop, width, state) if carries_error(let) else self.lanes(loop, width)
        attributes = dict(let.attributes)
        for key, value in attributes.items():
            if isinstance(value, Function):
                attributes[key] = self.function(value, width)
            elif isinstance(value, tuple) and any(isinstance(v, Function) for v in value):
                attributes[key] = tuple(self.function(v, width) for v in value)
        more = error_variables(width)
        here().lets.append(Let((*let.outs, *more), let.primitive, let.args, attributes, let.span))
        return after(more)

    def loop(self, loop: Loop, width: int, state: State) -> State:
        """A loop that carries its error."""
        width = max(width, len(state.slots))
        test = loop.condition if loop.condition is not None and self.width(loop.condition.function) >= 0 else None
        goes_on = loop.condition is None and bool(loop.results.stacked or loop.more.get("reverse"))
        error = error_variables(width)
        more = error if test is None else [Var("again", Array(bool_)), *error]
        start: Sequence[Atom] = (state.code, *state.wide(width))
        if test is not None:
            start = self.asked(
                test.function, (literal(0, i64), *loop.args.asked), replace(state, slots=tuple(start[1:]))
            )
        held = [Var(v.name, v.type) for v in more]
        params = loop.params.replace(carries=(*loop.params.carries, *held))
        with Builder(loop.body.function.name) as body:
            body.span, body.params = loop.span, [loop.index, *params]
            results, end = self.iteration(loop, held[-1 - width :], goes_on)
            ended: Sequence[Atom] = (end.code, *end.wide(width))
            if test is not None:
                later = add(loop.index, literal(1, i64))
                end = replace(end, slots=tuple(ended[1:]))
                ended = self.asked(test.function, (later, *loop.params.consts, *results.carries), end)
            results = results.replace(carries=(*results.carries, *ended))
            made = Step(body.function((*results,)), params, results)
        args = loop.args.replace(carries=(*loop.args.carries, *start))
        outs = loop.outs.replace(carries=(*loop.outs.carries, *more))
        made_loop = replace(loop, args=args, body=made, outs=outs)
        here().lets.append((made_loop if goes_on else ending(made_loop, loop.condition, width, test)).let())
        return after(error)

    def iteration(self, loop: Loop, error: Sequence[Var], goes_on: bool) -> tuple[Parts[Atom], State]:
        """The body, which an error may be before if the loop goes on then: it does nothing more."""
        lets, given = loop.body.lets, loop.body.results
        if not goes_on:
            results, state = self.run(lets, (*given,), CLEAN)
        elif given.segments:  # sizes that are bound here can't leave a branch
            results, state = self.run(lets, (*given,), after(error))
        else:
            kept = given.replace(
                carries=loop.params.carries, accumulators=loop.params.accumulators, rows=[None] * len(given.rows)
            )
            results, state = self.branch(lets, (*given,), (*kept,), after(error), len(error) - 1)
        return given.like(results), state

    def asked(self, test: Function, args: Sequence[Atom], state: State) -> Sequence[Atom]:
        """Whether a loop goes on, by a condition that may fail, and the error after it was asked."""
        made = self.function(test, len(state.slots))
        if state.going is None:
            return here().replay(made, args)
        held = [Var(v.name, v.type) for v in (*made.params, *error_variables(len(state.slots)))]
        error = held[len(args) :]
        with Builder(test.name) as body:
            again = body.function(body.replay(made, held[: len(args)]))
        then = Function(test.name, tuple(held), again.lets, again.results)
        held = [Var(v.name, v.type) for v in held]
        leave = Function("leave", tuple(held), (), (literal(False), *held[-len(error) :]))
        return cond(state.going, *args, state.code, *state.slots, branches=(leave, then))

    def lanes(self, loop: Loop, width: int) -> State:
        """A parallel loop, whose iterations leave an error each: the first is kept."""
        if loop.length == 0:
            here().lets.append(loop.let())
            return CLEAN
        with Builder(loop.body.function.name) as body:
            body.span, body.params = loop.span, list(loop.body.function.params)
            made, state = self.run(loop.body.lets, loop.body.function.results, CLEAN)
            results = loop.results.like(made)
            results = results.replace(rows=(*results.rows, state.code, *state.wide(width)))
            step = Step(body.function((*results,)), loop.params, results)
        assert loop.length is not None
        rows = [Var(v.name, Array(i64, (loop.length,))) for v in error_variables(width)]
        outs = loop.outs.replace(rows=(*loop.outs.rows, *rows))
        here().lets.append(replace(loop, body=step, outs=outs).let())
        failed = ne(rows[0], zeros(rows[0].type))
        with Builder("first") as first:
            first.span = loop.span
            place = argmax(convert(failed, dtype=i64), axes=(0,))
            picked = first.function([gather(row, place, axes=(0,)) for row in rows])
        none = Function("none", (), (), (literal(0, i64),) * len(rows))
        free = free_variables((picked,))
        there = reduce_any(failed, axes=(0,))
        first_error = cond(there, *free, branches=(closed(none, free), closed(picked, free)))
        return after(first_error)


__all__ = ["Failure", "errors_as_results"]
