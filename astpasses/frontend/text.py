"""Text that shows staged values: the template is known, the values are filled in when the program runs.

In: an f-string's parts. Out: a `Text`, which messages of `raise`, `assert` and `print` take apart again.
"""

from __future__ import annotations

from typing import Any


class Text(str):
    """`template` holds a `{}` for each of `values`."""

    template: str
    values: tuple


def staged_text(template: str, values: tuple) -> Any:
    """`template.format(*values)`, put off for the values that are staged scalars."""
    from .values import Number, Staged, StagedArray

    if not any(isinstance(v, Staged) for v in values):
        return template.format(*values)
    pieces: list[str] = []
    shown: list[Any] = []
    import string

    at = iter(values)
    for literal, field, spec, conversion in string.Formatter().parse(template):
        pieces.append(literal.replace("{", "{{").replace("}", "}}"))
        if field is None:
            continue
        value = next(at)
        hole = "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
        if isinstance(value, StagedArray) and value.ndim:
            hole = f"<array {value.type}>"
            pieces.append(hole)
        elif isinstance(value, (Number, StagedArray)):
            pieces.append(hole)
            shown.append(value)
        else:
            pieces.append(hole.format(value).replace("{", "{{").replace("}", "}}"))
    made = Text("".join(pieces))
    made.template, made.values = "".join(pieces), tuple(shown)
    return made
