"""What a reader may have of an incident: all of it, the fault alone, twenty seconds of it, or one recorder's files.

Each file is imported once; views combine and cut what was imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benches.incidents.recordings import ImportedFile, Recording, Truth, ns_of
from leadline.app.read.resolve import resolve
from leadline.core.model.capture import NS_PER_S, Capture

FULL, NO_HEALTHY, SHORT, ALONE = "full", "no-healthy", "20-s", "alone: "
SHORT_S = 20
SKIPPED_S = 2  # a fault hardly longer than the short view is taken whole
STAMP_S = 1  # tools round their times down to the second: the last sample of a fault may reach beyond its end


@dataclass(frozen=True, slots=True)
class View:
    """What a reader has: ``capture`` is None where Leadline cannot read it.

    ``is_visible`` says whether it can show the cause; without a fault there is none to show.
    """

    name: str
    capture: Capture | None
    is_visible: bool


def views(recording: Recording, names: list[str] | None = None) -> Iterator[View]:
    """The views of a recording; only some when names are given."""
    truth = recording.truth
    whole = recording.whole
    is_visible = not set(truth.visible_in).isdisjoint(truth.recorders)
    spans = spans_of(truth, whole)
    for name, span in spans.items():
        if not names or name in names:
            yield View(name, whole if span is None else whole.between(*span), is_visible)
    for recorder in truth.recorders:
        name = f"{ALONE}{recorder}"
        files = [file for file in recording.files if file.recorder == recorder]
        # Settings alone hold no incident: nobody asks them.
        if all(file.is_static for file in files) or (names and name not in names):
            continue
        readable = [file for file in files if file.capture is not None]
        yield View(name, combined(readable) if readable else None, recorder in truth.visible_in)


def combined(files: list[ImportedFile] | tuple[ImportedFile, ...]) -> Capture:
    """One capture of several files on one time line."""
    return resolve(Capture.merged(file.capture for file in files if file.capture is not None))


def spans_of(truth: Truth, whole: Capture) -> dict[str, tuple[int, int] | None]:
    """Start and end in UTC nanoseconds of each view that is cut by time; None is the whole length."""
    if truth.fault is not None:
        fault = (ns_of(truth.fault.start), ns_of(truth.fault.end) - STAMP_S * NS_PER_S)
        return {FULL: None, NO_HEALTHY: fault, SHORT: last_seconds(*fault)}
    ends = [ns_of(phase.end) for phase in truth.phases] or [(whole.span_ns() or (0, 0))[1]]
    starts = [ns_of(phase.start) for phase in truth.phases] or [(whole.span_ns() or (0, 0))[0]]
    return {FULL: None, SHORT: last_seconds(min(starts), max(ends))}


def last_seconds(start_ns: int, end_ns: int) -> tuple[int, int]:
    """The last 20 s of a span, or all of it when it is hardly longer."""
    if end_ns - start_ns <= (SHORT_S + SKIPPED_S) * NS_PER_S:
        return start_ns, end_ns
    return end_ns - SHORT_S * NS_PER_S, end_ns
