"""`mp.explain(...).timed()`: times add up, a part that is slow is seen to be, and a call leaves no trace."""

from __future__ import annotations

import re

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.emit.cython_laps import emit_timed
from metaphrase.astpasses.emit.cython_text import emit
from metaphrase.astpasses.schedule.laps import with_laps
from metaphrase.explanation import explained

from .test_explanation import Page

TOTAL = np.zeros(3)


def waits(x, k):
    """Costs are counted for 256 rounds of the loop."""
    y = np.exp(x)
    s = 0.0
    while k > 0:
        s = s * 0.5 + 1.0
        k = k - 1
    return y.sum() + s


def steps(x, v, n):
    for _ in range(n):
        x = x + 0.01 * v
        v = v - np.cumsum(np.sin(x))
        v = v - np.sort(v)
    return x


def stored(x):
    x[:] = np.cumsum(x)
    return x.sum()


def said(x):
    print("said", x[0])
    return np.sum(x)


def added(x):
    TOTAL[:] = TOTAL + x
    return x


def test_a_part_that_is_slow_is_seen_to_be():
    facts = mp.explain(waits, np.ones(1000), 2_000_000).timed().facts
    (loop,) = [line for line in facts["lines"] if line["text"].startswith("s = s * 0.5")]
    assert loop["share"] < 20 and loop["measured"] > 50
    parts = facts["measured"]["parts"]
    assert sum(part["share"] for part in parts) == pytest.approx(100)
    assert sum(part["counted"] for part in parts) == pytest.approx(100)
    assert sum(part["milliseconds"] for part in parts) == pytest.approx(facts["measured"]["milliseconds"])
    assert sum(line["measured"] for line in facts["lines"]) == pytest.approx(100, abs=0.1)  # clocks are nobody's
    assert 0.5 < facts["measured"]["milliseconds"]  # two million rounds, each behind the other


def test_time_grows_with_the_rounds():
    ratios = []
    for _ in range(4):  # other processes may hold the processor
        short, long = (mp.explain(waits, np.ones(10), k).timed().facts["measured"] for k in (200_000, 2_000_000))
        ratios.append([long[of] / short[of] for of in ("milliseconds", "as called")])
        if all(5 < ratio < 20 for ratio in ratios[-1]):
            return
    raise AssertionError(ratios)


def test_parts_of_long_rounds_are_timed_and_those_of_short_ones_are_not():
    long = mp.explain(steps, "f64[n], f64[n], i64").timed(np.ones(3000), np.ones(3000), 20).facts
    shares = {part["part"]: part["share"] for part in long["measured"]["parts"]}
    assert shares["sort"] > 5 and max(shares.values()) < 95 and long["assumed"]["n"] == 3000
    short = mp.explain(steps, "f64[n], f64[n], i64").timed(np.ones(3), np.ones(3), 20).facts
    assert max(part["share"] for part in short["measured"]["parts"]) > 80


def test_a_call_leaves_no_trace(capsys):
    x = np.arange(3.0)
    assert mp.explain(stored, x).timed().facts["measured"]["runs"] > 1
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert mp.explain(said, x).timed().facts["measured"]["runs"] == 1
    assert capsys.readouterr().out == "said 0.0\n"


REFUSED = {
    "types": (stored, ("f64[n]",), (), "there are only types of them"),
    "another type": (stored, ("f64[n]",), (np.ones(3, np.float32),), r"explained for \(x: f64\[n\]\), and timed with"),
    "another size": (stored, ("f64[3]",), (np.ones(4),), "made for other sizes"),
    "another structure": (stored, ("f64[n]",), ((np.ones(3),),), "explained for"),
    "a store elsewhere": (added, (np.ones(3),), (), "stores into an array that it is not given"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_can_not_be_timed_is_refused(what):
    function, types, values, message = REFUSED[what]
    with pytest.raises(TypeError, match=message):
        mp.explain(function, *types).timed(*values)
    assert not TOTAL.any()


def test_python_numbers_are_taken_where_types_say_so():
    facts = mp.explain(waits, "f64[n], i64").timed(np.ones(10), 20).facts
    assert facts["assumed"]["n"] == 10 and facts["measured"]["runs"] > 1


def test_what_fails_raises_as_in_a_call():
    def picked(x, i):
        return x[i]

    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        mp.explain(picked, np.ones(3), 5).timed()


def test_clocks_change_nothing_else_in_the_text():
    of = explained(steps, "f64[n], f64[n], i64")
    program, parts = with_laps(of.whole, lambda costs: True)
    text = emit_timed(program).text
    assert text.count("mp_lap(") == len(parts) + 3 and len(parts) >= 4  # the last, the function, its declaration
    plain = emit(of.whole).text
    start = "cdef int entry("
    assert re.sub(r" +mp_lap\(\d+\)\n", "", text[text.index(start) :]) == plain[plain.index(start) :]


def test_the_page_has_both_columns():
    explanation = mp.explain(steps, "f64[n], f64[n], i64")
    assert "<table>" not in explanation.html() and "class=timed" not in explanation.html()
    timed = explanation.timed(np.ones(300), np.ones(300), 20)
    text = timed.html()
    Page(text)  # well-formed
    assert "class=timed" in text and "The second percentage is measured" in text
    for part in timed.facts["measured"]["parts"]:
        assert f"<td>{part['share']:.1f} %</td><td>{part['counted']:.1f} %</td>" in text
    assert len(re.findall(r'<span class="time">~?\d+\.\d %</span>', text)) == sum(
        bool(line["line"]) for line in timed.facts["lines"]
    )
    assert "measured: " in timed and "in parts, with whole loops" in timed
