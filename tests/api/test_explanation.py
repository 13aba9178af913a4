"""`mp.explain`: what each line costs adds up to what the program costs; the page says what the text says, holds every
line once, is well-formed, and asks for nothing from elsewhere."""

from __future__ import annotations

import html
import inspect
import pickle
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api.types import given_arguments
from metaphrase.core.dims import substitute, symbols
from metaphrase.explanation import Explanation, explain, explained, page
from metaphrase.explanation.lines import UNITS, quantities
from metaphrase.explanation.page import SHADES
from metaphrase.explanation.sources import blocks

from . import explained_programs as programs

FILE = programs.__file__
CASES = {
    "softmax": (programs.softmax, ("f64[n, m]",)),
    "halved": (programs.halved, ("f64[n]",)),
    "solved": (programs.solved, ("f64[n, m]", "f64[m, k]", "f64[k, k]")),
    "slope": (mp.grad(programs.period), ("f64", "f64")),
    "priced": (programs.priced, ("f64[n, m]", "f64", "f64")),
    "lanes": (mp.vmap(programs.swung, in_axes=(0, 0, None)), ("f64[n]", "f64[n]", "i64")),
}
VOID = {"meta", "br", "input", "link", "img", "hr"}


class Page(HTMLParser):
    """What a page holds. Fails where tags are not closed in order."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.asks: list[str] = []
        self.tags: set[str] = set()
        self.lines: dict[str, str] = {}  # the text of each of the user's lines, by its id
        self.within: str | None = None
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        self.asks += [str(given[name]) for name in ("src", "srcset", "data", "action", "poster") if name in given]
        self.asks += [given["href"]] if tag in ("link", "base", "image", "use") else []
        if re.fullmatch(r"f\d+-\d+-L\d+", given.get("id", "")):
            self.within = given["id"]
        if tag == "span" and given.get("class") == "text" and self.within is not None:
            self.lines.setdefault(self.within, "")
            self.texts.append(self.within)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:], self.getpos())
        self.open.pop()
        if tag == "span" and self.texts:
            self.texts.pop()

    def handle_data(self, data):
        if self.texts:
            self.lines[self.texts[-1]] += data


@pytest.fixture(scope="module")
def all_explained():
    return {name: explained(fun, *args) for name, (fun, args) in CASES.items()}


@pytest.fixture(scope="module")
def whole(all_explained):
    """The text of a page of all, and what it holds."""
    text = page([*all_explained.values(), ("a.py:<f>", ValueError("it has <no> remedy"))])
    return text, Page(text)


@pytest.mark.parametrize("name", CASES)
def test_lines_add_up_to_what_the_program_costs(all_explained, name):
    fun, args = CASES[name]
    given, _ = given_arguments(args, {})
    lines, assumed = all_explained[name].told["lines"], all_explained[name].told["assumed"]
    total = mp.jit(fun).lower(*given)._costs()
    sums = {unit: sum(row["numbers"][unit] for row in lines) for unit in UNITS}

    def at_sizes(dim):
        """As the numbers of lines are; rounds that only the run knows count once there."""
        return substitute(dim, {symbol: assumed[symbol] for symbol in symbols(dim)})

    if not {symbol for symbol in assumed if symbol.startswith(("rounds", "count"))}:
        assert sums["operations"] + sums["library"] == at_sizes(total.flops)
        assert sums["functions"] == at_sizes(total.transcendentals)
        assert sums["read"] + sums["written"] == at_sizes(total.accessed)
        assert sums["temporaries"] == at_sizes(total.temporaries)
    assert sum(row["share"] for row in lines) == pytest.approx(100)
    assert all(sum(row["causes"].values()) == pytest.approx(100) for row in lines if row["causes"])


def line_of(function, text: str) -> int:
    rows, first = inspect.getsourcelines(function)
    return first + next(k for k, row in enumerate(rows) if text in row)


def told_of(found, function, text: str):
    wanted = line_of(function, text)
    return next(row for row in found.told["lines"] if row["line"] == wanted)


def test_costs_are_at_the_lines_that_were_written(all_explained):
    """Also where lines have been fused into one loop, and one statement."""
    softmax = all_explained["softmax"]
    first, last = told_of(softmax, programs.softmax, "np.exp"), told_of(softmax, programs.softmax, "e.sum")
    assert first["functions"] == "m*n" and last["functions"] == "0"
    assert (last["text"], last["file"]) == ("return e / e.sum(axis=-1, keepdims=True)", FILE)
    solved = all_explained["solved"]
    assert told_of(solved, programs.solved, "X @ W")["library"] == "2*k*m*n"
    assert told_of(solved, programs.doubled, "tanh")["functions"] == "k*n"
    assert told_of(solved, programs.doubled, "z * 2.0")["operations"] == "k*n"
    assert told_of(solved, programs.solved, "print")["callbacks"] == "1"
    slope = told_of(all_explained["slope"], programs.period, "E -=")
    assert {"primal", "adjoint"} <= slope["roles"].keys() and "rounds_" in slope["operations"]
    priced = told_of(all_explained["priced"], programs.priced, "np.exp")  # in blocks of paths, and of steps
    assert (priced["functions"], priced["operations"]) == ("m*n", "2*m*n")
    lanes = all_explained["lanes"]
    assert told_of(lanes, programs.swung, "np.sin")["functions"] == "count*n"
    assert told_of(lanes, programs.swung, "x + 0.01")["functions"] == "0"


def loops_at(found, function, text: str):
    found.ask_compiler()
    return [one for one in found.told["loop nests"] if [FILE, line_of(function, text)] in one["alone"]]


def around(loop, loops):
    """The loops that a loop is inside, the innermost first."""
    while loop["around"] is not None:
        loop = loops[loop["around"]]
        yield loop


def test_loops_say_who_shares_them_and_whether_they_are_vectors(all_explained):
    (loop,) = loops_at(all_explained["halved"], programs.halved, "s * 0.5")
    assert loop["loop"] == "for i in range(n)" and loop["kind"] == "one iteration after the other"
    assert loop["vectors"].startswith("not vectorised (")
    (loop,) = loops_at(all_explained["lanes"], programs.swung, "np.sin")
    rounds, blocks = around(loop, all_explained["lanes"].told["loop nests"])
    assert rounds["kind"] == "one iteration after the other" and rounds["loop"] == "for j in range(count)"
    assert loop["lines"] == [[FILE, line_of(programs.swung, text)] for text in ("np.sin", "x + 0.01")]
    assert loop["kind"] == "independent iterations" and blocks["threads"].startswith("(n + 1023)//1024 iterations in")
    if shutil.which("gcc"):
        assert loop["vectors"].startswith("vectorised, ")


def test_without_a_compiler_nothing_is_said_of_vectors(monkeypatch):
    monkeypatch.setenv("METAPHRASE_CC", "no-such-compiler")
    text = explain(programs.halved, "f64[n]").html()
    assert "not known whether it is vectorised: no C compiler found" in text
    assert "gcc:" not in text


@pytest.mark.parametrize("name", CASES)
def test_the_page_says_what_the_text_says(all_explained, whole, name):
    fun, args = CASES[name]
    told = all_explained[name].told
    number, report = list(CASES).index(name), explain(fun, *args)
    for row in told["lines"]:
        if not row["line"]:
            assert f"no line: {row['share']:.1f} %: {', '.join(quantities(row))}" in report
            continue
        assert f"{row['file']}:{row['line']}: {row['share']:.1f} %: {', '.join(quantities(row))}\n" in report
        opened = re.search(
            rf'<details class="line s(\d)" id="f{number}-\d+-L{row["line"]}".*?</details>', whole[0], re.S
        )
        assert opened is not None and f"{row['share']:.1f} % of the whole" in opened[0]
        assert int(opened[1]) == sum(row["share"] >= bound for bound in SHADES)
        items = re.findall(r"<li>(.*?)</li>", opened[0].partition("</ul>")[0])
        assert [html.unescape(item) for item in items[1:]] == quantities(row)
    for title in ("loops that threads share", "temporary arrays"):
        for line in told[title]:
            assert html.escape(line) in whole[0]


def test_every_line_is_there_once(all_explained, whole):
    _, held = whole
    assert len(held.ids) == len(set(held.ids))
    assert all(link.startswith("#") and link[1:] in held.ids for link in held.links)
    wanted = {}
    for number, found in enumerate(all_explained.values()):
        functions = {"solved": [programs.solved, programs.doubled]}.get(list(CASES)[number])
        for function in functions or [getattr(programs, inspect.unwrap(user(found.fun)).__name__)]:
            rows, first = inspect.getsourcelines(function)
            wanted.update({f"f{number}-0-L{first + k}": row.rstrip("\n") for k, row in enumerate(rows)})
    assert held.lines == wanted


def user(fun):
    return user(fun.fun) if hasattr(fun, "fun") else fun


def test_what_users_write_is_text(whole):
    text, held = whole
    assert not {"b", "em", "img"} & (held.tags - {"b"})
    assert text.count("<b>") == 2  # the legend's
    assert text.count("</script>") == 1 and text.count("<script>") == 1
    assert "&lt;/script&gt;&lt;b&gt;not bold" in text and "it has &lt;no&gt; remedy" in text


def test_it_stands_by_itself(whole):
    text, held = whole
    assert held.asks == [] and not {"link", "base", "iframe", "object", "embed", "img"} & held.tags
    assert not re.search(r"https?://|//cdn|url\(|@import|fetch\(|XMLHttpRequest", text)
    assert "prefers-color-scheme: dark" in text and "width=device-width" in text


def test_each_stage_is_there_whole(all_explained, whole):
    rows = re.findall(
        r'<div class="row[^"]*"[^>]*>(?:<a [^>]*>\d+</a>|<span></span>)<span>(.*?)</span></div>', whole[0]
    )
    held = {html.unescape(row) for row in rows}
    for found in all_explained.values():
        assert set(found.emitted.text.rstrip("\n").split("\n")) <= held
    assert mp.source(programs.halved, "f64[n]").splitlines()[-1] in held


def test_an_explanation_is_its_text_and_a_page_in_notebooks():
    made = mp.explain(programs.halved, np.ones(300))
    assert isinstance(made, Explanation) and repr(made) == made
    assert made.startswith("halved\narguments:\n  x: f64[300]\n") and "300" in made
    assert made.facts["loops"]["for"] == 1
    frame = Page(made._repr_html_())
    assert frame.tags == {"iframe"} and "srcdoc" in made._repr_html_()
    inner = re.fullmatch(r'<iframe srcdoc="([^"]*)" style="[^"]*"></iframe>', made._repr_html_())
    assert inner is not None and Page(html.unescape(inner[1])).lines
    assert type(pickle.loads(pickle.dumps(made))) is str


def test_blocks_are_whole_functions_the_explained_one_first():
    first = line_of(programs.doubled, "tanh")
    found = blocks([(FILE, first), (FILE, 1), ("nowhere.py", 3)], programs.solved)
    assert [(one.file, one.name) for one in found] == [
        (FILE, "solved"),
        (FILE, ""),
        (FILE, "doubled"),
        ("nowhere.py", ""),
    ]
    assert found[2].rows == inspect.getsource(programs.doubled).rstrip("\n").split("\n")
