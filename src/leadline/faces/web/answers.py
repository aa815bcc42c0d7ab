"""The first screen of an answer, as it is kept with an incident, taken apart again so that it fits any width.

It was laid out by `faces/words/live` at 76 columns. A line that ends although its next word would have fitted is the
end of a sentence or a command; any other end of a line is a fold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from leadline.faces.words.live import WIDTH
from leadline.faces.words.screen import LABEL_WIDTH

_MARGIN = 2
_STEP = re.compile(r"(Do|Sure\?)? +(.*)")
_NUMBERED = re.compile(r"\d{1,2}\. ")


@dataclass(slots=True)
class AnswerRow:
    """A label, empty where it is that of the row before, and its text."""

    label: str
    text: str
    is_command: bool = False


def answer_rows(text: str) -> tuple[str, list[AnswerRow]]:
    r"""The first sentence of an answer, and its rows.

    >>> lead, rows = answer_rows("It is slow.\n\n  Users     9 -> 3/s\n\nDo     Move it.")
    >>> lead, [(row.label, row.text) for row in rows]
    ('It is slow.', [('Users', '9 -> 3/s'), ('Do', 'Move it.')])
    """
    lead, *blocks = text.split("\n\n")
    rows: list[AnswerRow] = []
    for block in blocks:
        before, is_last = "", False
        for line in block.splitlines():
            label, content = _parts(line)
            word = content.split(" ", 1)[0]
            is_fold = bool(before) and not label and len(before) + 1 + len(word) > WIDTH
            if is_fold and not _NUMBERED.match(content):
                rows[-1].text += f" {content}"
            else:
                is_last = is_last or label == "Sure?"
                rows.append(AnswerRow(label, content, is_command=is_last and not label))
            before = line
    return " ".join(lead.split()), rows


def _parts(line: str) -> tuple[str, str]:
    """The label of a line and the rest of it."""
    step = _STEP.fullmatch(line)
    if step is not None and step[1]:
        return step[1], step[2]
    end = _MARGIN + LABEL_WIDTH
    label = line[_MARGIN:end]
    if line[:_MARGIN].strip() or not label.endswith(" ") or not label[:1].strip() or "  " not in label:
        return "", line.strip()
    return label.strip(), line[end:].strip()
