"""Each incident is recorded in a file of its own, with the samples from 10 minutes before it to 10 minutes after it.

The file is written while the incident goes on. It is written anew when it has grown by half, when the incident is over,
and 10 minutes after that. To bound the cost, a long incident is recorded for its first hours, a recording of a large
estate has only what is around the incident, and writing takes a few seconds of each minute. The store has the rest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.app.watch.surroundings import Surroundings
from leadline.core.io.parquet import save
from leadline.core.io.private import private_folder
from leadline.core.model.capture import NS_PER_S, Capture, Warn
from leadline.core.model.errors import LeadlineError

if TYPE_CHECKING:
    from leadline.stores.incidents import LiveIncident
    from leadline.stores.samples import SampleStore
    from leadline.stores.victoriametrics import VictoriaMetricsStore

BEFORE_S, AFTER_S = 600.0, 600.0
SPAN_S_MAX = 4 * 3600.0  # Judgement: whoever looks for a cause looks at the beginning
SERIES_MAX = 20_000  # of a window with more, only what is around an incident is recorded
GROWN_SHARE = 0.5  # of what a recording has, until it is written anew
ROUND_S = 10.0  # what writing may take of each minute
QUOTA_SHARE = 0.1  # of the bytes that a store may have: what recordings may take beside it


@dataclass(slots=True)
class _Waiting:
    """An incident whose recording is not complete, and until when it reaches, UTC nanoseconds; 0 for none."""

    incident: LiveIncident
    until_ns: int = 0

    @property
    def start_ns(self) -> int:
        return self.incident.opened_ns - _ns(BEFORE_S)

    def end_ns(self, now_ns: int) -> int:
        """Until when a recording that is written now reaches."""
        closed_ns = self.incident.closed_ns
        end_ns = now_ns if closed_ns is None else min(closed_ns + _ns(AFTER_S), now_ns)
        return min(end_ns, self.start_ns + _ns(SPAN_S_MAX))

    def is_complete(self) -> bool:
        """Whether nothing will be added to it."""
        closed_ns = self.incident.closed_ns
        return closed_ns is not None and self.until_ns >= self.end_ns(closed_ns + _ns(AFTER_S))

    def is_due(self, now_ns: int) -> bool:
        """Whether it should be written anew."""
        end_ns, closed_ns = self.end_ns(now_ns), self.incident.closed_ns
        if end_ns <= self.until_ns:
            return False
        has_grown = end_ns - self.until_ns >= GROWN_SHARE * (self.until_ns - self.start_ns)
        is_last = end_ns == self.start_ns + _ns(SPAN_S_MAX)
        if closed_ns is not None:
            is_last |= self.until_ns <= closed_ns or end_ns == closed_ns + _ns(AFTER_S)
        return not self.until_ns or has_grown or is_last


@dataclass(eq=False)
class IncidentCaptures:
    """The recordings of incidents in a folder. One thread may take incidents while another one writes.

    Args:
        folder: where they are; each is called by its incident.
        store: that they are taken from.
        bytes_max: of all of them; the oldest go first.
    """

    folder: Path
    store: SampleStore | VictoriaMetricsStore
    bytes_max: int
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take_up(self, incidents: Iterable[LiveIncident]) -> None:
        """Go on with what the last watch had not completed."""
        for incident in incidents:
            path, until_ns = self.path(incident.id), 0
            with suppress(OSError):
                until_ns = path.stat().st_mtime_ns  # whatever it has is from before that
            self._waiting[incident.id] = _Waiting(incident, until_ns)

    def take(self, incident: LiveIncident) -> None:
        """An incident as it is now."""
        with self._lock:
            known = self._waiting.get(incident.id)
            if known is not None:
                known.incident = incident
            elif incident.is_open:
                self.take_up([incident])

    def path(self, number: str) -> Path:
        """Where the recording of an incident is, or will be."""
        return self.folder / f"{number}.parquet"

    def write_due(self, now_ns: int, window: Callable[[], Capture]) -> Iterator[str]:
        """Write what is due, those without a recording first, for as long as a round may take; the id of each.

        Args:
            now_ns: the time of the newest sample, UTC nanoseconds.
            window: gives the live window, of which entities and settings are looked at.

        Raises:
            LeadlineError: one could not be written; the others were tried.
        """
        with self._lock:
            self._waiting = {number: one for number, one in self._waiting.items() if not one.is_complete()}
            due = [one for one in self._waiting.values() if one.is_due(now_ns)]
        due.sort(key=lambda one: (one.until_ns > 0, one.incident.is_open, one.incident.opened_ns))
        if not due:
            return
        end, failure, seen = time.monotonic() + ROUND_S, None, window()
        for one in due:
            try:
                self._write(one, now_ns, seen)
            except LeadlineError as error:
                failure = error
            else:
                yield one.incident.id
            if time.monotonic() > end:
                break
        self._keep_to_quota()
        if failure is not None:
            raise failure

    def _write(self, one: _Waiting, now_ns: int, window: Capture) -> None:
        incident, start_ns, end_ns = one.incident, one.start_ns, one.end_ns(now_ns)
        notes = []
        if window.series_count > SERIES_MAX:
            around = Surroundings.of(incident.places, window.inventory)
            columns = {id(group.entities): group.entities for group in window.groups}.values()
            entities = {entity for column in columns for entity in column if around.holds(entity)}
            capture = self.store.read(start_ns, end_ns, entities=entities, settings=False)
            capture = replace(capture, inventory=around.of_inventory(window.inventory))
            notes.append(
                Warn("part", "of what shares a host, a datastore or a device with the incident", len(entities))
            )
        else:
            capture = self.store.read(start_ns, end_ns)
        if end_ns == start_ns + _ns(SPAN_S_MAX):
            notes.append(
                Warn("part", f"the first {SPAN_S_MAX / 3600:.0f} hours of a longer incident; the store has the rest")
            )
        if notes and capture.sources:
            last = capture.sources[-1]
            capture.sources[-1] = replace(last, warnings=(*last.warnings, *notes))
        private_folder(self.folder)
        save(capture, self.path(incident.id))
        one.until_ns = end_ns

    def _keep_to_quota(self) -> None:
        """Remove the oldest recordings beyond the quota, but none that is still written."""
        sizes = {path: path.stat().st_size for path in sorted(self.folder.glob("*.parquet"))}
        size = sum(sizes.values())
        for path, size_bytes in sizes.items():
            if size <= self.bytes_max:
                return
            if path.stem not in self._waiting:
                path.unlink(missing_ok=True)
                size -= size_bytes


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)
