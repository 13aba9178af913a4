"""The loops stage: core in, a scheduled Program out.

schedule(f)                     for the target there is; schedule(f, target) for another one
schedule(f, fuse=False)         the same without fusion: the standing oracle (METAPHRASE_FUSE=0)
schedule(f, writes={1: 0})      result 1 is the new value of parameter 0, and may be made in its storage
schedule(f, bounds=False)       indices are not checked
schedule(f, checked=True)       the rules of the tree are looked at in the end (check.py); after each pass with
                                METAPHRASE_CHECK=1

`PASSES` is data, as in optimize: each has a name, a function from Program to Program, and the reason why it stands
where it does. Before the first of them, composites are written out (expand.py) and each operation becomes nests of its
own (lower.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from metaphrase.core.ir import Function
from metaphrase.late import dataclass

from . import library, lower_arrays, lower_regions  # noqa: F401 - they register their rules
from . import target as targets
from .called_ahead import called_ahead
from .carried_sums import with_carried_sums
from .chains import in_chains
from .check import CheckError, check
from .choices import with_choices
from .columns import columns_as_rows
from .copies import without_copies
from .digits import in_digits
from .expand import expand
from .fold import fold
from .fuse import Limits, fuse_block
from .interchange import interchange
from .jam import jam
from .join import join_loops
from .kernels import kernels
from .lanes import in_lanes
from .late_checks import late_checks
from .lockstep import lockstep
from .lower import lower
from .nest import Fn, Program, Stmt
from .outline import outline
from .overwritten import without_overwritten
from .perfect import perfect
from .place import make_room, place
from .promote import promote
from .quotients import without_quotients
from .rename import name_indices, names_in_use
from .results import in_results
from .reuse import reuse
from .rounds import in_rounds
from .selections import in_selections
from .share import share
from .shrink import shrink
from .stale import without_stale_rows
from .strips import in_strips
from .tables import with_tables
from .target import Target
from .twins import merge_twins
from .vectors import in_vectors
from .waves import in_waves
from .wrapped import without_remainders


@dataclass(frozen=True)
class Pass:
    """One pass. `fused`: whether it runs only where nests are fused (True) or not (False); None: always."""

    name: str
    run: Callable[[Program], Program]
    why: str
    fused: bool | None = None


def _each(rule: Callable[[Fn, Target], tuple[Stmt, ...]]) -> Callable[[Program], Program]:
    """The pass that gives every function the body that `rule` makes of it."""

    def run(program: Program) -> Program:
        entry, *fns = (fn.with_body(rule(fn, program.target)) for fn in (program.entry, *program.fns))
        return replace(program, entry=entry, fns=tuple(fns))

    return run


PASSES: tuple[Pass, ...] = (
    Pass("perfect", _each(perfect), "first: what fills an array in a loop overwrites it as a whole", fused=True),
    Pass(
        "overwritten",
        _each(without_overwritten),
        "early: of a nest that is fused with others no part can be left out",
        fused=True,
    ),
    Pass(
        "wrapped", _each(without_remainders), "before fuse, for which a place with a remainder is any place", fused=True
    ),
    Pass(
        "fuse",
        _each(lambda fn, target: fuse_block(fn.body, fn.facts, Limits.of(target))),
        "early: every other pass works on loops, and finds more to do in loops that are shared",
        fused=True,
    ),
    Pass(
        "separate",
        _each(lambda fn, target: fuse_block(fn.body, fn.facts, replace(Limits.of(target), streams=0))),
        "in place of fuse",
        fused=False,
    ),
    Pass(
        "join",
        _each(lambda fn, target: join_loops(fn.body, fn.facts, target)),
        "after fuse, which takes perfect nests only; before shrink, as fuse",
        fused=True,
    ),
    Pass(
        "chains",
        _each(in_chains),
        "after fuse and join, which leave such loops apart; before shrink, as fuse",
        fused=True,
    ),
    Pass(
        "shrink",
        _each(lambda fn, target: shrink(fn.body)),
        "after fuse, which puts what makes an array and what reads it into one loop",
        fused=True,
    ),
    Pass(
        "fold", _each(lambda fn, target: fold(fn.body)), "after shrink, which turns arrays into the variables it folds"
    ),
    Pass(
        "twins",
        _each(lambda fn, target: merge_twins(fn.body)),
        "after fold, which leaves `b[j] = t[j]` only where t is an array that has to be",
        fused=True,
    ),
    Pass(
        "promote",
        _each(lambda fn, target: promote(fn.body, fn.names, fn.facts, target)),
        "after twins, which decides in which array an element that a loop combines into lies",
    ),
    Pass("fold again", _each(lambda fn, target: fold(fn.body)), "what promote keeps in variables can be folded"),
    Pass(
        "rounds",
        _each(in_rounds),
        "on loops that are fused and folded: what is left between two sweeps is needed there",
        fused=True,
    ),
    Pass(
        "columns",
        _each(columns_as_rows),
        "on expressions as they will be: what an innermost loop reads is plain now",
        fused=True,
    ),
    Pass(
        "digits",
        _each(in_digits),
        "after columns and rounds, which look for loops of equal lengths; before share, which cuts the outer loop",
        fused=True,
    ),
    Pass(
        "late checks",
        _each(lambda fn, target: late_checks(fn.body, fn.names, _caller_sees(fn), target)),
        "before lockstep, which takes no loop that has checks",
        fused=True,
    ),
    Pass(
        "lockstep",
        _each(lambda fn, target: lockstep(fn.body, fn.names, target)),
        "before outline: it looks at what stands around a loop",
        fused=True,
    ),
    Pass(
        "called ahead",
        _each(called_ahead),
        "behind lockstep, for which a loop is one; before waves, in whose rounds functions would be called one by one",
        fused=True,
    ),
    Pass(
        "waves",
        _each(lambda fn, target: in_waves(fn, target, False)),
        "before share: what a round does behind the loop that waits may be shared once it is no longer in a round",
        fused=True,
    ),
    Pass(
        "results",
        lambda program: replace(program, entry=replace(program.entry, body=in_results(program.entry, program.target))),
        "after fold, which leaves copies as they are looked for; before selections, whose arrays they may be",
        fused=True,
    ),
    Pass("reuse", _each(reuse), "after results, which makes results of arrays that are copied", fused=True),
    Pass(
        "selections",
        _each(in_selections),
        "after fold and promote, which leave `y[i] = x[p]` as it is looked for; before share, which cuts the calls",
        fused=True,
    ),
    Pass(
        "share",
        share,
        "on loops that nothing joins or moves any more; before outline, which cuts what is left, and lanes, which "
        "cuts the sums of a part",
        fused=True,
    ),
    Pass(
        "quotients",
        _each(without_quotients),
        "behind share, whose parts it cuts; the lengths of its loops are known to the run only",
        fused=True,
    ),
    Pass(
        "interchange",
        _each(interchange),
        "behind share, which hands out the outer loops; before lanes, for whose sums there is no need then",
        fused=True,
    ),
    Pass("strips", _each(in_strips), "behind interchange, which turns other loops that read across memory", fused=True),
    Pass("jam", _each(jam), "behind interchange, which makes such loops; before outline, which moves them", fused=True),
    Pass(
        "waves of parts",
        _each(lambda fn, target: in_waves(fn, target, True)),
        "behind share, which cuts rounds that are independent into parts; before outline, as jam",
        fused=True,
    ),
    Pass("outline", outline, "before lanes, whose text would differ in nests that are equal"),
    Pass(
        "lanes",
        _each(lambda fn, target: in_lanes(fn.body, fn.names, fn.facts, target)),
        "on every function, and after all that looks for a loop that is a plain reduction",
    ),
    Pass(
        "copies",
        _each(without_copies),
        "behind what looks for a variable of one value, as lockstep and outline do; before kernels, which asks what a "
        "round of a loop wants of the one before it",
    ),
    Pass(
        "carried sums",
        _each(with_carried_sums),
        "behind copies, which leaves `s = s + x` of what two branches and a copy did; before kernels, which cuts them",
    ),
    Pass("choices", _each(with_choices), "behind copies, as carried sums", fused=True),
    Pass("room", _each(lambda fn, target: make_room(fn)), "when all temporaries are there"),
    Pass("kernels", kernels, "on loops as they will be, each of which is shown to be independent or not"),
    Pass("tables", with_tables, "behind kernels, of which each has its own"),
    Pass("names", _each(lambda fn, target: name_indices(fn.body, names_in_use(fn))), "when no loop is made any more"),
    Pass(
        "vectors",
        _each(lambda fn, target: in_vectors(fn.body, target)),
        "after lanes, whose loops over a rest are reductions, too; a mark changes no loop",
    ),
    Pass(
        "place",
        lambda program: replace(
            program,
            entry=place(program.entry, program.target),
            fns=tuple(place(fn, program.target) for fn in program.fns),
        ),
        "last: a function declares what its body uses, and where that lies",
    ),
)


def _caller_sees(fn: Fn) -> frozenset:
    """What the caller sees although the program fails."""
    return frozenset(buf for buf in fn.bufs if buf.space == "arg")


def schedule(
    function: Function,
    target: Target | None = None,
    *,
    fuse: bool = True,
    writes: Mapping[int, int] | None = None,
    bounds: bool = True,
    checked: bool = False,
    fastmath: bool = False,
) -> Program:
    """Loop nests over buffers for `function`, for the CPU if no target is said. `Program.in_place` says which of
    `writes` are made in place."""
    checking = os.environ.get("METAPHRASE_CHECK") == "1"
    target = target or (targets.CPU_IN_ANY_ORDER if fastmath else targets.CPU)
    expanded = expand(function, frozenset(offer.operation for offer in target.offers))
    program = lower(without_stale_rows(expanded), target, writes or {}, bounds)
    if checking:
        _checked(program, "lower")
    for one in PASSES:
        if one.fused in (None, fuse):
            program = one.run(program)
            if checking:
                _checked(program, one.name)
    return check(program) if checked and not checking else program


def _checked(program: Program, name: str) -> None:
    try:
        check(program)
    except CheckError as error:
        raise CheckError(f"the pass {name} broke {program.name}: {error}") from error


__all__ = ["PASSES", "Pass", "schedule"]
