"""The ordered list of passes, and the one function that runs it.

In: a core Function. Out: the same, smaller. With METAPHRASE_CHECK=1 the checker runs after every pass.

    optimize(f, before_transform=True)     # only what is safe to do before differentiation
"""

from __future__ import annotations

import os
from collections.abc import Callable

from metaphrase.core.build import with_own_regions
from metaphrase.core.calls import worth_calling, written_out
from metaphrase.core.check import check
from metaphrase.core.copies import with_copies_called
from metaphrase.core.custom import has_rules, without_rules
from metaphrase.core.ir import Function
from metaphrase.late import dataclass

from . import (
    branches,
    cse,
    dead,
    dead_stores,
    equal_carries,
    forms,
    handed,
    hoist,
    induction,
    open_gradients,
    reuse,
    rows,
    simplify,
    sizes,
    sums_of_products,
    undo,
    zero_sums,
)
from .callees import clean_callees

ROUNDS = 8


@dataclass(frozen=True)
class Pass:
    """One pass: a function of a Function, whether it may run before differentiation, and why it stands
    here."""

    name: str
    run: Callable[[Function], Function]
    pre_ad_safe: bool
    why: str


PASSES: tuple[Pass, ...] = (
    Pass("sizes", sizes.sizes, sizes.pre_ad_safe, "equal shapes have to look equal for all that follows"),
    Pass(
        "open_gradients",
        open_gradients.open_gradients,
        open_gradients.pre_ad_safe,
        "what only differentiation reads is in the way of simplification",
    ),
    Pass(
        "zero_sums",
        zero_sums.zero_sums,
        zero_sums.pre_ad_safe,
        "before simplify, which then sees what the sums were in the way of",
    ),
    Pass(
        "sums_of_products",
        sums_of_products.sums_of_products,
        sums_of_products.pre_ad_safe,
        "before simplify, which finds what the products that are no longer read were made of",
    ),
    Pass(
        "join_branches",
        branches.join_branches,
        branches.pre_ad_safe,
        "what a branch saved for its derivative is in the same branch then, for simplify and cse to see",
    ),
    Pass("rows", rows.rows, rows.pre_ad_safe, "its reshapes meet others in simplify"),
    Pass("forms", forms.forms, forms.pre_ad_safe, "as rows"),
    Pass(
        "induction",
        induction.induction,
        induction.pre_ad_safe,
        "before simplify, which cleans the expressions, and before derivatives, which would keep each value of a carry",
    ),
    Pass("simplify", simplify.simplify, simplify.pre_ad_safe, "turns equal things into the same thing, so before cse"),
    Pass("cse", cse.cse, cse.pre_ad_safe, "what repeats is found once it looks the same"),
    Pass("handed", handed.handed, handed.pre_ad_safe, "after cse, with which it shares what makes operations the same"),
    Pass(
        "equal_carries",
        equal_carries.equal_carries,
        equal_carries.pre_ad_safe,
        "after cse, so that equal carries are made by one operation",
    ),
    Pass("hoist", hoist.hoist, hoist.pre_ad_safe, "after cse, so that one copy moves; its constants fold next round"),
    Pass(
        "undo",
        undo.undo,
        undo.pre_ad_safe,
        "after simplify, which leaves only the rows that are needed; what it makes needless is dead",
    ),
    Pass(
        "dead_stores",
        dead_stores.dead_stores,
        dead_stores.pre_ad_safe,
        "after simplify, which tells places apart; an array without stores is a constant, which dead finds",
    ),
    Pass("dead", dead.dead, dead.pre_ad_safe, "the others leave operations that nobody reads"),
    Pass("reuse", reuse.reuse, reuse.pre_ad_safe, "last: only orders what is left"),
)


def optimize(function: Function, *, before_transform: bool, in_haste: bool = False) -> Function:
    """Run the passes in order until none changes anything, or once (`in_haste`). `before_transform` leaves out those
    that are not safe before differentiation. The passes do not look through calls: what is not worth a call is written
    out first, and a function that is called is a program of its own. A function with derivative rules of its own is
    a call when all derivatives are taken."""
    if not before_transform and has_rules(function):
        function = without_rules(dead.dead(function))
    function = with_copies_called(function)
    function = _clean(written_out(function, worth_calling(function)), before_transform, 1 if in_haste else ROUNDS)
    if before_transform:
        return function
    return open_gradients.open_barriers(clean_callees(function, open_gradients.open_barriers, "open barriers"))


def _clean(function: Function, before_transform: bool, rounds: int) -> Function:
    checking = os.environ.get("METAPHRASE_CHECK") == "1"
    passes = [p for p in PASSES if p.pre_ad_safe or not before_transform]
    idle: dict[str, Function] = {}  # the program in which a pass found nothing to do
    for _ in range(rounds):
        start = function = with_own_regions(function)
        how = ("clean", before_transform, rounds)
        function = clean_callees(function, lambda callee: _clean(callee, before_transform, rounds), how)
        for one in passes:
            if idle.get(one.name) is function:
                continue
            new = one.run(function)
            if new is function:
                idle[one.name] = function
            if checking and new is not function:
                try:
                    check(new)
                except AssertionError as error:
                    raise AssertionError(f"the pass {one.name} broke {function.name}") from error
                if with_own_regions(new) is not new:
                    raise AssertionError(f"the pass {one.name} left a Var in two places of {function.name}")
            function = new
        if function is start:
            break
    return function


__all__ = ["optimize", "PASSES", "Pass"]
