"""Whose fault an exception is: the user's program, or this package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.staging import faults

FRONTEND = Path(faults.__file__).parents[1]


def error_of(function, *args):
    with pytest.raises(Exception) as caught:
        function(*args)
    return caught.value


def test_what_runs_for_the_user_is_there():
    trees = (ast.parse(path.read_text()) for path in FRONTEND.rglob("*.py"))
    names = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert faults._FOR_THE_USER - {"<lambda>"} <= names


class Slotted:
    __slots__ = ("x",)


def test_what_python_raises_in_lines_of_the_user_is_the_users():
    def no_attribute(x):
        return Slotted().x + x

    error = error_of(mp.jit(no_attribute), 1.0)
    assert isinstance(error, AttributeError) and faults.is_users(error)


def test_what_a_library_raises_is_the_users_and_what_this_package_reads_wrongly_is_ours():
    assert faults.is_users(error_of(ast.parse, "1 +"))
    assert not faults.is_users(error_of(faults.is_users, None))
