"""Spans of time as people write them: FROM..TO, each a moment, a time of day or seconds from the recording's start."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.incidents import told_incident
from leadline.core.contracts.importer import Request
from leadline.core.io.clock import to_ns
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.finding import Window, iso

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture

EXAMPLE = "For example 10:00:36..10:01:05, 120s..170s or 2026-11-20T10:00:36Z..2026-11-20T10:01:05Z."
FORM = "FROM..TO: moments, times of day, or seconds from the start of the recording"
SAMPLE_COUNT_MIN = 2
SLACK_NS = 1_000_000_000  # times are printed in whole seconds
_DAYS_MAX = 400  # a time of day in a longer recording needs its date


def asked_spans(
    capture: Capture, incident: str | None, normal: str | None, timezone: str | None = None
) -> tuple[Window | None, Window | None]:
    """The incident and the normal a user asks for with ``--incident`` and ``--normal``, each None where not asked.

    Raises:
        UsageError: a text is no span of the recording, the two overlap, or nothing is left to compare with.
    """
    if incident is None:
        if normal is not None:
            raise UsageError(
                "--normal", found="no --incident", expected="both", advice="Say with --incident when it was bad."
            )
        return None, None
    bad = span_of(incident, capture, "--incident", timezone)
    if normal is None:
        _check_samples(capture, told_incident(capture, bad).normal, "--incident")
        return bad, None
    usual = span_of(normal, capture, "--normal", timezone)
    if bad.overlaps(usual):
        raise UsageError(
            "--normal",
            found=f"{iso(usual.start_ns)} to {iso(usual.end_ns)}, which overlaps the incident",
            expected="a span before or after it",
            advice="End it where the incident starts, or start it where the incident ends.",
        )
    return bad, usual


def span_of(text: str, capture: Capture, option: str, timezone: str | None = None) -> Window:
    """The span of a recording that a text means.

    Args:
        text: ``FROM..TO``; what has no zone is in ``timezone``, else UTC.
        capture: the recording.
        option: what the text was given as, for the error.
        timezone: IANA name.

    Raises:
        UsageError: the text is no span, or not one of this recording with two samples in it.
    """
    whole = capture.span_ns()
    if whole is None:
        raise UsageError(
            option, found="recordings without times", expected="a recording over time", advice=f"Leave {option} out."
        )
    first, dots, last = text.partition("..")
    if not dots:
        raise UsageError(option, found=repr(text), expected=FORM, advice=EXAMPLE)
    request = Request(timezone=timezone)
    start, end = (_moment(part.strip(), whole, request, option) for part in (first, last))
    if end <= start:
        raise UsageError(
            option,
            found=f"{text}, which ends at {iso(end)} and starts at {iso(start)}",
            expected="a span that ends after its start",
            advice="Exchange the two times." if end < start else "Give a later end.",
        )
    recorded = f"the recording, {iso(whole[0])} to {iso(whole[1])}"
    if start < whole[0] - SLACK_NS or end > whole[1] + SLACK_NS:
        raise UsageError(
            option,
            found=f"{iso(start)} to {iso(end)}",
            expected=f"a span of {recorded}",
            advice="Give times of the recording; --timezone says which zone yours are in.",
        )
    window = Window(start, end)
    _check_samples(capture, (window,), option)
    return window


def _check_samples(capture: Capture, windows: tuple[Window, ...], option: str) -> None:
    """Refuse spans in which no series has two samples.

    Raises:
        UsageError: there is none.
    """
    most = max((_sample_count(group.times_ns, windows) for group in capture.groups), default=0)
    if most < SAMPLE_COUNT_MIN:
        spans = " and ".join(f"{iso(window.start_ns)} to {iso(window.end_ns)}" for window in windows)
        raise UsageError(
            option,
            found=f"{most or 'no'} sample{'s' * (most != 1)} {f'in {spans}' if spans else 'outside it'}",
            expected=f"at least {SAMPLE_COUNT_MIN} samples to compare",
            advice="Give a longer span, or record with a shorter interval.",
        )


def _sample_count(times_ns: NDArray[np.int64], windows: tuple[Window, ...]) -> int:
    return sum(int(np.count_nonzero((times_ns > w.start_ns) & (times_ns <= w.end_ns))) for w in windows)


def _moment(text: str, whole: tuple[int, int], request: Request, option: str) -> int:
    """UTC nanoseconds of one end of a span."""
    from leadline.core.model.workload import seconds_of  # noqa: PLC0415 - pydantic, only where a time was given

    try:
        return whole[0] + round(seconds_of(text) * 1e9)
    except ValueError:
        pass
    try:
        clock = time.fromisoformat(text)
    except ValueError:
        clock = None
    if clock is not None:
        return _on_a_day(clock, text, whole, request, option)
    try:
        return to_ns(datetime.fromisoformat(text), request)
    except (ValueError, InputError):
        raise UsageError(option, found=f"the time {text[:40]!r}", expected=FORM, advice=EXAMPLE) from None


def _on_a_day(clock: time, text: str, whole: tuple[int, int], request: Request, option: str) -> int:
    """The moment of a time of day on the recording's day; of two days, on the one on which it was recorded."""
    days = _days(whole)
    moments = [to_ns(datetime.combine(day, clock), request) for day in days]
    recorded = [moment for moment in moments if whole[0] - SLACK_NS <= moment <= whole[1] + SLACK_NS]
    if len(recorded) > 1:
        raise UsageError(
            option,
            found=f"{text}, which the recording has on {len(recorded)} days",
            expected="one moment",
            advice=f"Write the date too: {days[1].isoformat()}T{text}.",
        )
    return recorded[0] if recorded else moments[1]


def _days(whole: tuple[int, int]) -> list[date]:
    """The days of a recording, and one before and after, since zones differ from UTC by up to 14 hours."""
    first, last = (datetime.fromtimestamp(ns / 1e9, UTC).date() for ns in whole)
    count = min((last - first).days, _DAYS_MAX) + 3
    return [first + timedelta(days=number - 1) for number in range(count)]
