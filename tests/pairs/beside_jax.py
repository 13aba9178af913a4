"""All pairs of the corpus beside JAX: the same text with JAX in metaphrase's place. Not part of `make test`.

In: the corpus. Out: a table that says for how many pairs JAX gives the same numbers, and a list of the others. JAX is
in an environment of its own, so each side runs in its own, and the first writes what it found:

    .venv/bin/python -P tests/pairs/beside_jax.py --write build/pairs.pickle
    python3 -m venv bench && bench/bin/pip install jax numpy scipy
    bench/bin/python -P tests/pairs/beside_jax.py --compare build/pairs.pickle
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy

TESTS = Path(__file__).parents[1]
THEMES = ("own_rules", "kept", "solved", "operators")
TOLERANCE = 1e-7


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


def corpus() -> tuple[dict[str, Any], types.ModuleType]:
    for theme in THEMES:
        importlib.import_module(f"pairs.{theme}")
    return sys.modules["pairs.corpus"].CASES, importlib.import_module("pairs.transformations")


def results(only: list[str]) -> Iterator[tuple[tuple, Any]]:
    """What each transformation and each pair of them gives: a list of arrays, or the text of an error."""
    cases, transformations = corpus()
    found: Any
    for name, case in cases.items():
        if not case.jax or (only and name not in only):
            continue
        for pair in transformations.pairs(case):
            function = case.function
            for which in reversed(pair):
                function = transformations.TRANSFORMATIONS[which](function)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    found = transformations.flat(function(*copy.deepcopy(case.args)))
                found = [numpy.asarray(leaf) for leaf in found]
            except Exception as error:
                found = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            yield (name, *pair), found
        print(name, file=sys.stderr, flush=True)


def same(a: list, b: list, tolerance: float) -> bool:
    if len(a) != len(b):
        return False
    scale = max(1.0, *(float(numpy.max(numpy.abs(leaf), initial=0)) for leaf in b))
    return all(
        x.shape == y.shape and numpy.allclose(x, y, tolerance, tolerance * scale, equal_nan=True) for x, y in zip(a, b)
    )


def compare(ours: dict, only: list[str]) -> None:
    counts: dict[str, collections.Counter] = {}
    list_of_others = []
    cases, _ = corpus()
    for key, theirs in results(only):
        mine = ours[key]
        row = counts.setdefault(cases[key[0]].rule.split()[0], collections.Counter())
        if isinstance(theirs, str) and isinstance(mine, str):
            kind = "both refuse"
        elif isinstance(theirs, str):
            kind = "JAX refuses"
        elif isinstance(mine, str):
            kind = "we refuse"
        else:
            kind = "agree" if same(mine, theirs, max(TOLERANCE, cases[key[0]].tolerance * 0.1)) else "differ"
        row[kind] += 1
        if kind != "agree":
            shown = [x if isinstance(x, str) else [leaf.ravel()[:3].tolist() for leaf in x][:3] for x in (mine, theirs)]
            list_of_others.append((kind, key, *shown))
    kinds = ("agree", "differ", "we refuse", "JAX refuses", "both refuse")
    print(f"{'rule':22}" + "".join(f"{kind:>13}" for kind in kinds))
    for rule, row in counts.items():
        print(f"{rule:22}" + "".join(f"{row[kind]:>13}" for kind in kinds))
    whole = sum(counts.values(), collections.Counter())
    print(f"{'all':22}" + "".join(f"{whole[kind]:>13}" for kind in kinds))
    groups: dict[tuple, list] = {}
    for kind, key, mine, theirs in list_of_others:
        why = (kind, theirs if isinstance(theirs, str) else mine if isinstance(mine, str) else "")
        groups.setdefault(why, []).append((key, mine, theirs))
    for (kind, why), rows in sorted(groups.items()):
        print(f"\n{kind}: {len(rows)} of {len({row[0][0] for row in rows})} functions. {why}")
        for key, mine, theirs in rows[:4] if why else rows:
            print("   ", " of ".join(key[1:]), "of", key[0], "" if why else f"{mine} / {theirs}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    chosen = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    if chosen.write:
        os.environ["METAPHRASE_PLANS"] = "0"
        chosen.write.parent.mkdir(exist_ok=True, parents=True)
        chosen.write.write_bytes(pickle.dumps(dict(results(chosen.only))))
    else:
        jax_in_place()
        compare(pickle.loads(chosen.compare.read_bytes()), chosen.only)
