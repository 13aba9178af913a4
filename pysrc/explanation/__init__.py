"""What a function became: `mp.explain(f, *args)`, as text and as a page.

In: a function (or a transformed one) and arguments or stand-ins for them. Out: an `Explanation`, which is the text.
Example:

    explanation = explain(lu, "f64[n, n]")
    print(explanation)
    Path("lu.html").write_text(explanation.html())
    print(explanation.timed(np.random.rand(300, 300)))      # with the time that each part takes
"""

from __future__ import annotations

import html
from typing import Any

from ..api.tracebacks import user_frames
from .facts import Explained, NotTimed, explained, report
from .page import page


class Explanation(str):
    """A report. A notebook shows it as a page."""

    _of: Explained

    @property
    def facts(self) -> dict[str, Any]:
        """What the report says, by title: texts, lists of texts, numbers."""
        return self._of.told

    def html(self) -> str:
        """A page that stands by itself: the lines, in colours of what they cost, beside what became of them."""
        return page([self._of])

    def timed(self, *args: Any, **kwargs: Any) -> Explanation:
        """With the time that each part takes, in a call with these arguments; without any, with those that were given
        to `explain`, if they were arrays and no types."""
        with user_frames():
            self._of.time(args, kwargs)
        made = Explanation(report(self._of.told))
        made._of = self._of
        return made

    def _repr_html_(self) -> str:
        """The page in a frame, whose style does not reach the notebook's."""
        frame = "width: 100%; height: 40em; resize: vertical; border: 1px solid #8884"
        return f'<iframe srcdoc="{html.escape(self.html())}" style="{frame}"></iframe>'

    def __repr__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple:
        return str, (str(self),)


def explain(fun: Any, /, *args: Any, **kwargs: Any) -> Explanation:
    """See the head of this file."""
    with user_frames():
        found = explained(fun, *args, **kwargs)
    made = Explanation(report(found.told))
    made._of = found
    return made


__all__ = ["Explained", "Explanation", "NotTimed", "explain", "explained", "page", "report"]
