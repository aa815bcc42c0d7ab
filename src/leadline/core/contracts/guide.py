"""The contract of guides: a file in ``guides/`` with ``META``, the steps that people walk in this order.

A guide's docstring carries the headings *For, Ends, Sources*. It computes nothing: a step names rules, what to record
and what to do by hand; recordings that the user gives say what each step shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class GuideStep:
    """One step.

    Attributes:
        title: a few words.
        look: what to look at and how to judge it, in a sentence or two.
        rules: names of the rules that answer it, the most telling first.
        record: commands that record what it needs.
        advice: rows of advice (their names in the catalogue) that no rule can check.
        by_hand: what no recording shows and people must look at themselves.
        shows: settings of an inventory that are listed at the step, as ``virtual-disk.vsan_placement``.
    """

    title: str
    look: str
    rules: tuple[str, ...] = ()
    record: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GuideMeta:
    """What is known about a guide.

    Attributes:
        about: the question it answers, a line.
        steps: in the order in which they are walked.
        is_ladder: the first step that finds something explains those after it; else the steps are a checklist.
    """

    about: str
    steps: tuple[GuideStep, ...]
    is_ladder: bool = False


class Guide(Protocol):
    """The type of a guide module."""

    META: GuideMeta
