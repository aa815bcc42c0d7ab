"""Unit docstrings: a first paragraph and fixed headings; they are the unit's page, help text and remedy."""

from __future__ import annotations

import inspect
import re

HEADINGS = {
    "importer": ("Reads", "Sample", "Lost", "Units", "Sources"),
    "rule": ("Finds", "Why", "Do", "When it is wrong", "Sources"),
    "collector": ("Collects", "Cost", "Late or missing data", "Sources"),
    "target": ("Changes", "Undo", "Unsafe ranges", "Sources"),
    "benchmark": ("Measures", "Does not", "Warm-up and stopping", "Misleads when", "Sources"),
    "scenario": ("Model", "Assumptions", "Parameters", "Limits", "Sources"),
    "experiment": ("Setup", "Run", "Limits"),
    "planner": ("Answers", "Method", "Assumptions", "Bends", "Sources"),
    "notifier": ("Sends", "Settings", "When it fails", "Sources"),
    "guide": ("For", "Ends", "Sources"),
    "fault": ("Injects", "Seen as", "Parameters", "Sources"),
}
_HEADING = re.compile(r"^([A-Z][A-Za-z -]+):$")


def sections(doc: str | None) -> dict[str, str]:
    r"""Heading -> text, in order; the text before the first heading is under ``""``. A heading is ``Word:`` on a line
    of its own.

    >>> sections('One.\n\nFinds:\n    A thing.')
    {'': 'One.', 'Finds': 'A thing.'}
    """
    parts: dict[str, list[str]] = {"": []}
    current = ""
    for line in inspect.cleandoc(doc or "").splitlines():
        match = _HEADING.match(line)
        if match:
            current = match[1]
            parts[current] = []
        else:
            parts[current].append(line)
    return {name: inspect.cleandoc("\n".join(lines)).strip() for name, lines in parts.items()}


def flowed(text: str) -> str:
    """A text with its line breaks turned into spaces."""
    return " ".join(text.split())


def paragraphs(text: str, *, itemised: bool = False) -> list[str]:
    """A section's paragraphs, each on one line; in an itemised section (*Sources*) a full stop at a line's end ends
    an item. Indented blocks (samples) are kept as they are.
    """
    blocks: list[str] = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if any(line.startswith((" ", "..")) for line in lines):
            blocks.append(block)
            continue
        items = [""]
        for line in lines:
            if itemised and items[-1].endswith("."):
                items.append("")
            items[-1] = f"{items[-1]} {line.strip()}".strip()
        blocks.extend(items)
    return [block for block in blocks if block.strip()]


def title(doc: str | None) -> str:
    """The first paragraph as one line."""
    return flowed(sections(doc)[""].split("\n\n")[0])
