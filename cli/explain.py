"""`metaphrase explain`: what a function became: types, captured values, loops, copies, time of each stage.

In: a function and types of its arguments. Out: a report on stdout. Example:
`metaphrase explain lu.py:lu --args "f64[n, n]"`.
"""

from __future__ import annotations

import argparse

from ..explain import facts, report
from ..gpu_kernels import kernels
from .console import answer
from .target import add_target, target_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "explain", help="say what a function became", description=(__doc__ or "").partition("\n")[0]
    )
    add_target(parser)
    parser.add_argument("--gpu", action="store_true", help="also the kernels that a GPU would run")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    function, arguments = target_of(options)
    told = facts(function, *arguments)
    if options.gpu:
        told["GPU kernels"] = [str(kernel) for kernel in kernels(function, *arguments)]
    answer(options, {"target": options.target, **told}, lambda: print(report(told)))
    return 0
