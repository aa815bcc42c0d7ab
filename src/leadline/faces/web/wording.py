"""What the live page says in sentences: what is open, how a source fares, how old something is."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from leadline.core.model.capture import NS_PER_S
from leadline.core.model.finding import iso
from leadline.core.model.units import duration, several

if TYPE_CHECKING:
    from leadline.app.watch.sources import SourceHealth
    from leadline.app.watch.views import IncidentStory, WatchHead

LATE_S_MIN = 0.5  # of a sample; less is the scheduler's


def headline(head: WatchHead) -> str:
    """What is open, in a sentence."""
    if head.incidents:
        count = len(head.incidents)
        return f"{several(count, 'incident')} {'is' if count == 1 else 'are'} open."
    if not head.judged_ns:
        return "The watch has just started. It needs a few seconds of samples."
    if head.is_stale:
        return "No incident is open, but the watch is behind."
    if head.down:
        return f"No incident is open, but {several(len(head.down), 'source')} {_is(head.down)} down."
    return "No incident is open."


def head_state(head: WatchHead) -> str:
    """The colour of the headline: the class of a state."""
    if head.incidents:
        return head.incidents[0].severity.label
    if not head.judged_ns:
        return "unexamined"
    return "suspected" if head.is_stale or head.down or head.lost_count else "cleared"


def head_notes(head: WatchHead) -> list[str]:
    """Why the page may not show all that is wrong."""
    notes = []
    if head.is_stale and head.judged_ns:
        notes.append(f"The newest judgement is of {clock(head.judged_ns)} UTC. Nothing later is known.")
    elif head.is_stale:
        notes.append("No samples have come yet. See what the sources say below.")
    notes += [
        f"Source {one.name} has been down since {clock(one.since_ns)} UTC and is not judged meanwhile: {one.error}"
        for one in head.down
    ]
    if head.lost_count:
        notes.append(
            f"{several(head.lost_count, 'reading')} could not be stored and {'is' if head.lost_count == 1 else 'are'} "
            "lost. Free some space on the disk of the store."
        )
    return notes


def source_state(source: SourceHealth, now_ns: int) -> tuple[str, str]:
    """How a source fares: the class of a state, and a sentence."""
    if source.is_up is None:
        return "unexamined", f"not tried yet{f': {source.error}' if source.error else ''}"
    since = duration((now_ns - source.since_ns) / NS_PER_S)
    if not source.is_up:
        return "convicted", f"down for {since}: {source.error}"
    if source.late_s > max(LATE_S_MIN, source.every_s / 2):
        return "suspected", f"up for {since}, {source.late_s:.1f} s late"
    return "cleared", f"up for {since}"


def taken_text(taken_by: str) -> str:
    """Who takes care of an incident."""
    return f"taken by {taken_by}" if taken_by else "nobody has taken it"


def lasted(opened_ns: int, closed_ns: int | None, now_ns: int) -> str:
    """How long an incident lasted or has lasted.

    >>> lasted(0, None, 90_000_000_000), lasted(0, 600_000_000_000, 0)
    ('for 90 s', '10 min long')
    """
    if closed_ns is None:
        return f"for {duration(max(now_ns - opened_ns, 0) / NS_PER_S)}"
    return f"{duration((closed_ns - opened_ns) / NS_PER_S)} long"


def diagnose_command(story: IncidentStory, store: str) -> str:
    """The command that diagnoses the recording of an incident, or its span of the store where it is not written yet."""
    if story.capture is not None:
        return f"leadline diagnose {shlex.quote(str(story.capture))} --html report.html"
    start, end = (iso(time_ns)[:19] for time_ns in story.span_ns)
    return f"leadline diagnose {shlex.quote(f'store:{store}')} --from {start} --to {end} --html report.html"


def clock(time_ns: int) -> str:
    """The time of day, UTC.

    >>> clock(0)
    '00:00:00'
    """
    return iso(time_ns)[11:19]


def moment(time_ns: int) -> str:
    """Day and time, UTC.

    >>> moment(0)
    '1970-01-01 00:00:00'
    """
    return iso(time_ns)[:19].replace("T", " ")


def size(size_bytes: float) -> str:
    """An amount of storage for people.

    >>> size(12_345_678), size(999_592), size(999)
    ('12.3 MB', '1,000 kB', '999 bytes')
    """
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= factor:
            amount = size_bytes / factor
            return f"{amount:,.0f} {unit}" if amount >= 100 else f"{amount:.3g} {unit}"
    return f"{size_bytes:.0f} bytes"


def _is(several_of: tuple[object, ...]) -> str:
    return "is" if len(several_of) == 1 else "are"
