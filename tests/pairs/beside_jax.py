"""All pairs of the corpus beside JAX: the same text with JAX in metaphrase's place. Not part of `make test`.

In: the corpus. Out: a table that says for how many pairs JAX gives the same numbers, and a list of the others. JAX is
in an environment of its own; each side writes what it found, and the third command compares:

    .venv/bin/python -P tests/pairs/beside_jax.py --write build/pairs.pickle
    python3 -m venv bench && bench/bin/pip install jax numpy scipy
    bench/bin/python -P tests/pairs/beside_jax.py --jax --write build/pairs_of_jax.pickle
    .venv/bin/python -P tests/pairs/beside_jax.py --compare build/pairs.pickle build/pairs_of_jax.pickle

All take some 20 minutes of a core for our side and an hour for JAX's; `--part 6` takes a sixth of the pairs, and
`--themes` some of the modules of the corpus.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import importlib
import io
import os
import pickle
import sys
import types
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

TESTS = Path(__file__).parents[1]
THEMES = ("own_rules", "kept", "solved", "operators")
TOLERANCE = 1e-8
TOLERANCES = {"odeint": 1e-5}  # both to the tolerance of the solver


def jax_in_place() -> None:
    """`metaphrase` and what is imported from it, made of JAX."""
    import jax
    import jax.test_util
    from jax import ad_checkpoint, custom_batching, custom_derivatives, lax
    from jax.experimental import jet, ode

    jax.config.update("jax_enable_x64", True)

    def hvp(f: Callable, primals: tuple, tangents: tuple) -> Any:
        return jax.jvp(jax.grad(f), primals, tangents)[1]

    def decorated(*_: Any, **__: Any) -> Callable:
        return lambda solver: solver

    def odeint(*args: Any, adjoint: str, **options: Any) -> Any:
        return ode.odeint(*args, **options)

    names = {name: getattr(jax, name) for name in dir(jax) if not name.startswith("_")}
    modules = {
        "metaphrase": names | {"jet": jet.jet, "hvp": hvp},
        "metaphrase.lax": vars(lax),
        "metaphrase.tree": vars(jax.tree),
        "metaphrase.ad_checkpoint": vars(ad_checkpoint),
        "metaphrase.custom_batching": vars(custom_batching),
        "metaphrase.custom_derivatives": vars(custom_derivatives),
        "metaphrase.implicit_diff": {"custom_root": decorated, "custom_fixed_point": decorated},
        "metaphrase.ode": {"odeint": odeint},
    }
    for name, values in modules.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update({k: v for k, v in values.items() if not k.startswith("__")})
    for name in modules:
        package, _, last = name.partition(".")
        if last:
            setattr(sys.modules[package], last, sys.modules[name])
    for name in ("corpus", "transformations", *THEMES):
        module = types.ModuleType(f"pairs.{name}")
        sys.modules[module.__name__] = module
        path = TESTS / "pairs" / f"{name}.py"
        text = path.read_text().replace("import numpy as np", "import jax.numpy as np")
        exec(compile(text, path, "exec"), vars(module))


def results(themes: list[str], part: int, path: Path) -> None:
    """Writes what each transformation and each pair of them gives: a list of arrays, or the text of an error."""
    for theme in themes:
        importlib.import_module(f"pairs.{theme}")
    transformations = importlib.import_module("pairs.transformations")
    found: dict[tuple, Any] = {}
    for name, case in sys.modules["pairs.corpus"].CASES.items():
        if not case.jax or case.function.__module__.removeprefix("pairs.") not in themes:
            continue
        for pair in transformations.pairs(case):
            key = (case.rule, name, *pair)
            if not set(pair) <= set(transformations.TRANSFORMATIONS) or zlib.crc32(repr(key).encode()) % part:
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    made = transformations.flat(
                        transformations.composed(pair, case.function)(*copy.deepcopy(case.args))
                    )
                found[key] = [numpy.asarray(leaf) for leaf in made]
            except Exception as error:
                found[key] = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:150]}"
        path.write_bytes(pickle.dumps(found))
        print(name, file=sys.stderr, flush=True)


def same(a: list, b: list, tolerance: float) -> bool:
    if len(a) != len(b):
        return False
    scale = max(1.0, *(float(numpy.max(numpy.abs(leaf), initial=0)) for leaf in b))
    return all(
        x.shape == y.shape and numpy.allclose(x, y, tolerance, tolerance * scale, equal_nan=True) for x, y in zip(a, b)
    )


def kind_of(mine: Any, theirs: Any, tolerance: float) -> str:
    if isinstance(mine, str):
        return "both refuse" if isinstance(theirs, str) else "we refuse"
    if isinstance(theirs, str):
        return "JAX refuses"
    return "agree" if same(mine, theirs, tolerance) else "differ"


KINDS = ("agree", "differ", "we refuse", "JAX refuses", "both refuse")


def compare(ours: dict, others: dict) -> None:
    counts: dict[str, collections.Counter] = {}
    groups: dict[tuple, list] = {}
    for key in sorted(ours.keys() & others.keys()):
        mine, theirs = ours[key], others[key]
        rule = key[0].split()[0]
        kind = kind_of(mine, theirs, TOLERANCES.get(rule, TOLERANCE))
        counts.setdefault(rule, collections.Counter())[kind] += 1
        if kind != "agree":
            why = theirs if isinstance(theirs, str) else mine if isinstance(mine, str) else ""
            groups.setdefault((kind, why), []).append((key, mine, theirs))
    counts["all"] = sum(counts.values(), collections.Counter())
    print(f"{'rule':30}" + "".join(f"{kind:>13}" for kind in KINDS))
    for rule, row in counts.items():
        print(f"{rule:30}" + "".join(f"{row[kind]:>13}" for kind in KINDS))
    for (kind, why), rows in sorted(groups.items()):
        print(f"\n{kind}: {len(rows)} of {len({row[0][1] for row in rows})} functions. {why}")
        for key, mine, theirs in rows if kind == "differ" else rows[:4]:
            print("   ", " of ".join([*key[2:], key[1]]))
            if kind == "differ":
                print("       ", *[[leaf.ravel()[:3].tolist() for leaf in side][:3] for side in (mine, theirs)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="run this side, and write what it gives")
    parser.add_argument("--jax", action="store_true", help="this side is JAX")
    parser.add_argument("--compare", type=Path, nargs="+", help="files of both sides, JAX's with jax in their names")
    parser.add_argument("--part", type=int, default=1)
    parser.add_argument("--themes", nargs="*", default=THEMES)
    chosen = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    if chosen.jax:
        jax_in_place()
    if chosen.write:
        os.environ["METAPHRASE_PLANS"] = "0"
        chosen.write.parent.mkdir(exist_ok=True, parents=True)
        results(chosen.themes, chosen.part, chosen.write)
    if chosen.compare:
        sides: tuple[dict, dict] = ({}, {})
        for path in chosen.compare:
            sides["jax" in path.name].update(pickle.loads(path.read_bytes()))
        compare(*sides)
