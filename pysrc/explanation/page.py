"""A page that stands by itself: the user's lines in colours of what they cost, beside what became of them.

In: functions that are explained, or errors in their place. Out: the text of an HTML file, which asks for nothing from
elsewhere and can be read without scripts. Example:

    Path("lu.html").write_text(page([explained(lu, "f64[n, n]")]))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from .._version import VERSION
from ..api.text import numpy_module, user_function
from ..astpasses.schedule.python_loops import python_loops
from ..core.show import show
from ..source import Row, SourceError, Span
from .facts import Explained, measured_in_words
from .lines import WEIGHTS, duration, quantities
from .sources import Block, blocks

HERE = Path(__file__).parent
Line = tuple[str, int]
# From so many per cent of the whole on a line has the next colour.
SHADES = (0.1, 5, 15, 35, 60)
CAUSES = {
    "arithmetic": "arithmetic",
    "functions": "function values (sin, exp, ...)",
    "memory": "arrays read and written",
    "libraries": "BLAS, LAPACK and the like",
    "Python": "calls of Python",
}
ROLES = {"primal": "value", "tangent": "tangent", "adjoint": "adjoint", "recomputed": "computed again"}
STAGES = {
    "core": "The typed program after all transformations, one operation a line.",
    "numpy": "NumPy source that computes the same.",
    "loops": "The loop nests, fused, as Python loops.",
    "cython": "The text that is compiled.",
}


def page(functions: Sequence[Explained | tuple[str, Exception]], title: str = "") -> str:
    """See the head of this file. An error comes with what it is the error of."""
    bodies = [
        _failed(k, *one) if isinstance(one, tuple) else _Function(k, one).text() for k, one in enumerate(functions)
    ]
    is_timed = any(isinstance(one, Explained) and "measured" in one.told for one in functions)
    names = [one[0] if isinstance(one, tuple) else one.told["name"] for one in functions]
    title = title or f"{', '.join(names[:3])}{', ...' if len(names) > 3 else ''}: what became of it"
    contents = "".join(f'<li><a href="#f{k}"><code>{escape(name)}</code></a></li>' for k, name in enumerate(names))
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="metaphrase {VERSION}">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>What became of each line</h1>
{_legend(is_timed)}
{f"<nav><ul>{contents}</ul></nav>" if len(names) > 1 else ""}
</header>
{"".join(bodies)}
<script>
{script}</script>
</body>
</html>
"""


def _legend(is_timed: bool) -> str:
    """What the colours say."""
    bounds = [0.0, *map(float, SHADES)]
    shades = [f"&lt; {SHADES[0]:g} %"] + [f"{low:g} %" for low in bounds[1:]]
    swatches = "".join(
        f'<span><i class="swatch s{k}"></i>{text}{"" if not k else " or more"}</span>' for k, text in enumerate(shades)
    )
    causes = "".join(f'<span><i class="dot {name}"></i>{escape(text)}</span>' for name, text in CAUSES.items())
    weights = (
        f"An arithmetic operation counts 1, a function value {WEIGHTS['functions']:g}, 8 bytes of an array "
        f"{8 * WEIGHTS['memory']:g}, {1 / WEIGHTS['libraries']:g} operations in a library 1, a call of Python "
        f"{WEIGHTS['Python']:,.0f}: counted in the loops after fusion, not measured."
    )
    times = (
        " The second percentage is measured: of the time of a call, by a clock that is read between parts; ~ where a "
        "part is one loop of several lines, whose time is divided by their counted costs."
    )
    return (
        f'<div class="legend"><b>The stronger its colour, the more a line costs of a call:</b>{swatches}</div>'
        f'<div class="legend"><b>The bar says why:</b>{causes}</div>'
        f'<p class="note">{weights}{times * is_timed} Open a line for its costs, its loops, and the text that came '
        "from it.</p>"
    )


def _failed(number: int, name: str, problem: Exception) -> str:
    return f'<article id="f{number}"><h2>{escape(name)}</h2><pre class="error">{escape(str(problem))}</pre></article>'


