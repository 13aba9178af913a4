"""The table of supported Python: complete, proved row by row, and the same as its document."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest
from corpus import alike, fresh, outcome

from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.cli import support
from metaphrase.cli.main import main
from metaphrase.core.evaluate import evaluate
from metaphrase.source import Errors, UnsupportedError

ROOT = Path(__file__).parents[2]
RUNNING = [r for r in support.ROWS if r.proof and tuple(map(int, r.python.split("."))) <= sys.version_info]
names = pytest.mark.parametrize("row", RUNNING, ids=[r.node for r in RUNNING])


def test_the_document_is_the_table(update_golden, capsys):
    assert main(["doctor", "--support"]) == 0
    text, path = capsys.readouterr().out, ROOT / "docs" / "python-support.md"
    if update_golden:
        path.write_text(text)
    assert text == path.read_text()


def test_every_node_of_the_running_python_has_one_row():
    rows = [row.node for row in support.ROWS]
    assert len(rows) == len(set(rows))
    kinds = [kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)]
    here = {kind.__name__ for kind in kinds if not kind.__name__.startswith("_")}
    later = {row.node for row in support.ROWS if row.python != "3.11"}
    assert here - support.GROUPS - later == set(rows) - later
    assert sys.version_info < (3, 12) or later <= here


def tree_of(row: support.Row) -> ast.AST:
    theme, _, name = row.proof.partition(".")
    package = "corpus.rejected." + name if theme == "rejected" else "corpus." + theme
    module = importlib.import_module(package)
    tree = ast.parse(getattr(module, "TEXT", None) or Path(module.__file__).read_text())
    wanted = "function" if theme == "rejected" else name
    (found,) = [n for n in tree.body if getattr(n, "name", None) == wanted]
    return found


@names
def test_the_proof_holds_the_node(row):
    assert any(type(node).__name__ == row.node for node in ast.walk(tree_of(row)))


@names
def test_the_proof_behaves_so(row):
    theme, _, name = row.proof.partition(".")
    if row.status == support.REFUSED:
        function, args = importlib.import_module(f"corpus.rejected.{name}").CASE
        with pytest.raises((UnsupportedError, Errors)):
            stage(function, args)
        return
    cases = [(f, args) for f, args in importlib.import_module(f"corpus.{theme}").CASES if f.__name__ == name]
    assert cases
    for function, args in cases:
        given = fresh(args)
        staged = stage(function, given)

        def run(*values, staged=staged):
            return staged.result(evaluate(staged.function, *staged.arguments(values)), values)

        assert alike(outcome(run, args), outcome(function, args), 1e-9)


def test_staged_values_are_really_staged():
    """A row that works on staged values is proved by a function that takes some."""
    for row in RUNNING:
        if row.status == support.WORKS:
            theme, _, name = row.proof.partition(".")
            cases = importlib.import_module(f"corpus.{theme}").CASES
            f, args = next((f, args) for f, args in cases if f.__name__ == name)
            assert stage(f, fresh(args)).function.params, row
