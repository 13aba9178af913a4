"""Which Python a translated function may hold: one row for every node class of Python's `ast`.

In: nothing. Out: docs/python-support.md, as `metaphrase doctor --support` prints it. Each row names a
function of tests/corpus that proves it (or a refused program in tests/corpus/rejected):
tests/cli/test_support.py runs them, and compares this table with the `ast` module of the running Python.

    Row("While", WORKS, "whiles.period")
"""

from __future__ import annotations

from typing import NamedTuple

WORKS, STATIC, REFUSED, OUTSIDE = "supported", "static only", "refused", "not in functions"
MEANING = {
    WORKS: "works on staged values, in any nesting",
    STATIC: "works where what it asks is known while translating; what it holds may be staged",
    REFUSED: "an error that names the line and a remedy",
    OUTSIDE: "never stands in a function's body",
}


class Row(NamedTuple):
    """`proof`: `theme.function` of the corpus, or `rejected.module`. `python`: the first with the node."""

    node: str
    status: str
    proof: str
    note: str = ""
    since: str = "0.1"
    python: str = "3.11"


STATEMENTS = (
    Row("FunctionDef", WORKS, "functions.nonlocal_two_deep", "nested, decorated, with defaults"),
    Row("AsyncFunctionDef", REFUSED, "rejected.async_function"),
    Row("ClassDef", STATIC, "functions.class_body_in_function", "the body runs while translating; methods are staged"),
    Row("Return", WORKS, "returns.from_nested_loops", "anywhere, out of loops, `with` and `try`"),
    Row("Delete", WORKS, "statements.deleted_then_read", "names and items; attributes are refused"),
    Row("Assign", WORKS, "statements.chained_targets"),
    Row("TypeAlias", STATIC, "newer.aliased", "evaluated by Python", python="3.12"),
    Row("AugAssign", WORKS, "expressions.in_place_of_all_kinds"),
    Row("AnnAssign", WORKS, "statements.annotated", "annotations are not evaluated"),
    Row("For", WORKS, "statements.inner_bound_depends", "rolled over ranges, arrays, `zip`, `enumerate`, `reversed`"),
    Row("AsyncFor", REFUSED, "rejected.await_inside"),
    Row("While", WORKS, "statements.while_else_break"),
    Row("If", WORKS, "statements.elif_ladder"),
    Row("With", STATIC, "protocols.managers_with_branches", "`__enter__` and `__exit__` may branch on staged values"),
    Row("AsyncWith", REFUSED, "rejected.await_inside"),
    Row("Match", WORKS, "matching.match_staged_in_loop", "structure is static; literals and guards may be staged"),
    Row("Raise", WORKS, "failures.raise_in_else", "raised when the program runs, with the user's class and message"),
    Row("Try", WORKS, "attempts.every_clause", "not around a loop of unknown length that may fail"),
    Row("TryStar", REFUSED, "rejected.try_star"),
    Row("Assert", WORKS, "failures.assert_in_loop"),
    Row("Import", STATIC, "statements.import_inside"),
    Row("ImportFrom", STATIC, "statements.import_inside", "`import *` does not stand in functions"),
    Row("Global", REFUSED, "rejected.global_write", "a declaration of a variable that is only read is accepted"),
    Row("Nonlocal", WORKS, "functions.nonlocal_in_while"),
    Row("Expr", WORKS, "printing.print_in_while"),
    Row("Pass", WORKS, "statements.pass_and_ellipsis"),
    Row("Break", WORKS, "statements.deep_jumps"),
    Row("Continue", WORKS, "statements.deep_jumps"),
)
EXPRESSIONS = (
    Row("BoolOp", WORKS, "expressions.lazy_and_guards_index", "lazy"),
    Row("NamedExpr", WORKS, "expressions.walrus_in_while", "not in generator expressions"),
    Row("BinOp", WORKS, "protocols.operators_with_branches", "users' operators too"),
    Row("UnaryOp", WORKS, "expressions.operators_of_all_kinds"),
    Row("Lambda", WORKS, "functions.composed"),
    Row("IfExp", WORKS, "expressions.ternary_of_arrays"),
    Row("Dict", WORKS, "printing.print_containers", "keys are static"),
    Row("Set", STATIC, "objects.set_and_sorted", "staged values have no hash"),
    Row("ListComp", WORKS, "expressions.two_generators", "over known counts"),
    Row("SetComp", STATIC, "expressions.set_comprehension"),
    Row("DictComp", WORKS, "expressions.dict_comprehension_of_arrays", "keys are static"),
    Row("GeneratorExp", WORKS, "expressions.generator_in_calls", "over known counts"),
    Row("Await", REFUSED, "rejected.await_inside"),
    Row("Yield", STATIC, "functions.generator_with_branch", "what is yielded may be staged, not whether"),
    Row("YieldFrom", STATIC, "functions.generator_ends_with_value"),
    Row("Compare", WORKS, "expressions.chain_calls_once", "chains evaluate each operand once"),
    Row("Call", WORKS, "functions.star_and_double_star"),
    Row("FormattedValue", WORKS, "printing.print_formats", "filled in when the program runs"),
    Row("JoinedStr", WORKS, "printing.print_spec_staged_width"),
    Row("Constant", WORKS, "expressions.constants"),
    Row("Attribute", WORKS, "classes.users_properties"),
    Row("Subscript", WORKS, "expressions.slices_of_everything"),
    Row("Starred", WORKS, "expressions.starred_displays"),
    Row("Name", WORKS, "statements.deleted_name"),
    Row("List", WORKS, "expressions.starred_displays"),
    Row("Tuple", WORKS, "expressions.unpack_nested"),
    Row("Slice", WORKS, "statements.loop_over_staged_slices", "with staged bounds"),
)
OPERATORS = (
    *(Row(node, WORKS, "expressions.lazy_of_mixed") for node in ("And", "Or")),
    *(
        Row(node, WORKS, "expressions.operators_of_all_kinds")
        for node in (
            "Add",
            "Sub",
            "Mult",
            "Div",
            "Mod",
            "Pow",
            "LShift",
            "RShift",
            "BitOr",
            "BitXor",
            "BitAnd",
            "FloorDiv",
            "Invert",
            "UAdd",
            "USub",
        )
    ),
    Row("MatMult", WORKS, "expressions.in_place_matmul"),
    Row("Not", WORKS, "expressions.not_of_everything"),
    *(
        Row(node, WORKS, "expressions.comparisons_of_all_kinds")
        for node in ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot")
    ),
    *(Row(node, WORKS, "expressions.membership") for node in ("In", "NotIn")),
    Row("Load", WORKS, "statements.order_of_targets"),
    Row("Store", WORKS, "statements.order_of_targets"),
    Row("Del", WORKS, "statements.deleted_item"),
)
PARTS = (
    Row("comprehension", WORKS, "expressions.comprehension_over_zip", "`async` ones are refused"),
    Row("ExceptHandler", STATIC, "failures.except_by_kind"),
    Row("arguments", WORKS, "functions.defaults_of_staged"),
    Row("arg", WORKS, "functions.keyword_only"),
    Row("keyword", WORKS, "functions.partial_of_many"),
    Row("alias", STATIC, "statements.import_inside"),
    Row("withitem", STATIC, "statements.with_multiple"),
    Row("match_case", WORKS, "matching.match_staged_guard"),
    Row("MatchValue", WORKS, "matching.match_staged_literals"),
    Row("MatchSingleton", WORKS, "matching.match_staged_bool"),
    Row(
        "MatchSequence",
        STATIC,
        "matching.match_sequences",
        "of lists and tuples; arrays are no sequences, as in Python",
    ),
    Row("MatchMapping", STATIC, "matching.match_mapping"),
    Row("MatchClass", STATIC, "matching.match_classes"),
    Row("MatchStar", STATIC, "matching.match_sequences"),
    Row("MatchAs", WORKS, "matching.match_as_and_guard"),
    Row("MatchOr", WORKS, "matching.match_staged_pair"),
    *(
        Row(node, STATIC, "newer.generic", "not evaluated, as annotations are not", python="3.12")
        for node in ("TypeVar", "ParamSpec", "TypeVarTuple")
    ),
    *(Row(node, OUTSIDE, "") for node in ("Module", "Interactive", "Expression", "FunctionType", "TypeIgnore")),
)
SECTIONS = {"Statements": STATEMENTS, "Expressions": EXPRESSIONS, "Operators and contexts": OPERATORS, "Parts": PARTS}
ROWS: tuple[Row, ...] = tuple(row for rows in SECTIONS.values() for row in rows)
# The classes of `ast` that no parser makes: groups, and names kept from older versions of Python.
GROUPS = frozenset(
    """AST mod stmt expr expr_context boolop operator unaryop cmpop excepthandler pattern type_ignore
    type_param slice Num Str Bytes NameConstant Ellipsis Index ExtSlice Suite AugLoad AugStore
    Param""".split()
)


def totals() -> dict[str, int]:
    """How many node classes have each status."""
    return {status: sum(row.status == status for row in ROWS) for status in MEANING}


def markdown() -> str:
    """The text of docs/python-support.md."""
    counts = totals()
    lines = [
        "# Python that can be translated",
        "",
        "Written by `metaphrase doctor --support`; don't edit. Every node class of `ast`, of Python 3.11 to",
        "3.13. A proof is a function of `tests/corpus/`, or a refused program in `tests/corpus/rejected/`; a",
        "test runs each and looks for the node in it.",
        "",
        "| status | node classes | meaning |",
        "|---|---|---|",
        *(f"| {status} | {counts[status]} | {meaning} |" for status, meaning in MEANING.items()),
        "",
    ]
    for title, rows in SECTIONS.items():
        lines += [f"## {title}", "", "| node | status | since | proof | remark |", "|---|---|---|---|---|"]
        for row in rows:
            node = f"`{row.node}`" + (f" (Python {row.python})" if row.python != "3.11" else "")
            proof = f"`{row.proof}`" if row.proof else ""
            lines.append(f"| {node} | {row.status} | {row.since} | {proof} | {row.note} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