class _Function:
    """One function of a page."""

    def __init__(self, number: int, of: Explained):
        of.ask_compiler()
        self.number, self.told = number, of.told
        self.is_timed = "measured" in of.told
        self.stages, self.refusals = _stage_rows(of)
        self.costs: dict[Line, Mapping[str, Any]] = {(c["file"], c["line"]): c for c in self.told["lines"] if c["line"]}
        self.loops: list[dict[str, Any]] = self.told["loop nests"]
        found = {line: None for rows in self.stages.values() for row in rows for line in _lines_of(row)}
        self.blocks = blocks([*found, *self.costs], user_function(of.fun))
        self.files = list(dict.fromkeys(block.file for block in self.blocks))

    def text(self) -> str:
        told = self.told
        signature = ", ".join(told["arguments"])
        output = "; ".join(told["output"]) or "None"
        return (
            f'<article id="f{self.number}"{" class=timed" if self.is_timed else ""}>\n<h2>{escape(told["name"])}</h2>\n'
            f"<div><code>({escape(signature)}) -&gt; {escape(output)}</code></div>\n{self.summary()}{self.times()}\n"
            f'<div class="grid">\n<div>{"".join(map(self.block, self.blocks))}{self.elsewhere()}</div>\n'
            f"{self.stage_panel()}\n</div>\n</article>\n"
        )

    # ---- facts of the whole ----------------------------------------------------------------------

    def summary(self) -> str:
        told, made = self.told, self.told["loops"]
        parts = {
            "loops": f"{made['for']} for, {made['while']} while, {made['deep']} deep",
            "library calls": str(made["library calls"]),
            "time of each stage": ", ".join(f"{name} {spent:.1f} ms" for name, spent in told["milliseconds"].items()),
            "shares are for": ", ".join(f"{name} = {value}" for name, value in told["assumed"].items()),
            "C compiler": told.get("compiler", ""),
            "time of a call": measured_in_words(told) if self.is_timed else "",
        }
        titles = (
            "loops that threads share",
            "temporary arrays",
            "array copies inside loops",
            "stores into",
            "captured",
        )
        for title in (*titles, "GPU kernels"):
            parts[title] = "\n".join(told.get(title, []))
        cells = "".join(
            f"<div><dt>{escape(title)}</dt><dd>{_broken(text)}</dd></div>" for title, text in parts.items() if text
        )
        relied = "".join(f"<li>{escape(line)}</li>" for line in told["relied on"])
        more = f'<details class="more"><summary>relied on</summary><ul>{relied}</ul></details>' if relied else ""
        return f'<dl class="facts">{cells}</dl>{more}'

    def times(self) -> str:
        """The parts that are timed, in their order, beside what is counted of them."""
        if not self.is_timed:
            return ""
        rows = "".join(
            f"<tr><td>{duration(row['milliseconds'])}</td><td>{row['share']:.1f} %</td><td>{row['counted']:.1f} %</td>"
            f"<td><code>{escape(row['part'])}</code></td><td>{self.links(row['lines'])}</td></tr>"
            for row in self.told["measured"]["parts"]
        )
        head = "".join(f"<th>{title}</th>" for title in ("time", "measured", "counted", "part", "lines"))
        return (
            f'<details class="more"><summary>time of each part</summary><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></details>"
        )

    def links(self, lines: Sequence[Sequence[Any]]) -> str:
        return ", ".join(f'<a href="#{self.key((file, line))}">{line}</a>' for file, line, _ in lines)

    # ---- the user's lines ------------------------------------------------------------------------

    def block(self, block: Block) -> str:
        name = f"<code>{escape(block.name)}</code> " if block.name else ""
        tools = (
            '<span class="tools" hidden><button class="open">open all</button>'
            '<button class="close">close all</button></span>'
        )
        rows = "".join(self.line((block.file, number), row) for number, row in zip(block.lines, block.rows))
        return f'<h3>{tools}{name}<small>{escape(block.file)}</small></h3><div class="source code">{rows}</div>'

    def key(self, line: Line) -> str:
        return f"f{self.number}-{self.files.index(line[0])}-L{line[1]}"

    def shade(self, lines: Iterable[Line]) -> str:
        """The colour of a line, or of what came from several."""
        share = max((self.costs[line]["share"] for line in lines if line in self.costs), default=0.0)
        return f" s{sum(share >= bound for bound in SHADES)}"

    def line(self, line: Line, text: str) -> str:
        cost, came = self.costs.get(line), self.came_from(line)
        share, bar = "", ""
        if cost is not None:
            share = f"{cost['share']:.1f} %"
            bar = "".join(
                f'<i class="{cause}" style="width:{part * cost["share"] / 100:.1f}%"></i>'
                for cause, part in cost["causes"].items()
            )
        head = (
            f'<span class="number">{line[1]}</span><span class="share">{share}</span>'
            f'{self.time(cost)}<span class="bar">{bar}</span><span class="text">{escape(text)}</span>'
        )
        key = self.key(line)
        if cost is None and not came:
            return f'<div class="line" id="{key}"><div class="head">{head}</div></div>'
        return (
            f'<details class="line{self.shade([line])}" id="{key}" data-lines="{key}"><summary>{head}</summary>'
            f'<div class="became">{self.cost(cost)}{self.loops_of(line)}{came}</div></details>'
        )

    def time(self, cost: Mapping[str, Any] | None) -> str:
        """The column of what is measured."""
        if not self.is_timed:
            return ""
        shown = "" if cost is None else f"{'~' * cost['divided']}{cost['measured']:.1f} %"
        return f'<span class="time">{shown}</span>'

    def timed(self, cost: Mapping[str, Any]) -> str:
        """The parts that a line is in."""
        if not self.is_timed:
            return ""
        rows, own = [], [cost["file"], cost["line"]]
        for row in self.told["measured"]["parts"]:
            others = [line[:2] for line in row["lines"] if line[:2] != own]
            if len(others) < len(row["lines"]):
                also = f"; also in it: {_numbers(others, cost['file'])}" if others else ""
                spent = f"{row['share']:.1f} % of the time, {duration(row['milliseconds'])}"
                counted = f"(counted {row['counted']:.1f} %)"
                rows.append(f"<li>{spent} {counted}: <code>{escape(row['part'])}</code>{escape(also)}</li>")
        return f"<h4>measured</h4><ul>{''.join(rows)}</ul>" if rows else ""

    def cost(self, cost: Mapping[str, Any] | None) -> str:
        if cost is None:
            return ""
        amounts = "".join(f"<li>{escape(amount)}</li>" for amount in quantities(cost))
        roles = [f"{ROLES.get(role, role)} {part:.0f} %" for role, part in cost["roles"].items()]
        split = f" ({', '.join(roles)})" if len(roles) > 1 or set(cost["roles"]) - {"primal"} else ""
        share = f"{cost['share']:.1f} % of the whole{split}"
        return f"<h4>cost of a call</h4><ul><li>{escape(share)}</li>{amounts}</ul>{self.timed(cost)}"

    def loops_of(self, line: Line) -> str:
        """The loops that a line stands in, or has made, outer before inner."""
        wanted: set[int] = set()
        for k, loop in enumerate(self.loops):
            if list(line) in loop["alone"] or loop["place"] == list(line):
                outer: int | None = k
                while outer is not None:
                    wanted.add(outer)
                    outer = self.loops[outer]["around"]
        rows = []
        for k in sorted(wanted):
            loop, depth = self.loops[k], 0
            outer = loop["around"]
            while outer is not None:
                depth, outer = depth + 1, self.loops[outer]["around"]
            others = [other for other in loop["lines"] if other != list(line)]
            said = [loop["kind"], loop["vectors"]]
            said += [f"threads share it, {loop['threads']}"] if loop["threads"] else []
            said += [f"also in it: {_numbers(others, line[0])}"] if others else []
            place = "" if loop["function"] == "entry" else f'<span class="tag">{escape(loop["function"])}</span>'
            words = escape("; ".join(filter(None, said)))
            rows.append(
                f'<li style="margin-left:{1.5 * depth}em"><code>{escape(loop["loop"])}</code>{place}<br>{words}</li>'
            )
        return f'<h4>loops</h4><ul class="loops">{"".join(rows)}</ul>' if rows else ""

    def came_from(self, line: Line) -> str:
        """The rows of each stage that came from a line."""
        found = []
        for stage, rows in self.stages.items():
            picked, before = [], None
            for k, row in enumerate(rows):
                if line in _lines_of(row):
                    if before is not None and k != before + 1:
                        picked.append('<span class="faint">...</span>')
                    role = ROLES.get(row.span.role, row.span.role) if row.span is not None else "value"
                    picked.append(escape(row) + (f'<span class="tag">{role}</span>' if role != "value" else ""))
                    before = k
            if picked:
                found.append(f"<h4>{stage}</h4><pre>{chr(10).join(picked)}</pre>")
        return "".join(found)

    def elsewhere(self) -> str:
        rest = [cost for cost in self.told["lines"] if not cost["line"]]
        return "".join(f"<p class='note'>In no line: {escape(', '.join(quantities(cost)))}.</p>" for cost in rest)

    # ---- the stages ------------------------------------------------------------------------------

    def stage_panel(self) -> str:
        """All of each stage, one of which is shown."""
        tabs, bodies, shown = [], [], []
        for k, (stage, why) in enumerate(STAGES.items()):
            name = f"f{self.number}-{stage}"
            radio = f'type="radio" name="f{self.number}" id="{name}-tab"{" checked" if not k else ""}'
            tabs.append(f'<input {radio}><label for="{name}-tab">{stage}</label>')
            refusal = self.refusals.get(stage)
            rows = f'<pre class="error">{escape(refusal)}</pre>' if refusal else self.stage_rows(self.stages[stage])
            bodies.append(f'<div class="stage" id="{name}"><div class="note">{why}</div>{rows}</div>')
            shown.append(f"#{name}-tab:checked ~ #{name}")
        style = f"<style>{', '.join(shown)} {{ display: block; }}</style>"
        return f'<div class="stages">{style}{"".join(tabs)}{"".join(bodies)}</div>'

    def stage_rows(self, rows: Sequence[Row]) -> str:
        """What stands in front of the first function is folded."""
        starts = (k for k, row in enumerate(rows) if row.span is not None)
        first = next(starts, 0)
        while first and not rows[first].startswith(("def ", "cdef ")):
            first -= 1
        head, body = ("".join(map(self.row, part)) for part in (rows[:first], rows[first:]))
        folded = f'<details class="more"><summary>{first} lines before</summary>{head}</details>' if first > 8 else head
        return f'<div class="code">{folded}{body}</div>'

    def row(self, row: Row) -> str:
        lines = _lines_of(row)
        if not lines:
            return f'<div class="row"><span></span><span>{escape(row)}</span></div>'
        keys = " ".join(map(self.key, lines))
        number = f'<a href="#{self.key(lines[0])}">{lines[0][1]}</a>'
        return f'<div class="row{self.shade(lines)}" data-lines="{keys}">{number}<span>{escape(row)}</span></div>'


