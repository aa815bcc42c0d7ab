"""What a watch says of an incident: a line for a subject or a list, and the first screen of its answer."""

from __future__ import annotations

import re
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING

from leadline.app.diagnose.grouping import grouped
from leadline.faces.words.findings import Quotes
from leadline.faces.words.screen import LABEL_WIDTH, STEP_WIDTH, Screen, screens

if TYPE_CHECKING:
    from leadline.app.watch.suspicions import Suspicion
    from leadline.core.model.capture import Capture
    from leadline.core.model.finding import Diagnosis, Finding

TITLE_MAX = 120
WIDTH = 76
CLAUSE_SHARE = 0.4  # of the length that clauses must use: less says too little
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def incident_words(diagnosis: Diagnosis, capture: Capture, suspicion: Suspicion) -> tuple[str, str]:
    """Title and text of what a watch suspects.

    Args:
        diagnosis: of the live window.
        capture: the live window.
        suspicion: one of that diagnosis.
    """
    if suspicion.answer_index is not None:
        alone = replace(diagnosis, answers=(diagnosis.answers[suspicion.answer_index],))
        (screen,) = screens(alone, Quotes(grouped(diagnosis.findings, capture)), capture.span_ns())
        return shortened(screen.lead, TITLE_MAX), laid_out(screen)
    finding = next(one for one in diagnosis.findings if one.rule == suspicion.cause and one.entity == suspicion.entity)
    return shortened(_about(finding), TITLE_MAX), _finding_text(finding)


def shortened(text: str, length: int) -> str:
    """A text's first sentences as far as they fit, else its first clauses, else its beginning.

    >>> shortened("It is the disk. It is slow.", 20)
    'It is the disk.'
    >>> shortened("The disk is capped at 30 IOPS (60/s with flushes), or it is slow itself; add one.", 60)
    'The disk is capped at 30 IOPS (60/s with flushes)'
    """
    if len(text) <= length:
        return text
    kept = ""
    for sentence in _SENTENCE.split(text):
        if len(kept) + len(sentence) + 1 > length:
            break
        kept = f"{kept} {sentence}".strip()
    return kept or _clauses(text, length) or f"{text[: length - 3].rsplit(' ', 1)[0]}..."


def _clauses(text: str, length: int) -> str:
    """The clauses of a sentence that fit; empty where not even half of that would be used."""
    depth, cut = 0, 0
    for place, character in enumerate(text[:length]):
        depth += (character == "(") - (character == ")")
        if character in ",;" and depth == 0 and text[place + 1 : place + 2] == " ":
            cut = place
    return text[:cut] if cut >= length * CLAUSE_SHARE else ""


def laid_out(screen: Screen) -> str:
    """A screen as plain text of at most 76 columns."""
    indent = " " * (LABEL_WIDTH + 2)
    rows = [fill(f"  {label:<{LABEL_WIDTH}}{text}", WIDTH, subsequent_indent=indent) for label, text in screen.rows]
    steps = [
        fill(f"{'Do' if number == 1 else '':<4}{number}. {step}", WIDTH, subsequent_indent=" " * STEP_WIDTH)
        for number, step in enumerate(screen.steps, start=1)
    ]
    record = [f"Sure?  {screen.record_when}", f"       {screen.record}"] if screen.record else []
    parts = ([fill(screen.lead, WIDTH)], rows, steps, record)
    return "\n\n".join("\n".join(part) for part in parts if part)


def _about(finding: Finding) -> str:
    """What was found and on what, once: most summaries name it."""
    label = finding.entity.label()
    return finding.summary if label in finding.summary else f"{label}: {finding.summary}"


def _finding_text(finding: Finding) -> str:
    rows = [f"  {one.statement}" for one in finding.evidence[:4]]
    head = fill(f"{_about(finding)}. Users were not seen to suffer from it.", WIDTH)
    return "\n".join([head, "", *rows, "", fill(f"Do     {finding.remedy}", WIDTH, subsequent_indent="       ")])