def _stage_rows(of: Explained) -> tuple[dict[str, list[Row]], dict[str, str]]:
    """The rows of each stage, which know their lines; and why there are none."""
    core, loops = show(of.function, comments=False), python_loops(of.scheduled)
    texts: dict[str, tuple[str, Mapping[int, Span], Mapping[int, tuple[Span, ...]]]] = {}
    refusals: dict[str, str] = {}
    for stage, text in (("core", core), ("loops", loops)):
        texts[stage] = text, getattr(text, "places", {}), getattr(text, "also", {})
    texts["cython"] = of.emitted.text, of.emitted.places, of.emitted.also
    try:
        numpy = numpy_module(of.fun, of.program.with_function(of.function))
        texts["numpy"] = numpy, getattr(numpy, "places", {}), getattr(numpy, "also", {})
    except SourceError as problem:
        texts["numpy"], refusals["numpy"] = ("", {}, {}), str(problem)
    made: dict[str, list[Row]] = {}
    for stage in STAGES:
        text, places, also = texts[stage]
        made[stage] = []
        for number, line in enumerate(text.rstrip("\n").split("\n"), 1):
            row = Row(line)
            row.span, row.also = places.get(number), also.get(number, ())
            made[stage].append(row)
    return made, refusals


def _lines_of(row: Row) -> list[Line]:
    spans = [span for span in (row.span, *row.also) if span is not None]
    return list(dict.fromkeys((span.file, span.line) for span in spans))


def _numbers(lines: Sequence[Sequence[Any]], file: str) -> str:
    """`lines 3, 4`; with the names of other files."""
    texts = [str(n) if name == file else f"{Path(name).name}:{n}" for name, n in lines]
    return f"line{'s' * (len(texts) > 1)} {', '.join(texts)}"


def _broken(text: str) -> str:
    return "<br>".join(map(escape, text.split("\n")))


__all__ = ["page"]
